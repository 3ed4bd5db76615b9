package stray

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/model"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// lanes answer a send with what is scripted for that attempt, and keep what was accepted. What is
// followed is lane, and saved the position.
type lanes struct {
	mu     sync.Mutex
	script []error
	stored []model.Message
	lane   []model.Message
	saved  uint64
}

func (l *lanes) LoadPosition(_ context.Context, partition int, name string) (uint64, error) {
	if partition != 0 || name != Position {
		return 0, fmt.Errorf("position %s of partition %d", name, partition)
	}
	return l.saved, nil
}

func (l *lanes) FollowLane(ctx context.Context, _ int, after uint64, deliver func(model.Message)) error {
	for _, m := range l.lane {
		if m.Seq > after {
			deliver(m)
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func (*lanes) Partitions() int { return 2 }

func (l *lanes) Send(m model.Message, done func(model.SendResult, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if len(l.script) > 0 {
		err, l.script = l.script[0], l.script[1:]
	}
	if err == nil {
		l.stored = append(l.stored, m)
	}
	go done(model.SendResult{}, err) // ends at once
}

// sentOn is what was accepted.
func (l *lanes) sentOn() []model.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.stored)
}

// of is a space of a partition.
func of(partition int) string {
	for n := 0; ; n++ {
		if name := fmt.Sprintf("space-%d", n); model.PartitionOf(name, 2) == partition {
			return name
		}
	}
}

func events(n int) (list []model.Message) {
	for i := range n {
		list = append(list, model.Message{
			Space: of(1), Stream: "add", ID: fmt.Sprintf("e-%d", i), Payload: []byte("1"), NotBefore: 7,
			Seq: uint64(10 + i), Stored: time.Unix(1, 0),
		})
	}
	return list
}

// begin runs a forwarder of partition 0 until the test ends.
func begin(t *testing.T, l *lanes) *Forwarder {
	ctx, cancel := context.WithCancel(t.Context())
	f, over := New(l, 0, slog.New(slog.DiscardHandler)), make(chan struct{})
	go func() { defer close(over); f.Run(ctx) }() // ends with ctx
	t.Cleanup(func() { cancel(); <-over })
	return f
}

func TestForwarder_SendsOnInOrderWhatBelongsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lanes{script: []error{nil, model.ErrLaneFull, model.ErrLaneFull, nil, errors.New("no responders")}}
		f := begin(t, l)
		home := model.Message{Space: of(0), Stream: "add", ID: "mine", Seq: 9}
		if f.Take(&home) || f.Done() != NonePending {
			t.Errorf("an event of the partition was taken over, or nothing is done beyond %d", f.Done())
		}
		sent := events(3)
		for i := range sent {
			if !f.Take(&sent[i]) {
				t.Errorf("an event of another partition was not taken over: %+v", sent[i])
			}
		}
		synctest.Wait()
		if f.Done() != 10 {
			t.Errorf("with the second event under way, all up to %d is done, want 10", f.Done())
		}
		time.Sleep(4 * again)
		synctest.Wait()
		for i := range sent {
			sent[i].Seq, sent[i].Stored = 0, time.Time{}
		}
		if !slices.EqualFunc(l.sentOn(), sent, func(a, b model.Message) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) || f.Done() != NonePending {
			t.Errorf("sent on were %v, want %v; then all up to %d is done", l.sentOn(), sent, f.Done())
		}
	})
}

// What was not sent on when the reader ends is what the next one begins with.
func TestForwarder_IsNotDoneWithWhatItCouldNotSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lanes{script: []error{nil, model.ErrStopped}}
		f := begin(t, l)
		for _, m := range events(3) {
			f.Take(&m)
		}
		synctest.Wait()
		if len(l.sentOn()) != 1 || f.Done() != 10 {
			t.Errorf("%d were sent on, and all up to %d is done, want 1 and 10", len(l.sentOn()), f.Done())
		}
	})
}

// The reader of the lane never waits. What has no room in memory is read again, in order, and
// what is not sent on holds the position.
func TestForwarder_WhatHasNoRoomIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := events(3 * room)
		l := &lanes{lane: all, script: slices.Repeat([]error{model.ErrLaneFull}, 5)}
		f := begin(t, l)
		for _, m := range all {
			f.Take(&m)
		}
		synctest.Wait()
		if len(l.sentOn()) != 0 || f.Done() != 9 || f.Sent(1000) != 0 {
			t.Errorf("%d were sent on, all up to %d is done, and the position is %d", len(l.sentOn()), f.Done(), f.Sent(1000))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, m := range l.sentOn() {
			if m.ID != all[i].ID {
				t.Fatalf("number %d is %s, want %s", i, m.ID, all[i].ID)
			}
		}
		last := all[len(all)-1].Seq
		if len(l.sentOn()) != len(all) || f.Done() != last || f.Sent(1000) != last || f.Sent(50) != 50 {
			t.Errorf("%d were sent on, all up to %d is done, and the position is %d", len(l.sentOn()), f.Done(), f.Sent(1000))
		}
	})
}

// What was sent on once is not again, however far the lane position lags behind.
func TestForwarder_SendsNothingOnThatWasBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lanes{saved: 11}
		f := begin(t, l)
		for _, m := range events(3) {
			f.Take(&m)
		}
		synctest.Wait()
		if len(l.sentOn()) != 1 || l.sentOn()[0].ID != "e-2" || f.Done() != NonePending || f.Sent(12) != 12 {
			t.Errorf("sent on: %v; all up to %d is done, and the position is %d", l.sentOn(), f.Done(), f.Sent(12))
		}
		f.Saved(12)
		if f.Sent(12) != 0 {
			t.Errorf("the position %d is to be saved again", f.Sent(12))
		}
	})
}

func TestForwarder_PassesOverWhatIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lanes{script: []error{model.ErrTooLarge}}
		f := begin(t, l)
		for _, m := range events(2) {
			f.Take(&m)
		}
		synctest.Wait()
		if len(l.sentOn()) != 1 || l.sentOn()[0].ID != "e-1" || f.Done() != NonePending {
			t.Errorf("sent on: %v, done up to %d; want the second alone, and all", l.sentOn(), f.Done())
		}
	})
}
