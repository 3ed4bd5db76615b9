package cookbook

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/settlehq/settle"
)

// Payment is what the provider sends to the webhook. The provider repeats a message, with the same
// ID, until it gets a status of 2xx.
type Payment struct {
	ID    string `json:"id"`
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

var (
	received = settle.NewCell[int]("received") // cents
	paid     = settle.NewRequest[Payment, int]("paid")
)

func orders() *settle.Program {
	p := settle.NewProgram("orders")
	paid.Handle(p, func(tx *settle.Tx, m Payment) (int, error) {
		if m.Cents <= 0 {
			return 0, errors.New("a payment of nothing")
		}
		received.Update(tx, func(n *int) { *n += m.Cents })
		return received.Get(tx), nil
	})
	return p
}

// webhook passes payments on as events, under the provider's id.
func webhook(client *settle.Client) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m Payment
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.ID == "" || m.Order == "" {
			http.Error(w, "no payment", http.StatusBadRequest)
			return
		}
		order := client.Space(settle.NameOf(m.Order))
		_, err := paid.Call(r.Context(), order, settle.ID(settle.NameOf(m.ID)), m)
		switch _, ended := errors.AsType[*settle.NotHandledError](err); {
		case err == nil, ended: // ended: it is a dead letter, and sending it again changes nothing
			w.WriteHeader(http.StatusNoContent)
		default: // perhaps stored, perhaps not: the provider sends it again, under the same id
			http.Error(w, "try again", http.StatusServiceUnavailable)
		}
	})
}
