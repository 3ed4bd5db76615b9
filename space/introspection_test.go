package space

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/inspect"
)

// inquire enables everything that a space can record, and queries everything that can be queried. That must
// never make a difference (P10).
func inquire(s *Space) {
	r := s.Recorder()
	r.RecordRuns(true)
	r.RecordTriggers(true)
	v := s.Inspect()
	if len(v.History().Circles()) == 0 {
		r.Diagnose(true)
	}
	r.DiagnoseWhenBusy(true)
	r.Busy(400 * time.Millisecond)
	for _, n := range s.Nodes() {
		e, _ := v.Explain(n.ID)
		_ = e.String()
		v.Readers(n.ID)
		v.Writers(n.ID)
		s.Gate(n.ID)
	}
	if p, ok := v.Parked(); ok {
		_ = p.String()
	}
	v.Lane().Pending()
	v.Tasks()
	s.Idle()
	s.Durable()
}

// addTrouble adds difficult nodes to a random program: a circle of materializers, a gated effect, a maker of
// nodes, a node that is sometimes refused.
func addTrouble(p *Program) error {
	in := func(tx *Tx) int64 { return num(tx.Get("in0")) }
	for _, n := range []NodeSpec{
		{ID: "up", Kind: Computation, Envelope: []Address{{Doc: "round"}}, Run: func(tx *Tx) (model.Value, error) {
			tx.Set("round", (num(tx.Get("back"))+in(tx))%5, "n")
			return model.Value{}, nil
		}},
		{ID: "down", Kind: Computation, Writes: []Address{{Doc: "back"}}, Run: func(tx *Tx) (model.Value, error) {
			tx.Set("back", num(tx.Get("round", "n"))+1)
			return model.Value{}, nil
		}},
		{ID: "late", Kind: Effect, Gate: GateSpec{Debounce: time.Second}, Run: func(tx *Tx) (model.Value, error) {
			return tx.Get("back"), nil
		}},
		{ID: "maker", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
			for i := range in(tx) {
				id := fmt.Sprint("child", i)
				tx.Node(NodeSpec{ID: id, Kind: Computation, Output: id, Run: func(tx *Tx) (model.Value, error) {
					return model.Int(num(tx.Get("in1")) + i), nil
				}})
			}
			return model.Value{}, nil
		}},
		{ID: "moody", Kind: Computation, Output: "moody", Run: func(tx *Tx) (model.Value, error) {
			if in(tx) == 3 {
				return model.Value{}, fmt.Errorf("three")
			}
			return tx.Get("child0"), nil
		}},
		{ID: "watch", Kind: Effect, Run: func(tx *Tx) (model.Value, error) { return tx.Get("moody"), nil }},
	} {
		if err := p.Add(n); err != nil {
			return err
		}
	}
	return nil
}

// Two systems do the same; one of them records everything and is queried all the time.
func TestU06_DiagnosticsDecideNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := genFormulas(t)
		p := fs.program(t)
		if err := addTrouble(p); err != nil {
			t.Fatalf("%v", err)
		}
		small := func(c *Config) { c.RunBudget = 3 }
		m := newMachine(t, fs, p, small)
		m.twin = newMachine(t, fs, p, func(c *Config) { small(c); watched(c) })
		for range 40 {
			m.move(t)
			for i, h := range m.twin.hosts {
				inquire(h.core)
				if a, b := m.hosts[i].core.Stats(), h.core.Stats(); a != b {
					t.Fatalf("the queried system did different work:\n%+v\n%+v", a, b)
				}
			}
		}
		m.checkTwin()
		for i, h := range m.hosts {
			if a, b := fmt.Sprint(h.core.Nodes()), fmt.Sprint(m.twin.hosts[i].core.Nodes()); a != b {
				t.Fatalf("the nodes of the queried system differ:\n%s\n%s", a, b)
			}
		}
	})
}

// Every scenario has the same output when everything is recorded, and queried between any two steps, except
// for scenarios that print what is recorded.
func TestU06_TheMinutesDoNotDependOnQueries(t *testing.T) {
	if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" {
		return // TestScenarios rewrites them
	}
	rows := readRows(t)
	files, err := filepath.Glob(filepath.Join(ownScenarios, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		asks := func(cmd string) bool { return strings.Contains(string(text), "\n"+cmd+" ") }
		if slices.ContainsFunc([]string{"trace", "diagnose", "why", "busy"}, asks) {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			var s *stage
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				if s == nil || d.Cmd == "case" {
					s = newStage(t)
					s.inquired = true
				}
				s.world.t = t
				return s.play(rows, d)
			})
		})
	}
}

func TestU02_AHistoryKeepsTheLatestThousand(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", counter(t).Program)
	h.core.Recorder().RecordRuns(true)
	h.core.Recorder().RecordTriggers(true)
	h.observe("count")
	const events = 1500
	var before []*inspect.History
	var was []string
	for i := range events {
		w.send(home, "add", fmt.Sprint("e", i), 1)
		h.run()
		if i%97 == 0 {
			before = append(before, h.core.Inspect().History())
			was = append(was, fmt.Sprint(before[len(before)-1]))
		}
	}
	for i, h := range before {
		if now := fmt.Sprint(h); now != was[i] {
			t.Fatalf("a history changed from\n%s\nto\n%s", was[i], now)
		}
	}
	runs, triggers := h.core.Inspect().History().Runs, h.core.Inspect().History().Triggers
	const limit = 1000
	if len(runs) != limit || len(triggers) != limit {
		t.Fatalf("%d runs and %d triggers, want %d", len(runs), len(triggers), limit)
	}
	inOrder := func(a, b inspect.RunEntry) int { return int(a.N) - int(b.N) }
	if !slices.IsSortedFunc(runs, inOrder) {
		t.Error("the runs are not in order")
	}
	handler, last := runs[len(runs)-2], runs[len(runs)-1]
	if want := fmt.Sprint("e", events-1); handler.Event != want || last.Node != "observe:count" {
		t.Errorf("the last entries are %+v and %+v, want the handling of %s and its observer", handler, last, want)
	}
	if got := triggers[len(triggers)-1]; got.Tx != handler.Tx || got.Cause != "count" {
		t.Errorf("the last trigger is %+v, want one by transaction %d", got, handler.Tx)
	}
}

func TestNothingIsRecordedUnlessThatIsSwitchedOn(t *testing.T) {
	w := newWorld(t)
	r := w.owner("w1", counter(t).Program).core.Recorder()
	if r.On() {
		t.Error("a space records from the beginning")
	}
	for _, c := range []struct {
		what string
		set  func(on bool)
	}{
		{"runs", r.RecordRuns},
		{"triggers", r.RecordTriggers},
		{"diagnosis", r.Diagnose},
	} {
		c.set(true)
		if !r.On() {
			t.Errorf("%s is not recorded", c.what)
		}
		c.set(true) // no effect: it is on
		c.set(false)
		if r.On() {
			t.Errorf("%s is still recorded", c.what)
		}
	}
}
