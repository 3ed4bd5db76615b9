package buscontract

import (
	"context"
	"fmt"

	"github.com/settlehq/settle/model"
)

// recording is a Follow call in a goroutine of its own, and its deliveries.
type recording[T any] struct {
	w      *world
	cancel context.CancelFunc
	got    chan T
	ended  chan struct{}
	err    error // valid once ended is closed
}

// record starts to follow. The call ends with the test at the latest.
func record[T any](w *world, follow func(ctx context.Context, deliver func(T)) error) *recording[T] {
	ctx, cancel := context.WithCancel(w.ctx)
	r := &recording[T]{w: w, cancel: cancel, got: make(chan T, 1<<14), ended: make(chan struct{})}
	go func() { // ends with ctx
		defer close(r.ended)
		r.err = follow(ctx, func(v T) { r.got <- v })
	}()
	w.Cleanup(r.stop)
	return r
}

// next waits for the next delivery.
func (r *recording[T]) next() T {
	r.w.Helper()
	select {
	case v := <-r.got:
		return v
	case <-r.ended:
		r.w.Fatalf("the follower ended: %v", r.err)
	case <-r.w.ctx.Done():
		r.w.Fatal("no delivery")
	}
	panic("unreachable")
}

// take waits for n deliveries.
func (r *recording[T]) take(n int) []T {
	r.w.Helper()
	var list []T
	for range n {
		list = append(list, r.next())
	}
	return list
}

// stop ends the call and waits until it has returned.
func (r *recording[T]) stop() {
	r.cancel()
	r.awaitEnd()
}

func (r *recording[T]) awaitEnd() {
	select {
	case <-r.ended:
	case <-r.w.ctx.Done():
		r.w.Error("the follower does not end")
	}
}

// rest stops the call, and returns the deliveries that were not taken.
func (r *recording[T]) rest() []T {
	r.stop()
	close(r.got)
	var list []T
	for v := range r.got {
		list = append(list, v)
	}
	return list
}

func recordSpace(w *world, c Client, space string, after uint64) *recording[model.LogEntry] {
	return record(w, func(ctx context.Context, deliver func(model.LogEntry)) error {
		return c.FollowSpace(ctx, space, after, deliver)
	})
}

func recordLog(w *world, c Client, partition int, after uint64) *recording[model.LogEntry] {
	return record(w, func(ctx context.Context, deliver func(model.LogEntry)) error {
		return c.FollowLog(ctx, partition, after, deliver)
	})
}

func recordLane(w *world, c Client, partition int, after uint64) *recording[model.Message] {
	return record(w, func(ctx context.Context, deliver func(model.Message)) error {
		return c.FollowLane(ctx, partition, after, deliver)
	})
}

// entryIDs and eventIDs return ids alone; most tests need no more.
func entryIDs(entries []model.LogEntry) []string {
	ids := []string{}
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

func eventIDs(events []model.Message) []string {
	ids := []string{}
	for _, m := range events {
		ids = append(ids, m.ID)
	}
	return ids
}

// numbered returns n names that differ in their number, from 1.
func numbered(prefix string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s%d", prefix, i+1))
	}
	return names
}

// log reads all of a space's log.
func (w *world) log(c Client, space string) []model.LogEntry {
	w.Helper()
	entries, err := c.ReadLog(w.ctx, space, 0, 1<<14)
	w.must(err)
	return entries
}

// lane reads all events of a space.
func (w *world) lane(c Client, space string) []model.Message {
	w.Helper()
	events, err := c.ReadLane(w.ctx, space, 0, 1<<14)
	w.must(err)
	return events
}

func (w *world) head(c Client, space string) uint64 {
	w.Helper()
	head, err := c.Head(w.ctx, space)
	w.must(err)
	return head
}

func (w *world) laneEnd(c Client, partition int) uint64 {
	w.Helper()
	end, err := c.LaneEnd(w.ctx, partition)
	w.must(err)
	return end
}

// wantLog checks that the space's log consists of exactly these commits.
func (w *world) wantLog(c Client, space string, ids ...string) {
	w.Helper()
	w.equal("log of "+space, entryIDs(w.log(c, space)), append([]string{}, ids...))
}

// wantLane checks that the space's lane holds exactly these events.
func (w *world) wantLane(c Client, space string, ids ...string) {
	w.Helper()
	w.equal("lane of "+space, eventIDs(w.lane(c, space)), append([]string{}, ids...))
}

// reason is the error that the call ended with.
func (r *recording[T]) reason() error {
	<-r.ended
	return r.err
}
