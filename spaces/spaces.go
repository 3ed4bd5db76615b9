// Package spaces sends one event to all spaces of a pattern, such as one that migrates their documents.
package spaces

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
)

// Sent says how far Send has come.
type Sent struct {
	// Spaces is how many spaces match, as far as is known, and Sent how many of them have the event, Before of these had it before.
	Spaces, Sent, Before int
}

// Send sends one event to every space that matches, for a migration for example. e names no space, and has an id: all of the
// events have it, and each takes effect once in its space. So Send can be called again, with the same event, after an error or a
// crash: spaces that have the event do not get it again, as long as the deployment remembers events (TimedID has no such limit). It ends when a list of all
// spaces has none without the event: one that comes into being meanwhile gets it, too, unless it is newer than the list.
//
// progress, if not nil, is called after each answer, and at the end. It must not block.
func Send(ctx context.Context, c *settle.Client, to model.Spaces, e settle.Outgoing, progress func(Sent)) (Sent, error) {
	a := sending{progress: progress}
	switch {
	case to.Pattern() == "":
		return a.at, errors.New("send to all: no pattern; use settle.All")
	case e.Space != "":
		return a.at, fmt.Errorf("send to all of %s: the event is for space %s; leave that out", to.Pattern(), e.Space)
	case e.ID == (settle.EventID{}):
		return a.at, fmt.Errorf("send to all of %s: the event has no id, so it could not be sent on after an error", to.Pattern())
	}
	err := sendOn(ctx, c, to, e, &a)
	if err != nil {
		err = fmt.Errorf("send event %s to all of %s: %w; %d of %d spaces have it, and it can be sent on under its id", e.ID, to.Pattern(), err, a.at.Sent, a.at.Spaces)
	}
	return a.at, err
}

func sendOn(ctx context.Context, c *settle.Client, to model.Spaces, e settle.Outgoing, a *sending) error {
	s := c.Sender()
	sent := map[string]bool{}
	for {
		names, err := c.Spaces(ctx)
		if err != nil {
			return err
		}
		var left []string
		for _, name := range names {
			if to.Matches(name) && !sent[name] {
				left = append(left, name)
				sent[name] = true
			}
		}
		a.add(Sent{Spaces: len(left)})
		if len(left) == 0 {
			return nil
		}
		for _, name := range left {
			e.Space = name
			if err := s.Send(ctx, e, a.done); err != nil {
				return err
			}
			if err := a.failed(); err != nil {
				return err
			}
		}
		if err := s.Flush(ctx); err != nil {
			return err
		}
	}
}

// sending counts the answers.
type sending struct {
	progress func(Sent)

	mu  sync.Mutex
	at  Sent
	err error
}

func (a *sending) done(r model.SendResult, err error) {
	switch {
	case err != nil:
		a.mu.Lock()
		a.err = errors.Join(a.err, err)
		a.mu.Unlock()
	case r.Duplicate:
		a.add(Sent{Sent: 1, Before: 1})
	default:
		a.add(Sent{Sent: 1})
	}
}

func (a *sending) add(more Sent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at.Spaces += more.Spaces
	a.at.Sent += more.Sent
	a.at.Before += more.Before
	if a.progress != nil {
		a.progress(a.at)
	}
}

func (a *sending) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Ended says how the events of Send have ended.
type Ended struct {
	// Spaces is how many spaces match. Outcomes counts the receipts.
	Spaces   int
	Outcomes map[model.Outcome]int
	// Failures are spaces whose event was not handled, and why; at most 20.
	Failures []Failure
}

// Failure is an event that was not handled.
type Failure struct{ Space, Reason string }

const maxFailures = 20

// Await waits until the event that Send has sent has ended in every space that matches. progress is called as by Send.
func Await(ctx context.Context, c *settle.Client, to model.Spaces, stream string, id settle.EventID, progress func(Ended)) (Ended, error) {
	ended := Ended{Outcomes: map[model.Outcome]int{}}
	names, err := c.Spaces(ctx)
	if err != nil {
		return ended, err
	}
	names = to.Among(names)
	ended.Spaces = len(names)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var waits sync.WaitGroup
	room := make(chan struct{}, awaitedAtATime)
	for _, name := range names {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		waits.Go(func() { // ends with ctx at the latest
			defer func() { <-room }()
			rc, err := c.Space(name).Await(ctx, stream, id)
			if err != nil {
				cancel(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ended.note(name, rc)
			if progress != nil {
				progress(ended)
			}
		})
	}
	waits.Wait()
	return ended, context.Cause(ctx)
}

// awaitedAtATime is how many spaces Await asks at a time.
const awaitedAtATime = 32

func (a *Ended) note(space string, rc *model.Receipt) {
	a.Outcomes[rc.Outcome]++
	if rc.Outcome != model.Handled && len(a.Failures) < maxFailures {
		a.Failures = append(a.Failures, Failure{space, string(rc.Outcome) + ": " + rc.Error})
	}
}
