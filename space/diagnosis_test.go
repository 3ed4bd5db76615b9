package space

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

// moody is a program with computations of a document in, one of which depends on a variable.
func moody(t *testing.T, variable *int64) program {
	return newProgram(t).set().
		compute("moody", func(tx *Tx) any { return num(tx.Get("in")) + *variable }).
		compute("pure", func(tx *Tx) any { return num(tx.Get("in")) }).
		compute("lasting", func(tx *Tx) any { return max(num(tx.Get("in")), num(tx.Peek("lasting"))) }).
		add(NodeSpec{ID: "scribe", Kind: Computation, Writes: []Address{{Doc: "note"}}, Run: func(tx *Tx) (model.Value, error) {
			tx.Set("note", num(tx.Get("in"))+*variable)
			return model.Value{}, nil
		}}).
		add(NodeSpec{ID: "view", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
			for _, doc := range []string{"moody", "pure", "lasting", "note"} {
				tx.Get(doc)
			}
			return model.Value{}, nil
		}})
}

// Runs that have read the same and written something else are found in the history of runs, once for each node,
// although no repetition right after a run would have found them.
func TestDiagnosis_EqualReadsWithDifferentWritesAreReportedPerNode(t *testing.T) {
	for _, recorded := range []bool{true, false} {
		var variable int64
		var found []Violation
		w := newWorld(t)
		h := w.owner("w1", moody(t, &variable).Program, func(c *Config) {
			c.CheckIdempotency = true
			c.Trace.Violated = func(v Violation) { found = append(found, v) }
		})
		h.core.Recorder().RecordRuns(recorded)
		for i, in := range []int{1, 2, 1, 3, 2, 1} {
			variable = int64(i)
			w.send(home, "set", fmt.Sprint("e", i), map[string]any{"in": in})
			h.run()
		}
		if !recorded {
			if len(found) > 0 {
				t.Errorf("found %v without a history", found)
			}
			continue
		}
		if len(found) != 2 || found[0].Node != "moody" || found[1].Node != "scribe" {
			t.Fatalf("found %v, want moody and scribe, once each", found)
		}
		if text := found[0].String(); !strings.Contains(text, "moody: 1, then 3; its runs 1 and 3 have read the same") {
			t.Errorf("it says %q", text)
		}
		if list := h.core.Recorder().History().Contradictions(); len(list) != 2 || list[0].First.Node != "moody" {
			t.Errorf("the history has %v", list)
		}
		if h.core.Stats().Violations != 2 {
			t.Errorf("%d violations counted", h.core.Stats().Violations)
		}
	}
}

// Another program is other code: its runs are not compared with those of the one before.
func TestDiagnosis_ANewVersionIsAnotherNode(t *testing.T) {
	versioned := func(version string, add int64) *Program {
		p := newProgram(t).set().add(NodeSpec{ID: "out", Kind: Computation, Output: "out", Version: version, Run: func(tx *Tx) (model.Value, error) {
			return model.Int(num(tx.Get("in")) + add), nil
		}})
		p.Version = version
		return p.Program
	}
	w := newWorld(t)
	h := w.owner("w1", versioned("1", 0))
	h.core.Recorder().RecordRuns(true)
	h.observe("out")
	w.send(home, "set", "e1", map[string]any{"in": 1})
	h.run()
	if err := h.core.Change(versioned("2", 10)); err != nil {
		t.Fatal(err)
	}
	h.run()
	wantValue(t, h, "out", "11")
	if list := h.core.Recorder().History().Contradictions(); len(list) > 0 {
		t.Errorf("found %v", list)
	}
}

// The validator can be switched on in a space at work, for one run in n, and off again.
func TestCheckIdempotency_CanBeSwitchedOnForASample(t *testing.T) {
	for checkRuns, without := range map[int]int{0: 0, 5: 4} { // any order: each on its own
		checkSample(t, checkRuns, without)
	}
}

// checkSample switches the check of a space on and off; without is how many of 20 runs Config.CheckRuns alone has repeated.
func checkSample(t *testing.T, checkRuns, without int) {
	t.Helper()
	calls := 0
	var reported []string
	p := newProgram(t).set().compute("dice", func(tx *Tx) any {
		calls++
		return num(tx.Get("in"))*1000 + int64(calls)
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program, func(c *Config) { c.CheckRuns = checkRuns })
	h.core.OnError(func(i ErrorInfo) {
		if violation := (*IdempotencyError)(nil); errors.As(i.Err, &violation) {
			reported = append(reported, i.Node)
		}
	})
	h.observe("dice")
	h.run()
	change := func(n int) (extra, found int) {
		calls, reported = 0, nil
		before := h.runs["dice"]
		for i := range n {
			w.send(home, "set", fmt.Sprint("e", h.now, i), map[string]any{"in": fmt.Sprint(h.now, i)})
			h.run()
		}
		return calls - (h.runs["dice"] - before), len(reported)
	}
	for i, step := range []struct{ sample, extra int }{{0, without}, {5, 4}, {1, 20}, {0, without}} {
		h.advance(1)
		h.core.CheckSample(step.sample)
		if extra, found := change(20); extra != step.extra || found != step.extra {
			t.Errorf("CheckRuns %d, step %d: of 20 runs %d were repeated and %d reported, want %d", checkRuns, i, extra, found, step.extra)
		}
	}
}
