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

// sendLater stores an event that is not to be handled before a while has passed.
func (w *world) sendLater(key, id string, while time.Duration) {
	w.Helper()
	w.SendMessage(model.Message{Space: key, Stream: "pay", ID: id, Payload: []byte(`{"cents":1}`), NotBefore: time.Now().Add(while).UnixMilli()})
}

// An event that waits for a time lets those behind it pass, and is handled when the time has come, also if its key has
// left memory since, or has another server.
func TestLater_AnEventIsHandledWhenItsTimeHasCome(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world, p *serving) *serving{
		"its key stays in memory": func(_ *world, p *serving) *serving { return p },
		"its key leaves memory": func(w *world, p *serving) *serving {
			w.Pass(10 * time.Minute)
			return p
		},
		"another server follows on one that is stopped": func(w *world, p *serving) *serving {
			w.stop(p)
			return w.serve(ordered.Config{Name: "o2"}, nil)
		},
		"another server follows on one that has died, when the time has passed": func(w *world, p *serving) *serving {
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
				w.Eventually("the one behind it is handled", func() bool { return w.Doc("alice", "balance") == "1" })
				p = meanwhile(w, p)
				w.Pass(time.Until(due) - time.Second)
				can := due
				if time.Now().Before(due) {
					w.wantDoc("alice", "balance", "1")
				} else {
					can = time.Now()
				}
				w.Eventually("it is handled", func() bool { return w.Doc("alice", "balance") == "2" })
				if late := time.Since(can); late > 3*time.Second {
					t.Errorf("it was handled %s after it could be", late)
				}
				w.wantDoc("alice", "seen", `["e1","later"]`)
				w.Pass(10 * time.Second)
				w.WantPosition(0, 2)
				w.stop(p)
			})
		})
	}
}

// Events that wait are found whatever request their server dies at, and the one that follows.
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
			w.Eventually("all are handled", func() bool { return w.Doc("alice", "balance") == "3" })
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
				t.Fatalf("killed at request %d (done: %v)", n+1, after)
			}
		}
	}
}

// An item that could not be saved is saved with the next checkpoint, and one that is not true any more is taken back.
func TestLater_TheItemIsSavedAndTakenBack(t *testing.T) {
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
		w.Eventually("it is saved", func() bool {
			due := w.Server.DueSpaces(0)
			return len(due) == 1 && due[0].Space == "alice" && due[0].At > time.Now().UnixMilli()
		})
		w.Pass(2 * time.Hour)
		if due := w.Server.DueSpaces(0); len(due) > 0 {
			t.Errorf("it is handled, and %v are to be woken", due)
		}
		w.wantDoc("alice", "balance", "1")
		w.stop(p)
	})
}
