package settle_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/raced"
)

// clinic has a board in hall over all doctors: what each derives in counts, "-" for one without it.
func clinic(counts func(n int) (int, error)) *settle.Program {
	p := settle.NewProgram("clinic")
	booked, doctors := settle.NewCell[int]("booked"), settle.All("doctor-*")
	settle.NewStream[int]("book").Handle(p, func(tx *settle.Tx, n int) error {
		booked.Update(tx, func(all *int) { *all += n })
		return nil
	})
	derived := settle.NewDerived[int]("counts")
	derived.Compute(p, func(v *settle.View) (int, error) { return counts(booked.Get(v)) })
	settle.NewDerived[string]("board").Compute(p, func(v *settle.View) (string, error) {
		var lines []string
		for _, name := range doctors.Names(v) {
			line := "-"
			if n, ok := derived.In(name).Lookup(v); ok {
				line = fmt.Sprint(n)
			}
			lines = append(lines, name+" "+line)
		}
		return strings.Join(lines, ", "), nil
	})
	return p.MadeByReads("hall")
}

// boards returns the values of the board so far that a watch has delivered.
func boards(got <-chan string) (all []string) {
	for len(got) > 0 {
		all = append(all, <-got)
	}
	return all
}

// A derived document of a space that was just born, or that nothing has observed so far, is not read before it was computed: no commit of the reader
// has it as absent.
func TestAll_ADerivedDocumentIsReadOnceItWasComputed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := clinic(func(n int) (int, error) { return n, nil })
		w.start("w1", p, nil)
		w.start("w2", p, nil)
		c, _ := w.client("c", nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		got := looped(c.Space("hall").Watch(ctx, "board"))
		for i := range 10 {
			w.Send(fmt.Sprintf("doctor-%d", i), "book", "b1", "7")
			w.Pass(time.Duration(i) * 300 * time.Millisecond)
		}
		w.Pass(5 * time.Second)
		all := boards(got)
		if i := slices.IndexFunc(all, func(s string) bool { return strings.Contains(s, "-,") || strings.HasSuffix(s, "-\"") }); i >= 0 {
			t.Errorf("the board was %s", all[i])
		}
		if last := all[len(all)-1]; strings.Count(last, " 7") != 10 {
			t.Errorf("at the end, the board is %s", last)
		}
	})
}

// A derived document that cannot be computed is absent for its readers: they do not wait for it.
func TestAll_ADerivedDocumentThatFailsIsAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("w1", clinic(func(n int) (int, error) {
			if n == 7 {
				return 0, errors.New("as it should")
			}
			return n, nil
		}), nil)
		c, _ := w.client("c", nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w.Send("doctor-1", "book", "b1", "7")
		w.Send("doctor-2", "book", "b1", "8")
		w.Pass(time.Second)
		got := looped(c.Space("hall").Watch(ctx, "board"))
		w.Pass(2 * time.Second)
		all := boards(got)
		if want := `"doctor-1 -, doctor-2 8"`; len(all) == 0 || all[len(all)-1] != want {
			t.Errorf("the boards are %v, want %s in the end", all, want)
		}
	})
}

// A document of a space that does not exist is absent, and read again when the space was born. The reader does not wait for that.
func TestAll_ADocumentOfASpaceThatDoesNotExistIsAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := clinic(func(n int) (int, error) { return n, nil })
		settle.NewDerived[int]("one").Compute(p, func(v *settle.View) (int, error) {
			return settle.NewDerived[int]("counts").In("doctor-1").Or(-1).Get(v), nil
		})
		w.start("w1", p, nil)
		c, _ := w.client("c", nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		got := looped(c.Space("hall").Watch(ctx, "one"))
		w.Pass(2 * time.Second)
		if all := boards(got); len(all) == 0 || all[len(all)-1] != "-1" {
			t.Errorf("before the first event, the values are %v, want -1 in the end", all)
		}
		w.Send("doctor-1", "book", "b1", "7")
		w.Pass(time.Second)
		if all := boards(got); len(all) == 0 || all[len(all)-1] != "7" {
			t.Errorf("after the first event, the values are %v, want 7 in the end", all)
		}
	})
}

// A worker that crashes while the board begins delays what is derived there, and makes it no absence: neither one that serves the board nor one that serves what it reads.
func TestAll_ATakeoverMakesNoAbsence(t *testing.T) {
	for _, victim := range []int{0, 1} {
		for _, after := range []time.Duration{0, time.Microsecond, 500 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				p := clinic(func(n int) (int, error) { return n, nil })
				crash := []func(){w.start("w1", p, nil), w.start("w2", p, nil)}
				c, _ := w.client("c", nil)
				for i := range 10 {
					w.Send(fmt.Sprintf("doctor-%d", i), "book", "b1", "7")
				}
				w.Pass(time.Second)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				got := looped(c.Space("hall").Watch(ctx, "board"))
				w.Pass(after)
				crash[victim]()
				w.Pass(20 * time.Second)
				if all := boards(got); len(all) == 0 || strings.Count(all[len(all)-1], " 7") != 10 {
					t.Errorf("the boards are %v in the end", all)
				}
				if all := written(w, "hall", "board"); slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "-,") || strings.HasSuffix(s, "-\"") }) {
					t.Errorf("the log has the boards %v", all)
				}
			})
		}
	}
}

// An attachment that derives the board itself does not read what was not computed yet either.
func TestAll_AnAttachmentReadsADerivedDocumentOnceItWasComputed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := clinic(func(n int) (int, error) { return n, nil })
		w.start("w1", p, nil)
		c, _ := w.client("c", nil)
		w.Send("doctor-1", "book", "b1", "7")
		w.Pass(time.Second)
		editor, err := c.Space("hall").Attach(t.Context(), settle.AttachConfig{ID: "editor", Program: p})
		if err != nil {
			t.Fatal(err)
		}
		defer editor.Kill()
		if err := editor.Observe(t.Context(), "board"); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Second)
		w.Send("doctor-2", "book", "b1", "8")
		w.Pass(5 * time.Second)
		if got, want := written(w, "hall", "board"), []string{`"doctor-1 7"`, `"doctor-1 7, doctor-2 8"`}; !slices.Equal(got, want) {
			t.Errorf("the log has the boards %v, want %v", got, want)
		}
		if n := editor.Runs()["board"]; n == 0 {
			t.Error("the attachment has not derived it")
		}
	})
}

// written returns the values of a document in the log of its space.
func written(w *world, space, document string) (all []string) {
	for _, c := range w.Commits(space) {
		for i := range c.Txs {
			for _, write := range c.Txs[i].Writes {
				if write.Doc == document {
					all = append(all, write.Value.String())
				}
			}
		}
	}
	return all
}

// What exists in a thousand spaces is read without a question to their owners; what does not exist costs one question each, a limited number at a time.
func TestAll_OnlyAnAbsentDocumentCostsAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := raced.Fewer(1000, 10)
		w := newWorld(t)
		p := settle.NewProgram("clinic").MadeByReads("hall")
		booked, away := settle.NewCell[int]("booked"), settle.NewCell[int]("away")
		settle.NewStream[int]("book").Handle(p, func(tx *settle.Tx, n int) error {
			booked.Set(tx, n)
			return nil
		})
		for name, cell := range map[string]settle.Cell[int]{"present": booked, "absent": away} { // any order: independent nodes
			settle.NewDerived[string](name).Compute(p, func(v *settle.View) (string, error) {
				all, some := settle.All("doctor-*").Names(v), 0
				for _, doctor := range all {
					if _, has := cell.In(doctor).Lookup(v); has {
						some++
					}
				}
				return fmt.Sprintf("%d of %d", some, len(all)), nil
			})
		}
		var mu sync.Mutex
		requests := map[string]int{}
		count := func(op membus.Op) membus.Fate {
			if op.Label == "ask" && !strings.Contains(op.Key, `"space":"doctor-`) {
				return membus.Deliver
			}
			mu.Lock()
			defer mu.Unlock()
			requests[op.Label]++
			return membus.Deliver
		}
		counted := func() map[string]int {
			mu.Lock()
			defer mu.Unlock()
			return maps.Clone(requests)
		}
		w.start("w1", p, count)
		w.start("w2", p, count)
		c, _ := w.client("c", nil)
		for i := range n {
			w.Send(fmt.Sprintf("doctor-%d", i), "book", "b1", "7")
		}
		w.Pass(5 * time.Second)
		for _, name := range []string{"present", "absent"} {
			before := counted()
			ctx, cancel := context.WithCancel(t.Context())
			got := looped(c.Space("hall").Watch(ctx, name))
			w.Pass(4 * time.Second)
			cancel()
			all := boards(got)
			if want := map[string]string{"present": fmt.Sprintf(`"%d of %d"`, n, n), "absent": fmt.Sprintf(`"0 of %d"`, n)}[name]; len(all) == 0 || all[len(all)-1] != want {
				t.Errorf("%s: the values are %v, want %s in the end", name, all, want)
			}
			after := counted()
			asks, heads := after["ask"]-before["ask"], after["head"]-before["head"]
			t.Logf("%s: %d questions to another worker, %d reads of a head", name, asks, heads)
			if name == "present" && asks != 0 || name == "absent" && (asks == 0 || asks > n) {
				t.Errorf("%s: %d questions to another worker", name, asks)
			}
			w.Pass(5 * time.Second)
		}
	})
}

// Two spaces that derive from each other do not wait for each other without end.
func TestAll_SpacesThatDeriveFromEachOtherBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := settle.NewProgram("mutual").MadeByReads("left", "right")
		most := settle.NewDerived[int]("most")
		most.Compute(p, func(v *settle.View) (int, error) {
			other := most.In("left")
			if v.Space() == "left" {
				other = most.In("right")
			}
			return min(3, other.Get(v)+1), nil
		})
		w.start("w1", p, nil)
		c, _ := w.client("c", nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		got := looped(c.Space("left").Watch(ctx, "most"))
		w.Pass(20 * time.Second)
		if all := boards(got); len(all) == 0 || all[len(all)-1] != "3" {
			t.Errorf("the values are %v, want 3 in the end", all)
		}
	})
}
