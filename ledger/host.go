package ledger

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
)

// Host is what stands on a ledger: the code of the application, and the documents that it sees. Attempt must
// be there. Of the others, nil stands for a host that has nothing to say to them: it shows Ledger.Value,
// applies the writes one by one, and waits for nothing but a time.
type Host struct {
	// Integrated takes in a commit of another runtime: the documents in changed have other values now.
	Integrated func(c *model.Commit, changed []string) error

	// Attempt calls the handler of an event and says what came of it. Nothing takes effect yet.
	Attempt func(ev *model.Event) *Attempt
	// Unhandled begins the end of an event whose handler is not called, with the receipt that it ends in.
	// If there is a mark of its being cancelled (see CancelDoc), the attempt deletes that.
	Unhandled func(ev *model.Event, rc *model.Receipt) *Attempt
	// Conclude completes the transaction that ends an event, with any outcome. dropped is set if no
	// commit could carry the effects of the attempt: they are discarded, and Receipt has the reason.
	Conclude func(a *Attempt, dropped bool)
	// Fits is why the documents that a transaction writes could not be saved, nil if they can.
	Fits func(d *Draft) error
	// Recorded takes in that an attempt has joined the suffix as a transaction. The host applies what it
	// has written, by Note.
	Recorded func(a *Attempt, tx uint64)
	// Postponed takes in that nothing is kept of an attempt for now. until is the time before which it is
	// not made again, 0 for none.
	Postponed func(a *Attempt, why Postponement, until time.Duration)
	// Failed is called for each attempt that has ended in an error, with the number of attempts; again is
	// set if another attempt follows.
	Failed func(a *Attempt, tries int, again bool)
	// Lost returns the error of an event whose handler did not return from any of its attempts; overran is set
	// if it did not return within its limit in the last one.
	Lost func(ev *model.Event, tries int, overran bool) error
	// Unconverged takes in that an event has met conflicts for longer than Config.ConflictWindow.
	Unconverged func(ev *model.Event, conflicts int)

	// Lacks reports whether anything is missing that attempts at the head of the lane have been found to
	// need, Overdue is why it is not to be waited for any longer, nil if it is, and Release lets go of it.
	Lacks   func() bool
	Overdue func() error
	Release func()
	// Instead is a transaction that takes the place of an event which is not to be handled, nil for all
	// others: an event whose time has passed, and whose successor is set.
	Instead func(ev *model.Event) *Draft
	// Later takes in that an event of the lane waits for its time, by a transaction.
	Later func(w *model.Waiting, tx uint64)
}

// fill sets the functions that are missing: unhandled and recorded are those that need a ledger, the others do nothing.
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

// or sets a function that is missing.
func or[F any](f *F, missing bool, to F) {
	if missing {
		*f = to
	}
}
