package space

import (
	"errors"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// Rejection is the class of a reason for which a transaction did not take effect.
type Rejection uint8

const (
	// ByConflict: the commit was refused, because another runtime's was first.
	ByConflict Rejection = iota + 1
	// ByReceipt: it was refused, and the one in the way has handled the same event.
	ByReceipt
	// ByOrigin: it was refused, and with it the transaction that had sent the event.
	ByOrigin
	// ByRule: no commit may hold it. There is no handler, the event cannot be decoded,
	// the function wrote or sent what it must not, or more than a commit takes.
	ByRule
	// ByTransientError: the function returned an error that may pass (see Transient).
	ByTransientError
	// ByError: the function returned another error, or panicked.
	ByError

	rejectionCount
)

func (r Rejection) String() string {
	return [rejectionCount]string{"", "conflict", "receipt exists", "origin failed", "refused by rule", "transient error", "error"}[r]
}

// consequence is what a rejection does to one of those whom it concerns.
type consequence uint8

const (
	// thenAgain: it is undone and made again, without a budget.
	thenAgain consequence = iota + 1
	// thenAgainWithinBudget: it is made again as often as its budget allows, and ends as
	// with any other error then.
	thenAgainWithinBudget
	// thenWaitsForChange: it keeps its last output until something that it has read changes.
	thenWaitsForChange
	// thenDropped: it is undone, and is not made again here.
	thenDropped
	// thenConcluded: nothing of it is kept but a receipt that says so.
	thenConcluded
	// thenFollowsDocument: it goes with the document that it is made from, and comes with
	// it again.
	thenFollowsDocument
	// thenNeverMade: what would have started it is dropped.
	thenNeverMade
	// thenWaits: there is no answer yet.
	thenWaits
	// thenAnsweredByOther: the receipt that stood in the way is the answer.
	thenAnsweredByOther
	// thenAnswered: the receipt is the answer, and says why.
	thenAnswered
	// thenNone: no client knows of the event.
	thenNone

	consequenceCount
)

func (c consequence) String() string {
	return [consequenceCount]string{
		"", "is undone and made again, without a budget", "is made again within its budget",
		"waits for a change", "is dropped", "ends in a receipt", "follows its document", "is never made",
		"waits", "is answered by the other receipt", "is answered", "there is none",
	}[c]
}

// consequences say what a rejection does to a computation or effect whose run it was, or
// was undone with it; to the handler whose attempt it was, or was undone with it; to a piece
// that was started (docs/adr/0010); and to the client that waits for the receipt.
type consequences struct{ computation, handler, piece, caller consequence }

// rejections is the one table of what each class does. The code asks it; docs/rejections.md
// shows it, with the tests of every cell.
var rejections = [rejectionCount]consequences{
	ByConflict:       {thenAgain, thenAgain, thenFollowsDocument, thenWaits},
	ByReceipt:        {thenAgain, thenDropped, thenFollowsDocument, thenAnsweredByOther},
	ByOrigin:         {thenAgain, thenDropped, thenFollowsDocument, thenNone},
	ByRule:           {thenWaitsForChange, thenConcluded, thenNeverMade, thenAnswered},
	ByTransientError: {thenAgainWithinBudget, thenAgainWithinBudget, thenNeverMade, thenWaits},
	ByError:          {thenWaitsForChange, thenConcluded, thenNeverMade, thenAnswered},
}

// consequences returns those of a class.
func (r Rejection) consequences() consequences { return rejections[r] }

// broken is an error of a transaction that broke a rule.
type broken struct{ error }

func (b broken) Unwrap() error { return b.error }

// rejectionOf returns the class of an error that a function has ended in.
func rejectionOf(err error) Rejection {
	var rule broken
	switch {
	case isTransient(err):
		return ByTransientError
	case errors.As(err, &rule), errors.Is(err, ledger.ErrTooLarge):
		return ByRule
	}
	return ByError
}

// rejectionOfHandling returns the class of the reason for which an event was not handled, 0 if
// it was; err is the handler's.
func rejectionOfHandling(rc *model.Receipt, err error) Rejection {
	switch {
	case err != nil:
		return rejectionOf(err)
	case rc.Outcome == model.Handled:
		return 0
	}
	return ByRule // there is no handler, or what it did is more than a commit takes
}

// RejectInfo describes what a refusal of the log has undone: the handling of an event, or
// the run of a node.
type RejectInfo struct {
	Stream, Event string
	Node          string
	Class         Rejection
}

// rejectionBy returns the class of a handling that a refusal has undone.
func rejectionBy(w ledger.Why) Rejection {
	switch w {
	case ledger.Receipt:
		return ByReceipt
	case ledger.Origin:
		return ByOrigin
	default:
		return ByConflict
	}
}

// transient marks an error that may pass.
type transient struct{ error }

func (t transient) Unwrap() error { return t.error }

// Transient marks an error of a handler or node as one that may pass: it is tried
// again, see Config.EventRetries and Config.RunRetries. Since functions are to be
// deterministic, that helps if they depend on something that the space does not see.
func Transient(err error) error {
	if err == nil {
		return nil
	}
	return transient{err}
}

func isTransient(err error) bool {
	var t transient
	return errors.As(err, &t)
}
