package buscontract

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/model"
)

var memberChecks = []check{
	{"a follower without members is ready at once", noMembers},
	{"a follower gets every member's last announcement then ready then new ones", replayReadyLive},
	{"announcements survive a disconnection and followers continue after it", membersAfterDisconnection},
	{"a ping is true while its member answers", pingWhileAnswered},
	{"a ping is false once the process is gone", pingAfterEnd},
	{"a ping reaches a member that answers again after a disconnection", pingAfterDisconnection},
	{"a member answers pings for its own id alone", pingByID},
}

// following records members, and when the follower was ready.
type following struct {
	*recording[model.Member]
	ready  chan struct{}
	before atomic.Int64 // deliveries before ready
	calls  atomic.Int64 // of ready
}

func recordMembers(w *world, c Client) *following {
	f := &following{ready: make(chan struct{})}
	var delivered atomic.Int64
	f.recording = record(w, func(ctx context.Context, deliver func(model.Member)) error {
		return c.FollowMembers(ctx, func(m model.Member) {
			delivered.Add(1)
			deliver(m)
		}, func() {
			if f.calls.Add(1) == 1 {
				f.before.Store(delivered.Load())
				close(f.ready)
			}
		})
	})
	return f
}

// wantNews waits for an announcement. Earlier ones may be repeated: one whose acknowledgement is late is stored
// again.
func (f *following) wantNews(want model.Member, before []model.Member) {
	f.w.Helper()
	for {
		got := f.next()
		if reflect.DeepEqual(got, want) {
			return
		}
		if !slices.ContainsFunc(before, func(m model.Member) bool { return reflect.DeepEqual(got, m) }) {
			f.w.Fatalf("announced %v, want %v", got, want)
		}
	}
}

func noMembers(w *world) {
	f := recordMembers(w, w.connect("a"))
	w.await("readiness", f.ready)
	w.equal("announcements before it", f.before.Load(), int64(0))
}

func replayReadyLive(w *world) {
	c := w.connect("a")
	early := recordMembers(w, c)
	w.await("readiness", early.ready)
	announced := []model.Member{
		{ID: "w1", Beat: 1},
		{ID: "w2", Beat: 1, Weight: 2.5},
		{ID: "w1", Beat: 2},
		{ID: "w3", Beat: 9, Left: true},
		{ID: "w4", Beat: 1, Life: "l1", Leaving: true, Holds: []int{0, 3}, Wants: []int{7}, Host: "h", Version: "1", Since: time.Unix(1, 0).UTC()},
	}
	for i, m := range announced {
		w.must(c.Announce(w.ctx, m))
		early.wantNews(m, announced[:i])
	}
	late := recordMembers(w, w.connect("b"))
	w.await("readiness", late.ready)
	w.equal("announcements before ready", late.before.Load(), int64(4))
	replayed := late.take(4)
	slices.SortFunc(replayed, func(a, b model.Member) int { return int(a.ID[1]) - int(b.ID[1]) })
	w.equal("replay", replayed, []model.Member{announced[2], announced[1], announced[3], announced[4]})

	again := model.Member{ID: "w2", Beat: 2, Weight: 2.5}
	w.must(c.Announce(w.ctx, again))
	early.wantNews(again, announced)
	late.wantNews(again, announced)
	w.equal("calls of ready", early.calls.Load()+late.calls.Load(), int64(2))
}

func membersAfterDisconnection(w *world) {
	c := w.connect("a")
	f := recordMembers(w, w.connect("b"))
	for beat := range uint64(3) {
		m := model.Member{ID: "w1", Beat: beat + 1}
		until(w, f.recording, func() error { return nil }, announce(w, c, m))
		w.Disconnect(w.T)
		w.Reconnect(w.T)
	}
	last := model.Member{ID: "w1", Beat: 9}
	until(w, f.recording, func() error { return nil }, announce(w, c, last))
	w.await("readiness", f.ready) // if each follow has been interrupted before it was known
	w.equal("calls of ready", f.calls.Load(), int64(1))

	late := recordMembers(w, c)
	w.await("readiness", late.ready)
	w.equal("replay", late.next(), last)
}

// announce announces m, and returns a function that recognizes it.
func announce(w *world, c Client, m model.Member) func(model.Member) bool {
	w.Helper()
	w.must(c.Announce(w.ctx, m))
	return func(got model.Member) bool { return reflect.DeepEqual(got, m) }
}

// awaitPing pings until the answer is as wanted: a server may take a while to notice that a process is gone,
// and a ping to it is lost meanwhile.
func (w *world) awaitPing(c Client, id string, want bool) {
	w.Helper()
	again := time.NewTicker(renewal)
	defer again.Stop()
	for {
		there, err := c.Ping(w.ctx, id)
		if err == nil && there == want {
			return
		}
		select {
		case <-again.C:
		case <-w.ctx.Done():
			w.Fatalf("ping of %s: %t, %v; want %t", id, there, err, want)
		}
	}
}

func pingWhileAnswered(w *world) {
	a, b := w.connect("a"), w.connect("b")
	w.wantPing(b, "w1", false)
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	w.must(a.AnswerPings(ctx, "w1"))
	w.wantPing(b, "w1", true) // at once
	w.wantPing(a, "w1", true)
	cancel()
	w.awaitPing(b, "w1", false)
}

func (w *world) wantPing(c Client, id string, want bool) {
	w.Helper()
	there, err := c.Ping(w.ctx, id)
	w.must(err)
	w.equal("ping of "+id, there, want)
}

func pingAfterEnd(w *world) {
	observer := w.connect("observer")
	for name, end := range map[string]func(Client){"closed": Client.Close, "killed": Client.Kill} {
		c := w.connect(name)
		w.must(c.AnswerPings(w.ctx, "w1"))
		w.wantPing(observer, "w1", true)
		end(c)
		w.awaitPing(observer, "w1", false)
	}
	successor := w.connect("successor")
	w.must(successor.AnswerPings(w.ctx, "w1"))
	w.wantPing(observer, "w1", true)
}

func pingAfterDisconnection(w *world) {
	a, b := w.connect("a"), w.connect("b")
	w.must(a.AnswerPings(w.ctx, "w1"))
	w.Disconnect(w.T)
	w.Reconnect(w.T)
	w.awaitPing(b, "w1", true)
}

func pingByID(w *world) {
	c := w.connect("a")
	w.must(c.AnswerPings(w.ctx, "w1"))
	w.must(c.AnswerPings(w.ctx, "w2"))
	for id, want := range map[string]bool{"w1": true, "w2": true, "w": false, "w11": false} {
		w.wantPing(c, id, want)
	}
}
