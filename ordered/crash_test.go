package ordered_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/ordered"
)

// crashAt is the request of a process at which it is killed: before the server receives the n-th request, or
// after the server has executed it.
type crashAt struct {
	n     int64
	after bool
}

// dying counts the requests of a process, and kills it at one of them. Requests that only the clock triggers
// do not count.
type dying struct {
	at     crashAt
	n      atomic.Int64
	mu     sync.Mutex
	labels []string
	p      atomic.Pointer[serving]
}

func (d *dying) hook(op membus.Op) membus.Fate {
	if slices.Contains([]string{"announce", "ping", "head", "log-state", "log-spaces", "load-mark"}, op.Label) {
		return membus.Deliver
	}
	d.mu.Lock()
	d.labels = append(d.labels, op.Label)
	d.mu.Unlock()
	if d.n.Add(1) != d.at.n {
		return membus.Deliver
	}
	d.p.Load().crash()
	if d.at.after {
		return membus.DropAck
	}
	return membus.DropRequest
}

func (d *dying) start(w *world, id string) *serving {
	ready := make(chan struct{})
	p := w.serve(ordered.Config{Name: id, Checkpoint: 300 * time.Millisecond, Idle: 400 * time.Millisecond}, func(op membus.Op) membus.Fate {
		<-ready
		return d.hook(op)
	})
	d.p.Store(p)
	close(ready)
	return p
}

// crashRun is one run of the world: two processes that are killed at a request, and one that is not.
func crashRun(t *testing.T, first, second crashAt) (labels []string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		sent := 0
		work := func(n int) {
			for range n {
				sent++
				w.Send("alice", "pay", fmt.Sprint("e", sent), `{"cents":1,"to":"bob"}`)
				w.Send("alice", "pay", fmt.Sprint("own", sent), `{"cents":1,"to":"alice"}`)
				w.Pass(150 * time.Millisecond)
			}
		}
		d1, d2 := &dying{at: first}, &dying{at: second}
		p1 := d1.start(w, "o1")
		work(3)
		w.Pass(1500 * time.Millisecond) // the keys are evicted
		work(3)
		p1.crash()
		p2 := d2.start(w, "o2")
		work(3)
		p2.crash()
		p3 := w.serve(ordered.Config{Name: "o3"}, nil)
		w.EventuallyEnded("alice", 3*sent)
		w.EventuallyEnded("bob", sent)
		w.Pass(3 * time.Second)
		w.wantDoc("alice", "balance", fmt.Sprint(3*sent))
		w.wantDoc("bob", "balance", fmt.Sprint(sent))
		w.wantOnceAndInOrder("alice", 3*sent)
		w.wantOnceAndInOrder("bob", sent)
		w.stop(p3)
		labels = d1.labels
	})
	return labels
}

// wantOnceAndInOrder checks that n events have ended, each once, and those from outside in lane order. An
// event that another key has sent waits for its predecessor.
func (w *world) wantOnceAndInOrder(key string, n int) {
	w.Helper()
	times, last := map[string]int{}, uint64(0)
	for _, rc := range w.Receipts(key) {
		times[rc.Event]++
		if rc.Lane == 0 || rc.Pos != 0 {
			continue
		}
		if rc.Lane < last {
			w.Errorf("%s: the event at %d was handled after the one at %d", key, rc.Lane, last)
		}
		last = rc.Lane
	}
	for id, k := range times {
		if k != 1 {
			w.Errorf("%s: %s was handled %d times", key, id, k)
		}
	}
	if len(times) != n {
		w.Errorf("%s: %d events have ended, want %d", key, len(times), n)
	}
}

func TestCrash_AtEveryRequestNothingIsLostAndNothingAppliedTwice(t *testing.T) {
	whole := crashRun(t, crashAt{}, crashAt{})
	for _, label := range []string{"append", "save", "load", "read-log", "send", "save-position"} {
		if !slices.Contains(whole, label) {
			t.Fatalf("no %s among %v", label, whole)
		}
	}
	for n := range len(whole) + 1 {
		for _, after := range []bool{false, true} {
			crashRun(t, crashAt{int64(n + 1), after}, crashAt{})
			if t.Failed() {
				t.Fatalf("killed at request %d (executed: %v)", n+1, after)
			}
		}
	}
}

func TestCrash_AtEveryRequestOfTheSuccessorToo(t *testing.T) {
	whole := crashRun(t, crashAt{}, crashAt{})
	for n, label := range whole {
		if label != "append" && label != "save" || n%3 != 0 {
			continue
		}
		for m := range 12 {
			crashRun(t, crashAt{int64(n + 1), n%2 == 0}, crashAt{int64(m + 1), m%2 == 0})
			if t.Failed() {
				t.Fatalf("killed at request %d, and the successor at %d", n+1, m+1)
			}
		}
	}
}
