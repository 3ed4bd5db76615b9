package settletest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

// docs/testing.md quotes this program and these tests verbatim.

type Order struct {
	Item string `json:"item"`
	Cost int64  `json:"cost"`
}

var (
	orders   = settle.NewRows[Order]("orders")
	total    = settle.NewDerived[int64]("total")
	placed   = settle.NewCell[int64]("placed")
	place    = settle.NewRequest[Order, string]("place")
	forget   = settle.NewStream[string]("forget")
	announce = settle.NewStream[Order]("announce")
)

func shop() *settle.Program {
	p := settle.NewProgram("shop")
	place.Handle(p, func(tx *settle.Tx, o Order) (string, error) {
		if o.Cost <= 0 {
			return "", fmt.Errorf("an order of %s costs something", o.Item)
		}
		n := placed.Get(tx) + 1
		placed.Set(tx, n)
		id := fmt.Sprint("order-", n)
		orders.Set(tx, id, o)
		forget.SendAfter(tx, settle.Here, 30*24*time.Hour, id)
		announce.Send(tx, settle.To("news"), o)
		return id, nil
	})
	forget.Handle(p, func(tx *settle.Tx, id string) error {
		orders.Delete(tx, id)
		return nil
	})
	announce.Handle(p, func(tx *settle.Tx, o Order) error {
		placed.Update(tx, func(n *int64) { *n++ })
		return nil
	})
	total.Compute(p, func(v *settle.View) (sum int64, err error) {
		for _, o := range orders.All(v) {
			sum += o.Cost
		}
		return sum, nil
	})
	return p
}

func TestOrdersAddUp(t *testing.T) {
	t.Parallel()
	s := settletest.New(t, shop()).Space("shop-1")
	settletest.Call(s, place, Order{Item: "kettle", Cost: 30})
	settletest.Call(s, place, Order{Item: "cup", Cost: 5})
	settletest.Expect(s, total, 35)
}

func TestAnOrderCostsSomething(t *testing.T) {
	t.Parallel()
	s := settletest.New(t, shop()).Space("shop-1")
	rc := settletest.Send(s, place, Order{Item: "air"})
	if rc.Outcome != model.Failed {
		t.Errorf("receipt %+v", rc)
	}
	settletest.Expect(s, placed, 0)
}

func TestOrdersAreForgottenAfterAMonth(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, shop())
	s := w.Space("shop-1")
	orders.Set(s, "order-0", Order{Item: "lamp", Cost: 12}) // the initial state of the test
	settletest.Call(s, place, Order{Item: "kettle", Cost: 30})
	w.Advance(30*24*time.Hour - time.Second)
	settletest.Expect(s, total, 42)
	w.Advance(time.Second)
	settletest.Expect(s, total, 12)
}

func TestOrdersAreAnnounced(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, shop())
	settletest.Call(w.Space("shop-1"), place, Order{Item: "cup", Cost: 5})
	settletest.Call(w.Space("shop-2"), place, Order{Item: "cup", Cost: 5})
	settletest.Expect(w.Space("news"), placed, 2)
}

var headline = settle.NewCell[string]("headline")

// paper is the program of the space news; the other spaces run shop.
func paper() *settle.Program {
	p := settle.NewProgram("paper")
	announce.Handle(p, func(tx *settle.Tx, o Order) error {
		headline.Set(tx, fmt.Sprintf("%s for %d", o.Item, o.Cost))
		return nil
	})
	return p
}

func programs(space string) *settle.Program {
	switch {
	case strings.HasPrefix(space, "shop-"):
		return shop()
	case space == "news":
		return paper()
	}
	return nil // this space runs no program
}

func TestSpacesOfTwoPrograms(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, programs)
	settletest.Call(w.Space("shop-1"), place, Order{Item: "cup", Cost: 5})
	settletest.Expect(w.Space("news"), headline, "cup for 5")
}

func TestOrdersAreShipped(t *testing.T) {
	t.Parallel()
	s := settletest.New(t, warehouse(shipFor5)).Space("depot")
	settletest.Call(s, order, "tea")
	if got := settletest.PendingTasks(s, ship); len(got) != 1 || got[0] != "tea" {
		t.Errorf("pending shipments: %v", got)
	}
	settletest.Complete(s, ship, "tea", 7) // as if the shipment were done, at a cost of 7
	settletest.Expect(s, owed, 7)
	settletest.Call(s, order, "cups")
	settletest.GiveUp(s, ship, "cups", errors.New("the road is closed"))
	settletest.Expect(s, owed, 7)
	settletest.Call(s, order, "spoons")
	s.Perform() // calls the function that the program has registered
	settletest.Expect(s, owed, 12)
}

func TestTheTotalIsComputedOncePerOrder(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, shop())
	s := w.Space("shop-1")
	seen := settletest.Watch(s, total)
	s.Mark()
	settletest.Call(s, place, Order{Item: "kettle", Cost: 30})
	settletest.Call(s, place, Order{Item: "cup", Cost: 5})
	s.ExpectRuns("total", 2)
	if got := fmt.Sprint(seen.Values()); got != "[0 30 35]" {
		t.Errorf("the watch received %s", got)
	}
	s.Mark()
	w.Restart()
	settletest.Expect(s, total, 35)
	s.ExpectRuns("total", 0) // nothing that it reads has changed
}

func TestOrdersSurviveTheirWorkers(t *testing.T) {
	settletest.RunFleet(t, shop(), settletest.FleetOptions{Seeds: 3}, func(f *settletest.Fleet) {
		s := f.Space("shop-1")
		for i := range 20 {
			settletest.Post(s, place, settle.ID(fmt.Sprint("e", i)), Order{Item: "cup", Cost: 5})
			if i%5 == 2 {
				f.Kill()
				f.Start()
			}
		}
		f.Rest()
		settletest.Expect(s, total, 100)
		settletest.Expect(f.Space("news"), placed, 20)
	})
}
