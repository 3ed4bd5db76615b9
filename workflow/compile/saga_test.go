package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/settlehq/settle/workflow"
)

// saga generates programs whose steps are book(L), each behind compensate(undo(L)): in functions that call others, some
// at the same time, some within attempt.
func saga(t *rapid.T) string {
	const functions = 4
	var b strings.Builder
	b.WriteString("load('actions', 'book', 'undo')\n")
	label := 0
	for fn := range functions {
		fmt.Fprintf(&b, "def %s(n = 0):\n", []string{"run", "f1", "f2", "f3"}[fn])
		callee := func() string {
			if fn == functions-1 {
				return "book('last')"
			}
			return fmt.Sprintf("f%d(n)", rapid.IntRange(fn+1, functions-1).Draw(t, "callee"))
		}
		for range rapid.IntRange(1, 3).Draw(t, "statements") {
			indent := "    "
			if rapid.IntRange(0, 4).Draw(t, "loop") == 0 {
				fmt.Fprintf(&b, "    for i in range(2):\n")
				indent += "    "
			}
			call := callee()
			if rapid.Bool().Draw(t, "parallel") {
				call = fmt.Sprintf("parallel(%s, %s%s)", call, callee(), rapid.SampledFrom([]string{"", ", on_error = 'collect'"}).Draw(t, "on_error"))
			}
			if rapid.Bool().Draw(t, "attempt") {
				call = "attempt(" + call + ")"
			}
			label++
			fmt.Fprintf(&b, "%scompensate(undo('%d'))\n%sbook('%d')\n%sr = %s\n", indent, label, indent, label, indent, call)
		}
		if rapid.IntRange(0, 6).Draw(t, "fail") == 0 {
			b.WriteString("    fail('no')\n")
		}
		b.WriteString("    return n\n")
	}
	b.WriteString("workflow('w', run)\n")
	return b.String()
}

// twin is a run that is never loaded, beside one that is stored and loaded after each step.
type twin struct {
	*rapid.T
	p             *workflow.Program
	whole, loaded *workflow.Run
}

func (w *twin) step(in workflow.Input) workflow.Effects {
	e, err := w.whole.Step(in)
	if err != nil {
		w.Fatal(err)
	}
	again, err := w.loaded.Step(in)
	if err != nil {
		w.Fatal(err)
	}
	if a, b := steps(e), steps(again); a != b {
		w.Fatalf("%s\nafter it was loaded: %s", a, b)
	}
	data, err := w.loaded.Snapshot()
	if err != nil {
		w.Fatal(err)
	}
	other, err := w.whole.Snapshot()
	if err != nil || string(other) != string(data) {
		w.Fatalf("%s\nafter it was loaded: %s, %v", other, data, err)
	}
	if w.loaded, err = workflow.Load(w.p, data); err != nil {
		w.Fatal(err)
	}
	return e
}

// steps describes effects with their IDs. What is cancelled in one step has no order.
func steps(e workflow.Effects) string {
	slices.Sort(e.Cancel)
	text := said(e)
	for _, w := range e.Start {
		text += " " + w.ID
	}
	return text + fmt.Sprint(e.Cancel)
}

// However steps fail, and whenever a run is cancelled: each step that was undone was undone once, and all of them are
// if the run has failed. A run that is loaded after each step does the same.
func TestSagas_EachStepOfAFailedRunIsUndoneOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := saga(t)
		g, err := Compile("w.star", []byte(src))
		if err != nil {
			t.Fatal(err, src)
		}
		p, err := workflow.Prepare(g)
		if err != nil {
			t.Fatal(err)
		}
		w := &twin{T: t, p: p, whole: workflow.New(p), loaded: workflow.New(p)}
		made, undone := map[string]int{}, map[string]int{}
		open := map[string]workflow.Work{}
		e := w.step(workflow.Input{Begin: jsontext.Value("{}")})
		cancelAt := rapid.IntRange(0, 60).Draw(t, "cancel at")
		for n := 0; e.Outcome == nil; n++ {
			for _, id := range e.Cancel {
				if open[id].Action == "undo" {
					t.Fatalf("undo step %s is cancelled\n%s", id, src)
				}
				delete(open, id)
			}
			for _, work := range e.Start {
				if open[work.ID] = work; work.Action == "undo" {
					undone[string(work.Args)]++
				} else if string(work.Args) != `["last"]` {
					made[string(work.Args)]++
				}
			}
			if n == cancelAt {
				e = w.step(workflow.Input{Cancel: "no"})
				continue
			}
			if len(open) == 0 {
				t.Fatalf("it waits for nothing\n%s", src)
			}
			work := open[rapid.SampledFrom(slices.Sorted(maps.Keys(open))).Draw(t, "work")]
			delete(open, work.ID)
			if rapid.IntRange(0, 5).Draw(t, "fails") == 0 {
				e = w.step(workflow.Input{Failed: &workflow.Failed{Work: work.ID, Attempt: 1, Type: "E"}})
			} else {
				e = w.step(workflow.Input{Done: &workflow.Done{Work: work.ID, Attempt: 1}})
			}
		}
		for label, n := range undone {
			if n > made[label] {
				t.Fatalf("step %s was made %d times and undone %d times\n%s", label, made[label], n, src)
			}
		}
		if e.Outcome.Error != nil && !maps.Equal(made, undone) {
			t.Fatalf("made %v, undone %v, %v\n%s", made, undone, e.Outcome.Error, src)
		}
	})
}
