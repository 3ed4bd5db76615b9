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
	Partition int    `help:"The refused partition, with its lane and all of its spaces." placeholder:"N" default:"-1"`
	Yes       bool   `help:"Accept the loss. Default: list it, and change nothing."`
}

// Help returns the long help.
func (acceptLossCmd) Help() string {
	return "`settle fleet`, `settle doctor` and the logs of the workers name the refused spaces and partitions. Copy all streams first: accepting a loss cannot be undone, even if the messages are found. Exit status: 0 if nothing is refused any more, otherwise 1, even if the loss in question was accepted. Needs the role worker."
}

// Run lists or accepts losses.
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
			return usage(errors.New("--yes needs a space or --partition N: list the losses first"))
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
			return fmt.Errorf("a missing stream cannot be accepted as a loss: %w", err)
		}
		if !c.Yes {
			return errors.New("nothing was changed; to continue without the lost data, copy all streams, then add --yes")
		}
		return acceptAll(ctx, io, b, list)
	})
}

// find returns the losses. Partitions with a missing stream are skipped, and named in the error,
// which is then model.ErrNoStream.
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

// nothing reports that the given space or partition is not refused. If another one is, that is an error,
// which names it: the name may be misspelt, or the partition of the space may be refused instead.
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

// maxNamed is the largest number of losses that are named in a line.
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

// lossOf names the refused space or partition.
func lossOf(l *loss.Loss) string {
	if l.Space != "" {
		return fmt.Sprintf("space %s (partition %d)", l.Space, l.Partition)
	}
	return fmt.Sprintf("partition %d", l.Partition)
}

// printLoss prints what is refused, and the consequences of accepting the loss.
func printLoss(io streams, l *loss.Loss) {
	say := func(format string, args ...any) { fmt.Fprintf(io.out, "  "+format+"\n", args...) }
	fmt.Fprintf(io.out, "%s is refused\n", lossOf(l))
	switch l.Kind {
	case model.LossOfLane:
		say("its lane ends at %d, and its events were handled up to %d", l.Found, l.Known)
		say("lost: events that were not handled yet; senders that have them can send them again")
		say("kept: documents and receipts; of the %d messages in the lane, those that were sent since are handled", l.Left)
	case model.LossOfLog:
		say("its log ends at %d, and its saved state reflects commit %d", l.Found, l.Known)
		say("lost: the receipts of the events that the commits in between have handled")
		for _, g := range l.Gone {
			say("lost: %d events to space %s, each of which becomes a dead letter there", len(g.Positions), g.To)
		}
		say("kept: the saved documents")
		if len(l.Ahead) > 0 {
			say("some of them are newer than the others, and the events behind that are handled again: %s", strings.Join(l.Ahead, ", "))
		}
	case model.LossOfCommit:
		say("%s", l.Error())
	default:
		say("%s", l.Error())
		say("%s", loss.ErrState)
	}
}
