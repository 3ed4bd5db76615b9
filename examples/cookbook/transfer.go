package cookbook

import (
	"errors"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
)

// Transfer is money on its way from one account to another.
type Transfer struct {
	To    string `json:"to"`
	Cents int    `json:"cents"`
}

var (
	cents      = settle.NewCell[int]("cents")
	closed     = settle.NewCell[bool]("closed")
	returned   = settle.NewCell[string]("returned") // why the last transfer came back
	transfer   = settle.NewStream[Transfer]("transfer")
	credit     = settle.NewStream[Transfer]("credit").Internal()
	notHandled = settle.NewStream[model.Notice](model.Undelivered)
)

// transfers sends money between spaces. It leaves an account when the transfer begins, and comes back if the other account declines it.
func transfers() *settle.Program {
	p := settle.NewProgram("transfers")
	transfer.Handle(p, func(tx *settle.Tx, t Transfer) error {
		if t.Cents <= 0 || t.To == tx.Space() { // a space gets no notice of what it sends to itself
			return errors.New("a transfer is of more than 0, to another account")
		}
		if cents.Get(tx) < t.Cents {
			return settle.Reject("insufficient-funds", "the balance is too low", nil)
		}
		cents.Update(tx, func(n *int) { *n -= t.Cents })
		credit.Send(tx, settle.To(t.To), t)
		return nil
	})
	credit.Handle(p, func(tx *settle.Tx, t Transfer) error {
		if closed.Get(tx) {
			return settle.Reject("closed", "the account is closed", nil)
		}
		cents.Update(tx, func(n *int) { *n += t.Cents })
		return nil
	})
	notHandled.Handle(p, func(tx *settle.Tx, n model.Notice) error {
		var t Transfer
		if err := n.Payload.Decode(&t); err != nil {
			return err
		}
		cents.Update(tx, func(c *int) { *c += t.Cents })
		returned.Set(tx, n.Reason)
		return nil
	})
	return p
}
