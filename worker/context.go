package worker

import (
	"context"

	"github.com/settlehq/settle/space"
)

// Context returns a context that ends when the code that uses the transaction must return: its limit is
// reached, its space is taken away, or it has returned. In a space that no worker serves, as in a test, it
// never ends.
func Context(tx *space.Tx) context.Context {
	if of := tx.Guard().Context; of != nil {
		return of()
	}
	return context.Background()
}
