// Command cmd checks a cart out, and kills the worker after the payment service has charged and
// before the result is stored.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/examples/cart"
	"github.com/settlehq/settle/worker"
)

func main() {
	dir, err := os.MkdirTemp("", "cart-")
	check(err)
	defer os.RemoveAll(dir)
	ctx, charged, die := context.Background(), map[string]bool{}, make(chan struct{})
	charge := func(ctx context.Context, key string, p cart.Payment) (cart.Paid, error) {
		fmt.Printf("  the service is asked for %d cents under the key %s; charged before: %v\n", p.Amount, key, charged[key])
		if !charged[key] {
			charged[key] = true
			close(die)
			<-ctx.Done() // its answer does not come
		}
		return cart.Paid{Receipt: "receipt " + key}, ctx.Err()
	}
	d, err := settle.Start(ctx, settle.Config{
		Programs: settle.Always(cart.Program(charge)), Server: embedded.Config{StoreDir: dir}, Options: worker.Options{Heartbeat: 200 * time.Millisecond},
	})
	check(err)
	defer func() { check(d.Stop(ctx)) }()

	err = cart.Put.Call(ctx, d.Client().Space("alice"), settle.ID("p1"), cart.Item{SKU: "tea", Quantity: 3, Price: 5_00})
	check(err)
	order, err := cart.Checkout.Call(ctx, d.Client().Space("alice"), settle.ID("c1"), struct{}{})
	check(err)
	fmt.Printf("checked out: %+v\n", order)
	<-die
	fmt.Println("the worker is killed, and another one starts")
	d.KillWorker(d.Workers()[0])
	_, err = d.AddWorker(ctx)
	check(err)
	for o, err := range cart.Last.Watch(ctx, d.Client().Space("alice")) {
		check(err)
		if o.Value.State == cart.Settled {
			fmt.Printf("the order: %+v\n", o.Value)
			break
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
