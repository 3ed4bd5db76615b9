package cookbook

import (
	"errors"

	"github.com/settlehq/settle"
)

// Withdrawn is the answer to a withdrawal. Refused is "" for one that took place.
type Withdrawn struct {
	Balance int    `json:"balance"`
	Refused string `json:"refused"`
}

var (
	balance  = settle.NewCell[int]("balance")
	withdraw = settle.NewRequest[int, Withdrawn]("withdraw")
)

func accounts() *settle.Program {
	p := settle.NewProgram("accounts")
	withdraw.Handle(p, func(tx *settle.Tx, amount int) (Withdrawn, error) {
		if amount <= 0 { // the sender has a mistake: a dead letter shows the payload
			return Withdrawn{}, errors.New("the amount must be more than 0")
		}
		have := balance.Get(tx)
		if amount > have { // the customer has too little: an answer, decided before the first write
			return Withdrawn{Balance: have, Refused: "insufficient funds"}, nil
		}
		balance.Set(tx, have-amount)
		return Withdrawn{Balance: have - amount}, nil
	})
	return p
}
