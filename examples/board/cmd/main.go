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

	c := d.Client()
	cards := []board.Draft{}
	for i := range 1000 {
		cards = append(cards, board.Draft{Card: fmt.Sprint("c", i), Title: fmt.Sprint("card ", i), Points: 1, Owner: "ann"})
	}
	call(ctx, c, "ann", board.Update, "u1", board.Person{Name: "Ann"})
	call(ctx, c, "board", board.Write, "w1", cards)
	call(ctx, c, "board", board.Move, "m1", board.Shift{Card: "c7", To: "doing"})

	var before uint64
	step := 0
	steps := []func(){
		func() {
			call(ctx, c, "board", board.Write, "w2", []board.Draft{{Card: "c7", Title: "urgent", Points: 8, Owner: "ann"}})
		},
		func() { call(ctx, c, "board", board.Move, "m2", board.Shift{Card: "c8", To: "doing"}) },
	}
	watch, end := context.WithCancel(ctx)
	_ = board.Columns.At("doing").Watch(watch, c.Space("board"), func(col board.Column, revision uint64) {
		if len(col.Tiles) == 0 {
			return // no document of the other space was read yet
		}
		runs := total(d)
		fmt.Printf("%d nodes ran; doing: %+v\n", runs-before, col)
		before = runs
		if step == len(steps) {
			end()
			return
		}
		steps[step]()
		step++
	})
	end()
}

// total returns the number of runs of all nodes.
func total(d *settle.Deployment) (sum uint64) {
	for _, n := range d.Runs() {
		sum += n
	}
	return sum
}

func call[In, Out any](ctx context.Context, c *settle.Client, space string, s settle.Stream[In, Out], id string, in In) {
	_, err := s.Call(ctx, c.Space(space), settle.ID(id), in)
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
