package space

import (
	"errors"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// Rejection is the class of a reason why a transaction did not take effect.
type Rejection uint8

const (
	// ByConflict: the commit was refused, because another runtime's commit was first.
	ByConflict Rejection = iota + 1
	// ByReceipt: the commit was refused, and the one that was first has handled the same event.
	ByReceipt
	// ByOrigin: the commit was refused, and with it the transaction that had sent the event.
	ByOrigin
	// ByRule: no commit may contain it. There is no handler, the event cannot be decoded, or the function
	// wrote or sent something forbidden, or more than fits into a commit.
	ByRule
	// ByTransientError: the function returned a transient error (see Transient).
	ByTransientError
	// ByHandler: the handler has declined the event (see receipts.Rejection).
	ByHandler
	// ByVersion: the handler or node met a document that a later version of its program has written (see
	// model.NewerError).
	ByVersion
	// ByError: the function returned another error, or panicked.
	ByError

	rejectionCount
)

func (r Rejection) String() string {
	return [rejectionCount]string{"", "conflict", "receipt exists", "origin failed", "refused by rule", "transient error", "rejected by its handler", "later version", "error"}[r]
}

// consequence is the effect of a rejection on one of the parties.
type consequence uint8

const (
	// thenAgain: it is undone and repeated, without a budget.
	thenAgain consequence = iota + 1
	// thenAgainWithinBudget: it is repeated as often as its budget allows, and then ends as with any other
	// error.
	thenAgainWithinBudget
	// thenWaitsForChange: it keeps its last output until one of its reads changes.
	thenWaitsForChange
	// thenDropped: it is undone, and is not repeated here.
	thenDropped
	// thenConcluded: only a receipt with the reason is kept.
	thenConcluded
	// thenFollowsDocument: it is removed with the document that it is made from, and returns with
	// it.
	thenFollowsDocument
	// thenNeverMade: the transaction that would have started it is dropped.
	thenNeverMade
	// thenWaits: there is no answer yet.
	thenWaits
	// thenAnsweredByOther: the receipt that was first is the answer.
	thenAnsweredByOther
	// thenAnswered: the receipt is the answer, and contains the reason.
	thenAnswered
	// thenNone: no client knows of the event.
	thenNone

	consequenceCount
)

func (c consequence) String() string {
	return [consequenceCount]string{
		"", "is undone and repeated, without a limit", "is retried within its budget",
		"waits for a change", "is dropped", "ends in a receipt", "follows its document", "is never created",
		"waits", "gets the other receipt", "gets the receipt", "does not exist",
	}[c]
}

// consequences are the effects of a rejection: on the computation or effect whose run was rejected, or undone
// with the rejected commit; likewise on the handler; on a piece, the node that a document starts
// (docs/adr/0010); and on the client that waits for the receipt.
type consequences struct{ computation, handler, piece, caller consequence }

// rejections is the table of the consequences of each class, for code and documentation: docs/rejections.md
// shows it, with the tests of every cell.
var rejections = [rejectionCount]consequences{
	ByConflict:       {thenAgain, thenAgain, thenFollowsDocument, thenWaits},
	ByReceipt:        {thenAgain, thenDropped, thenFollowsDocument, thenAnsweredByOther},
	ByOrigin:         {thenAgain, thenDropped, thenFollowsDocument, thenNone},
	ByRule:           {thenWaitsForChange, thenConcluded, thenNeverMade, thenAnswered},
	ByTransientError: {thenAgainWithinBudget, thenAgainWithinBudget, thenNeverMade, thenWaits},
	ByHandler:        {thenWaitsForChange, thenConcluded, thenNeverMade, thenAnswered},
	ByVersion:        {thenWaitsForChange, thenAgain, thenFollowsDocument, thenWaits},
	ByError:          {thenWaitsForChange, thenConcluded, thenNeverMade, thenAnswered},
}

func (r Rejection) consequences() consequences { return rejections[r] }

// broken is the error of a transaction that broke a rule.
type broken struct{ error }

func (b broken) Unwrap() error { return b.error }

// rejectionOf returns the class of a function's error.
func rejectionOf(err error) Rejection {
	var rule broken
	var no *receipts.Rejection
	var newer *model.NewerError
	switch {
	case errors.As(err, &newer):
		return ByVersion
	case isTransient(err):
		return ByTransientError
	case errors.As(err, &no):
		return ByHandler
	case errors.As(err, &rule), errors.Is(err, ledger.ErrTooLarge):
		return ByRule
	}
	return ByError
}

// rejectionOfHandling returns the class of the reason why an event was not handled, 0 if it was; err is the
// handler's error.
func rejectionOfHandling(rc *model.Receipt, err error) Rejection {
	switch {
	case err != nil:
		return rejectionOf(err)
	case rc.Outcome == model.Handled:
		return 0
	case rc.Outcome == model.Rejected:
		return ByHandler
	}
	return ByRule // there is no handler, or its writes exceed a commit
}

// RejectInfo describes work that a refusal by the log has undone: the handling of an event, or the run of a
// node.
type RejectInfo struct {
	Stream, Event string
	Node          string
	Class         Rejection
}

// rejectionBy returns the class of the reason why a refusal has undone a handling.
func rejectionBy(w ledger.UndoCause) Rejection {
	switch w {
	case ledger.Receipt:
		return ByReceipt
	case ledger.Origin:
		return ByOrigin
	default:
		return ByConflict
	}
}

type transient struct{ error }

func (t transient) Unwrap() error { return t.error }

// Transient marks an error of a handler or node as transient: the code is retried, see Config.EventRetries
// and Config.RunRetries. Functions should be deterministic, so retrying helps only if they depend on
// something outside the space.
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
