package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
)

// deadCmd is `settle dead`.
type deadCmd struct {
	connection
	deadChoice
	Space string `arg:"" optional:"" help:"A space. Default: all spaces."`
	Open  bool   `help:"Only open letters: neither redriven nor dismissed."`
	// Without it, those are not listed.
	Dismissed bool `help:"Include dismissed letters, with their reasons."`
	Count     bool `help:"Only count the letters."`
	Limit     int  `help:"How many letters to list, oldest first; 0 for all. Default: 1000, with --json all." default:"-1"`
	Full      bool `help:"Print errors and payloads in full."`
	JSON      bool `name:"json" help:"Print JSON, one object a line, with payloads."`
}

// deadChoice selects dead letters.
type deadChoice struct {
	Stream string        `help:"Only events of this stream." placeholder:"STREAM"`
	Error  string        `help:"Only events whose error contains this text; case is ignored." placeholder:"TEXT"`
	Older  time.Duration `help:"Only events that ended longer ago than this." placeholder:"DURATION"`
	Newer  time.Duration `help:"Only events that ended within this time." placeholder:"DURATION"`
}

// filter returns the selection, for one space.
func (c *deadChoice) filter(space string) history.DeadFilter {
	f := history.DeadFilter{Space: space, Stream: c.Stream, Reason: c.Error}
	if c.Older > 0 {
		f.Before = time.Now().Add(-c.Older)
	}
	if c.Newer > 0 {
		f.Since = time.Now().Add(-c.Newer)
	}
	return f
}

// chosen describes the selection in words.
func (c *deadChoice) chosen() bool { return *c != deadChoice{} }

// Run lists dead letters.
func (c *deadCmd) Run(ctx context.Context, io streams) error {
	return c.use(ctx, io, need{shared: []string{provision.ComponentDead}}, func(b *bus.Bus, client *settle.Client) error {
		if c.Count {
			noteUnattended(ctx, io, b)
			return usageIfName(c.count(ctx, io, client))
		}
		counts, err := c.counts(ctx, client)
		if err != nil {
			return usageIfName(err)
		}
		noteUnattended(ctx, io, b)
		wanted, cut, err := c.collect(ctx, client)
		if err != nil {
			return err
		}
		if c.JSON {
			return c.printJSON(io, wanted)
		}
		c.print(io, wanted, cut, counts)
		return nil
	})
}

func (c *deadCmd) print(io streams, wanted []history.Dead, cut bool, counts history.DeadCounts) {
	all := listing(c.Space)
	if counts.Dismissed > 0 {
		all += " --dismissed"
	}
	switch {
	case counts.Letters == 0:
		fmt.Fprintln(io.out, "no dead letters"+ofSpace(c.Space))
	case len(wanted) == 0 && c.chosen():
		fmt.Fprintf(io.out, "no such dead letters%s (%d in all: %s)\n", ofSpace(c.Space), counts.Letters, all)
	case len(wanted) == 0:
		fmt.Fprintf(io.out, "no dead letters%s that are open (%d in all: %s)\n", ofSpace(c.Space), counts.Letters, all)
	case c.Full:
		c.printFull(io, wanted)
	default:
		s, _ := sheetFor(io.out)
		s.printLetters(wanted)
	}
	if cut {
		fmt.Fprintf(io.out, "these are the oldest; %d in all, %d open: --limit 0 lists all, --count counts\n", counts.Letters, counts.Open)
	}
	if counts.Dismissed > 0 && len(wanted) > 0 && !c.Open && !c.Dismissed && !c.chosen() {
		fmt.Fprintf(io.out, "%d more, dismissed: %s\n", counts.Dismissed, all)
	}
}

// count prints numbers only. With a selection, it counts the open ones.
func (c *deadCmd) count(ctx context.Context, io streams, client *settle.Client) error {
	var counts history.DeadCounts
	var err error
	if c.chosen() {
		counts.Open, err = client.CountOpenDead(ctx, c.filter(c.Space))
	} else {
		counts, err = c.counts(ctx, client)
	}
	if err != nil {
		return err
	}
	if c.chosen() && !c.JSON {
		fmt.Fprintf(io.out, "%d open\n", counts.Open)
		return nil
	}
	if c.JSON {
		return printLine(io.out, counts)
	}
	fmt.Fprintf(io.out, "%s%s: %d open, %d sent again, %d dismissed\n", display.Count(counts.Letters, "dead letter"), ofSpace(c.Space), counts.Open, counts.Redriven, counts.Dismissed)
	return nil
}

// counts counts the letters of the space, or of all spaces.
func (c *deadCmd) counts(ctx context.Context, client *settle.Client) (history.DeadCounts, error) {
	if c.Space == "" {
		return client.CountDead(ctx)
	}
	return client.Space(c.Space).CountDead(ctx)
}

// letters returns the letters of the space, or of all spaces.
func (c *deadCmd) letters(ctx context.Context, client *settle.Client) iter.Seq2[history.Dead, error] {
	if c.Space == "" {
		return client.DeadLetters(ctx)
	}
	return client.Space(c.Space).DeadLetters(ctx)
}

// defaultListing is how many letters are listed for people.
const defaultListing = 1000

// errEnough ends a listing.
var errEnough = errors.New("enough")

// collect reads the letters to list; cut reports that there are more.
func (c *deadCmd) collect(ctx context.Context, client *settle.Client) (letters []history.Dead, cut bool, err error) {
	limit := c.Limit
	if limit < 0 && !c.JSON {
		limit = defaultListing
	}
	take := func(d history.Dead) error {
		if limit > 0 && len(letters) == limit {
			cut = true
			return errEnough
		}
		letters = append(letters, d)
		return nil
	}
	f := c.filter(c.Space)
	if c.Open {
		open, err := client.OpenDead(ctx, f)
		if err == nil {
			err = open.List(ctx, take)
		}
		if errors.Is(err, errEnough) {
			err = nil
		}
		return letters, cut, err
	}
	for d, err := range c.letters(ctx, client) {
		if err != nil {
			return nil, false, err
		}
		if !f.Wants(&d.DeadLetter) || !c.Dismissed && d.Dismissed != nil {
			continue
		}
		if take(d) != nil {
			break
		}
	}
	return letters, cut, nil
}

// open returns the letters that are neither redriven nor dismissed.
func open(letters []history.Dead) (n int) {
	for i := range letters {
		if letters[i].Redriven == nil && letters[i].Dismissed == nil {
			n++
		}
	}
	return n
}

func ofSpace(space string) string {
	if space == "" {
		return ""
	}
	return " of space " + space
}

// listing returns the command that lists the dead letters of a space, or of all.
func listing(space string) string { return strings.TrimSpace("settle dead " + space) }

// answerTime is the time limit for the answer of a coordinator. One that has just ended
// may still be expected to answer.
const answerTime = 2 * time.Second

// noteUnattended warns if no coordinator runs.
func noteUnattended(ctx context.Context, io streams, b *bus.Bus) {
	patient, end := context.WithTimeout(ctx, answerTime)
	defer end()
	_, err := b.Ask(patient, history.AskDead, []byte(`{"limit":1}`))
	if errors.Is(err, model.ErrNoResponder) || err != nil && patient.Err() != nil && ctx.Err() == nil {
		fmt.Fprintln(io.err, "no coordinator answers; coordinators write dead letters, so this list may be behind")
	}
}

func (c *deadCmd) printJSON(io streams, letters []history.Dead) error {
	for i := range letters {
		if err := printLine(io.out, &letters[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s sheet) printLetters(letters []history.Dead) {
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
	fmt.Fprintf(s.out, "\n%s, %d open.\nMore of one: settle tree EVENT --space SPACE; again: settle redrive SPACE EVENT;\nnever again: settle dismiss SPACE EVENT\n", display.Count(len(letters), "dead letter"), open(letters))
	if clipped {
		fmt.Fprintf(s.out, "%s stands for the rest of a long text; all of it: --full\n", ellipsis)
	}
}

// reason returns the error of an event, after the reason of its dismissal.
func reason(d *history.Dead) string {
	text := unbroken(withoutCalls(d.Error))
	if d.Dismissed != nil {
		text = fmt.Sprintf("(dismissed: %s) %s", cmp.Or(unbroken(d.Dismissed.Reason), "no reason given"), text)
	}
	return text
}

// calls matches the lines of an error that list the call stack; the first line has the innermost position.
var calls = regexp.MustCompile(`\n  [^\n]+:[0-9]+:[0-9]+: in [^\n]+`)

// withoutCalls returns an error in one line.
func withoutCalls(text string) string { return calls.ReplaceAllString(text, "") }

func (c *deadCmd) printFull(io streams, letters []history.Dead) {
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

func again(d *history.Dead) string {
	switch {
	case d.Redriven == nil && d.Dismissed != nil:
		return "dismissed"
	case d.Redriven == nil:
		return "no"
	}
	return fmt.Sprintf("%s (%s)", d.Redriven.State, d.Redriven.Event[strings.LastIndex(d.Redriven.Event, ":")+1:])
}
