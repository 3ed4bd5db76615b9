package cookbook

import (
	"errors"

	"github.com/settlehq/settle"
)

// Short is the data of the rejection "insufficient-funds".
type Short struct {
	Balance int `json:"balance"`
}

var (
	balance  = settle.NewCell[int]("balance")
	withdraw = settle.NewRequest[int, int]("withdraw")
)

func accounts() *settle.Program {
	p := settle.NewProgram("accounts")
	withdraw.Handle(p, func(tx *settle.Tx, amount int) (int, error) {
		if amount <= 0 { // the sender has a mistake: a dead letter shows the payload
			return 0, errors.New("the amount must be more than 0")
		}
		left := balance.Get(tx) - amount
		balance.Set(tx, left)
		if left < 0 { // the customer has too little: an answer, and nothing is written
			return 0, settle.Reject("insufficient-funds", "the balance is too low", Short{left + amount})
		}
		return left, nil
	})
	return p
}
