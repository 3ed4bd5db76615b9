package space

import (
	"fmt"
	"testing"

	"github.com/settlehq/settle/model"
)

// Readers inside an envelope are edges for the order only: they are not counted, and do not make the
// materializer live.
func TestJ02_AnEnvelopeHasNoOrdinaryReaders(t *testing.T) {
	p := newProgram(t).add(NodeSpec{
		ID: "m", Kind: Computation, Envelope: []Address{{Doc: "page"}},
		Run: func(tx *Tx) (model.Value, error) {
			tx.Set("page", tx.Get("src"), "title")
			return model.Value{}, nil
		},
	})
	for _, key := range []string{"title", "body"} {
		p.add(NodeSpec{ID: key, Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
			return tx.Get("page", key), nil
		}})
	}
	h := newWorld(t).owner("w1", p.Program)
	h.run()
	m := h.core.graph.byID["m"]
	if n := m.more.envelope[0].refs; n != 0 {
		t.Errorf("the envelope counts %d live readers, want none", n)
	}
	for _, c := range []struct {
		envelope bool
		want     int
	}{{false, 0}, {true, 2}} {
		readers := 0
		m.eachReader(c.envelope, func(*dep) { readers++ })
		if readers != c.want {
			t.Errorf("%d readers with envelope %v, want %d", readers, c.envelope, c.want)
		}
	}
	for _, key := range []string{"title", "body"} {
		if n := h.core.graph.byID[key]; n.height <= m.height {
			t.Errorf("%s at height %d comes before the materializer at %d", key, n.height, m.height)
		}
	}
}

// A node makes a child for every element of a list, again in each run. The cost of that depends on the new
// element, and not on the length of the list.
func TestH08_UpkeepOfDemandDoesNotGrowWithTheList(t *testing.T) {
	p := newProgram(t).add(NodeSpec{ID: "cards", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
		for e := range tx.Get("list").Elements() {
			id, _ := e.AsString()
			tx.Node(NodeSpec{ID: "title-" + id, Kind: Computation, Output: "title-" + id, Run: func(tx *Tx) (model.Value, error) {
				return tx.Get("item-" + id), nil
			}})
			tx.Node(NodeSpec{ID: "card-" + id, Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
				return tx.Get("title-" + id), nil
			}})
		}
		return model.Value{}, nil
	}}).handle("append", func(tx *Tx, ev *model.Event) any {
		tx.Set("list", ev.Payload)
		return nil
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.run()
	const n = 64
	var list []string
	var first, last Stats
	for i := range n {
		list = append(list, fmt.Sprint(i))
		before := h.core.Stats()
		w.send(home, "append", fmt.Sprint("e", i), list)
		h.run()
		last = difference(h.core.Stats(), before)
		if i == 0 {
			first = last
		}
		if last.Runs != 3 { // the list, and the two new nodes
			t.Fatalf("%d runs for element %d, want 3", last.Runs, i)
		}
	}
	if last.Visits > first.Visits || last.IndexWrites > first.IndexWrites {
		t.Errorf("%d nodes were visited and %d reads indexed for element %d, but %d and %d for the first",
			last.Visits, last.IndexWrites, n, first.Visits, first.IndexWrites)
	}
	if perChild := float64(last.Visits) / (2 * n); perChild > 2 {
		t.Errorf("%.2f nodes were visited for each child that was registered again", perChild)
	}
}

// difference returns the visits, index writes and runs between two readings.
func difference(after, before Stats) Stats {
	return Stats{
		Runs: after.Runs - before.Runs, Visits: after.Visits - before.Visits,
		IndexWrites: after.IndexWrites - before.IndexWrites,
	}
}

// A commit with transactions of several groups, or with and without a group, hides its writes to one document
// from no observer.
func TestD04_ACommitOfSeveralGroupsHidesNothing(t *testing.T) {
	p := newProgram(t).add(NodeSpec{ID: "editor", Kind: Effect, Group: "ed", Run: func(tx *Tx) (model.Value, error) {
		return tx.Get("text"), nil
	}})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.run()
	for _, c := range []struct {
		groups []string
		runs   int
	}{
		{[]string{"ed", "ed"}, 0},
		{[]string{"ed", ""}, 1},
		{[]string{"", "ed"}, 1},
		{[]string{"ed", "other"}, 1},
	} {
		before := h.runs["editor"]
		r := w.replica(home)
		commit := &model.Commit{Version: model.CommitVersion, Space: home, Runtime: "elsewhere", Epoch: r.Epoch, Attempt: w.seq, Cursor: r.Cursor}
		for i, g := range c.groups {
			commit.Txs = append(commit.Txs, model.Tx{N: uint64(i) + 1, By: "put", Group: g, Writes: []model.Write{put("text", fmt.Sprint(w.seq, i))}})
		}
		w.append(home, &Append{Expect: w.head(home), Commit: commit, Data: model.AppendCommit(nil, commit, nil)})
		h.integrate()
		h.run()
		if n := h.runs["editor"] - before; n != c.runs {
			t.Errorf("groups %q: the editor ran %d times, want %d", c.groups, n, c.runs)
		}
	}
}
