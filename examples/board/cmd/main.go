// Command cmd fills a board with a thousand cards, watches one column, and counts what runs.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/examples/board"
)

func main() {
	dir, err := os.MkdirTemp("", "board-")
	check(err)
	defer os.RemoveAll(dir)
	ctx := context.Background()
	d, err := settle.Start(ctx, settle.Config{Programs: board.Programs, Server: embedded.Config{StoreDir: dir}})
	check(err)
	defer func() { check(d.Stop(ctx)) }()

	ann, sprint := d.Client().Space("ann"), d.Client().Space("board")
	cards := []board.Draft{}
	for i := range 1000 {
		cards = append(cards, board.Draft{Card: fmt.Sprint("c", i), Title: fmt.Sprint("card ", i), Points: 1, Owner: "ann"})
	}
	check(board.Update.Call(ctx, ann, settle.ID("u1"), board.Person{Name: "Ann"}))
	check(board.Write.Call(ctx, sprint, settle.ID("w1"), cards))
	check(board.Move.Call(ctx, sprint, settle.ID("m1"), board.Shift{Card: "c7", To: "doing"}))

	var before uint64
	step := 0
	steps := []func(){
		func() {
			check(board.Write.Call(ctx, sprint, settle.ID("w2"), []board.Draft{{Card: "c7", Title: "urgent", Points: 8, Owner: "ann"}}))
		},
		func() { check(board.Move.Call(ctx, sprint, settle.ID("m2"), board.Shift{Card: "c8", To: "doing"})) },
	}
	for col, err := range board.Columns.At("doing").Watch(ctx, sprint) {
		check(err)
		if len(col.Value.Tiles) == 0 {
			continue // no document of the other space was read yet
		}
		runs := total(d)
		fmt.Printf("%d nodes ran; doing: %+v\n", runs-before, col.Value)
		before = runs
		if step == len(steps) {
			break
		}
		steps[step]()
		step++
	}
}

// total returns the number of runs of all nodes.
func total(d *settle.Deployment) (sum uint64) {
	for _, n := range d.Runs() {
		sum += n
	}
	return sum
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
