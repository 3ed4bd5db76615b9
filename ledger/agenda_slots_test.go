package ledger

import (
	mem "runtime"
	"slices"
	"testing"

	"github.com/settlehq/settle/lanes"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// waitingIn returns the agenda of a space in which an event waits in each of the slots.
func waitingIn(t *testing.T, slots ...uint64) *agenda {
	t.Helper()
	c := &model.Commit{Version: model.CommitVersion, Space: home}
	for i, slot := range slots {
		c.Txs = append(c.Txs, model.Tx{N: uint64(i + 1), Later: &model.Waiting{ID: "e", Stream: "add", NotBefore: 5, Slot: slot}})
	}
	r := replica.New(home)
	if _, err := r.Apply(1, c); err != nil {
		t.Fatal(err)
	}
	return (&agenda{confirmed: r, lane: lanes.New(lanes.State{}, 1)}).renewed()
}

func nextSlots(a *agenda, n int) (list []uint64) {
	for i := range n {
		list = append(list, a.slot(i))
	}
	return list
}

// A commit of 250 bytes must not decide how much memory its readers use.
func TestAgenda_AHugeSlotTakesNoMemory(t *testing.T) {
	var before, after mem.MemStats
	mem.ReadMemStats(&before)
	a := waitingIn(t, model.MaxSlot)
	mem.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("an event in a huge slot takes %d bytes", used)
	}
	if got := nextSlots(a, 3); !slices.Equal(got, []uint64{1, 2, 3}) {
		t.Errorf("the next events wait in %v", got)
	}
}

func TestAgenda_TheLowestSlotsAreUsedFirst(t *testing.T) {
	a := waitingIn(t, 2, 3, 7)
	want := func(when string, slots ...uint64) {
		t.Helper()
		if got := nextSlots(a, len(slots)); !slices.Equal(got, slots) {
			t.Errorf("%s: the next events wait in %v, want %v", when, got, slots)
		}
	}
	want("at first", 1, 4, 5, 6, 8, 9)
	a.add(model.Waiting{ID: "n1", Slot: 1})
	a.add(model.Waiting{ID: "n2", Slot: 4})
	want("when two are taken", 5, 6, 8)
	a.remove(7, "e")
	a.remove(2, "e")
	want("a vacated slot is used next", 2, 7, 5, 6, 8)
	a.add(model.Waiting{ID: "n3", Slot: 2})
	a.add(model.Waiting{ID: "n4", Slot: 7})
	a.add(model.Waiting{ID: "n5", Slot: 5})
	want("behind them", 6, 8, 9)
}
