// Command hello is the smallest deployment: a program, a server, a worker and a coordinator in
// one process, and an event that is handled exactly once, however often this is run.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/settlehq/settle"
)

var (
	count  = settle.NewCell[int]("count")       // a document that handlers write
	double = settle.NewDerived[int]("double")   // one that is derived
	add    = settle.NewRequest[int, int]("add") // events: their payload, their result
)

func counter() *settle.Program {
	p := settle.NewProgram("counter")
	add.Handle(p, func(tx *settle.Tx, by int) (int, error) {
		count.Update(tx, func(n *int) { *n += by })
		return count.Get(tx), nil
	})
	double.Compute(p, func(v *settle.View) (int, error) { return 2 * count.Get(v), nil })
	return p
}

func main() {
	ctx := context.Background()
	d, err := settle.Start(ctx, settle.Config{Programs: settle.Always(counter())}) // data in ./.settle
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop(ctx)
	n, err := add.Call(ctx, d.Client().Space("alice"), settle.ID("order-17"), 2)
	fmt.Println("count is", n, err)
}
