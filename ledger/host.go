package ledger

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
)

// Host has the functions that a ledger calls: the code of the application, and access to its documents.
// Attempt is required. Without the others, the host shows Ledger.Value, applies writes one by one, and waits
// for nothing but a time.
type Host struct {
	// Integrated processes a commit of another runtime: the documents in changed have new values.
	Integrated func(c *model.Commit, changed []string) error

	// Attempt calls the handler of an event and returns the result. Nothing takes effect yet.
	Attempt func(ev *model.Event) *Attempt
	// Unhandled begins the transaction that ends an event without calling its handler, with the given
	// receipt. If the event was cancelled, the attempt deletes the mark (see CancelDoc).
	Unhandled func(ev *model.Event, rc *model.Receipt) *Attempt
	// Conclude completes the transaction that ends an event, whatever the outcome. dropped is set if no
	// commit could carry the effects of the attempt: they are discarded, and Receipt has the reason.
	Conclude func(a *Attempt, dropped bool)
	// Fits returns why the documents that a transaction writes could not be saved, nil if they can.
	Fits func(d *Draft) error
	// Recorded reports that an attempt has joined the suffix as a transaction. The host applies the writes by
	// calling Note.
	Recorded func(a *Attempt, tx uint64)
	// Postponed reports that an attempt is discarded for now. until is the time before which it is not
	// repeated, 0 for none.
	Postponed func(a *Attempt, why Postponement, until time.Duration)
	// Failed is called for each attempt that has returned an error, with the number of attempts; again is set
	// if another attempt follows.
	Failed func(a *Attempt, tries int, again bool)
	// Lost returns the error of an event whose handler did not return from any of its attempts; overran is
	// set if it exceeded its time limit in the last one.
	Lost func(ev *model.Event, tries int, overran bool) error
	// Unconverged reports that an event has met conflicts for longer than Config.ConflictWindow.
	Unconverged func(ev *model.Event, conflicts int)

	// Lacks reports whether documents that attempts at the head of the lane needed are still missing. Overdue
	// returns why the event no longer waits for them, nil if it still does. Release forgets them.
	Lacks   func() bool
	Overdue func() error
	Release func()
	// Instead returns the transaction that replaces the handling of an event which must not be handled,
	// because its time has passed and its successor is set; nil for any other event.
	Instead func(ev *model.Event) *Draft
	// Later reports that a transaction makes an event of the lane wait for its time.
	Later func(w *model.Waiting, tx uint64)
}

// fill sets missing functions: unhandled and recorded are defaults that need a ledger, the other defaults do
// nothing.
func (h *Host) fill(unhandled func(*model.Event, *model.Receipt) *Attempt, recorded func(*Attempt, uint64)) {
	or(&h.Integrated, h.Integrated == nil, func(*model.Commit, []string) error { return nil })
	or(&h.Unhandled, h.Unhandled == nil, unhandled)
	or(&h.Conclude, h.Conclude == nil, func(a *Attempt, dropped bool) {
		if dropped {
			a.Writes, a.Sends, a.Cancels = nil, nil, nil
		}
	})
	or(&h.Fits, h.Fits == nil, func(*Draft) error { return nil })
	or(&h.Recorded, h.Recorded == nil, recorded)
	or(&h.Postponed, h.Postponed == nil, func(*Attempt, Postponement, time.Duration) {})
	or(&h.Failed, h.Failed == nil, func(*Attempt, int, bool) {})
	or(&h.Lost, h.Lost == nil, func(_ *model.Event, tries int, _ bool) error {
		return fmt.Errorf("the handler never came back: the process ended, or it was given up, in each of %d attempts", tries)
	})
	or(&h.Unconverged, h.Unconverged == nil, func(*model.Event, int) {})
	or(&h.Lacks, h.Lacks == nil, func() bool { return false })
	or(&h.Overdue, h.Overdue == nil, func() error { return nil })
	or(&h.Release, h.Release == nil, func() {})
	or(&h.Instead, h.Instead == nil, func(*model.Event) *Draft { return nil })
	or(&h.Later, h.Later == nil, func(*model.Waiting, uint64) {})
}

// or sets a function to a default if it is missing.
func or[F any](f *F, missing bool, to F) {
	if missing {
		*f = to
	}
}
