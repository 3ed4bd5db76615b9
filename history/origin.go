package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Sent is an event and the transaction that sent it.
type Sent struct {
	// Origin has a receipt if the transaction is a handling.
	Origin Handling
	Send   model.Send
}

// ErrNeverSent reports that the transaction in an event's id is not in the log and never will be: it was
// undone, or another runtime has taken over the space.
var ErrNeverSent = errors.New("the transaction that would have sent it was undone")

// FindOrigin finds the transaction that sent an event, by the event's id; nil if it is not in the log yet, or
// if Settle did not generate the id. The error is ErrNeverSent if it never will be, and ErrForgotten if the
// log does not reach back far enough.
func FindOrigin(ctx context.Context, bus port.Client, id string) (*Sent, error) {
	tx, minted := model.OriginOf(id)
	if !minted {
		return nil, nil
	}
	if model.CheckName("space", tx.Space) != nil {
		return nil, nil // not a generated id
	}
	sent, err := findOrigin(ctx, bus, tx, id)
	if err != nil {
		return nil, fmt.Errorf("find the origin of event %s: %w", id, err)
	}
	return sent, nil
}

func findOrigin(ctx context.Context, bus port.Client, tx model.TxID, id string) (*Sent, error) {
	l, err := readLogOf(ctx, bus, tx.Space, 0)
	if err != nil || tx.Epoch == 0 || tx.Epoch > l.head {
		return nil, err
	}
	at, preceded, err := l.origin(tx)
	if err != nil {
		return nil, err
	}
	if at != nil {
		if sent := at.sent(tx, id); sent != nil {
			return sent, nil
		}
	}
	if !preceded {
		first, err := l.entry(1)
		switch {
		case err != nil:
			return nil, err
		case l.gap || first.seq > tx.Epoch: // it may be known from before a purge, which the search has met
			return nil, ErrForgotten
		}
	}
	if at != nil {
		return nil, ErrNeverSent
	}
	return nil, nil
}

// sent returns the event with an id that transaction tx of the commit sent, or nil.
func (e *logged) sent(tx model.TxID, id string) *Sent {
	if e.c.Epoch != tx.Epoch {
		return nil
	}
	for i := range e.c.Txs {
		t := &e.c.Txs[i]
		if t.N != tx.N {
			continue
		}
		for _, s := range t.Sends {
			if s.ID == id {
				h := Handling{Space: tx.Space, Seq: e.seq, Stored: e.stored, Runtime: e.c.Runtime, ID: tx, Tx: *t}
				return &Sent{Origin: h, Send: s}
			}
		}
	}
	return nil
}
