package settle

import (
	"context"
	"errors"
	"iter"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// DeadLetters iterates over the dead letters of all spaces, oldest first, in their state at the start of
// the iteration. It ends after the first error.
func (c *Client) DeadLetters(ctx context.Context) iter.Seq2[history.Dead, error] {
	return c.deadLetters(ctx, "")
}

// DeadLetters iterates over the dead letters of the space; see Client.DeadLetters.
func (s Space) DeadLetters(ctx context.Context) iter.Seq2[history.Dead, error] {
	return s.client.deadLetters(ctx, s.name)
}

func (c *Client) deadLetters(ctx context.Context, space string) iter.Seq2[history.Dead, error] {
	return func(yield func(history.Dead, error) bool) {
		if err := c.deployed(ctx); err != nil {
			yield(history.Dead{}, err)
			return
		}
		err := history.EachDead(ctx, c.bus, space, func(d history.Dead) error {
			if !yield(d, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(history.Dead{}, err)
		}
	}
}

// errEnough stops history.EachDead when the caller ends the iteration.
var errEnough = errors.New("enough")

// CountDead counts the dead letters of all spaces. It takes a few requests whatever their number, since
// coordinators keep totals.
func (c *Client) CountDead(ctx context.Context) (history.DeadCounts, error) {
	return c.countDead(ctx, "")
}

// CountDead counts the dead letters of the space; see Client.CountDead.
func (s Space) CountDead(ctx context.Context) (history.DeadCounts, error) {
	return s.client.countDead(ctx, s.name)
}

func (c *Client) countDead(ctx context.Context, space string) (history.DeadCounts, error) {
	if err := c.deployed(ctx); err != nil {
		return history.DeadCounts{}, err
	}
	return history.CountDead(ctx, c.bus, space)
}

// CountOpenDead counts the dead letters matching the filter that are open: neither redriven nor
// dismissed. A filter by space, or by stream, takes a few requests whatever their number; one by
// both lists the names of the space's letters, and one by error or time reads them all.
func (c *Client) CountOpenDead(ctx context.Context, f history.DeadFilter) (int, error) {
	if err := c.deployed(ctx); err != nil {
		return 0, err
	}
	return history.CountOpen(ctx, c.bus, f)
}

// OpenDead finds the dead letters matching the filter that are open: neither redriven nor
// dismissed. OpenDead.Redrive and OpenDead.Dismiss process all of them; after an interruption, call
// OpenDead and that method again to continue.
func (c *Client) OpenDead(ctx context.Context, f history.DeadFilter) (*history.OpenDead, error) {
	if err := c.deployed(ctx); err != nil {
		return nil, err
	}
	return history.SelectDead(ctx, c.bus, f)
}

// Dismiss records that a dead letter needs no further action, and why. The letter stays, with
// history.Dead.Dismissed set, and can still be redriven. Dismissing it again is not an error: again
// is true, and the first reason is kept. reason may be "", and has at most 500 bytes. stream may be
// "" if only one event of the space has the id. Without such a letter, the error is a
// *NoLetterError.
func (s Space) Dismiss(ctx context.Context, stream string, id EventID, reason string) (of history.EventRef, again bool, err error) {
	if err := s.client.deployed(ctx); err != nil {
		return of, false, err
	}
	return history.Dismiss(ctx, s.client.bus, s.name, stream, s.client.event(id), reason)
}

// Redrive sends an event that failed or was refused again, with its original payload, under an id
// derived from its own (with ":r1" appended, then ":r2"): redriving it twice is one event, reported
// by SendResult.Duplicate. If that event fails again it has a dead letter of its own, and is
// redriven by its own id. stream may be "" if only one event of the space has the id.
func (s Space) Redrive(ctx context.Context, stream string, id EventID) (history.EventRef, model.SendResult, error) {
	if err := s.client.deployed(ctx); err != nil {
		return history.EventRef{}, model.SendResult{}, err
	}
	return history.Redrive(ctx, s.client.bus, s.name, stream, s.client.event(id))
}
