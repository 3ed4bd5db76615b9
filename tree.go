package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
)

// Tree returns what an event has caused so far, directly and indirectly: the events that it sent,
// those that they sent, and the state of each. A coordinator answers; if none does, the client
// reads the logs itself and sets Tree.Unattended.
func (c *Client) Tree(ctx context.Context, q history.TreeQuery) (*history.Tree, error) {
	if err := c.deployed(ctx); err != nil {
		return nil, err
	}
	asking, end := context.WithTimeout(ctx, askTimeout(ctx))
	defer end()
	t, asked := history.RequestTree(asking, c.bus, q)
	if asked == nil || ctx.Err() != nil || errors.Is(asked, model.ErrStopped) {
		return t, asked
	}
	// A coordinator may be unable to answer, for instance because the tree is too large for a
	// message; the client then reads the logs itself. Errors of its own reading are more precise.
	t, err := history.ReadTree(ctx, c.bus, q)
	if err == nil {
		t.Unattended = errors.Is(asked, model.ErrNoResponder)
	}
	return t, err
}

// askTimeout is how long to wait for a coordinator, of which one that has just ended may still be
// expected to answer. It leaves the client time to read the logs itself.
func askTimeout(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return readGrace
	}
	return min(readGrace, time.Until(deadline)/2)
}

// WaitTree waits until an event and everything that it causes has ended, in however many
// generations, and returns the tree. That has 10,000 events and 100 generations at most;
// Tree.Events and Tree.States count what is cut (Tree.More), too, so all is well if
// States["handled"] is Events. If ctx ends first, it returns the tree as far as it has
// come, if that can still be read, with the error: only what is shown is counted then. So it does if it reaches a
// space whose log or lane is missing (model.ErrNoStream).
// States["forgotten"] counts the events of which the log no longer has the handling: what they
// have caused is not known, and not waited for.
// More than 100,000 events are an error. What a person sends again later is not waited for.
func (s Space) WaitTree(ctx context.Context, stream string, id EventID) (*history.Tree, error) {
	c, space := s.client, s.name
	if err := c.deployed(ctx); err != nil {
		return nil, err
	}
	bound, cancel := c.awaits.bind(ctx)
	defer cancel()
	ended, waited := history.WaitTree(bound, c.bus, space, stream, c.event(id))
	if cause := context.Cause(bound); errors.Is(cause, model.ErrStopped) && waited != nil {
		return nil, fmt.Errorf("wait for all that event %s to %s/%s causes: %w", id, space, stream, cause)
	}
	if waited != nil && ctx.Err() == nil && !errors.Is(waited, model.ErrNoStream) {
		return nil, waited
	}
	last, end := withReadGrace(ctx)
	defer end()
	t, err := c.Tree(last, history.TreeQuery{Space: space, Stream: stream, Event: c.event(id), MaxEvents: maxWaited})
	switch {
	case waited != nil:
		return t, waited
	case err != nil:
		return nil, fmt.Errorf("all that event %s to %s/%s causes has ended, but: %w", id, space, stream, err)
	}
	if t.More || !t.Settled || ended[lineage.Forgotten] > t.States[lineage.Forgotten] { // cut events were waited for, too; and this read may be older
		t.Settled, t.States, t.Events = true, ended, 0
		for _, n := range ended {
			t.Events += n
		}
	}
	return t, nil
}

// maxWaited bounds the tree that WaitTree returns, not the wait.
const maxWaited = 10_000

// readGrace is how long the tree may still be read after the wait has ended.
const readGrace = 10 * time.Second

// withReadGrace returns a context that ends readGrace after ctx.
func withReadGrace(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, end := context.WithoutCancel(ctx), context.CancelFunc(func() {})
	switch deadline, bound := ctx.Deadline(); {
	case ctx.Err() != nil:
		return context.WithTimeout(longer, readGrace)
	case bound: // the deadline must be visible: see askTimeout
		longer, end = context.WithDeadline(longer, deadline.Add(readGrace))
	default:
		longer, end = context.WithCancel(longer)
	}
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(readGrace, end)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() { stop(); end() }
}
