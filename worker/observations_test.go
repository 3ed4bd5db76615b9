package worker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// rows is a program with n computations, each over its own input and observed by an effect. Event "set"
// changes the inputs that its payload names.
func rows(t *testing.T, n int) *space.Program {
	t.Helper()
	p := space.NewProgram("rows")
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		in, out := fmt.Sprint("in", i), fmt.Sprint("row", i)
		must(p.Add(space.NodeSpec{ID: out, Kind: space.Computation, Output: out, Run: func(tx *space.Tx) (model.Value, error) {
			v, _ := tx.Get(in).AsInt()
			return model.Int(v + 1), nil
		}}))
		must(p.Add(space.NodeSpec{ID: "see" + out, Kind: space.Effect, Run: func(tx *space.Tx) (model.Value, error) {
			return tx.Get(out), nil
		}}))
	}
	must(p.Handle("set", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		for e := range ev.Payload.Elements() {
			in, _ := e.AsString()
			v, _ := tx.Get(in).AsInt()
			tx.Set(in, v+1)
		}
		return model.Value{}, nil
	}))
	return p
}

// ran returns the computations that have run on a worker.
func ran(p *process) (ids []string) {
	for k, n := range p.Runs() { // any order: sorted below
		for range n {
			ids = append(ids, k.Node)
		}
	}
	slices.Sort(ids)
	return ids
}

func observationsSaved(w *world, space string, n int) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%d observations are saved", n), func() bool { return len(w.Server.LoadState(space).Observations) == n })
}

// A worker that takes a space over runs no clean node, however many there are, and then only what has
// changed.
func TestI7_ARestartedWorkerRunsOnlyWhatHasChanged(t *testing.T) {
	const n = 10_000
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		programs := worldtest.Always(rows(t, n))
		first := w.process(worker.Config{ID: "w1", Programs: programs}, nil)
		w.Send("s", "set", "e1", `["in7"]`)
		observationsSaved(w, "s", 2*n)
		if got := len(ran(first)); got < n {
			t.Fatalf("%d initial runs, want at least one for each of %d nodes", got, n)
		}
		first.Crash()
		second := w.process(worker.Config{ID: "w2", Programs: programs}, nil)
		w.Send("s", "set", "e2", `[]`)
		w.EventuallyEnded("s", 2)
		if got := ran(second); len(got) != 0 {
			t.Errorf("%d nodes ran because of the restart: %v", len(got), got[:min(len(got), 5)])
		}
		w.Send("s", "set", "e3", `["in7"]`)
		w.Eventually("row7 is up to date", func() bool { return w.Doc("s", "row7") == "3" })
		if got := ran(second); !slices.Equal(got, []string{"row7"}) {
			t.Errorf("in7 has changed, and %v ran", got)
		}
	})
}

// elsewhere appends a commit to the log as another runtime would.
func elsewhere(w *world, space string, writes ...model.Write) {
	w.Helper()
	w.Append(&model.Commit{Space: space, Runtime: "elsewhere", Epoch: 1, Txs: []model.Tx{{N: 1, By: "put", Writes: writes}}})
}

// The next owner runs what has changed while no worker ran the space.
func TestI7_TheNextOwnerRunsWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		programs := worldtest.Always(rows(t, 5))
		first := w.process(worker.Config{ID: "w1", Programs: programs}, nil)
		w.Send("s", "set", "e1", `["in1"]`)
		observationsSaved(w, "s", 10)
		first.Shutdown()
		elsewhere(w, "s", model.Write{Doc: "in2", Value: model.Int(40)})
		second := w.process(worker.Config{ID: "w2", Programs: programs}, nil)
		w.Send("s", "set", "e2", `["in3"]`)
		w.Eventually("the rows are up to date", func() bool { return w.Doc("s", "row2") == "41" && w.Doc("s", "row3") == "2" })
		if got := ran(second); !slices.Equal(got, []string{"row2", "row3"}) {
			t.Errorf("in2 and in3 have changed, and %v ran", got)
		}
	})
}

// Other code may have other results, so it does not use the observations of nodes, unless they name the same
// version.
func TestI7_OtherCodeRunsAllNodesWithoutAVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		versioned := func(total string) func(string) (*space.Program, error) {
			p := rows(t, 2)
			for _, id := range []string{"same", total} {
				err := p.Add(space.NodeSpec{ID: id[:4], Version: id, Kind: space.Computation, Output: id[:4], Run: func(tx *space.Tx) (model.Value, error) {
					return tx.Get("in0"), nil
				}})
				if err == nil {
					err = p.Add(space.NodeSpec{ID: "see-" + id[:4], Version: "1", Kind: space.Effect, Run: func(tx *space.Tx) (model.Value, error) {
						return tx.Get(id[:4]), nil
					}})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			return worldtest.Always(p)
		}
		first := w.process(worker.Config{ID: "w1", Build: "b1", Programs: versioned("sum-1")}, nil)
		w.Send("s", "set", "e1", `["in0"]`)
		observationsSaved(w, "s", 8)
		first.Crash()
		second := w.process(worker.Config{ID: "w2", Build: "b2", Programs: versioned("sum-2")}, nil)
		w.Send("s", "set", "e2", `[]`)
		w.EventuallyEnded("s", 2)
		w.Eventually("the nodes without a version have run", func() bool { return len(ran(second)) == 3 })
		if got := ran(second); !slices.Equal(got, []string{"row0", "row1", "sum-"}) {
			t.Errorf("%v ran", got)
		}
	})
}

// The observation of a node is deleted with the node.
func TestI7_TheObservationOfARemovedNodeIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := rows(t, 0)
		err := p.Add(space.NodeSpec{ID: "list", Kind: space.Effect, Run: func(tx *space.Tx) (model.Value, error) {
			n, _ := tx.Get("size").AsInt()
			for i := range 3 - n {
				tx.Node(space.NodeSpec{ID: fmt.Sprint("item", i), Kind: space.Effect, Run: func(tx *space.Tx) (model.Value, error) {
					return tx.Get("in0"), nil
				}})
			}
			return model.Value{}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		w.Send("s", "set", "e1", `["in0"]`)
		observationsSaved(w, "s", 4)
		w.Send("s", "set", "e2", `["size"]`)
		w.Eventually("one is marked as deleted", func() bool {
			return slices.ContainsFunc(w.Server.LoadState("s").Observations, func(d model.StateDoc) bool {
				return d.Doc == model.StateKeyOfNode("item2") && d.Data == nil
			})
		})
	})
}

// Watches come and go, and leave no observation to save or delete.
func TestI7_WatchesLeaveNoObservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(rows(t, 1))}, nil)
		w.Send("s", "set", "e1", `["in0"]`)
		for _, doc := range []string{"row0", "in0", "nosuch"} {
			v := w.watch("s", doc)
			observationsSaved(w, "s", 2)
			v.end()
		}
		w.Pass(time.Minute)
		observationsSaved(w, "s", 2)
		if log := w.Log.String(); strings.Contains(log, "observations") {
			t.Errorf("the log has %s", log)
		}
	})
}
