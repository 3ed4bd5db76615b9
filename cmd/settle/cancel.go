package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// cancelFlags are the flags of commands that cancel events.
type cancelFlags struct {
	Reason  string        `help:"The reason, which is stored in the receipt." placeholder:"TEXT" default:"by an operator"`
	Timeout time.Duration `help:"How long to wait for the receipt." default:"15s"`
}

// cancelCmd is `settle cancel`.
type cancelCmd struct {
	connection
	cancelFlags
	Event  string `arg:"" help:"The event's id."`
	Space  string `short:"s" help:"The space of the event, if several spaces have an event with this id." placeholder:"SPACE"`
	Stream string `help:"The stream of the event, if several streams have an event with this id." placeholder:"STREAM"`
	Tree   bool   `help:"Also cancel the events that it has caused, if they have not been handled yet."`
}

// Help returns the long help.
func (cancelCmd) Help() string {
	return "The log of the space decides whether the cancellation or the handling came first, and the receipt records it. With --tree, the command marks all events before it waits for the first receipt, and reports the outcome of each. Exit status: 1 if one of the events was handled, or did not end in time, 0 otherwise. Needs the role worker."
}

// Run cancels an event.
func (c *cancelCmd) Run(ctx context.Context, io streams) error {
	// Without its space, the event is searched in every lane: it must not be mistaken for another one with that id.
	return c.use(ctx, io, need{spaces: ofSpaces(c.Space).spaces, every: c.Space == "", patience: c.Timeout}, func(_ *bus.Bus, client *settle.Client) error {
		ctx, end := context.WithTimeout(ctx, c.Timeout)
		defer end()
		q := history.TreeQuery{Event: c.Event, Space: c.Space, Stream: c.Stream, MaxEvents: 1}
		if c.Tree {
			q.MaxEvents = mostCancelled
			return c.all(ctx, io, client, q)
		}
		tree, err := client.Tree(ctx, q)
		if err != nil {
			return usageIfName(err)
		}
		if root := tree.Root; root.State.Ended() {
			return fmt.Errorf("%s/%s %s had ended before: %s", root.Space, root.Stream, root.Event, endedHow(root))
		}
		return cancelOne(ctx, io, client, tree.Root.EventRef, c.Reason)
	})
}

// all cancels the open events of a tree, until none is open: an event that was being handled may have
// caused others.
func (c *cancelCmd) all(ctx context.Context, io streams, client *settle.Client, q history.TreeQuery) error {
	done := map[history.EventRef]bool{}
	var end endedAs
	for {
		tree, err := client.Tree(ctx, q)
		if err != nil && len(done) > 0 {
			return errors.Join(end.err(), usageIfName(err))
		}
		if err != nil {
			return usageIfName(err)
		}
		open := stillOpen(tree.Root, done)
		if len(open) == 0 {
			return end.of(tree)
		}
		all, err := client.CancelAll(ctx, open, c.Reason)
		if err != nil {
			return errors.Join(end.err(), usageIfName(err))
		}
		for i := range all {
			done[all[i].Event] = true
			end.note(io, &all[i])
		}
		if end.pending > 0 {
			return end.err()
		}
	}
}

// endedAs counts the outcomes of the events of a tree.
type endedAs struct{ cancelled, before, pending, failed int }

func (e *endedAs) note(io streams, c *settle.Cancellation) {
	what := ""
	switch {
	case errors.Is(c.Err, settle.ErrCancelPending):
		e.pending++
		what = "not ended yet; it is marked, and will end as cancelled"
	case c.Err != nil:
		e.failed++
		what = "not cancelled: " + c.Err.Error()
	case c.Receipt.Outcome == model.Cancelled:
		e.cancelled++
		what = "cancelled"
	default:
		e.before++
		what = "not cancelled: it has ended before, " + string(c.Receipt.Outcome)
	}
	fmt.Fprintf(io.out, "%s/%s %s: %s\n", c.Event.Space, c.Event.Stream, c.Event.Event, what)
}

// err sums up, unless all were cancelled.
func (e *endedAs) err() error {
	if e.before+e.pending+e.failed == 0 {
		return nil
	}
	said := fmt.Sprintf("of %d events, %d were cancelled", e.cancelled+e.before+e.pending+e.failed, e.cancelled)
	if e.before > 0 {
		said += fmt.Sprintf(", %d had ended before", e.before)
	}
	if e.failed > 0 {
		said += fmt.Sprintf(", %d could not be cancelled", e.failed)
	}
	if e.pending > 0 {
		said += fmt.Sprintf(", %d are marked and have not ended yet: earlier events are not done, their handler has not returned, or no worker runs their space", e.pending)
	}
	return errors.New(said)
}

// of is err, when nothing of the tree is open any more.
func (e *endedAs) of(tree *history.Tree) error {
	switch err := e.err(); {
	case err != nil:
		return err
	case tree.More:
		return fmt.Errorf("%d events were cancelled; the tree has more than %d, so some may be open", e.cancelled, mostCancelled)
	case e.cancelled == 0:
		return errors.New("there is nothing to cancel: every event has ended")
	}
	return nil
}

// mostCancelled is the largest number of events of a tree that are examined.
const mostCancelled = 10_000

func endedHow(n *history.TreeNode) string {
	if n.Error == "" {
		return string(n.State)
	}
	return string(n.State) + ", " + n.Error
}

// stillOpen returns the events of a tree that are open. A notice that a send was
// refused is excluded: the cancellation itself causes it, and it ends by itself.
func stillOpen(n *history.TreeNode, done map[history.EventRef]bool) (open []history.EventRef) {
	if !n.State.Ended() && !done[n.EventRef] && n.Stream != model.Undelivered {
		open = append(open, n.EventRef)
	}
	for _, child := range n.Caused {
		open = append(open, stillOpen(child, done)...)
	}
	return open
}

// cancelOne cancels one event, and prints its outcome.
func cancelOne(ctx context.Context, io streams, client *settle.Client, of history.EventRef, why string) error {
	rc, err := client.Cancel(ctx, of, why)
	switch {
	case err != nil:
		return usageIfName(err)
	case rc.Outcome != model.Cancelled:
		return fmt.Errorf("%s/%s %s was not cancelled: it has ended before, %s", of.Space, of.Stream, of.Event, rc.Outcome)
	}
	fmt.Fprintf(io.out, "%s/%s %s: cancelled\n", of.Space, of.Stream, of.Event)
	return nil
}

// skipCmd is `settle skip`.
type skipCmd struct {
	connection
	cancelFlags
	Space string `arg:"" help:"The space whose first event blocks the others."`
	Event string `arg:"" optional:"" help:"The expected id of the event. Default: any."`
}

// Run cancels the event that a space is to handle next.
func (c *skipCmd) Run(ctx context.Context, io streams) error {
	if err := model.CheckName("space", c.Space); err != nil {
		return usage(err)
	}
	return c.use(ctx, io, ofSpaces(c.Space).patient(c.Timeout), func(b *bus.Bus, client *settle.Client) error {
		ctx, end := context.WithTimeout(ctx, c.Timeout)
		defer end()
		first, err := history.FirstOpen(ctx, b, c.Space)
		switch {
		case err != nil:
			return err
		case first == nil:
			return fmt.Errorf("no event waits to be handled in space %s (`settle timers %s` lists those that wait for a time)", c.Space, c.Space)
		case first.ID != cmp.Or(c.Event, first.ID):
			return fmt.Errorf("the first event of space %s is %s of stream %s, not %s; nothing was skipped", c.Space, first.ID, first.Stream, c.Event)
		}
		return cancelOne(ctx, io, client, history.EventRef{Space: c.Space, Stream: first.Stream, Event: first.ID}, c.Reason)
	})
}
