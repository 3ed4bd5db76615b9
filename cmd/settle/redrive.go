package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
)

// letterChoice selects the dead letters to redrive or dismiss.
type letterChoice struct {
	deadChoice
	Space   string  `arg:"" optional:"" help:"The event's space; optional with --all."`
	Event   string  `arg:"" optional:"" help:"The event's id."`
	All     bool    `help:"All open letters: neither redriven nor dismissed; --stream, --error, --older and --newer select among them."`
	Confirm int     `help:"With --all: the expected number of letters. If it differs, the command does nothing." default:"-1" placeholder:"N"`
	Rate    float64 `help:"With --all: events per second; 0 for no limit." default:"0" placeholder:"N"`
}

// letterOperation is an operation on dead letters: its function, its past participle for messages, and the
// message if there are none.
type letterOperation struct {
	done, none string
	do         func(ctx context.Context, io streams, b *bus.Bus, client *settle.Client, space, stream, event string) error
	all        func(ctx context.Context, open *history.OpenDead, p history.Pace) error
	printDone  func(io streams, d history.DeadDone)
}

// carryOut applies it to one letter, or to all selected ones.
func (c *letterChoice) carryOut(ctx context.Context, io streams, at *connection, d letterOperation) error {
	switch {
	case c.All && c.Event != "":
		return usage(errors.New("give an event or --all, not both"))
	case !c.All && (c.Space == "" || c.Event == ""):
		return usage(errors.New("which event? Give a space and an event, as `settle dead` lists them, or --all"))
	case !c.All && (c.Error != "" || c.Older != 0 || c.Newer != 0 || c.Rate != 0):
		return usage(errors.New("--error, --older, --newer and --rate go with --all"))
	case c.Rate < 0:
		return usage(fmt.Errorf("--rate %v: use a positive number", c.Rate))
	}
	needs := need{shared: []string{provision.ComponentDead}}
	if !c.All {
		needs.spaces = []string{c.Space}
	}
	return at.use(ctx, io, needs, func(b *bus.Bus, client *settle.Client) error {
		if c.All {
			noteUnattended(ctx, io, b)
			return c.all(ctx, io, client, d)
		}
		err := d.do(ctx, io, b, client, c.Space, c.Stream, c.Event)
		if _, missing := errors.AsType[*history.NoLetterError](err); missing {
			noteUnattended(ctx, io, b)
		}
		return usageIfName(err)
	})
}

// all applies it to the selected ones, if their number is the expected one: between listing
// and confirming, more events may have failed.
func (c *letterChoice) all(ctx context.Context, io streams, client *settle.Client, d letterOperation) error {
	open, err := client.OpenDead(ctx, c.filter(c.Space))
	if err != nil {
		return usageIfName(err)
	}
	switch n := open.Count; {
	case n == 0:
		fmt.Fprintln(io.out, d.none+ofSpace(c.Space))
		return nil
	case c.Confirm < 0:
		return usage(fmt.Errorf("%s%s would be %s; if that is what you want: --all --confirm %d (`%s --open` lists them)", display.Count(n, "event"), ofSpace(c.Space), d.done, n, listing(c.Space)))
	case c.Confirm != n:
		return usage(fmt.Errorf("%s%s would be %s, not %d; nothing was %s (`%s --open` lists them)", display.Count(n, "event"), ofSpace(c.Space), d.done, c.Confirm, d.done, listing(c.Space)))
	}
	t := &bulkProgress{io: io, operation: d, of: open.Count, begun: time.Now(), printed: time.Now()}
	err = d.all(ctx, open, history.Pace{Rate: c.Rate, Done: t.record})
	t.sum()
	switch {
	case err != nil:
		return fmt.Errorf("%d of %d were %s; run the same command with the remaining number to continue: %w", t.done, open.Count, d.done, err)
	case t.failed > 0:
		return fmt.Errorf("%d of %d could not be %s", t.failed, open.Count, d.done)
	}
	return nil
}

// manyLetters is the number from which letters are counted instead of named.
const manyLetters = 100

// bulkProgress prints the progress of an operation on many letters.
type bulkProgress struct {
	io             streams
	operation      letterOperation
	of             int
	done, failed   int
	begun, printed time.Time
}

// record records the result for one letter.
func (t *bulkProgress) record(d history.DeadDone) {
	if d.Err != nil {
		if t.failed++; t.failed <= 10 {
			fmt.Fprintf(t.io.err, "%s of %s/%s: %v\n", d.Of.Event, d.Of.Space, d.Of.Stream, d.Err)
		}
		return
	}
	t.done++
	if t.of <= manyLetters {
		t.operation.printDone(t.io, d)
	} else if now := time.Now(); now.Sub(t.printed) >= time.Second {
		t.printed = now
		fmt.Fprintf(t.io.err, "%d of %d %s, %.0f a second\n", t.done, t.of, t.operation.done, float64(t.done)/now.Sub(t.begun).Seconds())
	}
}

func (t *bulkProgress) sum() {
	if t.of > manyLetters {
		fmt.Fprintf(t.io.out, "%d of %d %s, in %v\n", t.done, t.of, t.operation.done, time.Since(t.begun).Round(time.Millisecond))
	}
}

// redriveCmd is `settle redrive`.
type redriveCmd struct {
	connection
	letterChoice
}

// Run sends one event again, or all.
func (c *redriveCmd) Run(ctx context.Context, io streams) error {
	return c.carryOut(ctx, io, &c.connection, letterOperation{
		done: "sent again", none: "nothing to send again", do: redrive,
		all: func(ctx context.Context, open *history.OpenDead, p history.Pace) error { return open.Redrive(ctx, p) },
		printDone: func(io streams, d history.DeadDone) {
			if d.Duplicate {
				fmt.Fprintf(io.out, "%s: had been sent again already, as %s\n", d.Of.Event, d.Sent.Event)
				return
			}
			fmt.Fprintf(io.out, "%s: sent again to %s/%s as %s\n", d.Of.Event, d.Sent.Space, d.Sent.Stream, d.Sent.Event)
		},
	})
}

func redrive(ctx context.Context, io streams, _ *bus.Bus, client *settle.Client, space, stream, event string) error {
	r, sent, err := client.Space(space).Redrive(ctx, stream, settle.ID(event))
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
	Reason string `help:"The reason, which \"settle dead --dismissed\" prints." placeholder:"TEXT"`
}

// Run dismisses one dead letter, or all.
func (c *dismissCmd) Run(ctx context.Context, io streams) error {
	return c.carryOut(ctx, io, &c.connection, letterOperation{
		done: "dismissed", none: "nothing to dismiss", do: c.dismiss,
		all: func(ctx context.Context, open *history.OpenDead, p history.Pace) error {
			return open.Dismiss(ctx, c.Reason, p)
		},
		printDone: func(io streams, d history.DeadDone) { printDismissed(io, d.Of.Space, d.Of.Stream, d.Of.Event) },
	})
}

func (c *dismissCmd) dismiss(ctx context.Context, io streams, b *bus.Bus, client *settle.Client, space, stream, event string) error {
	r, again, err := client.Space(space).Dismiss(ctx, stream, settle.ID(event), c.Reason)
	switch {
	case err != nil:
		return err
	case again:
		fmt.Fprintf(io.out, "%s: had been dismissed already; the first reason stays\n", event)
		return nil
	}
	as, sent, err := history.SentAgain(ctx, b, r)
	switch {
	case err != nil:
		return fmt.Errorf("%s: dismissed, but whether it had been sent again is not known: %w", event, err)
	case sent:
		fmt.Fprintf(io.out, "%s: dismissed; it had been sent again already, as %s\n", event, as.Event)
		return nil
	}
	printDismissed(io, r.Space, r.Stream, r.Event)
	return nil
}

func printDismissed(io streams, space, stream, event string) {
	fmt.Fprintf(io.out, "%s: dismissed; it can still be sent again: settle redrive %s %s --stream %s\n", event, space, event, stream)
}
