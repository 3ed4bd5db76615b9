package settle_test

import (
	"fmt"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

// A payload that has more, or less, than its type is an error, unless the stream is lenient. A payment service adds fields to its
// webhooks as it likes.
func ExampleStream_Lenient() {
	type payment struct {
		Cents int `json:"cents"`
	}
	strict := settle.NewStream[payment]("pay")
	webhook := settle.NewStream[payment]("webhook").Lenient()
	p := settle.NewProgram("shop")
	handle := func(tx *settle.Tx, in payment) error {
		tx.Set("cents", in.Cents)
		return nil
	}
	strict.Handle(p, handle)
	webhook.Handle(p, handle)

	s := settletest.New(settletest.Must, p).Space("s")
	fmt.Println(s.Send("pay", map[string]any{"cent": 5}).Error)
	fmt.Println(s.Send("pay", nil).Error)
	fmt.Println(s.Send("webhook", map[string]any{"cents": 5, "livemode": true}).Outcome, s.Get("cents"))
	// Output:
	// payload of pay: /cent: there is no such field; did you mean "cents"? there is cents
	// payload of pay: null is here; an object is wanted
	// handled 5
}
