package buscontract

import (
	"context"
	"time"

	"github.com/settlehq/settle/model"
)

// Leases and roll calls are best effort: what is published before a follower listens is lost, and the publisher
// cannot know when it listens. So the tests renew, as observers do.
var observerChecks = []check{
	{"a lease reaches all followers of its partition", leaseReachesAll},
	{"a lease does not reach followers of another partition", leaseStaysInPartition},
	{"a roll call reaches all followers", rollCallReachesAll},
	{"leases and roll calls reach followers again after a disconnection", observersAfterDisconnection},
	{"a lease is followed until the context ends", leasesEndWithContext},
}

// renewal is how long an observer waits before it renews. It is no deadline: a slower bus only causes more
// renewals.
const renewal = 20 * time.Millisecond

// until repeats an act until the recording has an item that fits, and returns it.
func until[T any](w *world, r *recording[T], act func() error, fits func(T) bool) T {
	w.Helper()
	again := time.NewTicker(renewal)
	defer again.Stop()
	for {
		w.must(act())
		if v, ok := find(w, r, again.C, fits); ok {
			return v
		}
	}
}

// find waits for an item that fits, until the ticker ticks.
func find[T any](w *world, r *recording[T], tick <-chan time.Time, fits func(T) bool) (found T, ok bool) {
	w.Helper()
	for {
		select {
		case v := <-r.got:
			if fits(v) {
				return v, true
			}
		case <-r.ended:
			w.Fatalf("the follower ended: %v", r.err)
		case <-w.ctx.Done():
			w.Fatal("no delivery")
		case <-tick:
			return found, false
		}
	}
}

func recordLeases(w *world, c Client, partition int) *recording[model.Lease] {
	return record(w, func(ctx context.Context, deliver func(model.Lease)) error {
		return c.FollowLeases(ctx, partition, deliver)
	})
}

func recordRolls(w *world, c Client) *recording[int] {
	return record(w, func(ctx context.Context, deliver func(int)) error { return c.FollowRollCalls(ctx, deliver) })
}

// heard waits until the follower gets leases.
func (w *world) heard(c Client, r *recording[model.Lease], l model.Lease) {
	w.Helper()
	until(w, r, func() error { return c.Observe(l) }, func(got model.Lease) bool { return got == l })
}

func leaseReachesAll(w *world) {
	a, b := w.connect("a"), w.connect("b")
	all := []*recording[model.Lease]{recordLeases(w, a, 0), recordLeases(w, b, 0), recordLeases(w, b, 0)}
	for _, l := range []model.Lease{
		{Space: cart, Doc: "total", Watcher: "w1", TTL: 30 * time.Second},
		{Space: space(0, 1), Doc: "total", Watcher: "w2", TTL: time.Millisecond},
		{Space: cart, Doc: "total", Watcher: "w1"},      // ends the observation
		{Space: cart, Watcher: "app", TTL: time.Second}, // of an attached runtime
	} {
		for _, r := range all {
			w.heard(a, r, l)
		}
	}
}

func leaseStaysInPartition(w *world) {
	c := w.connect("a")
	zero, one := recordLeases(w, c, 0), recordLeases(w, c, 1)
	w.heard(c, zero, model.Lease{Space: space(0, 0), Doc: "d", Watcher: "w", TTL: time.Second})
	w.heard(c, one, model.Lease{Space: space(1, 0), Doc: "d", Watcher: "w", TTL: time.Second})
	for _, l := range zero.rest() {
		w.equal("partition of a lease", model.PartitionOf(l.Space, partitions), 0)
	}
	for _, l := range one.rest() {
		w.equal("partition of a lease", model.PartitionOf(l.Space, partitions), 1)
	}
}

func rollCallReachesAll(w *world) {
	a, b := w.connect("a"), w.connect("b")
	all := []*recording[int]{recordRolls(w, a), recordRolls(w, b)}
	for partition := range partitions {
		for _, r := range all {
			until(w, r, func() error { return a.CallRoll(partition) }, func(p int) bool { return p == partition })
		}
	}
	if err := a.CallRoll(partitions); err == nil {
		w.Error("the roll of a partition that does not exist was called")
	}
}

func observersAfterDisconnection(w *world) {
	a, b := w.connect("a"), w.connect("b")
	leases, rolls := recordLeases(w, b, 0), recordRolls(w, b)
	for range 2 {
		w.heard(a, leases, model.Lease{Space: cart, Doc: "d", Watcher: "w", TTL: time.Second})
		until(w, rolls, func() error { return a.CallRoll(1) }, func(p int) bool { return p == 1 })
		w.Disconnect(w.T)
		w.Reconnect(w.T)
		w.head(a, cart) // a is back
	}
	w.heard(a, leases, model.Lease{Space: cart, Doc: "d", Watcher: "w2", TTL: time.Second})
	until(w, rolls, func() error { return a.CallRoll(0) }, func(p int) bool { return p == 0 })
}

func leasesEndWithContext(w *world) {
	c := w.connect("a")
	leases, rolls := recordLeases(w, c, 0), recordRolls(w, c)
	w.heard(c, leases, model.Lease{Space: cart, Doc: "d", Watcher: "w", TTL: time.Second})
	until(w, rolls, func() error { return c.CallRoll(0) }, func(int) bool { return true })
	leases.stop()
	rolls.stop()
}
