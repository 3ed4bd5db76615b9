package settle_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
)

// A whole deployment in one process: a program, an embedded server, and an event that is sent twice
// and counted once.
func Example() {
	count := settle.NewCell[int]("count")
	double := settle.NewDerived[int]("double")
	add := settle.NewRequest[int, int]("add")

	p := settle.NewProgram("counter")
	add.Handle(p, func(tx *settle.Tx, by int) (int, error) {
		count.Update(tx, func(n *int) { *n += by })
		return count.Get(tx), nil // the receipt's result
	})
	double.Compute(p, func(v *settle.View) (int, error) { // only while it is observed
		return 2 * count.Get(v), nil
	})

	dir, err := os.MkdirTemp("", "settle-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	d, err := settle.Start(ctx, settle.Config{
		Programs: settle.Always(p),
		Server:   embedded.Config{StoreDir: dir}, // omit it for ./.settle
	})
	if err != nil {
		log.Fatal(err)
	}
	client := d.Client()
	for range 2 {
		n, err := add.Call(ctx, client.Space("alice"), settle.ID("order-17"), 2)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("count is", n)
	}

	for n, err := range double.Watch(ctx, client.Space("alice")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("double is", n.Value)
		break
	}
	if err := d.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// count is 2
	// count is 2
	// double is 4
}
