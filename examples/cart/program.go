package cart

import (
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/space"
)

// All amounts are in cents.
type (
	// Line is a quantity of an article.
	Line struct {
		Quantity int64 `json:"quantity"`
		Price    int64 `json:"price"`
	}
	// Item changes the quantity of a line; a negative one reduces it. Price is the price of one piece.
	Item struct {
		SKU      string `json:"sku"`
		Quantity int64  `json:"quantity"`
		Price    int64  `json:"price"`
	}
	// Totals are the sums of the cart.
	Totals struct {
		Subtotal int64 `json:"subtotal"`
		Discount int64 `json:"discount"`
		Total    int64 `json:"total"`
	}
	// Payment is the input of the payment service.
	Payment struct {
		Amount int64 `json:"amount"`
	}
	// Paid is the result of the payment service.
	Paid struct {
		Receipt string `json:"receipt"`
	}
	// Order is the last one of the cart.
	Order struct {
		Number int64  `json:"number"`
		State  string `json:"state"`
		Amount int64  `json:"amount"`
		// Note is the receipt, or the reason why the order was not paid.
		Note string `json:"note,omitzero"`
	}
)

// The states of an order.
const (
	Paying   = "paying"
	Settled  = "paid"
	Declined = "declined"
)

// The names of a cart.
var (
	Lines  = settle.NewRows[Line]("lines") // by SKU
	Coupon = settle.NewCell[string]("coupon")
	Last   = settle.NewCell[Order]("order")

	Sums  = settle.NewDerivedRows[int64]("sums") // the sum of each line
	Total = settle.NewDerived[Totals]("totals")

	Put      = settle.NewStream[Item]("put")
	Redeem   = settle.NewStream[string]("redeem")
	Checkout = settle.NewRequest[struct{}, Order]("checkout")
	Pay      = settle.NewAction[Payment, Paid]("pay")
)

var (
	errPaying = errors.New("the cart is being paid")
	errEmpty  = errors.New("the cart is empty")
)

// Program returns the program of a cart. charge is the payment service: called twice with one key, it
// must charge once. An error that settle.Permanent marks is a refusal.
func Program(charge func(ctx context.Context, key string, p Payment) (Paid, error)) *settle.Program {
	p := settle.NewProgram("cart")
	fill(p)
	reckon(p)
	Checkout.Handle(p, func(tx *settle.Tx, _ struct{}) (Order, error) {
		t := Total.Get(tx) // brought up to date for this
		switch {
		case Last.Get(tx).State == Paying:
			return Order{}, errPaying
		case Lines.Len(tx) == 0:
			return Order{}, errEmpty
		}
		o := Order{Number: Last.Get(tx).Number + 1, State: Paying, Amount: t.Total}
		Last.Set(tx, o)
		Pay.Start(tx, fmt.Sprintf("%s-%d", tx.Space(), o.Number), Payment{o.Amount})
		return o, nil
	})
	Pay.Perform(p, charge)
	Pay.Done(p, func(tx *settle.Tx, t settle.Task[Payment, Paid]) error {
		o := Last.Get(tx)
		if t.State == space.TaskFailed {
			o.State, o.Note = Declined, t.Err.Error()
		} else {
			o.State, o.Note = Settled, t.Out.Receipt
			for _, sku := range Lines.Keys(tx) {
				Lines.Delete(tx, sku)
			}
			Coupon.Delete(tx)
		}
		Last.Set(tx, o)
		return nil
	})
	return p
}

// fill registers the steps before the checkout.
func fill(p *settle.Program) {
	Put.Handle(p, func(tx *settle.Tx, i Item) error {
		if Last.Get(tx).State == Paying {
			return errPaying
		}
		switch l := Lines.Get(tx, i.SKU); {
		case l.Quantity+i.Quantity > 0:
			Lines.Set(tx, i.SKU, Line{l.Quantity + i.Quantity, i.Price})
		default:
			Lines.Delete(tx, i.SKU)
		}
		return nil
	})
	Redeem.Handle(p, func(tx *settle.Tx, coupon string) error {
		if Last.Get(tx).State == Paying {
			return errPaying
		}
		Coupon.Set(tx, coupon)
		return nil
	})
}

// reckon registers the derived documents.
func reckon(p *settle.Program) {
	// Of three of a kind, one is free.
	Sums.Compute(p, settle.Each(Lines, func(v *settle.View, row settle.Row[Line]) (int64, error) {
		l := row.Get(v)
		return (l.Quantity - l.Quantity/3) * l.Price, nil
	}))
	// A tenth off from 100 EUR on, and 5 EUR with a coupon.
	Total.Compute(p, func(v *settle.View) (t Totals, err error) {
		for _, sum := range Sums.All(v) {
			t.Subtotal += sum
		}
		if t.Subtotal >= 100_00 {
			t.Discount += t.Subtotal / 10
		}
		if Coupon.Get(v) == "WELCOME" {
			t.Discount += 5_00
		}
		t.Discount = min(t.Discount, t.Subtotal)
		t.Total = t.Subtotal - t.Discount
		return t, nil
	})
}
