package worker_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// endless is a program whose every event sends another one to the space that it names, up to a limit for the
// test.
func endless(t *testing.T) *space.Program {
	p := book(t)
	err := p.Handle("on", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		n, _ := tx.Get("n").AsInt()
		tx.Set("n", n+1)
		if n == 3*lineage.DefaultMaxChain/2 {
			return model.Value{}, nil
		}
		to, _ := ev.Payload.AsString()
		tx.Send(to, "on", tx.Space())
		return model.Value{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// chain waits until a chain has ended, and returns how many of its events were handled, its last receipt, and
// the space of that.
func (w *world) chain(spaces ...string) (handled int, last *model.Receipt, in string) {
	w.Helper()
	w.Eventually("the chain has ended", func() bool {
		handled, last = 0, nil
		for _, name := range spaces {
			for _, rc := range w.Receipts(name) {
				if handled++; rc.Outcome != model.Handled {
					last, in = rc, name
				}
			}
		}
		return last != nil
	})
	return handled - 1, last, in
}

func TestChain_EndsInADeadLetterAndContinuesIfRedriven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 40
		w := newWorld(t, 1)
		w.Coordinator()
		start := func(id string) *process {
			return w.process(worker.Config{
				ID: id, Programs: worldtest.Always(endless(t)), Options: worker.Options{
					Checkpoint: 10 * time.Millisecond, Heartbeat: 20 * time.Millisecond, Limits: ledger.Limits{MaxChain: most, MaxGroup: 1},
				},
			}, nil)
		}
		p := start("w1")
		w.Send("s", "on", "e1", `"t"`)
		for lives := range 3 { // the chain is taken over in the middle
			w.Eventually("the chain continues", func() bool { return len(w.Receipts("s")) >= 5*(lives+1) })
			p.Crash()
			p = start("w2")
		}
		n, last, in := w.chain("s", "t")
		if n != most || last.Outcome != model.Failed || in != "s" || !strings.Contains(last.Error, "send to t/on") {
			t.Fatalf("%d events of the chain were handled, want %d; it ended in space %s with %+v", n, most, in, last)
		}
		w.Eventually("the event is a dead letter", func() bool {
			_, _, err := history.Redrive(t.Context(), w.Client, in, "on", last.Event)
			return err == nil
		})
		w.Eventually("the redriven chain handles as many events again", func() bool {
			return len(w.Receipts("s"))+len(w.Receipts("t")) == 2*most+2
		})
	})
}

func TestChain_IsLoggedBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(endless(t))}, nil)
		w.Send("s", "on", "e1", `"s"`)
		if n, _, _ := w.chain("s"); n != lineage.DefaultMaxChain {
			t.Errorf("%d events of the chain were handled, want %d", n, lineage.DefaultMaxChain)
		}
		if n := w.Log.Count("has come to 1000"); n != 1 {
			t.Errorf("%d warnings about the chain, want one:\n%s", n, w.Log)
		}
	})
}

// A space answers the notice of a refused event with another event that will be refused.
func TestChain_IncludesNoticesOfRefusedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		p := book(t)
		insist := func(tx *space.Tx, _ *model.Event) (model.Value, error) {
			n, _ := tx.Get("n").AsInt()
			if tx.Set("n", n+1); n < 100 { // bounded for the test
				tx.Send("t", "nobody", nil)
			}
			return model.Value{}, nil
		}
		for _, stream := range []string{"insist", model.Undelivered} {
			if err := p.Handle(stream, insist); err != nil {
				t.Fatal(err)
			}
		}
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p), Options: worker.Options{Limits: ledger.Limits{MaxChain: 10}}}, nil)
		w.Send("s", "insist", "e1")
		n, last, _ := w.chain("s")
		if n != 5 || last.Outcome != model.Failed || !strings.Contains(last.Error, "its depth is 10") {
			t.Errorf("%d events of the chain were handled, want 5; the last ended with %+v", n, last)
		}
	})
}
