package history_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// checkpoint saves the space as its log has it.
func checkpoint(t *rapid.T, b *membus.Bus) {
	all, err := history.ReadContents(t.Context(), b, "s")
	if err != nil {
		t.Fatal(err)
	}
	c, err := all.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SaveState(t.Context(), "s", c.Docs, &c.Mark); err != nil {
		t.Fatal(err)
	}
}

// A document at a revision has the value of that time, or the error reports that the log no longer has it,
// and since which revision it does. Wherever the log is purged, the answer is never another value.
func TestReadAt_IsWhatTheDocumentWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newAuthor(1, "s")
		b := a.server.Connect("reader")
		defer b.Close()
		var was []model.Value // the document's value by revision
		var value model.Value
		whole := map[uint64]bool{}
		for range rapid.IntRange(1, 12).Draw(t, "commits") {
			c := &model.Commit{Runtime: "r", Takeover: a.head == 0}
			var writes []model.Write
			switch rapid.IntRange(0, 4).Draw(t, "write") {
			case 0:
				writes = []model.Write{{Doc: "d", Value: model.Object(model.F("n", int64(a.head)))}}
			case 1:
				writes = []model.Write{{Doc: "d", Delete: true}}
			case 2:
				if !value.IsAbsent() {
					writes = []model.Write{{Doc: "d", Path: model.Path{"m"}, Value: model.Int(int64(a.head))}}
				}
			case 3:
				writes = []model.Write{{Doc: "other", Value: model.Int(int64(a.head))}}
			}
			for _, w := range writes {
				if w.Doc == "d" {
					value, _ = w.Apply(value)
				}
			}
			if len(writes) > 0 {
				c.Txs = []model.Tx{{N: uint64(len(was) + 1), By: "test", Writes: writes}}
			}
			a.append(c)
			for uint64(len(was)) < a.head {
				was = append(was, model.Value{})
			}
			was = append(was, value)
			if len(writes) > 0 && writes[0].Doc == "d" && len(writes[0].Path) == 0 {
				whole[a.head] = true
			}
		}
		below := uint64(rapid.IntRange(0, int(a.head)).Draw(t, "purged below"))
		checkpoint(t, b)
		a.server.PurgeLog("s", below)
		known := below <= 1
		for at := uint64(1); at <= a.head; at++ {
			known = known || at >= below && whole[at]
			d, err := history.ReadAt(t.Context(), b, "s", "d", at)
			var past *history.PastError
			switch {
			case err == nil && !model.Equal(d.Value, was[at]):
				t.Fatalf("at %d the document is %v, want %v", at, d.Value, was[at])
			case err != nil && known:
				t.Fatalf("at %d: %v", at, err)
			case err != nil && !errors.As(err, &past):
				t.Fatalf("at %d: %v", at, err)
			case err != nil && past.From > 0 && past.From <= at:
				t.Fatalf("at %d the document is unknown, but reported as known from %d on", at, past.From)
			}
		}
		if _, err := history.ReadAt(t.Context(), b, "s", "d", a.head+1); err == nil {
			t.Fatal("a future revision was read")
		}
	})
}
