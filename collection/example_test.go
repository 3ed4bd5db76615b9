package collection_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/collection"
	"github.com/settlehq/settle/model"
)

// A document for each order: the list of them is in order, and is read in pages.
func ExampleNew() {
	type Order struct {
		Cents int `json:"cents"`
	}
	orders := collection.New[Order]("order-")
	total := settle.NewDerived[int]("total")
	place := settle.NewRequest[Order, int]("place")
	p := settle.NewProgram("orders")
	place.Handle(p, func(tx *settle.Tx, o Order) (int, error) {
		orders.Set(tx, tx.Event().ID, o)
		return len(orders.Keys(tx)), nil
	})
	total.Compute(p, func(v *settle.View) (sum int, _ error) {
		for _, o := range orders.All(v) {
			sum += o.Cents
		}
		return sum, nil
	})
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is temporary
	d, err := settle.Start(ctx, settle.Config{Programs: settle.Always(p), Server: embedded.Config{StoreDir: dir}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = d.Stop(ctx) }() // the example is over
	shop := d.Client().Space("shop")
	for i := range 5 {
		n, err := place.Call(ctx, shop, settle.ID(fmt.Sprint("nr-", i)), Order{Cents: 100 * i})
		if err != nil || n != i+1 {
			fmt.Println(n, err)
		}
	}
	fmt.Println(total.Fetch(ctx, shop))
	page, err := orders.Fetch(ctx, shop, model.Page{After: "nr-1", Limit: 2})
	for _, o := range page {
		fmt.Println(o.Key, o.Value.Cents, err)
	}
	last, err := shop.List(ctx, "order-", model.Page{Limit: 1, Descending: true})
	fmt.Println(last[0].Name, last[0].Value, err)
	// Output:
	// 1000 <nil>
	// nr-2 200 <nil>
	// nr-3 300 <nil>
	// order-nr-4 {"cents":400} <nil>
}
