package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
)

// letterChoice says about which dead letters something is to be done.
type letterChoice struct {
	Space   string `arg:"" optional:"" help:"The event's space; with --all, all spaces if there is none."`
	Event   string `arg:"" optional:"" help:"The event's id."`
	Stream  string `help:"The stream, if several have an event of that id." placeholder:"STREAM"`
	All     bool   `help:"All that are open: neither sent again nor dismissed."`
	Confirm int    `help:"With --all: how many you expect that to be. Nothing is done if it is another number." default:"-1" placeholder:"N"`
}

// deed is what can be done about a dead letter, what is said of letters about which it was
// done, and what if there are none.
type deed struct {
	done, none string
	do         func(ctx context.Context, io streams, client *settle.Client, space, stream, event string) error
}

// carryOut does it to one letter, or to all that are open.
func (c *letterChoice) carryOut(ctx context.Context, io streams, at *connection, d deed) error {
	switch {
	case c.All && c.Event != "":
		return usage(errors.New("give an event or --all, not both"))
	case !c.All && (c.Space == "" || c.Event == ""):
		return usage(errors.New("which event? Give a space and an event, as `settle dead` lists them, or --all"))
	}
	return at.use(ctx, io, func(b *bus.Bus, client *settle.Client) error {
		if c.All {
			noteUnattended(ctx, io, b)
			return c.all(ctx, io, client, d)
		}
		err := d.do(ctx, io, client, c.Space, c.Stream, c.Event)
		if _, missing := errors.AsType[*settle.NoLetterError](err); missing {
			noteUnattended(ctx, io, b)
		}
		return usageIfName(err)
	})
}

// all does it to those that are open, if that is as many as is expected: between looking
// and doing, a program may have gone on failing.
func (c *letterChoice) all(ctx context.Context, io streams, client *settle.Client, d deed) error {
	letters, err := collect(ctx, client, c.Space)
	if err != nil {
		return usageIfName(err)
	}
	letters = open(letters)
	switch n := len(letters); {
	case n == 0:
		fmt.Fprintln(io.out, d.none+ofSpace(c.Space))
		return nil
	case c.Confirm < 0:
		return usage(fmt.Errorf("%s%s would be %s; if that is what you want: --all --confirm %d (`%s --open` lists them)", count(n, "event"), ofSpace(c.Space), d.done, n, listing(c.Space)))
	case c.Confirm != n:
		return usage(fmt.Errorf("%s%s would be %s, not %d; nothing was %s (`%s --open` lists them)", count(n, "event"), ofSpace(c.Space), d.done, c.Confirm, d.done, listing(c.Space)))
	}
	for i := range letters {
		if err := d.do(ctx, io, client, letters[i].Space, letters[i].Stream, letters[i].Event); err != nil {
			return fmt.Errorf("%d of %d were %s: %w", i, len(letters), d.done, err)
		}
	}
	return nil
}

// redriveCmd is `settle redrive`.
type redriveCmd struct {
	connection
	letterChoice
}

// Run sends one event again, or all.
func (c *redriveCmd) Run(ctx context.Context, io streams) error {
	return c.carryOut(ctx, io, &c.connection, deed{done: "sent again", none: "nothing to send again", do: redrive})
}

func redrive(ctx context.Context, io streams, client *settle.Client, space, stream, event string) error {
	r, sent, err := client.Redrive(ctx, space, stream, event)
	switch {
	case err != nil:
		return err
	case sent.Duplicate:
		fmt.Fprintf(io.out, "%s: had been sent again already, as %s; if that has failed, redrive that\n", event, r.Event)
	default:
		fmt.Fprintf(io.out, "%s: sent again to %s/%s as %s, lane sequence %d\n", event, r.Space, r.Stream, r.Event, sent.Seq)
	}
	return nil
}

// dismissCmd is `settle dismiss`.
type dismissCmd struct {
	connection
	letterChoice
	Reason string `help:"Why; \"settle dead --dismissed\" shows it." placeholder:"TEXT"`
}

// Run dismisses one dead letter, or all.
func (c *dismissCmd) Run(ctx context.Context, io streams) error {
	return c.carryOut(ctx, io, &c.connection, deed{done: "dismissed", none: "nothing to dismiss", do: c.dismiss})
}

func (c *dismissCmd) dismiss(ctx context.Context, io streams, client *settle.Client, space, stream, event string) error {
	r, again, err := client.Dismiss(ctx, space, stream, event, c.Reason)
	switch {
	case err != nil:
		return err
	case again:
		fmt.Fprintf(io.out, "%s: had been dismissed already; the first reason stays\n", event)
		return nil
	}
	fmt.Fprintf(io.out, "%s: dismissed; it can still be sent again: settle redrive %s %s --stream %s\n", event, r.Space, r.Event, r.Stream)
	return nil
}
