package settle_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle"
)

type Charge struct {
	Cents int64  `json:"cents"`
	Card  string `json:"card"`
}

type Charged struct {
	Number string `json:"number"`
}

type Order struct {
	Cents int64  `json:"cents"`
	Paid  string `json:"paid"`
}

var (
	orders = settle.NewRows[Order]("orders")
	charge = settle.NewAction[Charge, Charged]("charge")
	buy    = settle.NewStream[Charge, settle.None]("buy")
	status = settle.NewDerived[string]("status")
)

// shop takes orders and has cards charged for them.
func shop(charger func(ctx context.Context, key string, c Charge) (Charged, error)) *settle.Program {
	p := settle.NewProgram("shop")
	buy.Handle(p, func(tx *settle.Tx, c Charge) (settle.None, error) {
		id := tx.Event().ID
		orders.Set(tx, id, Order{Cents: c.Cents})
		charge.Start(tx, id, c)
		return settle.None{}, nil
	})
	charge.Perform(p, charger, settle.Attempts(3))
	charge.Done(p, func(tx *settle.Tx, t settle.Task[Charge, Charged]) error {
		orders.Update(tx, t.Key, func(o *Order) { o.Paid = string(t.State) })
		return nil
	})
	status.Compute(p, func(v *settle.View) (string, error) {
		t := charge.Get(v, "order-1")
		return fmt.Sprintf("%s %s %v", t.State, t.Out.Number, t.Err), nil
	})
	return p
}

// A card is charged once for an order, when the order is in the log, and with the order's id for
// a key.
func ExampleAction() {
	p := shop(func(_ context.Context, key string, c Charge) (Charged, error) {
		fmt.Printf("charge %d cents for %s\n", c.Cents, key)
		return Charged{Number: "ch_1"}, nil
	})
	withDeployment(p, func(ctx context.Context, client *settle.Client) error {
		watching, stop := context.WithCancel(ctx)
		defer stop()
		if _, err := buy.Post(ctx, client, "shop-1", "order-1", Charge{Cents: 1250}); err != nil {
			return err
		}
		err := status.Watch(watching, client, "shop-1", func(s string, _ uint64) {
			if s == "done ch_1 <nil>" {
				fmt.Println(s)
				stop()
			}
		})
		if !errors.Is(err, context.Canceled) {
			return err
		}
		all, err := orders.Fetch(ctx, client, "shop-1")
		fmt.Println(all)
		return err
	})
	// Output:
	// charge 1250 cents for order-1
	// done ch_1 <nil>
	// map[order-1:{1250 done}]
}
