package cart_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/examples/cart"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

// service is a payment service, which charges once for a key.
type service struct {
	charged map[string]int64
	calls   int
	refuse  error
}

func (s *service) charge(_ context.Context, key string, p cart.Payment) (cart.Paid, error) {
	s.calls++
	if s.refuse != nil {
		return cart.Paid{}, s.refuse
	}
	s.charged[key] = p.Amount
	return cart.Paid{Receipt: "r-" + key}, nil
}

func open(t *testing.T) (*settletest.Space, *service) {
	t.Helper()
	s := &service{charged: map[string]int64{}}
	return settletest.New(t, cart.Program(s.charge)).Space("alice"), s
}

func put(s *settletest.Space, sku string, quantity, price int64) {
	settletest.Call(s, cart.Put, cart.Item{SKU: sku, Quantity: quantity, Price: price})
}

func TestTotalsAndDiscounts(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	put(s, "tea", 4, 5_00)
	settletest.Expect(s, cart.Total, cart.Totals{Subtotal: 15_00, Total: 15_00})
	settletest.Call(s, cart.Redeem, "WELCOME")
	settletest.Expect(s, cart.Total, cart.Totals{Subtotal: 15_00, Discount: 5_00, Total: 10_00})
	put(s, "pot", 1, 90_00)
	settletest.Expect(s, cart.Total, cart.Totals{Subtotal: 105_00, Discount: 15_50, Total: 89_50})
	put(s, "pot", -1, 90_00)
	put(s, "tea", -3, 5_00)
	settletest.Expect(s, cart.Total, cart.Totals{Subtotal: 5_00, Discount: 5_00})
}

func TestALineThatChangesRunsItsSumAndTheTotal(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	for i := range 50 {
		put(s, fmt.Sprint("sku", i), 1, 1_00)
	}
	settletest.Watch(s, cart.Total)
	s.Mark()
	put(s, "sku7", 1, 1_00)
	if got, want := s.Ran(), []string{"sums--sku7", "totals"}; !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
	s.Mark()
	put(s, "sku7", 1, 1_00) // the third one is free
	if got, want := s.Ran(), []string{"sums--sku7"}; !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
}

func TestACheckoutChargesWhatTheCartCameTo(t *testing.T) {
	t.Parallel()
	s, pay := open(t)
	put(s, "tea", 2, 5_00)
	got := settletest.Call(s, cart.Checkout)
	if want := (cart.Order{Number: 1, State: cart.Paying, Amount: 10_00}); got != want {
		t.Errorf("the result is %+v, want %+v", got, want)
	}
	if pay.calls != 0 {
		t.Error("it was charged before the order was in the log")
	}
	s.Perform()
	settletest.Expect(s, cart.Last, cart.Order{Number: 1, State: cart.Settled, Amount: 10_00, Note: "r-alice-1"})
	settletest.Expect(s, cart.Total, cart.Totals{})
	if pay.charged["alice-1"] != 10_00 {
		t.Errorf("charged %v", pay.charged)
	}
}

func TestWhileItIsPaidTheCartStaysAsItIs(t *testing.T) {
	t.Parallel()
	s, pay := open(t)
	if r := settletest.Send(s, cart.Checkout); r.Error != "the cart is empty" {
		t.Errorf("checked out: %s %q", r.Outcome, r.Error)
	}
	put(s, "tea", 2, 5_00)
	settletest.SendID(s, cart.Checkout, settle.ID("click"))
	settletest.SendID(s, cart.Checkout, settle.ID("click")) // a client that does not know whether it has got through
	for _, r := range []model.Receipt{
		settletest.Send(s, cart.Checkout),
		settletest.Send(s, cart.Put, cart.Item{SKU: "tea", Quantity: 9, Price: 5_00}),
		settletest.Send(s, cart.Redeem, "WELCOME"),
	} {
		if r.Outcome != model.Failed || r.Error != "the cart is being paid" {
			t.Errorf("%s %q", r.Outcome, r.Error)
		}
	}
	s.Perform()
	if pay.calls != 1 || len(pay.charged) != 1 {
		t.Errorf("%d calls, charged %v", pay.calls, pay.charged)
	}
}

func TestACardThatIsDeclinedLeavesTheCart(t *testing.T) {
	t.Parallel()
	s, pay := open(t)
	put(s, "tea", 2, 5_00)
	settletest.Call(s, cart.Checkout)
	pay.refuse = settle.Permanent(errors.New("the card was declined"))
	s.Perform()
	settletest.Expect(s, cart.Last, cart.Order{Number: 1, State: cart.Declined, Amount: 10_00, Note: "the card was declined"})
	settletest.Expect(s, cart.Total, cart.Totals{Subtotal: 10_00, Total: 10_00})

	pay.refuse = errors.New("the service cannot be reached")
	settletest.Call(s, cart.Checkout)
	s.Perform()
	s.Perform()
	pay.refuse = nil
	s.World().Crash()
	s.Perform()
	settletest.Expect(s, cart.Last, cart.Order{Number: 2, State: cart.Settled, Amount: 10_00, Note: "r-alice-2"})
}
