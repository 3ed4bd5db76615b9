package runs

import (
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/internal/simkit"
)

const kept = "load(\"actions\", \"inc\")\ndef run(n = 1):\n    x = inc(n)\n    return x\nworkflow(\"w\", run)\n"

func keeping(r Retention) func(*Set) error {
	return func(s *Set) error { return s.Keep("w", r) }
}

// Of a workflow with a retention, the runs that ended first go, with all that is kept of them; runs in flight stay.
func TestKeep_TheRunsThatEndedLastStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kept, inStarlark(t, fewActions), simkit.Options{})
	for _, id := range []string{"a", "b", "c", "d"} {
		w.start(id, "{}")
		w.perform()
		w.advance(time.Second)
	}
	w.deploy(kept, keeping(Retention{Runs: 2}))
	w.start("z", "{}")
	if got := w.find(Filter{}); got != "z d c" {
		t.Errorf("after a start: %s", got)
	}
	w.perform()
	if got := w.find(Filter{}); got != "z d" {
		t.Errorf("after an end: %s", got)
	}
	for _, doc := range w.s.Docs() {
		if v := w.s.Value(doc); !v.IsAbsent() && strings.Contains(doc, "_a") {
			t.Errorf("%s is left: %s", doc, v)
		}
	}
	w.clean()
}

// The run that has ended last stays even if another one ended in the same millisecond.
func TestKeep_OneRunIsTheOneThatEndedLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kept, inStarlark(t, fewActions), simkit.Options{})
	w.deploy(kept, keeping(Retention{Runs: 1}))
	for _, id := range []string{"z", "a"} {
		w.start(id, "{}")
		w.perform()
	}
	if got := w.find(Filter{}); got != "a" {
		t.Error(got)
	}
	w.clean()
}

func TestKeep_ForATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kept, inStarlark(t, fewActions), simkit.Options{})
	w.deploy(kept, keeping(Retention{For: time.Hour}))
	for _, id := range []string{"a", "b", "c"} {
		w.start(id, "{}")
		w.perform()
		w.advance(40 * time.Minute)
	}
	w.start("d", "{}")
	if got := w.find(Filter{}); got != "d c" {
		t.Error(got)
	}
	w.perform()
	w.clean()
}

func TestKeep_RefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r    Retention
		want string
	}{
		{Retention{Runs: -1}, "workflow w: -1 runs cannot be kept"},
		{Retention{Runs: maxEnded + 1}, "at most 1000 are"},
		{Retention{For: -1}, "cannot be kept for -1ns"},
		{Retention{For: 2 * maxRetention}, "at most for 87840h0m0s"},
	} {
		program(t, kept, func(s *Set) error {
			if err := s.Keep("w", c.r); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v", c.r, err)
			}
			if err := s.Keep("x", Retention{}); err == nil || !strings.Contains(err.Error(), `no workflow "x"`) {
				t.Error(err)
			}
			return nil
		})
	}
}
