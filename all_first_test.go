package settle_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
)

// clinic has a board in hall over all doctors: what each derives in counts, "-" for one without it. counts is held back until computes is closed.
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
