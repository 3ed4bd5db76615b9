package ledger

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// Any number of ledgers share one space: owners that depose each other, and attached ones. They crash, their
// appends are refused, their answers arrive late. The log is compared with an oracle that only keeps a list
// of transactions: each event has one receipt; a document is the result of the handlers in the log, one after
// the other; what a handler has sent is handled if and only if the handler's transaction is in the log; an
// event that waits for a time is not handled before it.

// step is one round of a runtime, as in the loop of a worker.
func (r *runtime) step(t *rapid.T) {
	r.dies(func() {
		if r.answer != nil && rapid.IntRange(0, 2).Draw(t, "answered") > 0 {
			r.answer(t)
			r.goOn(t)
		}
		r.now += time.Duration(rapid.IntRange(0, 20).Draw(t, "ms")) * time.Millisecond
		if !r.dead {
			r.settle(t)
		}
	})
}

// goOn makes a runtime whose entry was refused request it again, and one that was deposed end or take the
// space over again.
func (r *runtime) goOn(t *rapid.T) {
	switch {
	case r.l.Phase() == Outside:
		r.enter()
	case r.l.Phase() != Deposed:
	case rapid.Bool().Draw(t, "takes it back"):
		r.l.TakeOver()
	default:
		r.dead = true
	}
}

// transact makes a transaction of the application, which adds to the count or cancels an event.
func (r *runtime) transact(t *rapid.T) {
	if !r.l.Begins() {
		return
	}
	count, _ := r.l.Value("count").AsInt()
	d := Draft{By: "app", Direct: true, Writes: []model.Write{{Doc: "count", Value: model.Int(count + 10000)}}}
	if rapid.Bool().Draw(t, "cancels") {
		d.Writes = r.marks(t)
	}
	n, err := r.l.Record(&d)
	if err != nil {
		return
	}
	r.l.apply(&Attempt{Draft: d}, n)
}

// marks returns the write that cancels an event: one in the lane, or one that waits for its time.
func (r *runtime) marks(t *rapid.T) []model.Write {
	var stream, id string
	var slot int64
	if len(r.world.lane) > 0 {
		ev := rapid.SampledFrom(r.world.lane).Draw(t, "of the lane")
		stream, id = ev.Stream, ev.ID
	}
	r.l.Replica().Later.Each(func(w *model.Waiting) {
		if rapid.Bool().Draw(t, "one that waits") {
			stream, id, slot = w.Stream, w.ID, int64(w.Slot)
		}
	})
	if _, done := r.world.oracle.handled[id]; id == "" || done {
		return nil
	}
	mark := model.Object(model.F("why", "as asked"), model.F("slot", slot))
	return []model.Write{{Doc: CancelDoc, Path: model.Path{CancelKey(stream, id)}, Value: mark}}
}

func (w *world) alive() (list []*runtime) {
	for _, r := range w.runtimes {
		if !r.dead {
			list = append(list, r)
		}
	}
	return list
}

var streams = []string{"add", "add", "add", "send", "timer", "cancel", "away", "fail", "flaky", "large", "half", "bulk", "wait", "deadly", "late", "f0", "f0", "f1", "f2", "f3"}

func (w *world) act(t *rapid.T) {
	switch n := rapid.IntRange(0, 19).Draw(t, "act"); {
	case n < 6:
		stream, at := rapid.SampledFrom(streams).Draw(t, "stream"), int64(0)
		if stream == "late" {
			stream, at = "add", w.wall+int64(rapid.IntRange(-20, 60).Draw(t, "in"))
		}
		w.publish(stream, at)
		if stream == "deadly" {
			w.deadly[w.lane[len(w.lane)-1].ID] = rapid.IntRange(0, 4).Draw(t, "deaths")
		}
	case n == 6 && rapid.Bool().Draw(t, "document"):
		w.present = !w.present
	case n == 6:
		w.wall += int64(rapid.IntRange(-20, 50).Draw(t, "wall"))
		w.high = max(w.high, w.wall)
	case n == 7 && len(w.alive()) < 4:
		w.start(t, rapid.Bool().Draw(t, "attached"))
	case n == 8 && len(w.alive()) > 0:
		rapid.SampledFrom(w.alive()).Draw(t, "crashes").dead = true
	case n == 9 && len(w.alive()) > 0:
		if r := rapid.SampledFrom(w.alive()).Draw(t, "hears"); r.l.Settled() {
			r.catchUp(t)
			r.goOn(t)
		}
	case n == 10 && len(w.alive()) > 0:
		rapid.SampledFrom(w.alive()).Draw(t, "transacts").transact(t)
	case len(w.alive()) > 0:
		rapid.SampledFrom(w.alive()).Draw(t, "steps").step(t)
	default:
		w.start(t, false)
	}
}

// finish lets one owner finish everything.
func (w *world) finish(t *rapid.T) {
	for _, r := range w.runtimes {
		r.dead = true
	}
	w.wall += 1000
	w.high = max(w.high, w.wall)
	r := w.start(t, false)
	for rounds := 0; ; rounds++ {
		if rounds > 2000 {
			t.Fatalf("the ledger does not finish: %s, head %+v, poison %+v", r.l.Phase(), r.l.head, r.l.poison)
		}
		if r.dead {
			r = w.start(t, false)
		}
		r.now += 20 * time.Millisecond
		w.wall++
		w.high = max(w.high, w.wall)
		r.dies(func() {
			if r.answer != nil {
				r.answer(t)
				r.goOn(t)
			}
			r.settle(t)
		})
		if !r.dead && r.l.Settled() && r.l.Lane().Done() && r.l.Replica().Later.Len() == 0 && r.l.Entered() {
			break
		}
	}
	for _, ev := range w.lane {
		if _, done := w.oracle.handled[ev.ID]; !done {
			t.Fatalf("%s on %s has no receipt", ev.ID, ev.Stream)
		}
	}
	for id := range w.oracle.sent { // any order: the first error ends the test
		if _, done := w.oracle.handled[id]; done == w.oracle.cancelled[id] {
			t.Fatalf("%s: handled is %v, cancelled %v", id, done, w.oracle.cancelled[id])
		}
	}
	for doc, want := range w.oracle.docs { // any order: the first error ends the test
		if v := r.l.Value(doc); !model.Equal(v, want) {
			t.Fatalf("%s is %s, want %s", doc, v, want)
		}
	}
	if v := r.l.Value(CancelDoc); v.Len() > 0 && !slices.Contains(slices.Collect(maps.Values(w.oracle.marked)), true) {
		t.Fatalf("marks remain: %s", v)
	}
}

func TestI10_I11_AnyNumberOfLedgersMakeOneLogThatIsAListOfTransactions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.formulas = drawFormulas(t)
		for range rapid.IntRange(1, 80).Draw(t, "acts") {
			w.act(t)
		}
		w.finish(t)
	})
}
