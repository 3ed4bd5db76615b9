package history_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// Recall finds what was handled of an origin from a position on, however far back it is, and nothing else: no
// event of another origin, of the term in which the positions are reissued, of an earlier position, that was
// not handled, or that has no known key.
func TestRecall_FindsEventsHandledUnderReissuedPositions(t *testing.T) {
	for _, between := range []int{0, 3, 5000} { // commits in between
		a := newAuthor(1, "s")
		client := a.server.Connect("reader")
		n := uint64(0)
		commit := func(txs ...model.Tx) {
			n++
			a.append(&model.Commit{Epoch: 1, Attempt: n, Runtime: "w", Txs: txs})
		}
		event := func(origin string, pos, term uint64) string {
			return model.TxID{Space: origin, Epoch: term, N: pos}.Event(0)
		}
		handled := func(origin string, pos, term, key uint64, outcome model.Outcome) {
			n++
			commit(model.Tx{N: n, By: "handle x", Receipt: &model.Receipt{Event: event(origin, pos, term), Lane: n, Pos: pos, Term: term, ReplayKey: key, Outcome: outcome}})
		}
		handled("north", 1, 10, 101, model.Handled)
		handled("north", 2, 10, 102, model.Handled)
		handled("north", 3, 10, 103, model.Handled)
		handled("south", 3, 10, 999, model.Handled)
		handled("north", 4, 10, 104, model.Failed)
		handled("north", 5, 10, 0, model.Handled)
		commit(model.Tx{N: 1, By: "later x", Later: &model.Waiting{ID: event("north", 6, 10), Stream: "x", Slot: 1, Position: 6, Term: 10, ReplayKey: 106}})
		commit(model.Tx{N: 2, By: "handle x", Receipt: &model.Receipt{Event: event("north", 6, 10), Pos: 6, Slot: 1, Outcome: model.Handled}})
		handled("north", 7, 10, 107, model.Handled)
		for range between {
			commit()
		}
		handled("north", 3, 20, 203, model.Handled)
		of := model.Reissued{Origin: "north", Again: model.Again{Term: 20, First: 3, Last: 7}}
		found, err := history.Recall(t.Context(), client, "s", of, a.head)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, rc := range found {
			keys = append(keys, fmt.Sprint(rc.ReplayKey))
		}
		if want := []string{"103", "106", "107"}; !slices.Equal(keys, want) {
			t.Errorf("%d commits later Recall found %v, want %v", between, keys, want)
		}
		client.Close()
	}
}
