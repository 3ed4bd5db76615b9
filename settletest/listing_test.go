package settletest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/collection"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

var (
	bidOn    = settle.NewStream[int]("bid")
	closing  = settle.NewTrigger("close")
	highest  = settle.NewCell[int]("highest")
	doubled  = settle.NewDerived[int]("doubled")
	board    = settle.NewDerived[map[string]int]("board")
	lotCount = settle.NewDerived[int]("count-of-lots")
	notes    = collection.New[int]("note-")
	listed   = settle.NewDerived[[]string]("listed")
)

// auctionHall is a board over all lots, each a space, and a collection of notes.
func auctionHall() *settle.Program {
	p := settle.NewProgram("auction")
	bidOn.Handle(p, func(tx *settle.Tx, cents int) error {
		highest.Set(tx, max(cents, highest.Get(tx)))
		notes.Set(tx, fmt.Sprint("n", cents), cents)
		return nil
	})
	closing.Handle(p, func(tx *settle.Tx) error {
		highest.Delete(tx)
		return nil
	})
	doubled.Compute(p, func(v *settle.View) (int, error) { return 2 * highest.Get(v), nil })
	board.Compute(p, func(v *settle.View) (map[string]int, error) {
		all := map[string]int{}
		for lot, cents := range doubled.Across(v, settle.All("lot-*")) {
			all[lot] = cents
		}
		return all, nil
	})
	lotCount.Compute(p, func(v *settle.View) (int, error) { return len(settle.All("lot-*").Names(v)), nil })
	listed.Compute(p, func(v *settle.View) ([]string, error) {
		return notes.Keys(v, model.Page{Descending: true, Limit: 2}), nil
	})
	return p
}

// A computation reads every space that fits a pattern, as they come into being, and what is derived there.
func TestAll_SpacesComeIntoBeing(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, auctionHall())
	hall := w.Space("hall")
	settletest.Expect(hall, lotCount, 0)
	settletest.Expect(hall, board, map[string]int{})
	settletest.Send(w.Space("lot-1"), bidOn, 5)
	settletest.Send(w.Space("other"), bidOn, 9)
	settletest.Expect(hall, board, map[string]int{"lot-1": 10})
	settletest.Send(w.Space("lot-2"), bidOn, 7)
	settletest.Expect(hall, board, map[string]int{"lot-1": 10, "lot-2": 14})
	hall.Mark()
	settletest.Send(w.Space("lot-2"), bidOn, 8)
	settletest.Expect(hall, board, map[string]int{"lot-1": 10, "lot-2": 16})
	settletest.Expect(hall, lotCount, 2)
	w.Restart()
	settletest.Send(w.Space("lot-3"), bidOn, 1)
	settletest.Expect(hall, board, map[string]int{"lot-1": 10, "lot-2": 16, "lot-3": 2})
}

// A space that was only read does not exist.
func TestAll_AReadMakesNoSpace(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, auctionHall())
	settletest.Expect(w.Space("lot-9"), doubled, 0)
	settletest.Expect(w.Space("hall"), lotCount, 0)
}

// The documents of a prefix are listed in order and in pages, and a change of a value runs no reader of the list.
func TestCollection_IsListedInOrderAndPages(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, auctionHall())
	lot := w.Space("lot-1")
	settletest.Expect(lot, listed, []string{})
	for _, cents := range []int{1, 2, 3} {
		settletest.Send(lot, bidOn, cents)
	}
	settletest.Expect(lot, listed, []string{"n3", "n2"})
	lot.Mark()
	notes.Set(lot, "n3", 7)
	settletest.Expect(lot, listed, []string{"n3", "n2"})
	lot.ExpectRuns("listed", 0)
	notes.Delete(lot, "n3")
	settletest.Expect(lot, listed, []string{"n2", "n1"})
	for page, want := range map[model.Page]string{
		{}: "[n1 n2]", {After: "n1"}: "[n2]", {After: "n15"}: "[n2]", {Limit: 1}: "[n1]", {Descending: true}: "[n2 n1]",
		{After: "n2", Descending: true}: "[n1]", {After: "n0", Descending: true}: "[]", {After: "z"}: "[]",
	} {
		if got := fmt.Sprint(notes.Keys(lot, page)); got != want {
			t.Errorf("page %+v is %s, want %s", page, got, want)
		}
	}
}

// Workers that die, and messages that are lost, leave no space off a board.
func TestFleet_ABoardOverAllSpaces(t *testing.T) {
	shown := auctionHall().Effect("show", func(v *settle.View) error {
		board.Get(v) // a client that shows it
		return nil
	})
	settletest.RunFleet(t, shown, settletest.FleetOptions{Seeds: 3}, func(f *settletest.Fleet) {
		hall := f.Space("hall")
		settletest.Post(hall, bidOn, settle.ID("open"), 1)
		want := map[string]int{}
		for i := range 6 {
			lot := fmt.Sprint("lot-", i)
			settletest.Post(f.Space(lot), bidOn, settle.ID("b"), i)
			want[lot] = 2 * i
			if i%3 == 1 {
				f.Kill()
				f.Start()
			}
			f.Advance(time.Duration(f.Rand.IntN(500)) * time.Millisecond)
			if i == 2 {
				settletest.Call(hall, bidOn, 2)
			}
		}
		settletest.Post(hall, bidOn, settle.ID("last"), 3) // which loads the hall, if its worker has died
		f.Rest()
		f.Advance(5 * time.Second)
		f.Rest()
		settletest.Expect(hall, board, want)
	})
}
