package ledger

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// formula is a random handler: its writes and sends follow from the documents that it reads.
type formula struct {
	reads   []string
	writes  []assignment
	sends   []delivery
	cancels string // a timer, "" for none
	// An attempt fails permanently, or most of the time, or waits for the document of the world.
	fails, flaky, waits bool
}

// assignment writes the sum of the reads, plus something, to a document.
type assignment struct {
	doc  string
	plus int64
}

// delivery sends the sum to a stream of its own space, delayed if in is not 0, and as a timer if it has a
// name.
type delivery struct {
	stream string
	in     int64
	timer  string
}

var (
	formulaStreams = []string{"f0", "f1", "f2", "f3"}
	formulaDocs    = []string{"d0", "d1", "d2"}
)

// drawFormulas draws a handler for each stream. Each sends only to later ones, so that every chain ends.
func drawFormulas(t *rapid.T) map[string]*formula {
	doc := rapid.SampledFrom(formulaDocs)
	fs := map[string]*formula{}
	for i, stream := range formulaStreams {
		f := &formula{
			reads: rapid.SliceOfNDistinct(doc, 0, 3, rapid.ID).Draw(t, "reads"),
			writes: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) assignment {
				return assignment{doc.Draw(t, "doc"), int64(rapid.IntRange(1, 5).Draw(t, "plus"))}
			}), 0, 3).Draw(t, "writes"),
			cancels: rapid.SampledFrom([]string{"", "", "t", "u"}).Draw(t, "cancels"),
		}
		for j := i + 1; j < len(formulaStreams) && rapid.Bool().Draw(t, "sends"); j++ {
			d := delivery{stream: formulaStreams[j], in: int64(rapid.SampledFrom([]int{0, 0, 20, 50}).Draw(t, "in"))}
			if d.in > 0 && f.cancels != "u" && !slices.ContainsFunc(f.sends, func(d delivery) bool { return d.timer != "" }) {
				d.timer = rapid.SampledFrom([]string{"", "u"}).Draw(t, "timer")
			}
			f.sends = append(f.sends, d)
		}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			f.fails = true
		case 1:
			f.flaky = true
		case 2:
			f.waits = true
		}
		fs[stream] = f
	}
	return fs
}

// apply makes the writes and sends over documents as value returns them, and returns the result.
func (f *formula) apply(d *Draft, value func(doc string) model.Value, wall int64, send func(stream string, at int64, timer string)) model.Value {
	var sum int64
	for _, doc := range f.reads {
		n, _ := value(doc).AsInt()
		sum += n
	}
	for _, w := range f.writes {
		d.Writes = append(d.Writes, model.Write{Doc: w.doc, Value: model.Int(sum + w.plus)})
	}
	for _, s := range f.sends {
		at := int64(0)
		if s.in > 0 {
			at = wall + s.in
		}
		send(s.stream, at, s.timer)
	}
	if f.cancels != "" {
		d.Cancels = []string{f.cancels}
	}
	return model.Object(model.F("sum", sum), model.F("wall", wall))
}

// check compares a transaction in the log with the result of the formula over the documents of the log.
func (f *formula) check(t failer, tx *model.Tx, docs map[string]model.Value, timers map[string]string) {
	wall, _ := tx.Receipt.Result.Get("wall").AsInt()
	var want Draft
	result := f.apply(&want, func(doc string) model.Value { return docs[doc] }, wall, func(stream string, at int64, timer string) {
		want.Sends = append(want.Sends, model.Send{Stream: stream, NotBefore: at, Timer: timer})
	})
	if !model.Equal(result, tx.Receipt.Result) {
		t.Fatalf("%s has seen %s, but the documents of the log give %s", tx.Receipt.Event, tx.Receipt.Result, result)
	}
	if got, want := fmt.Sprint(tx.Writes), fmt.Sprint(want.Writes); got != want {
		t.Fatalf("%s writes %s, want %s", tx.Receipt.Event, got, want)
	}
	var cancels []string
	cancel := func(timer string) {
		if id := timers[timer]; timer != "" && id != "" && id != tx.Receipt.Event && !slices.Contains(cancels, id) {
			cancels = append(cancels, id)
		}
	}
	for _, timer := range want.Cancels {
		cancel(timer)
	}
	if len(tx.Sends) != len(want.Sends) {
		t.Fatalf("%s sends %d events, want %d", tx.Receipt.Event, len(tx.Sends), len(want.Sends))
	}
	for i, s := range want.Sends {
		cancel(s.Timer)
		if m := tx.Sends[i]; m.To != home || m.Stream != s.Stream || m.NotBefore != s.NotBefore || m.Timer != s.Timer || (m.Slot != 0) != (s.NotBefore != 0) {
			t.Fatalf("%s sends %+v, want %+v", tx.Receipt.Event, m, s)
		}
	}
	var got []string
	for _, c := range tx.Cancels {
		got = append(got, c.ID)
	}
	if !slices.Equal(got, cancels) {
		t.Fatalf("%s cancels %v, want %v", tx.Receipt.Event, got, cancels)
	}
}
