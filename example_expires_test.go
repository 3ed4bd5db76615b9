package settle_test

import (
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

// An offer that is valid for a minute: it is handled within that time, or not at all.
func ExampleExpiresAt() {
	offer := settle.NewStream[int, settle.None]("offer")
	offers := settle.NewCell[int]("offers")
	ask := settle.NewStream[int, settle.None]("ask")

	p := settle.NewProgram("shop")
	offer.Handle(p, func(tx *settle.Tx, price int) (settle.None, error) {
		offers.Set(tx, offers.Get(tx)+1)
		return settle.None{}, nil
	})
	ask.Handle(p, func(tx *settle.Tx, price int) (settle.None, error) {
		offer.SendAfter(tx, settle.Here, time.Second, price, settle.ExpiresAt(tx.Now().Add(time.Minute)))
		return settle.None{}, nil
	})

	w := settletest.New(settletest.Must, p)
	s := w.Space("s")
	settletest.Send(s, ask, 7)
	w.Advance(time.Hour)
	fmt.Println(offers.Get(s))
	// Output:
	// 1
}
