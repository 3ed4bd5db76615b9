package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/coordinator/trail"
	"github.com/settlehq/settle/model"
)

// deadCmd is `settle dead`.
type deadCmd struct {
	connection
	Space string `arg:"" optional:"" help:"A space. Default: all of them."`
	Open  bool   `help:"Only those that have not been sent again."`
	Full  bool   `help:"Print errors and payloads in full."`
	JSON  bool   `name:"json" help:"Print JSON, one object a line, with payloads."`
}

// Run lists dead letters.
func (c *deadCmd) Run(ctx context.Context, io streams) error {
	return c.use(ctx, io, func(b *bus.Bus, client *settle.Client) error {
		letters, err := collect(ctx, client, c.Space)
		if err != nil {
			return usageIfName(err)
		}
		noteUnattended(ctx, io, b)
		all := len(letters)
		if c.Open {
			letters = notAgain(letters)
		}
		switch {
		case c.JSON:
			return c.printJSON(io, letters)
		case all == 0:
			fmt.Fprintln(io.out, "no dead letters"+ofSpace(c.Space))
			return nil
		case len(letters) == 0:
			fmt.Fprintf(io.out, "no dead letters%s that have not been sent again (%d in all: %s)\n", ofSpace(c.Space), all, listing(c.Space))
			return nil
		case c.Full:
			c.printFull(io, letters)
			return nil
		}
		c.print(io, letters)
		return nil
	})
}

func ofSpace(space string) string {
	if space == "" {
		return ""
	}
	return " of space " + space
}

// listing is the command that lists the dead letters of a space, or of all.
func listing(space string) string { return strings.TrimSpace("settle dead " + space) }

// answerTime is what a coordinator that runs has to answer in. One that has just ended
// may still be taken for one that will.
const answerTime = 2 * time.Second

// noteUnattended says what it means for dead letters if no coordinator runs.
func noteUnattended(ctx context.Context, io streams, b *bus.Bus) {
	patient, end := context.WithTimeout(ctx, answerTime)
	defer end()
	_, err := b.Ask(patient, trail.AskDead, []byte(`{"limit":1}`))
	if errors.Is(err, model.ErrNobody) || err != nil && patient.Err() != nil && ctx.Err() == nil {
		fmt.Fprintln(io.err, "no coordinator answers; it is coordinators that write dead letters, so this list may be behind")
	}
}

func collect(ctx context.Context, client *settle.Client, space string) ([]settle.DeadLetter, error) {
	var letters []settle.DeadLetter
	for d, err := range client.DeadLetters(ctx, space) {
		if err != nil {
			return nil, err
		}
		letters = append(letters, d)
	}
	return letters, nil
}

// notAgain keeps those that have not been sent again.
func notAgain(letters []settle.DeadLetter) []settle.DeadLetter {
	return slices.DeleteFunc(letters, func(d settle.DeadLetter) bool { return d.Redriven != nil })
}

func (c *deadCmd) printJSON(io streams, letters []settle.DeadLetter) error {
	for i := range letters {
		if err := printLine(io.out, &letters[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *deadCmd) print(io streams, letters []settle.DeadLetter) {
	s, _ := sheetFor(io.out)
	rows := make([][]cell, len(letters))
	for i := range letters {
		d := &letters[i]
		rows[i] = []cell{{text: s.when(d.Ended)}, {text: d.Space}, {text: d.Stream}, {text: d.Event}, {text: string(d.Outcome)}, {text: again(d)}, {text: oneLine(withoutCalls(d.Error))}}
	}
	s.table([]string{"ENDED", "SPACE", "STREAM", "EVENT", "OUTCOME", "SENT AGAIN", "ERROR"}, rows)
	open, clipped := 0, false
	for i := range letters {
		if letters[i].Redriven == nil {
			open++
		}
		clipped = clipped || cut(withoutCalls(letters[i].Error))
	}
	fmt.Fprintf(io.out, "\n%s, %d not sent again.\nMore of one: settle tree EVENT --space SPACE; again: settle redrive SPACE EVENT\n", count(len(letters), "dead letter"), open)
	if clipped {
		fmt.Fprintf(io.out, "%s stands for the rest of a long text; all of it: --full\n", ellipsis)
	}
}

// calls are the lines of an error that say by which calls it came; the first line has the innermost place.
var calls = regexp.MustCompile(`\n  [^\n]+:[0-9]+:[0-9]+: in [^\n]+`)

// withoutCalls is an error for where there is one line for it.
func withoutCalls(text string) string { return calls.ReplaceAllString(text, "") }

func (c *deadCmd) printFull(io streams, letters []settle.DeadLetter) {
	for i := range letters {
		d := &letters[i]
		fmt.Fprintf(io.out, "%s/%s  %s  %s  %s\n", d.Space, d.Stream, d.Event, d.Outcome, clock(d.Ended))
		if d.Attempts > 1 {
			fmt.Fprintf(io.out, "  attempts    %d\n", d.Attempts)
		}
		fmt.Fprintf(io.out, "  error       %s\n", strings.ReplaceAll(d.Error, "\n", "\n              "))
		payload := string(d.Bytes())
		switch {
		case d.Lost != "":
			payload = "(not here: " + d.Lost + ")"
		case payload == "":
			payload = "(none)"
		}
		fmt.Fprintf(io.out, "  payload     %s\n", payload)
		fmt.Fprintf(io.out, "  receipt     in commit %d; lane sequence %d\n", d.Commit, d.Lane)
		fmt.Fprintf(io.out, "  sent again  %s\n\n", again(d))
	}
}

func again(d *settle.DeadLetter) string {
	if d.Redriven == nil {
		return "no"
	}
	return fmt.Sprintf("%s (%s)", d.Redriven.State, d.Redriven.Event[strings.LastIndex(d.Redriven.Event, ":")+1:])
}

// redriveCmd is `settle redrive`.
type redriveCmd struct {
	connection
	Space   string `arg:"" optional:"" help:"The event's space; with --all, all spaces if there is none."`
	Event   string `arg:"" optional:"" help:"The event's id."`
	Stream  string `help:"The stream, if several have an event of that id." placeholder:"STREAM"`
	All     bool   `help:"Redrive all that have not been sent again."`
	Confirm int    `help:"With --all: how many you expect that to be. Nothing is sent if it is another number." default:"-1" placeholder:"N"`
}

// Run sends one event again, or all.
func (c *redriveCmd) Run(ctx context.Context, io streams) error {
	switch {
	case c.All && c.Event != "":
		return usage(errors.New("give an event or --all, not both"))
	case !c.All && (c.Space == "" || c.Event == ""):
		return usage(errors.New("which event? Give a space and an event, as `settle dead` lists them, or --all"))
	}
	return c.use(ctx, io, func(b *bus.Bus, client *settle.Client) error {
		if c.All {
			noteUnattended(ctx, io, b)
			return c.all(ctx, io, client)
		}
		err := c.one(ctx, io, client, c.Space, c.Stream, c.Event)
		if _, missing := errors.AsType[*settle.NoLetterError](err); missing {
			noteUnattended(ctx, io, b)
		}
		return err
	})
}

func (c *redriveCmd) one(ctx context.Context, io streams, client *settle.Client, space, stream, event string) error {
	r, sent, err := client.Redrive(ctx, space, stream, event)
	switch {
	case err != nil:
		return usageIfName(err)
	case sent.Duplicate:
		fmt.Fprintf(io.out, "%s: had been sent again already, as %s; if that has failed, redrive that\n", event, r.Event)
	default:
		fmt.Fprintf(io.out, "%s: sent again to %s/%s as %s, lane sequence %d\n", event, r.Space, r.Stream, r.Event, sent.Seq)
	}
	return nil
}

// all redrives what has not been redriven, if that is as many as is expected: between
// looking and doing, a program may have gone on failing.
func (c *redriveCmd) all(ctx context.Context, io streams, client *settle.Client) error {
	letters, err := collect(ctx, client, c.Space)
	if err != nil {
		return usageIfName(err)
	}
	letters = notAgain(letters)
	switch n := len(letters); {
	case n == 0:
		fmt.Fprintln(io.out, "nothing to send again"+ofSpace(c.Space))
		return nil
	case c.Confirm < 0:
		return usage(fmt.Errorf("%s%s would be sent again; if that is what you want: --all --confirm %d (`%s --open` lists them)", count(n, "event"), ofSpace(c.Space), n, listing(c.Space)))
	case c.Confirm != n:
		return usage(fmt.Errorf("%s%s would be sent again, not %d; nothing was sent (`%s --open` lists them)", count(n, "event"), ofSpace(c.Space), c.Confirm, listing(c.Space)))
	}
	for i := range letters {
		if err := c.one(ctx, io, client, letters[i].Space, letters[i].Stream, letters[i].Event); err != nil {
			return fmt.Errorf("%d of %d were sent again: %w", i, len(letters), err)
		}
	}
	return nil
}
