package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
)

// logCmd is `settle log`.
type logCmd struct {
	connection
	Space    string `arg:"" help:"A space."`
	Limit    int    `short:"n" help:"Number of commits to print, the newest ones; at most 1000." default:"20"`
	Before   uint64 `help:"Only commits before this revision." placeholder:"REVISION"`
	Document string `short:"d" help:"Only commits that change this document."`
	Follow   bool   `short:"f" help:"Print new commits, until interrupted."`
	Full     bool   `help:"Print all transactions of a commit, and values and errors in full."`
	JSON     bool   `name:"json" help:"Print JSON, one commit a line, with all fields."`
}

// Run prints commits of a space, newest last.
func (c *logCmd) Run(ctx context.Context, io streams) error {
	q := history.LogQuery{Document: c.Document, Before: c.Before, Limit: c.Limit}
	err := q.Check(c.Space)
	if err == nil && c.Follow && c.Before > 0 {
		err = errors.New("--follow prints what comes after the last commit, and --before what was before one: use either")
	}
	if err != nil {
		return usage(err)
	}
	return c.use(ctx, io, ofSpaces(c.Space), func(b *bus.Bus, client *settle.Client) error {
		page, err := client.Space(c.Space).Log(ctx, q)
		if err != nil {
			return err
		}
		if page.Head == 0 {
			if err := mustExist(ctx, b, c.Space); err != nil {
				return err
			}
		}
		p := newLogPrinter(io, c.Full)
		show := func(e *history.Entry) error {
			if c.JSON {
				return printLine(io.out, e)
			}
			p.entry(e)
			return nil
		}
		for _, e := range page.Entries {
			if err := show(e); err != nil {
				return err
			}
		}
		fmt.Fprint(io.err, p.legend(), older(page, c.Space, "settle log "+c.Space+c.about()))
		if !c.Follow {
			return nil
		}
		var failed error
		err = page.Follow(ctx, b, q, func(e *history.Entry) bool {
			failed = show(e)
			return failed == nil
		})
		if ctx.Err() != nil {
			return nil // interrupted, which is the normal end
		}
		return errors.Join(failed, err)
	})
}

func (c *logCmd) about() string {
	if c.Document == "" {
		return ""
	}
	return " --document " + c.Document
}

// older returns why there is nothing before a page, or how to see it.
func older(p *history.Page, space, command string) string {
	switch p.End {
	case history.EndPurged:
		if p.Next == 0 {
			return fmt.Sprintf("the log of space %s has no older commits: they were removed, and what they changed is not known (--history of workers keeps more)\n", space)
		}
		return fmt.Sprintf("the log of space %s begins at revision %d: older commits were removed, and what they changed is not known (--history of workers keeps more)\n", space, p.Next)
	case history.EndFirst:
		if len(p.Entries) == 0 {
			return "nothing found in the whole log of space " + space + "\n"
		}
		return ""
	case history.EndScanned:
		return fmt.Sprintf("the search has ended at revision %d; continue with %s --before %d\n", p.Next, command, p.Next)
	default:
		return fmt.Sprintf("older: %s --before %d\n", command, p.Next)
	}
}

// logPrinter prints commits.
type logPrinter struct {
	sheet   sheet
	width   int // of a line
	full    bool
	unknown bool // a former value that was not known was printed
}

func newLogPrinter(io streams, full bool) *logPrinter {
	s, width := sheetFor(io.out)
	return &logPrinter{sheet: s, width: width, full: full}
}

// label is the width of the column of what has changed; what is longer pushes the rest to the right.
const label = 24

func (p *logPrinter) entry(e *history.Entry) {
	head := fmt.Sprintf("%s  %s  %s", p.sheet.paint(bold, fmt.Sprint(e.Revision)), p.sheet.when(e.Time), e.Runtime)
	var notes []string
	switch {
	case e.Takeover:
		notes = append(notes, "takes the space over")
	case e.Join:
		notes = append(notes, "joins")
	}
	if e.Program != "" {
		notes = append(notes, "runs "+e.Program)
	}
	if a := e.Attempt; a != nil && !a.Returned {
		notes = append(notes, fmt.Sprintf("attempt %d at event %s", a.Number, a.Event))
	} else if a != nil {
		notes = append(notes, "the attempt at event "+a.Event+" has returned")
	}
	if len(notes) > 0 {
		head += "  " + p.sheet.paint(faint, strings.Join(notes, ", "))
	}
	fmt.Fprintln(p.sheet.out, head)
	shown := e.Steps
	if len(shown) > maxSteps && !p.full {
		shown = shown[:maxSteps]
	}
	for i := range shown {
		p.step(&shown[i])
	}
	if more := len(e.Steps) - len(shown); more > 0 {
		fmt.Fprintln(p.sheet.out, p.sheet.paint(faint, fmt.Sprintf("  and %s more (--full)", display.Count(more, "transaction"))))
	}
}

// maxSteps is how many transactions of a commit are printed.
const maxSteps = 12

func (p *logPrinter) step(s *history.Step) {
	why, code := describeStep(s)
	p.line(2, stepName(s), why, code)
	for i := range s.Changes {
		p.change(&s.Changes[i])
	}
	if s.More > 0 {
		p.line(4, "", fmt.Sprintf("and %s more", display.Count(s.More, "change")), faint)
	}
	for i := range s.Sends {
		p.line(4, "sends", sentText(&s.Sends[i]), "")
	}
	for i := range s.Cancelled {
		p.line(4, "cancels", cancelText(&s.Cancelled[i]), "")
	}
}

// stepName names what made a transaction.
func stepName(s *history.Step) string {
	switch s.Kind {
	case history.StepHandler:
		return "event " + s.Name
	case history.StepLater:
		return "keeps " + s.Name
	case history.StepComputation:
		return "computes " + s.Name
	case history.StepEffect:
		return "effect " + s.Name
	default:
		return "writes as " + s.Name
	}
}

// describeStep describes the end of the event, or the causes of the run, and returns the colour for it.
func describeStep(s *history.Step) (text, code string) {
	switch s.Kind {
	case history.StepHandler:
		return receiptLine(s)
	case history.StepLater:
		return fmt.Sprintf("%s until %s", s.Event.Event, clock(s.Until)), ""
	case history.StepComputation, history.StepEffect:
		return because(s.Causes), faint
	default:
		return "", ""
	}
}

// because describes the causes of a run.
func because(causes []string) string {
	switch {
	case len(causes) == 0:
		return "for the first time, or because its code has changed"
	case len(causes) == 1 && causes[0] == "*":
		return "because many documents changed"
	}
	return "because " + strings.Join(causes, " and ") + " changed"
}

func receiptLine(s *history.Step) (text, code string) {
	text = s.Event.Event + "  " + string(s.Outcome)
	switch {
	case s.Outcome != model.Handled:
		text, code = text+": "+withoutCalls(s.Error), yellow
		if s.Code != "" {
			text += " (" + s.Code + ")"
		}
		if s.Outcome.Lost() {
			code = red
		}
	case !s.Result.IsAbsent() && !s.Result.IsNull():
		text += "  = " + s.Result.String()
	}
	if s.Attempts > 1 {
		text += fmt.Sprintf("  (%d attempts)", s.Attempts)
	}
	return text, code
}

// sentText describes an event that was sent, or a timer that was set.
func sentText(s *history.SentEvent) string {
	text := s.Space + "/" + s.Stream + "  " + s.Event
	if s.Timer != "" {
		text = "timer " + s.Timer + " to " + s.Stream
	}
	if !s.At.IsZero() {
		text += "  at " + clock(s.At)
	}
	return text
}

func cancelText(s *history.SentEvent) string {
	if s.Timer == "" {
		return s.Event
	}
	return "timer " + s.Timer
}

func (p *logPrinter) change(c *history.Place) {
	p.line(4, c.Document+c.Path, p.fromTo(c, (p.width-label-12)/2), "")
}

// fromTo returns the two values of a place, each at most so long, from near where they begin to differ.
func (p *logPrinter) fromTo(c *history.Place, most int) string {
	from, to := p.values(c, most)
	return from + " -> " + to
}

// values returns the two values of a place, each at most so long.
func (p *logPrinter) values(c *history.Place, most int) (from, to string) {
	most = max(most, 12)
	to = valueText(c.To)
	if c.Unknown {
		p.unknown = true
		return "?", p.fit(to, most)
	}
	from = valueText(c.From)
	if same := sharedStart(from, to); !p.full && max(len(from), len(to)) > most && same > most/2 {
		from, to = ellipsis+string([]rune(from)[same-leadIn:]), ellipsis+string([]rune(to)[same-leadIn:])
	}
	return p.fit(from, most), p.fit(to, most)
}

// leadIn is how much of what two values share is printed before their difference.
const leadIn = 4

// sharedStart returns the number of characters with which both texts begin.
func sharedStart(a, b string) (n int) {
	x, y := []rune(a), []rune(b)
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n
}

func (p *logPrinter) fit(text string, most int) string {
	if p.full {
		return text
	}
	return clip(text, max(most, 12))
}

// legend explains what was printed.
func (p *logPrinter) legend() string {
	if p.unknown {
		return "? is a value that is older than what was read of the log\n"
	}
	return ""
}

// valueText returns a value, "-" for an absent one.
func valueText(v model.Value) string {
	if v.IsAbsent() {
		return "-"
	}
	return unbroken(v.String())
}

// line prints a name in its column and a text, cut to the width of a terminal.
func (p *logPrinter) line(indent int, name, text, code string) {
	name = fmt.Sprintf("%-*s  ", label-indent, name)
	if room := p.width - indent - len([]rune(name)); !p.full {
		text = clip(unbroken(text), max(room, 20))
	}
	fmt.Fprintln(p.sheet.out, strings.TrimRight(strings.Repeat(" ", indent)+name+p.sheet.paint(code, text), " "))
}

// historyCmd is `settle history`.
type historyCmd struct {
	connection
	Space  string   `arg:"" help:"A space."`
	Doc    string   `arg:"" name:"document" help:"A document of the space."`
	Path   []string `arg:"" optional:"" help:"Keys and indices within the document."`
	Limit  int      `short:"n" help:"Number of commits to print, the newest ones; at most 1000." default:"20"`
	Before uint64   `help:"Only commits before this revision." placeholder:"REVISION"`
	Full   bool     `help:"Print values in full."`
	JSON   bool     `name:"json" help:"Print JSON, one change a line, with all fields."`
}

// Run prints the past values of a document, newest first.
func (c *historyCmd) Run(ctx context.Context, io streams) error {
	q := history.LogQuery{Document: c.Doc, Path: c.Path, Before: c.Before, Limit: c.Limit}
	if err := q.Check(c.Space); err != nil {
		return usage(err)
	}
	return c.use(ctx, io, ofSpaces(c.Space), func(b *bus.Bus, client *settle.Client) error {
		page, err := client.Space(c.Space).Log(ctx, q)
		if err != nil {
			return err
		}
		if page.Head == 0 {
			if err := mustExist(ctx, b, c.Space); err != nil {
				return err
			}
		}
		rows := page.Values(c.Space)
		for i := range rows {
			if !c.JSON {
				break
			}
			if err := printLine(io.out, &rows[i]); err != nil {
				return err
			}
		}
		switch {
		case len(rows) == 0 && page.End == history.EndFirst:
			return fmt.Errorf("document %s%s of space %s has never had a value: check the names (capitals count), or use `settle get %s` for those that it has", c.Doc, model.Path(c.Path), c.Space, c.Space)
		case len(rows) == 0:
			fmt.Fprintf(io.err, "no change of document %s%s found\n", c.Doc, model.Path(c.Path))
		case !c.JSON:
			c.print(io, rows)
		}
		command := strings.Join(append([]string{"settle history", c.Space, c.Doc}, c.Path...), " ")
		fmt.Fprint(io.err, older(page, c.Space, command))
		return nil
	})
}

func (c *historyCmd) print(io streams, rows []history.ValueChange) {
	p := newLogPrinter(io, c.Full)
	places := slices.ContainsFunc(rows, func(r history.ValueChange) bool { return r.Path != model.Path(c.Path).String() })
	value := (p.width - 64) / 2
	heading := []string{"REVISION", "TIME", "PLACE", "FROM", "TO", "BY", "EVENT"}
	var table [][]cell
	for i := range rows {
		r := &rows[i]
		event := ""
		if r.Event != nil {
			event = r.Event.Event
		}
		from, to := p.values(&r.Place, value)
		line := []cell{
			{text: fmt.Sprint(r.Revision), right: true, code: bold},
			{text: p.sheet.when(r.Time)},
			{text: strings.TrimPrefix(r.Path, model.Path(c.Path).String())},
			{text: from},
			{text: to},
			{text: stepName(&history.Step{Kind: r.Kind, Name: r.Name})},
			{text: event, code: faint},
		}
		if !places {
			line = slices.Delete(line, 2, 3)
		}
		table = append(table, line)
	}
	if !places {
		heading = slices.Delete(heading, 2, 3)
	}
	p.sheet.table(heading, table)
	fmt.Fprint(io.err, p.legend())
}
