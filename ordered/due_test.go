package ordered_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

// sendLater stores an event that must not be handled before a delay has passed.
func (w *world) sendLater(key, id string, while time.Duration) {
	w.Helper()
	w.SendMessage(model.Message{Space: key, Stream: "pay", ID: id, Payload: []byte(`{"cents":1}`), NotBefore: time.Now().Add(while).UnixMilli()})
}

// A delayed event lets later ones pass, and is handled at its time, even if its key was evicted since, or has
// another server.
func TestLater_AnEventIsHandledAtItsTime(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world, p *serving) *serving{
		"the key stays in memory": func(_ *world, p *serving) *serving { return p },
		"the key is evicted": func(w *world, p *serving) *serving {
			w.Pass(10 * time.Minute)
			return p
		},
		"another server replaces one that was stopped": func(w *world, p *serving) *serving {
			w.stop(p)
			return w.serve(ordered.Config{Name: "o2"}, nil)
		},
		"another server replaces a dead one, after the event is due": func(w *world, p *serving) *serving {
			w.Pass(10 * time.Second)
			p.crash()
			w.Pass(2 * time.Hour)
			return w.serve(ordered.Config{Name: "o2"}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				p := w.serve(ordered.Config{Name: "o1"}, nil)
				due := time.Now().Add(time.Hour)
				w.sendLater("alice", "later", time.Hour)
				w.Send("alice", "pay", "e1", `{"cents":1}`)
				w.Eventually("the later event is handled", func() bool { return w.Doc("alice", "balance") == "1" })
				p = meanwhile(w, p)
				w.Pass(time.Until(due) - time.Second)
				can := due
				if time.Now().Before(due) {
					w.wantDoc("alice", "balance", "1")
				} else {
					can = time.Now()
				}
				w.Eventually("the delayed event is handled", func() bool { return w.Doc("alice", "balance") == "2" })
				if late := time.Since(can); late > 3*time.Second {
					t.Errorf("the event was handled %s late", late)
				}
				w.wantDoc("alice", "seen", `["e1","later"]`)
				w.Pass(10 * time.Second)
				w.WantPosition(0, 2)
				w.stop(p)
			})
		})
	}
}

// Delayed events are found at whatever request their server dies, and the next server as well.
func TestLater_ACrashAtAnyRequestLosesNothing(t *testing.T) {
	run := func(t *testing.T, at crashAt) (requests int) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			d := &dying{at: at}
			p := d.start(w, "o1")
			for i := range 3 {
				w.sendLater("alice", fmt.Sprint("e", i), time.Duration(i)*900*time.Millisecond)
				w.Pass(400 * time.Millisecond)
			}
			w.Pass(3 * time.Second)
			p.crash()
			requests = len(d.labels)
			last := w.serve(ordered.Config{Name: "o2"}, nil)
			w.Eventually("all events are handled", func() bool { return w.Doc("alice", "balance") == "3" })
			w.Pass(3 * time.Second)
			w.wantDoc("alice", "balance", "3") // once each
			w.WantPosition(0, 3)
			w.stop(last)
		})
		return requests
	}
	for n := range run(t, crashAt{}) + 1 {
		for _, after := range []bool{false, true} {
			if run(t, crashAt{int64(n + 1), after}); t.Failed() {
				t.Fatalf("killed at request %d (executed: %v)", n+1, after)
			}
		}
	}
}

// A wakeup that could not be saved is saved with the next checkpoint, and one that is outdated is removed.
func TestLater_TheWakeupIsSavedAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		saves := 0
		p := w.serve(ordered.Config{Name: "o1"}, func(op membus.Op) membus.Fate {
			if op.Label == "save" {
				if saves++; saves < 4 {
					return membus.DropRequest
				}
			}
			return membus.Deliver
		})
		w.sendLater("alice", "later", time.Hour)
		w.Eventually("the wakeup is saved", func() bool {
			due := w.Server.DueSpaces(0)
			return len(due) == 1 && due[0].Space == "alice" && due[0].At > time.Now().UnixMilli()
		})
		w.Pass(2 * time.Hour)
		if due := w.Server.DueSpaces(0); len(due) > 0 {
			t.Errorf("the event is handled, and the wakeups are %v", due)
		}
		w.wantDoc("alice", "balance", "1")
		w.stop(p)
	})
}
