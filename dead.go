package settle

import (
	"context"
	"errors"
	"iter"

	"github.com/settlehq/settle/coordinator/trail"
)

// DeadLetter is an event that failed or was refused, with its payload and the error,
// and what has been done about it.
type DeadLetter = trail.Dead

// NoLetterError says that there is no dead letter about an event.
type NoLetterError = trail.NoLetterError

// DeadLetters goes through the dead letters of a space, or of all spaces if it is "",
// oldest first, with what had been done about them when it began. It ends after the first error.
func (c *Client) DeadLetters(ctx context.Context, space string) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		err := trail.EachDead(ctx, c.bus, space, func(d DeadLetter) error {
			if !yield(d, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(DeadLetter{}, err)
		}
	}
}

// errEnough ends an iteration that nobody wants any more.
var errEnough = errors.New("enough")

// DeadFilter says which dead letters are meant, DeadCounts how many there are, and OpenDead are those
// of a filter that were open at a moment. Pace is how something is done about many, and DeadDone
// how it went with one.
type (
	DeadFilter = trail.DeadFilter
	DeadCounts = trail.DeadCounts
	OpenDead   = trail.OpenDead
	Pace       = trail.Pace
	DeadDone   = trail.DeadDone
)

// CountDead counts the dead letters of a space, or of all spaces if it is "". However many there
// are, that is a question or two: the server keeps an index.
func (c *Client) CountDead(ctx context.Context, space string) (DeadCounts, error) {
	return trail.CountDead(ctx, c.bus, space)
}

// OpenDead finds the dead letters that are open, neither sent again nor dismissed, of those that
// the filter means. OpenDead.Redrive and OpenDead.Dismiss do something about all of them; one that
// was ended in the middle is gone on with by calling both again.
func (c *Client) OpenDead(ctx context.Context, f DeadFilter) (*OpenDead, error) {
	return trail.SelectDead(ctx, c.bus, f)
}

// Dismiss notes that somebody has looked at a dead letter and leaves it, and why. It stays
// where it is, with DeadLetter.Dismissed, and can still be redriven. That somebody had done
// so before is no error; again says it, and the first reason is kept. reason may be "", and
// has 500 bytes at most.
// stream may be "" if only one event of the space has the id. Without such a letter, the
// error is a NoLetterError.
func (c *Client) Dismiss(ctx context.Context, space, stream, id, reason string) (of EventRef, again bool, err error) {
	return trail.Dismiss(ctx, c.bus, space, stream, id, reason)
}

// Redrive sends an event that failed or was refused again, with the payload that it
// had, under an id that follows from its own (":r1" behind it, then ":r2"): doing so twice
// is one event, which SendResult.Duplicate then says. One that fails again has a dead letter
// of its own, and is redriven by its own id. stream may be "" if only one event of the space has the id.
func (c *Client) Redrive(ctx context.Context, space, stream, id string) (EventRef, SendResult, error) {
	return trail.Redrive(ctx, c.bus, space, stream, id)
}
