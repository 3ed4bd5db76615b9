package settle

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/settlehq/settle/model"
)

// SentAll says how far SendAll has come.
type SentAll struct {
	// Spaces is how many spaces match, as far as is known, and Sent how many of them have the event, Before of these had it before.
	Spaces, Sent, Before int
}

// SendAll sends one event to every space that matches, for a migration for example. e names no space, and has an id: all of the
// events have it, and each takes effect once in its space. So SendAll can be called again, with the same event, after an error or a
// crash: spaces that have the event do not get it again, as long as the deployment remembers events (TimedID has no such limit). It ends when a list of all
// spaces has none without the event: one that comes into being meanwhile gets it, too, unless it is newer than the list.
//
// progress, if not nil, is called now and then, and at the end. It must not block.
func (c *Client) SendAll(ctx context.Context, to Spaces, e Outgoing, progress func(SentAll)) (SentAll, error) {
	a := sendAll{progress: progress}
	switch {
	case to.pattern == "":
		return a.at, errors.New("send to all: no pattern; use settle.All")
	case e.Space != "":
		return a.at, fmt.Errorf("send to all of %s: the event is for space %s; leave that out", to.pattern, e.Space)
	case e.ID == (EventID{}):
		return a.at, fmt.Errorf("send to all of %s: the event has no id, so it could not be sent on after an error", to.pattern)
	}
	err := c.sendAll(ctx, to, e, &a)
	if err != nil {
		err = fmt.Errorf("send event %s to all of %s: %w; %d of %d spaces have it, and it can be sent on under its id", e.ID, to.pattern, err, a.at.Sent, a.at.Spaces)
	}
	return a.at, err
}

func (c *Client) sendAll(ctx context.Context, to Spaces, e Outgoing, a *sendAll) error {
	s := newSender(c, 1)
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
		a.add(SentAll{Spaces: len(left)})
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

// sendAll counts the answers.
type sendAll struct {
	progress func(SentAll)

	mu  sync.Mutex
	at  SentAll
	err error
}

func (a *sendAll) done(r model.SendResult, err error) {
	switch {
	case err != nil:
		a.mu.Lock()
		a.err = errors.Join(a.err, err)
		a.mu.Unlock()
	case r.Duplicate:
		a.add(SentAll{Sent: 1, Before: 1})
	default:
		a.add(SentAll{Sent: 1})
	}
}

func (a *sendAll) add(more SentAll) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at.Spaces += more.Spaces
	a.at.Sent += more.Sent
	a.at.Before += more.Before
	if a.progress != nil {
		a.progress(a.at)
	}
}

func (a *sendAll) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// EndedAll says how the events of SendAll have ended.
type EndedAll struct {
	// Spaces is how many spaces match. Outcomes counts the receipts.
	Spaces   int
	Outcomes map[model.Outcome]int
	// Bad are spaces whose event was not handled, and why; at most 20.
	Bad []BadEnd
}

// BadEnd is an event that was not handled.
type BadEnd struct{ Space, Reason string }

const maxBadEnds = 20

// AwaitAll waits until the event that SendAll has sent has ended in every space that matches. progress is called as by SendAll.
func (c *Client) AwaitAll(ctx context.Context, to Spaces, stream string, id EventID, progress func(EndedAll)) (EndedAll, error) {
	ended := EndedAll{Outcomes: map[model.Outcome]int{}}
	names, err := c.Spaces(ctx)
	if err != nil {
		return ended, err
	}
	names = matchingNames(to, names)
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

// awaitedAtATime is how many spaces AwaitAll asks at a time.
const awaitedAtATime = 32

func (a *EndedAll) note(space string, rc *model.Receipt) {
	a.Outcomes[rc.Outcome]++
	if rc.Outcome != model.Handled && len(a.Bad) < maxBadEnds {
		a.Bad = append(a.Bad, BadEnd{space, string(rc.Outcome) + ": " + rc.Error})
	}
}

func matchingNames(to Spaces, names []string) (some []string) {
	for _, name := range names {
		if to.Matches(name) {
			some = append(some, name)
		}
	}
	return some
}
