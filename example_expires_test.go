package settle_test

import (
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
	"github.com/settlehq/settle/space"
)

// An offer that is valid for a minute: it is handled within that time, or not at all.
func ExampleExpiresAt() {
	offer := settle.NewStream[int]("offer")
	offers := settle.NewCell[int]("offers")
	ask := settle.NewStream[int]("ask")

	p := settle.NewProgram("shop")
	offer.Handle(p, func(tx *settle.Tx, price int) error {
		offers.Set(tx, offers.Get(tx)+1)
		return nil
	})
	ask.Handle(p, func(tx *settle.Tx, price int) error {
		offer.SendAfter(tx, settle.Here, time.Second, price, space.ExpiresAt(tx.Now().Add(time.Minute)))
		return nil
	})

	w := settletest.New(settletest.Must, p)
	s := w.Space("s")
	settletest.Send(s, ask, 7)
	w.Advance(time.Hour)
	fmt.Println(offers.Get(s))
	// Output:
	// 1
}
