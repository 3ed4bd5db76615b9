package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
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
	Open  bool   `help:"Only those that are open: neither sent again nor dismissed."`
	// Without it, those are not listed.
	Dismissed bool `help:"Those that were dismissed, too, and why."`
	Full      bool `help:"Print errors and payloads in full."`
	JSON      bool `name:"json" help:"Print JSON, one object a line, with payloads."`
}

// Run lists dead letters.
func (c *deadCmd) Run(ctx context.Context, io streams) error {
	return c.use(ctx, io, func(b *bus.Bus, client *settle.Client) error {
		letters, err := collect(ctx, client, c.Space)
		if err != nil {
			return usageIfName(err)
		}
		noteUnattended(ctx, io, b)
		wanted := c.wanted(letters)
		more, all := len(letters)-len(keep(letters, notDismissed)), listing(c.Space)
		if more > 0 {
			all += " --dismissed"
		}
		switch {
		case c.JSON:
			return c.printJSON(io, wanted)
		case len(letters) == 0:
			fmt.Fprintln(io.out, "no dead letters"+ofSpace(c.Space))
		case len(wanted) == 0:
			fmt.Fprintf(io.out, "no dead letters%s that are open (%d in all: %s)\n", ofSpace(c.Space), len(letters), all)
		case c.Full:
			c.printFull(io, wanted)
		default:
			s, _ := sheetFor(io.out)
			s.printLetters(wanted)
		}
		if more > 0 && len(wanted) > 0 && !c.Open && !c.Dismissed {
			fmt.Fprintf(io.out, "%d more, dismissed: %s\n", more, all)
		}
		return nil
	})
}

// wanted are the letters to be listed.
func (c *deadCmd) wanted(letters []settle.DeadLetter) []settle.DeadLetter {
	switch {
	case c.Open:
		return open(letters)
	case c.Dismissed:
		return letters
	}
	return keep(letters, notDismissed)
}

// open are those about which nothing was done.
func open(letters []settle.DeadLetter) []settle.DeadLetter {
	return keep(letters, func(d *settle.DeadLetter) bool { return d.Redriven == nil && notDismissed(d) })
}

func notDismissed(d *settle.DeadLetter) bool { return d.Dismissed == nil }

func keep(letters []settle.DeadLetter, which func(*settle.DeadLetter) bool) (kept []settle.DeadLetter) {
	for i := range letters {
		if which(&letters[i]) {
			kept = append(kept, letters[i])
		}
	}
	return kept
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

func (c *deadCmd) printJSON(io streams, letters []settle.DeadLetter) error {
	for i := range letters {
		if err := printLine(io.out, &letters[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s sheet) printLetters(letters []settle.DeadLetter) {
	longest := maxRemark
	if s.width > 0 {
		longest = max(leastRemark, min(longest, s.width-len(below)))
	}
	clipped := false
	rows := make([][]cell, len(letters))
	for i := range letters {
		d := &letters[i]
		text := reason(d)
		short := clip(text, longest)
		clipped = clipped || short != text
		rows[i] = []cell{{text: s.when(d.Ended)}, {text: d.Space}, {text: d.Stream}, {text: d.Event}, {text: string(d.Outcome)}, {text: again(d)}, {text: short}}
	}
	s.table([]string{"ENDED", "SPACE", "STREAM", "EVENT", "OUTCOME", "SENT AGAIN", "ERROR"}, rows)
	fmt.Fprintf(s.out, "\n%s, %d open.\nMore of one: settle tree EVENT --space SPACE; again: settle redrive SPACE EVENT;\nnever again: settle dismiss SPACE EVENT\n", count(len(letters), "dead letter"), len(open(letters)))
	if clipped {
		fmt.Fprintf(s.out, "%s stands for the rest of a long text; all of it: --full\n", ellipsis)
	}
}

// reason is why an event did not end well, behind why that is left as it is.
func reason(d *settle.DeadLetter) string {
	text := unbroken(withoutCalls(d.Error))
	if d.Dismissed != nil {
		text = fmt.Sprintf("(dismissed: %s) %s", cmp.Or(unbroken(d.Dismissed.Reason), "no reason given"), text)
	}
	return text
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
		fmt.Fprintf(io.out, "  sent again  %s\n", again(d))
		if d.Dismissed != nil {
			fmt.Fprintf(io.out, "  dismissed   %s\n", cmp.Or(d.Dismissed.Reason, "(no reason given)"))
		}
		fmt.Fprintln(io.out)
	}
}

func again(d *settle.DeadLetter) string {
	switch {
	case d.Redriven == nil && d.Dismissed != nil:
		return "dismissed"
	case d.Redriven == nil:
		return "no"
	}
	return fmt.Sprintf("%s (%s)", d.Redriven.State, d.Redriven.Event[strings.LastIndex(d.Redriven.Event, ":")+1:])
}
