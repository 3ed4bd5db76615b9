package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/coordinator/trail"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
)

// What an event has caused; see package trail for the fields.
type (
	// Tree is an event with all that it has caused so far.
	Tree = trail.Tree
	// TreeNode is one event of a tree.
	TreeNode = trail.Node
	// TreeQuery says of which event, and how much of it.
	TreeQuery = trail.Query
	// EventRef names an event.
	EventRef = trail.Ref
	// EventState is what has become of an event so far; its constants are in package lineage.
	EventState = lineage.State
	// MissingError says that nobody knows of an event, and what to check.
	MissingError = trail.MissingError
	// AmbiguousError says that several events have an id.
	AmbiguousError = trail.AmbiguousError
)

// Undelivered is the stream by which a space is told of its own events that were
// refused, with the payload {"event", "to", "stream", "reason"}. A program may have a
// handler for it; nobody sends to it but coordinators.
const Undelivered = model.Undelivered

// Tree returns what an event has caused so far, directly and indirectly: what it sent,
// what that sent, and what has become of each. A coordinator is asked; if none answers,
// the client reads the logs itself and says so (Tree.Unattended).
func (c *Client) Tree(ctx context.Context, q TreeQuery) (*Tree, error) {
	patient, end := context.WithTimeout(ctx, patience(ctx))
	defer end()
	t, asked := trail.Ask(patient, c.bus, q)
	if asked == nil || ctx.Err() != nil || errors.Is(asked, model.ErrStopped) {
		return t, asked
	}
	// One that could not answer, because the tree is too large for a message, say, does
	// not keep the client from it; and errors are better first-hand.
	t, err := trail.Walk(ctx, c.bus, q)
	if err == nil {
		t.Unattended = errors.Is(asked, model.ErrNobody)
	}
	return t, err
}

// patience is for how long a coordinator is waited for: one that has just ended is still
// taken for one that will answer. The client must have time left to look for itself.
func patience(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return lastLook
	}
	return min(lastLook, time.Until(deadline)/2)
}

// WaitTree waits until an event and everything that it causes has ended, in however many
// generations, and returns the tree. That has 10,000 events and 100 generations at most;
// Tree.Events and Tree.States count what is cut (Tree.More), too, so all is well if
// States["handled"] is Events. If ctx ends first, it returns the tree as far as it has
// come, if that can still be read, with the error: only what is shown is counted then.
// States["forgotten"] counts the events of which the log no longer has the handling: what they
// have caused is not known, and not waited for.
// More than 100,000 events are an error. What a person sends again later is not waited for.
func (c *Client) WaitTree(ctx context.Context, space, stream, id string) (*Tree, error) {
	bound, cancel := c.awaits.bind(ctx)
	defer cancel()
	ended, waited := trail.Wait(bound, c.bus, space, stream, id)
	if cause := context.Cause(bound); errors.Is(cause, model.ErrStopped) && waited != nil {
		return nil, fmt.Errorf("wait for all that event %s to %s/%s causes: %w", id, space, stream, cause)
	}
	if waited != nil && ctx.Err() == nil {
		return nil, waited
	}
	last, end := withTimeForALastLook(ctx)
	defer end()
	t, err := c.Tree(last, TreeQuery{Space: space, Stream: stream, Event: id, MaxEvents: maxWaited})
	switch {
	case waited != nil:
		return t, waited
	case err != nil:
		return nil, fmt.Errorf("all that event %s to %s/%s causes has ended, but: %w", id, space, stream, err)
	}
	if t.More || !t.Settled || ended[lineage.Forgotten] > t.States[lineage.Forgotten] { // what is cut was waited for, too; and a reading may be older
		t.Settled, t.States, t.Events = true, ended, 0
		for _, n := range ended {
			t.Events += n
		}
	}
	return t, nil
}

// maxWaited bounds the tree that a wait returns, not the wait.
const maxWaited = 10_000

// lastLook is for how long a tree may be read after the time for the wait is over.
const lastLook = 10 * time.Second

// withTimeForALastLook ends lastLook after ctx.
func withTimeForALastLook(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, end := context.WithoutCancel(ctx), context.CancelFunc(func() {})
	switch deadline, bound := ctx.Deadline(); {
	case ctx.Err() != nil:
		return context.WithTimeout(longer, lastLook)
	case bound: // it is to be seen: see patience
		longer, end = context.WithDeadline(longer, deadline.Add(lastLook))
	default:
		longer, end = context.WithCancel(longer)
	}
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(lastLook, end)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() { stop(); end() }
}
