package board_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/settlehq/settle/examples/board"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

func key(i int) string { return fmt.Sprintf("c%04d", i) }

// open returns a board with so many cards, all of them watched; Ann owns three, Bo the others. The
// first twenty are in the column "doing".
func open(t *testing.T, cards int) (w *settletest.World, b *settletest.Space) {
	t.Helper()
	w = settletest.New(t, board.Programs)
	settletest.Call(w.Space("ann"), board.Update, board.Person{Name: "Ann"})
	settletest.Call(w.Space("bo"), board.Update, board.Person{Name: "Bo"})
	var drafts []board.Draft
	for i := range cards {
		owner := "bo"
		if i < 3 {
			owner = "ann"
		}
		drafts = append(drafts, board.Draft{Card: key(i), Title: fmt.Sprint("card ", i), Points: 1, Owner: owner})
	}
	b = w.Space("board")
	settletest.Call(b, board.Write, drafts)
	for i := range 20 {
		settletest.Call(b, board.Move, board.Shift{Card: key(i), To: "doing"})
	}
	settletest.Watch(b, board.Columns.At("doing"))
	b.Mark()
	return w, b
}

func expectRan(t *testing.T, s *settletest.Space, want ...string) {
	t.Helper()
	if got := s.Ran(); !slices.Equal(got, want) {
		t.Errorf("%d nodes ran:\n got %v\nwant %v", len(got), got, want)
	}
}

// TestOfAThousandCardsOneThatChangesRunsOneTile also checks that the tile's column runs.
func TestOfAThousandCardsOneThatChangesRunsOneTile(t *testing.T) {
	t.Parallel()
	_, b := open(t, 1000)
	settletest.Call(b, board.Write, []board.Draft{{Card: key(10), Title: "urgent", Points: 8, Owner: "bo"}})
	expectRan(t, b, "tiles--c0010", "columns--doing")
	if c := board.Columns.Get(b, "doing"); c.Points != 27 || c.Tiles[10] != (board.Tile{Title: "urgent", Points: 8, Owner: "Bo"}) {
		t.Errorf("the column has %d points, and the tile is %+v", c.Points, c.Tiles[10])
	}
}

func TestACardThatIsMovedRunsTwoColumnsAndNoTile(t *testing.T) {
	t.Parallel()
	_, b := open(t, 100)
	settletest.Call(b, board.Move, board.Shift{Card: key(10), To: board.First})
	expectRan(t, b, "columns--doing", "columns--todo")
}

func TestACardThatComesRunsItsOwnTile(t *testing.T) {
	t.Parallel()
	_, b := open(t, 100)
	settletest.Call(b, board.Write, []board.Draft{{Card: "new", Title: "one more", Owner: "ann"}})
	expectRan(t, b, "tiles", "tiles--new", "columns--todo")
}

// TestWhoGoesAwayRunsTheTilesOfTheirCards: the link leads into another space, and what is read
// there is derived there.
func TestWhoGoesAwayRunsTheTilesOfTheirCards(t *testing.T) {
	t.Parallel()
	w, b := open(t, 100)
	seen := settletest.Watch(b, board.Columns.At("doing"))
	settletest.Call(w.Space("ann"), board.Update, board.Person{Name: "Ann", Away: true})
	expectRan(t, b, "tiles--c0000", "tiles--c0001", "tiles--c0002", "columns--doing")
	if got := seen.Last().Tiles[2].Owner; got != "Ann (away)" {
		t.Errorf("the tile says %q", got)
	}
}

func TestWhatNobodyWatchesIsNotDerivedAnywhere(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, board.Programs)
	b := w.Space("board")
	settletest.Call(b, board.Write, []board.Draft{{Card: "c1", Title: "card", Owner: "ann"}})
	settletest.Call(w.Space("ann"), board.Update, board.Person{Name: "Ann"})
	w.Space("ann").ExpectRuns("badge", 0)
	expectRan(t, b)

	settletest.Watch(b, board.Columns.At(board.First)) // of the board; so the badge is derived over there
	w.Space("ann").ExpectRuns("badge", 1)
	if got := board.Tiles.Get(b, "c1").Owner; got != "Ann" {
		t.Errorf("the tile says %q", got)
	}
}

// TestAThousandTilesAreNotMadeAgainAfterARestart: their reads are saved, and have not changed.
func TestAThousandTilesAreNotMadeAgainAfterARestart(t *testing.T) {
	t.Parallel()
	w, b := open(t, 1000)
	w.Restart()
	b.Mark()
	settletest.Call(b, board.Write, []board.Draft{{Card: key(10), Title: "urgent", Points: 8, Owner: "bo"}})
	settletest.Watch(b, board.Columns.At("doing"))
	expectRan(t, b, "tiles--c0010", "columns--doing")
}

func TestACardThatIsNotThereCannotBeMoved(t *testing.T) {
	t.Parallel()
	b := settletest.New(t, board.Programs).Space("board")
	if r := settletest.Send(b, board.Move, board.Shift{Card: "c1", To: "doing"}); r.Outcome != model.Failed || r.Error != `there is no card "c1"` {
		t.Errorf("%s: %s", r.Outcome, r.Error)
	}
}
