package settle_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/settlehq/settle"
)

// A board reads a document of every lot, of those that come later, too.
func ExampleAll() {
	bid := settle.NewStream[int]("bid")
	highest := settle.NewCell[int]("highest")
	auction := settle.NewProgram("auction")
	bid.Handle(auction, func(tx *settle.Tx, cents int) error {
		if cents > highest.Get(tx) {
			highest.Set(tx, cents)
		}
		return nil
	})
	lots := settle.All("lot-*")
	board := settle.NewDerived[string]("board")
	board.Compute(auction, func(v *settle.View) (string, error) {
		var lines []string
		for lot, cents := range highest.Across(v, lots) {
			lines = append(lines, fmt.Sprint(lot, " ", cents))
		}
		return strings.Join(lines, ", "), nil
	})
	d, end := deployment(auction)
	defer end()
	ctx, hall := context.Background(), d.Client().Space("hall")

	// The hall exists from an event on.
	err := bid.Call(ctx, hall, settle.ID("open"), 0)
	err2 := bid.Call(ctx, d.Client().Space("lot-1"), settle.ID("b1"), 500)
	fmt.Println(err, err2)
	next := 2
	for b, err := range board.Watch(ctx, hall) {
		switch {
		case err != nil:
			fmt.Println(err)
			return
		case next == 2 && b.Value == "lot-1 500":
			fmt.Println(b.Value)
			next++
			err = bid.Call(ctx, d.Client().Space("lot-2"), settle.ID("b1"), 70)
			if err != nil {
				fmt.Println(err)
			}
		case b.Value == "lot-1 500, lot-2 70":
			fmt.Println(b.Value)
			return
		}
	}
	// Output:
	// <nil> <nil>
	// lot-1 500
	// lot-1 500, lot-2 70
}
