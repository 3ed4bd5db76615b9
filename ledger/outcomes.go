package ledger

import (
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// Counts counts what a ledger has done.
type Counts struct {
	// Handled, Failed and Refusals count events, by outcome, once that is confirmed.
	Handled, Failed, Refusals uint64
	// Attempts counts attempts at handling events, including undone ones but not abandoned ones.
	Attempts uint64
	// Refused counts refused appends.
	Refused uint64
	// Unconverged counts events that met conflicts for longer than the window.
	Unconverged uint64
	// Conflicts, KnownReceipts and LostOrigins count handlings that a refusal has undone, by Why.
	Conflicts, KnownReceipts, LostOrigins uint64
}

// UndoCause is the reason why a refusal has undone a handling.
type UndoCause uint8

const (
	// Conflict means that another runtime's commit was first.
	Conflict UndoCause = iota + 1
	// Receipt means that the other runtime's commit has handled the same event.
	Receipt
	// Origin means that the transaction that sent the event was undone with it.
	Origin
)

// Undone is a handling that a refusal has undone. Cause is final once the conflicting commits are integrated.
type Undone struct {
	Event receipts.Key
	Cause UndoCause
}

// outcomes counts what has happened, and lists what the last refusal has undone until Resume.
type outcomes struct {
	counts Counts
	undone []Undone
}

// Counts returns the counters.
func (o *outcomes) Counts() Counts { return o.counts }

// confirmed counts the events of a commit that is now in the log.
func (o *outcomes) confirmed(txs []model.Tx) {
	for i := range txs {
		rc := txs[i].Receipt
		switch {
		case rc == nil:
		case rc.Outcome == model.Handled:
			o.counts.Handled++
		case rc.Outcome == model.Failed:
			o.counts.Failed++
		case rc.Outcome == model.Refused:
			o.counts.Refusals++
		}
	}
}

// refused lists the handlings that a refusal has undone. followUps are the events that the undone
// transactions sent to their own space.
func (o *outcomes) refused(gone *Dropped, followUps map[string]bool) {
	o.counts.Refused++
	o.undone = nil
	for _, txs := range [][]model.Tx{gone.UnderWay, gone.Open} {
		for i := range txs {
			rc := txs[i].Receipt
			if rc == nil {
				continue
			}
			stream, _ := receipts.Stream(txs[i].By)
			u := Undone{receipts.Key{Stream: stream, ID: rc.Event}, Conflict}
			if followUps[rc.Event] {
				u.Cause = Origin
			}
			o.undone = append(o.undone, u)
		}
	}
}

// integrated processes a conflicting commit, which may have handled the same events.
func (o *outcomes) integrated(c *model.Commit) {
	for i := range o.undone {
		if receipts.Find(c, o.undone[i].Event) != nil {
			o.undone[i].Cause = Receipt
		}
	}
}

// takeUndone counts, returns and clears the list of undone handlings.
func (o *outcomes) takeUndone() []Undone {
	undone := o.undone
	o.undone = nil
	for i := range undone {
		switch undone[i].Cause {
		case Receipt:
			o.counts.KnownReceipts++
		case Origin:
			o.counts.LostOrigins++
		default:
			o.counts.Conflicts++
		}
	}
	return undone
}
