package settle_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/fleet"
	"github.com/settlehq/settle/remote"
	"github.com/settlehq/settle/settletest"
	"github.com/settlehq/settle/space"
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
	buy    = settle.NewStream[Charge]("buy")
	recall = settle.NewRequest[string, bool]("recall")
	clean  = settle.NewRequest[struct{}, int]("clean")
	status = settle.NewDerived[string]("status")
)

// shop takes orders and charges cards for them.
func shop(charger func(ctx context.Context, key string, c Charge) (Charged, error)) *settle.Program {
	p := settle.NewProgram("shop")
	buy.Handle(p, func(tx *settle.Tx, c Charge) error {
		id := tx.Event().ID
		orders.Set(tx, id, Order{Cents: c.Cents})
		charge.Start(tx, id, c)
		return nil
	})
	charge.Perform(p, charger,
		settle.Attempts(3), settle.Backoff(time.Second, time.Minute), settle.Timeout(10*time.Second),
		settle.AtATime(4), settle.Keep(7*24*time.Hour),
		fleet.AtATime(2), fleet.Rate(100), fleet.By("card"))
	charge.Done(p, func(tx *settle.Tx, t settle.Task[Charge, Charged]) error {
		orders.Update(tx, t.Key, func(o *Order) { o.Paid = string(t.State) })
		return nil
	})
	status.Compute(p, func(v *settle.View) (string, error) {
		t := charge.Get(v, "order-1")
		return fmt.Sprintf("%s %s %v", t.State, t.Out.Number, t.Err), nil
	})
	recall.Handle(p, func(tx *settle.Tx, order string) (bool, error) {
		return charge.Cancel(tx, order), nil
	})
	clean.Handle(p, func(tx *settle.Tx, _ struct{}) (int, error) {
		forgotten := 0
		for t := range charge.All(tx) {
			if t.State == space.TaskDone {
				charge.Forget(tx, t.Key)
				forgotten++
			}
		}
		return forgotten, nil
	})
	return p
}

// A card is charged once per order, after the order is in the log, with the order's id as the
// idempotency key.
func ExampleAction() {
	p := shop(func(_ context.Context, key string, c Charge) (Charged, error) {
		fmt.Printf("charge %d cents for %s\n", c.Cents, key)
		return Charged{Number: "ch_1"}, nil
	})
	withDeployment(p, func(ctx context.Context, client *settle.Client) error {
		shop := client.Space("shop-1")
		if _, err := buy.Post(ctx, shop, settle.ID("order-1"), Charge{Cents: 1250}); err != nil {
			return err
		}
		for s, err := range status.Watch(ctx, shop) {
			if err != nil {
				return err
			}
			if s.Value == "done ch_1 <nil>" {
				fmt.Println(s.Value)
				break
			}
		}
		all, err := orders.Fetch(ctx, shop)
		fmt.Println(all)
		return err
	})
	// Output:
	// charge 1250 cents for order-1
	// done ch_1 <nil>
	// map[order-1:{1250 done}]
}

// Two shops charge for an order-1 each, under keys that differ at the provider.
func ExampleAction_IdempotencyKey() {
	pay := func(_ context.Context, idempotencyKey string, c Charge) (Charged, error) {
		fmt.Printf("charge %d cents once for %s\n", c.Cents, idempotencyKey)
		return Charged{Number: "ch_1"}, nil
	}
	charger := func(ctx context.Context, key string, c Charge) (Charged, error) {
		return pay(ctx, charge.AttemptOf(ctx).IdempotencyKey(), c)
	}
	withDeployment(shop(charger), func(ctx context.Context, client *settle.Client) error {
		for _, name := range []string{"shop-1", "shop-2"} {
			shop := client.Space(name)
			if _, err := buy.Post(ctx, shop, settle.ID("order-1"), Charge{Cents: 1250}); err != nil {
				return err
			}
			for s, err := range status.Watch(ctx, shop) {
				if err != nil {
					return err
				}
				if s.Value == "done ch_1 <nil>" {
					break
				}
			}
			fmt.Println("look for it under", charge.IdempotencyKey(shop, "order-1"))
		}
		return nil
	})
	// Output:
	// charge 1250 cents once for settle.shop-1.charge.order-1
	// look for it under settle.shop-1.charge.order-1
	// charge 1250 cents once for settle.shop-2.charge.order-1
	// look for it under settle.shop-2.charge.order-1
}

// A failed task is retried; an error marked Permanent ends the task, and Done is called.
func ExamplePermanent() {
	s := settletest.New(settletest.Must, shop(func(_ context.Context, key string, c Charge) (Charged, error) {
		if c.Card == "" {
			return Charged{}, settle.Permanent(errors.New("there is no card"))
		}
		return Charged{}, errors.New("no answer")
	})).Space("shop-1")
	settletest.SendID(s, buy, settle.ID("order-1"), Charge{Cents: 100})
	settletest.SendID(s, buy, settle.ID("order-2"), Charge{Cents: 100, Card: "4242"})
	for range 3 {
		s.Perform()
		for t := range charge.All(s) {
			fmt.Println(t.Key, t.State, t.Attempts, t.Err)
		}
	}
	fmt.Println(orders.Get(s, "order-2"))
	// Output:
	// order-1 failed 0 there is no card
	// order-2 pending 1 no answer
	// order-1 failed 0 there is no card
	// order-2 pending 2 no answer
	// order-1 failed 0 there is no card
	// order-2 failed 2 no answer
	// {100 failed}
}

// A task that is cancelled in time is not performed.
func ExampleAction_Cancel() {
	s := settletest.New(settletest.Must, shop(func(_ context.Context, key string, c Charge) (Charged, error) {
		return Charged{Number: "ch_" + key}, nil
	})).Space("shop-1")
	settletest.SendID(s, buy, settle.ID("order-1"), Charge{Cents: 100})
	settletest.SendID(s, buy, settle.ID("order-2"), Charge{Cents: 200})
	fmt.Println(settletest.Call(s, recall, "order-1"))
	s.Perform()
	fmt.Println(charge.Get(s, "order-1").State, charge.Get(s, "order-2").State)
	fmt.Println(settletest.Call(s, recall, "order-2"))
	fmt.Println(settletest.Call(s, clean), charge.Get(s, "order-2").State == space.NoTask)
	// Output:
	// true
	// cancelled done
	// false
	// 1 true
}

// A person performs the tasks, by a client that watches the document "approve" and reports how each task has ended.
func ExampleAction_External() {
	approve := settle.NewAction[string, bool]("approve")
	plan := settle.NewStream[string]("plan")
	log := settle.NewCell[[]string]("log")

	p := settle.NewProgram("desk")
	plan.Handle(p, func(tx *settle.Tx, what string) error {
		approve.Start(tx, what, "may we "+what+"?")
		return nil
	})
	approve.External(p, remote.Watched(), settle.Keep(time.Hour))
	approve.Done(p, func(tx *settle.Tx, t settle.Task[string, bool]) error {
		log.Update(tx, func(l *[]string) { *l = append(*l, fmt.Sprint(t.Key, " ", t.Out, " ", t.Err)) })
		return nil
	})
	withDeployment(p, func(ctx context.Context, client *settle.Client) error {
		for _, what := range []string{"dig", "dive"} {
			if err := plan.Call(ctx, client.Space("desk-1"), settle.ID("e-"+what), what); err != nil {
				return err
			}
		}
		if err := approve.Complete(ctx, client.Space("desk-1"), "dig", true); err != nil {
			return err
		}
		if err := approve.Fail(ctx, client.Space("desk-1"), "dive", errors.New("no air")); err != nil {
			return err
		}
		// The same reports as events, with their payloads.
		again, err := approve.Completed(settle.To("desk-1"), "dig", true)
		fmt.Println(again.Stream, again.Payload)
		fmt.Println(approve.Failed(settle.To("desk-1"), "dive", errors.New("no air")).Payload)
		if err != nil {
			return err
		}
		for l, err := range log.Watch(ctx, client.Space("desk-1")) {
			if err != nil {
				return err
			}
			if len(l.Value) == 2 {
				fmt.Println(l.Value)
				break
			}
		}
		return nil
	})
	// Output:
	// approve {"key":"dig","out":true}
	// {"error":"no air","key":"dive"}
	// [dig true <nil> dive false no air]
}
