package settle_test

import (
	"errors"
	"fmt"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

type Payout struct {
	To    string
	Cents int
}

var (
	account = settle.NewCell[int]("account")
	credit  = settle.NewStream[int]("credit").Internal() // only spaces send on it
	payOut  = settle.NewStream[Payout]("pay-out")
)

func banking() *settle.Program {
	p := settle.NewProgram("bank")
	payOut.Handle(p, func(tx *settle.Tx, o Payout) error {
		account.Update(tx, func(cents *int) { *cents -= o.Cents })
		credit.Send(tx, settle.To(o.To), o.Cents)
		return nil
	})
	credit.Handle(p, func(tx *settle.Tx, cents int) error {
		account.Update(tx, func(n *int) { *n += cents })
		return nil
	})
	return p
}

// An event of a client on an internal stream is rejected; one that a space sends is handled.
func ExampleStream_Internal() {
	w := settletest.New(settletest.Must, banking())
	ann, bob := w.Space("ann"), w.Space("bob")
	settletest.Call(ann, payOut, Payout{To: "bob", Cents: 500})
	fmt.Println(settletest.Rejected(bob, credit, 1_000_000))
	fmt.Println(account.Get(ann), account.Get(bob))
	// Output:
	// internal-stream: a client has sent the event, and only handlers and timers of spaces send on stream credit
	// -500 500
}

func ExampleRequest_Internal() {
	seats := settle.NewRequest[int, string]("seats").Internal()
	p := settle.NewProgram("hall")
	seats.Handle(p, func(_ *settle.Tx, n int) (string, error) { return fmt.Sprint(n, " seats"), nil })
	hall := settletest.New(settletest.Must, p).Space("hall")
	fmt.Println(settletest.Rejected(hall, seats, 2).Code)
	rc := settletest.SendFrom(hall, hall, seats, 2)
	fmt.Println(rc.Result)
	// Output:
	// internal-stream
	// "2 seats"
}

func ExampleTrigger_Internal() {
	closing := settle.NewTrigger("closing").Internal()
	p := settle.NewProgram("lot")
	closing.Handle(p, func(*settle.Tx) error { return errors.New("it is closed") })
	lot := settletest.New(settletest.Must, p, settletest.AllowErrors("closing")).Space("lot")
	fmt.Println(settletest.Rejected(lot, closing).Code)
	// Output: internal-stream
}
