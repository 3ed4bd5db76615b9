package space

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// memory holds the saved observations of a space.
type memory map[string]Observation

func (m memory) save(t tester, h *host) {
	t.Helper()
	observed, gone := h.core.Observations()
	for _, id := range gone {
		delete(m, id)
	}
	for _, o := range observed {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		var back Observation
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatalf("decode %s: %v", data, err)
		}
		m[o.Node] = back
	}
}

func (m memory) list() []Observation {
	var out []Observation
	for _, id := range sortedKeys(m) {
		out = append(out, m[id])
	}
	return out
}

// restart crashes the process and loads the space in another one, after deletions have been forgotten.
func (h *host) restart(m memory) {
	h.t.Helper()
	m.save(h.t, h)
	h.checkpoint()
	h.w.purgeMarkers(home)
	h.load()
	h.core.Rehydrate(m.list())
	h.takeOver()
	h.run()
}

// resumable returns a random program: computations over inputs and each other, read deeply, shallowly,
// conditionally and through links, some needed by effects, some only if a document demands it.
func resumable(t *rapid.T, tt tester) *Program {
	p := NewProgram("resumable")
	must := func(err error) {
		if err != nil {
			tt.Fatalf("%v", err)
		}
	}
	docs := []string{"in0", "in1", "in2"}
	for i := range rapid.IntRange(1, 7).Draw(t, "computations") {
		id := fmt.Sprint("c", i)
		reads := rapid.SliceOfNDistinct(rapid.SampledFrom(docs), 1, 3, rapid.ID).Draw(t, "reads")
		mod := int64(rapid.IntRange(2, 4).Draw(t, "mod"))
		how := rapid.SampledFrom([]string{"deep", "field", "shape", "link", "either"}).Draw(t, "how")
		volatile := rapid.IntRange(0, 5).Draw(t, "volatile") == 0
		must(p.Add(NodeSpec{ID: id, Kind: Computation, Output: id, Volatile: volatile, Run: func(tx *Tx) (model.Value, error) {
			total := int64(len(tx.GetShallow(reads[0]).Keys()))
			for _, doc := range reads {
				switch how {
				case "deep":
					total += num(tx.Get(doc)) + num(tx.Get(doc, "a"))
				case "field":
					total += num(tx.Get(doc, "a"))
				case "shape":
					total += int64(tx.GetShallow(doc).Len())
				case "link":
					total += num(tx.Get("link", "a"))
				case "either":
					if total%2 == 0 {
						total += num(tx.Get(doc, "a"))
					} else {
						total += num(tx.Get(doc, "b"))
					}
				}
			}
			return model.Int(total % mod), nil
		}}))
		docs = append(docs, id)
	}
	for i, doc := range docs {
		always := rapid.Bool().Draw(t, "always")
		must(p.Add(NodeSpec{ID: fmt.Sprint("e", i), Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
			if always || num(tx.Get("demand", fmt.Sprint(i))) == 1 {
				tx.Get(doc)
			}
			return model.Value{}, nil
		}}))
	}
	return p
}

// step returns a random write of another writer.
func step(t *rapid.T) model.Write {
	in := rapid.SampledFrom([]string{"in0", "in1", "in2"})
	v := rapid.IntRange(0, 3).Draw(t, "v")
	switch rapid.IntRange(0, 7).Draw(t, "write") {
	case 0:
		return model.Write{Doc: "demand", Path: model.Path{fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "effect"))}, Value: model.Int(int64(v % 2))}
	case 1:
		return model.Write{Doc: "link", Value: model.Link{Doc: in.Draw(t, "to")}.Value()}
	case 2:
		return model.Write{Doc: in.Draw(t, "doc"), Path: model.Path{rapid.SampledFrom([]string{"b", "c"}).Draw(t, "key")}, Value: model.Int(int64(v))}
	case 3:
		return gone(rapid.SampledFrom([]string{"in0", "in1", "in2", "link"}).Draw(t, "doc"))
	case 4:
		return model.Write{Doc: in.Draw(t, "doc"), Path: model.Path{"a"}, Value: model.Null()}
	default:
		return model.Write{Doc: in.Draw(t, "doc"), Path: model.Path{"a"}, Value: model.Int(int64(v))}
	}
}

// A restarted runtime does the same as one that kept running: at each step every live node runs as often, no
// node runs more often, and everything live has the same value. (A dormant node whose inputs have changed and
// changed back runs in the runtime that kept running, and is found to be clean by the other. One whose output
// is not in the log runs once more when it is needed again, and so may its readers.)
func TestI7_V01_ARestartedSpaceRunsTheSameAsOneThatKeptRunning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tt := tester(t)
		p := resumable(t, tt)
		stays, restarts := newWorld(tt).owner("w1", p), newWorld(tt).owner("w1", p)
		lost := uint64(0) // number of further runs that the restart may cause
		if keepsSomething(p) {
			lost = 1
		}
		saved := memory{}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			write := step(t)
			both := []*host{stays, restarts}
			was := make([]map[string]uint64, 2)
			for i, h := range both {
				was[i] = runsOf(h)
				h.w.put(home, write)
				h.integrate()
				h.run()
			}
			sameRuns(t, both, was, lost)
			if rapid.IntRange(0, 3).Draw(t, "restart") == 0 {
				restarts.restart(saved)
				for id, n := range runsOf(restarts) {
					if n > 0 && !keepsSomething(p) {
						t.Fatalf("node %s ran %d times because of the restart", id, n)
					}
				}
			}
		}
	})
}

// keepsSomething reports whether an output is not in the log: it has to be computed again, and its readers
// may have to run.
func keepsSomething(p *Program) bool {
	return slices.ContainsFunc(p.nodes, func(n *declaration) bool { return n.Volatile })
}

func runsOf(h *host) map[string]uint64 {
	runs := map[string]uint64{}
	for _, n := range h.core.Nodes() {
		runs[n.ID] = n.Runs
	}
	return runs
}

func sameRuns(t *rapid.T, both []*host, was []map[string]uint64, lost uint64) {
	t.Helper()
	now := []map[string]uint64{runsOf(both[0]), runsOf(both[1])}
	for _, n := range both[0].core.Nodes() {
		stayed, restarted := now[0][n.ID]-was[0][n.ID], now[1][n.ID]-was[1][n.ID]
		if restarted > stayed+lost {
			t.Fatalf("node %s ran %d times in the restarted runtime, %d in the other", n.ID, restarted, stayed)
		}
		if n.Live && n.Output != "" {
			if a, b := both[0].core.Value(n.Output), both[1].core.Value(n.Output); !model.Equal(a, b) {
				t.Fatalf("%s is %s in the runtime that kept running and %s in the other", n.Output, a, b)
			}
		}
	}
}

// Resuming costs what has changed: if nothing has, none of 10,000 nodes runs and no value is compared; if one
// input has, its dependents run.
func TestI7_ResumingCostsWhatHasChanged(t *testing.T) {
	const chains, links = 100, 100
	p := newProgram(t)
	for c := range chains {
		last := fmt.Sprint("in", c)
		for l := range links {
			input := last
			last = fmt.Sprintf("c%d-%d", c, l)
			p = p.compute(last, func(tx *Tx) any { return num(tx.Get(input)) + 1 })
		}
		end := last
		p = p.add(NodeSpec{ID: "e" + last, Kind: Effect, Run: func(tx *Tx) (model.Value, error) { return tx.Get(end), nil }})
	}
	h := newWorld(t).owner("w1", p.Program)
	h.run()
	saved := memory{}
	h.restart(saved)
	if st := h.core.Stats(); st.Runs != 0 || st.Compared != 0 || st.Resumed != chains*(links+1) {
		t.Errorf("nothing has changed: %d runs, %d values compared, %d nodes resumed", st.Runs, st.Compared, st.Resumed)
	}
	saved.save(t, h)
	h.checkpoint()
	h.w.put(home, put("in7", 1))
	h.load()
	h.core.Rehydrate(saved.list())
	h.takeOver()
	h.run()
	if st := h.core.Stats(); st.Runs != links+1 || st.Compared != 1 {
		t.Errorf("one input has changed: %d runs, %d values compared; want the runs of its chain, and one comparison", st.Runs, st.Compared)
	}
}
