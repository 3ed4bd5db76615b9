package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/loss"
	"github.com/settlehq/settle/model"
)

// acceptLossCmd is `settle accept-loss`.
type acceptLossCmd struct {
	connection
	Space     string `arg:"" optional:"" help:"The refused space. Default: list everything that is refused."`
	Partition int    `help:"The refused partition: its lane, and all of its spaces." placeholder:"N" default:"-1"`
	Yes       bool   `help:"Accept the loss. Default: list it, and change nothing."`
}

// Help says more than fits in a line.
func (acceptLossCmd) Help() string {
	return "`settle fleet`, `settle doctor` and the logs of the workers name the refused spaces and partitions. Copy all streams first: accepting a loss cannot be undone, even if the messages are found. Exit status: 0 if nothing is refused any more, 1 otherwise, also if only something else is refused. It needs the role worker."
}

// Run shows or accepts what is lost.
func (c *acceptLossCmd) Run(ctx context.Context, io streams) error {
	if c.Space != "" && c.Partition >= 0 {
		return usage(errors.New("name a space or a partition, not both"))
	}
	if c.Space != "" {
		if err := model.CheckName("space", c.Space); err != nil {
			return usage(err)
		}
	}
	return c.use(ctx, io, need{}, func(b *bus.Bus, _ *settle.Client) error {
		if c.Partition >= b.Partitions() {
			return usage(fmt.Errorf("there is no partition %d; the deployment has %d, from 0 on", c.Partition, b.Partitions()))
		}
		if c.Yes && c.Space == "" && c.Partition < 0 {
			return usage(errors.New("--yes needs a space or --partition N: see first what is lost"))
		}
		list, err := c.find(ctx, b)
		if err != nil && !errors.Is(err, model.ErrNoStream) {
			return err
		}
		if len(list) == 0 && err == nil {
			return c.nothing(ctx, io, b)
		}
		for _, l := range list {
			printLoss(io, l)
		}
		if err != nil {
			return fmt.Errorf("a stream that is missing is no loss that can be accepted: %w", err)
		}
		if !c.Yes {
			return errors.New("nothing was changed; to go on without what is lost, copy all streams, and add --yes")
		}
		return acceptAll(ctx, io, b, list)
	})
}

// find looks for what is refused. Partitions of which a stream is missing are passed over, and named in the error,
// which is model.ErrNoStream then.
func (c *acceptLossCmd) find(ctx context.Context, b *bus.Bus) (list []*loss.Loss, err error) {
	if c.Space != "" {
		l, err := loss.InSpace(ctx, b, c.Space)
		if l != nil {
			list = append(list, l)
		}
		return list, err
	}
	first, behind := 0, b.Partitions()
	if c.Partition >= 0 {
		first, behind = c.Partition, c.Partition+1
	}
	var missing []error
	for p := first; p < behind; p++ {
		found, err := loss.InPartition(ctx, b, p)
		if errors.Is(err, model.ErrNoStream) {
			missing = append(missing, fmt.Errorf("partition %d: %w", p, err))
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, errors.Join(missing...)
}

// nothing says that what was asked about is not refused. If something else is, that is an error,
// which names it: a name may be misspelt, or the partition of a space be refused instead.
func (c *acceptLossCmd) nothing(ctx context.Context, io streams, b *bus.Bus) error {
	asked := ""
	switch {
	case c.Space != "":
		asked = "space " + c.Space
	case c.Partition >= 0:
		asked = fmt.Sprintf("partition %d", c.Partition)
	}
	if asked != "" {
		others, err := (&acceptLossCmd{Partition: -1}).find(ctx, b)
		if err != nil && !errors.Is(err, model.ErrNoStream) {
			return err
		}
		if len(others) > 0 {
			return fmt.Errorf("%s is not refused; refused are: %s", asked, namesOf(others))
		}
	}
	fmt.Fprintln(io.out, "nothing is refused")
	return nil
}

// maxNamed bounds how many of those that are refused are named in a line.
const maxNamed = 20

func namesOf(list []*loss.Loss) string {
	var names []string
	for _, l := range list[:min(len(list), maxNamed)] {
		names = append(names, lossOf(l))
	}
	if more := len(list) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func acceptAll(ctx context.Context, io streams, b *bus.Bus, list []*loss.Loss) error {
	var failed []error
	for _, l := range list {
		told := uint64(0)
		err := l.Accept(ctx, b, func(at, upTo uint64) {
			if at >= told+10_000 {
				told = at
				fmt.Fprintf(io.err, "%s: at %d of %d\n", lossOf(l), at, upTo)
			}
		})
		if err != nil {
			failed = append(failed, err)
			continue
		}
		fmt.Fprintf(io.out, "%s: accepted\n", lossOf(l))
	}
	return errors.Join(failed...)
}

// lossOf is what is refused.
func lossOf(l *loss.Loss) string {
	if l.Space != "" {
		return fmt.Sprintf("space %s (partition %d)", l.Space, l.Partition)
	}
	return fmt.Sprintf("partition %d", l.Partition)
}

// printLoss says what is refused, and what it means to go on.
func printLoss(io streams, l *loss.Loss) {
	say := func(format string, args ...any) { fmt.Fprintf(io.out, "  "+format+"\n", args...) }
	fmt.Fprintf(io.out, "%s is refused\n", lossOf(l))
	switch l.Kind {
	case model.LossOfLane:
		say("its lane ends at %d, and its events were handled up to %d", l.Found, l.Known)
		say("lost: events that were not handled yet; senders that have them can send them again")
		say("kept: what spaces hold, and receipts; of the %d messages that the lane holds, those that came since are handled", l.Left)
	case model.LossOfLog:
		say("its log ends at %d, and what is saved of it reflects commit %d", l.Found, l.Known)
		say("lost: the receipts of what the commits in between have handled")
		for _, g := range l.Gone {
			say("lost: %d events to space %s, each of which becomes a dead letter there", len(g.Positions), g.To)
		}
		say("kept: the documents, as they are saved")
		if len(l.Ahead) > 0 {
			say("of those, some reflect more than the others, and what led to that is handled again: %s", strings.Join(l.Ahead, ", "))
		}
	default:
		say("%s", l.Error())
		say("%s", loss.ErrState)
	}
}
