package settle_test

import (
	"context"
	"fmt"

	"github.com/settlehq/settle"
)

// A document for each order: the list of them is in order, and is read in pages.
func ExampleNewDocuments() {
	type Order struct {
		Cents int `json:"cents"`
	}
	orders := settle.NewDocuments[Order]("order-")
	total := settle.NewDerived[int]("total")
	place := settle.NewRequest[Order, int]("place")
	p := settle.NewProgram("orders")
	place.Handle(p, func(tx *settle.Tx, o Order) (int, error) {
		orders.At(string(tx.Event().ID)).Set(tx, o)
		return len(orders.Keys(tx)), nil
	})
	total.Compute(p, func(v *settle.View) (sum int, _ error) {
		for _, o := range orders.All(v) {
			sum += o.Cents
		}
		return sum, nil
	})
	d, end := deployment(p)
	defer end()
	ctx, shop := context.Background(), d.Client().Space("shop")
	for i := range 5 {
		n, err := place.Call(ctx, shop, settle.ID(fmt.Sprint("nr-", i)), Order{Cents: 100 * i})
		if err != nil || n != i+1 {
			fmt.Println(n, err)
		}
	}
	fmt.Println(total.Fetch(ctx, shop))
	page, err := orders.Fetch(ctx, shop, settle.Page{After: "nr-1", Limit: 2})
	for _, o := range page {
		fmt.Println(o.Key, o.Value.Cents, err)
	}
	last, err := shop.List(ctx, "order-", settle.Page{Limit: 1, Descending: true})
	fmt.Println(last[0].Name, last[0].Value, err)
	// Output:
	// 1000 <nil>
	// nr-2 200 <nil>
	// nr-3 300 <nil>
	// order-nr-4 {"cents":400} <nil>
}
