package space

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// stepper returns a program whose event of depth n sends the next one, in the way that the payload of the
// first event names.
func stepper(t testing.TB, ways map[string]func(tx *Tx, ev *model.Event)) *Program {
	p := newProgram(t)
	for way, next := range ways { // any order: they are registered
		p.handle(way, func(tx *Tx, ev *model.Event) any {
			tx.Set("steps", num(tx.Get("steps"))+1)
			next(tx, ev)
			return nil
		})
	}
	return p.Program
}

func chained(most int) func(*Config) {
	return func(cfg *Config) { cfg.MaxChain, cfg.MaxGroup, cfg.LostAttempts = most, 1, -1 }
}

// The chain ends at the same event, whatever dies, is saved or is refused before it.
func TestChain_EndsAtTheSameDepthWhateverHappens(t *testing.T) {
	p := stepper(t, map[string]func(tx *Tx, ev *model.Event){
		"on":   func(tx *Tx, _ *model.Event) { tx.Send(home, "on", nil) },
		"now":  func(tx *Tx, _ *model.Event) { tx.SendAt(home, "now", tx.Now(), nil) },
		"ring": func(tx *Tx, _ *model.Event) { tx.SetTimer("t", "ring", tx.Now().Add(-time.Hour), nil) },
	})
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		most := rapid.IntRange(1, 12).Draw(t, "most")
		h := w.host("w1", p, chained(most))
		h.wall = noon
		h.takeOver()
		w.send(home, rapid.SampledFrom([]string{"on", "now", "ring"}).Draw(t, "how"), "e1", nil)
		h.deliver()
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				h.load()
				h.takeOver()
			case 1:
				h.checkpoint()
			case 2: // another runtime's commit comes first
				h.settle()
				w.put(home, put("x", w.seq))
				h.decide()
			default:
				h.settle()
				h.decide()
			}
			h.advance(time.Second)
		}
		h.run()
		h.advance(2 * time.Second) // refusals are followed by pauses
		h.run()
		got := w.allReceipts(home)
		if len(got) != most+1 || got[most].Outcome != model.Failed || !strings.Contains(got[most].Error, "MaxChain") {
			t.Fatalf("receipts %v; want %d that are handled, and one that is not", w.receipts(home), most)
		}
		wantValue(t, h, "steps", model.Int(int64(most)).String())
	})
}

// A timer that sets itself again, starting in the past because no worker served the space, catches up on all
// of its times, and is not a chain.
func TestChain_ATimerThatMakesUpForThePastDoesNotEnd(t *testing.T) {
	p := stepper(t, map[string]func(tx *Tx, ev *model.Event){
		"ring": func(tx *Tx, ev *model.Event) {
			tx.SetTimer("t", "ring", time.UnixMilli(ev.NotBefore).Add(time.Second), nil)
		},
	})
	w := newWorld(t)
	h := w.host("w1", p, chained(3))
	h.wall = noon
	h.takeOver()
	w.publish(model.Event{Space: home, Stream: "ring", ID: "e1", NotBefore: noon + 1000})
	h.deliver()
	h.run()
	h.pass(60_000)
	h.run()
	wantValue(t, h, "steps", "60")
}

// The time has passed by the sender's clock, so the event is a link of the sender's chain, even though it
// still has to wait by this clock.
func TestChain_AnEventThatWaitsByThisClockOnlyKeepsItsDepth(t *testing.T) {
	p := stepper(t, map[string]func(tx *Tx, ev *model.Event){
		"on": func(tx *Tx, _ *model.Event) { tx.Send(home, "on", nil) },
	})
	w := newWorld(t)
	h := w.host("w1", p, chained(3))
	h.wall = noon
	h.takeOver()
	w.publish(model.Event{Space: home, Stream: "on", ID: "e1", NotBefore: noon + 1000, Depth: 2})
	h.run()
	h.checkpoint()
	h.load()
	h.takeOver()
	h.pass(1000)
	h.run()
	wantValue(t, h, "steps", "1")
	if got := w.receipts(home); len(got) != 2 || !strings.HasSuffix(got[1], "failed") {
		t.Errorf("%v; the one after e1 has depth 3", got)
	}
}

// A transaction that handles no event begins a new chain with each send, and a negative bound means no bound.
func TestChain_BeginsWithATransactionAndMayBeWithoutEnd(t *testing.T) {
	p := stepper(t, map[string]func(tx *Tx, ev *model.Event){
		"on": func(tx *Tx, ev *model.Event) {
			if num(tx.Get("steps")) < 100 {
				tx.Send(home, "on", nil)
			}
		},
	})
	w := newWorld(t)
	h := w.owner("w1", p, chained(-1))
	if _, err := h.core.Transact("app", func(tx *Tx) error { tx.Send(home, "on", nil); return nil }); err != nil {
		t.Fatal(err)
	}
	h.run()
	wantValue(t, h, "steps", "100")
	for _, e := range w.logs[home] {
		for _, tx := range w.commit(e).Txs {
			for _, s := range tx.Sends {
				if s.Depth != tx.N-1 {
					t.Fatalf("transaction %d sends %+v", tx.N, s)
				}
			}
		}
	}
}
