package settle_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
)

// A whole deployment in one process: a program, an embedded server, an event that
// is sent twice and counted once.
func Example() {
	p := settle.NewProgram("counter")

	p.Handle("add", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		by, _ := ev.Payload.Get("by").AsInt()
		n, _ := tx.Get("count").AsInt()
		tx.Set("count", n+by)
		return tx.Get("count"), nil // the receipt's result
	})

	p.Compute("double", func(v *settle.View) (settle.Value, error) { // only while watched
		n, _ := v.Get("count").AsInt()
		return settle.ValueOf(2 * n)
	})

	dir, err := os.MkdirTemp("", "settle-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	d, err := settle.Start(ctx, settle.Config{
		Programs: settle.Always(p),
		Server:   bus.ServerConfig{StoreDir: dir}, // leave it out for ./.settle
	})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		receipt, err := d.Client().Call(ctx, settle.Outgoing{
			Space: "alice", Stream: "add", ID: "order-17", Payload: map[string]int{"by": 2},
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(receipt.Outcome, receipt.Result)
	}

	watch, cancel := context.WithCancel(ctx)
	_ = d.Client().Watch(watch, "alice", "double", func(v settle.Value, _ uint64) {
		if !v.IsAbsent() { // the first value is what there is: nothing, as nobody has watched
			fmt.Println("double is", v)
			cancel()
		}
	})
	if err := d.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// handled 2
	// handled 2
	// double is 4
}
