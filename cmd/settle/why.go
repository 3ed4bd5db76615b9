package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/questions"
	"github.com/settlehq/settle/worker"
)

// question are the flags of commands that ask the worker which serves a space.
type question struct {
	inName
	Load    bool          `help:"Load the space if it is not in memory."`
	Timeout time.Duration `help:"How long to wait for the answer." default:"15s"`
	JSON    bool          `name:"json" help:"Print the answer as JSON."`
}

// ask connects and asks a question about a space.
func (c *question) ask(ctx context.Context, io streams, f func(context.Context, *settle.Client) error) error {
	c.asOwner()
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err := c.use(ctx, io, need{none: true, patience: c.Timeout}, func(_ *bus.Bus, client *settle.Client) error { return f(ctx, client) })
	if errors.Is(err, model.ErrNoResponder) {
		return errors.New("no worker answers; start one (spaceworker). `settle log` and `settle history` need none")
	}
	if e, is := errors.AsType[*model.ServiceError](err); is {
		if e.Code == model.CodeBadRequest {
			return usage(errors.New(e.Text))
		}
		return errors.New(e.Text)
	}
	return err
}

// whyCmd is `settle why`.
type whyCmd struct {
	question
	Space  string `arg:"" help:"A space."`
	Name   string `arg:"" help:"A node, a document or an event of the space."`
	As     string `help:"What the name stands for: node, document or event. Default: the first of these that exists." placeholder:"KIND"`
	Stream string `help:"The stream of the event, if several have the id."`
	Check  bool   `help:"Repeat one in ten runs of the space's computations for two minutes. The worker logs those that are not idempotent: that have another result then."`
	Last   int    `short:"n" help:"Number of past runs or changes to print, at most 100." default:"5"`
}

// Run prints why a node, a document or an event is as it is.
func (c *whyCmd) Run(ctx context.Context, io streams) error {
	return c.ask(ctx, io, func(ctx context.Context, client *settle.Client) error {
		q := questions.Query{As: questions.Kind(c.As), Stream: c.Stream, Load: c.Load, Check: c.Check, Limit: c.Last}
		w, err := client.Space(c.Space).Why(ctx, c.Name, q)
		if err != nil {
			return err
		}
		if c.JSON {
			return printLine(io.out, w)
		}
		p := &whyPrinter{logPrinter: newLogPrinter(io, false), space: c.Space}
		switch w.Kind {
		case questions.KindNode:
			p.node(w.Node, true)
		case questions.KindDocument:
			p.document(w.Document)
		case questions.KindEvent:
			p.event(w.Event)
		}
		p.about(&w.About)
		fmt.Fprint(io.err, p.legend())
		return nil
	})
}

// whyPrinter prints explanations: the answer first, and what it is made of below.
type whyPrinter struct {
	*logPrinter
	space string
}

// title prints what is explained, and its state.
func (p *whyPrinter) title(name, what, state, code string) {
	text := p.sheet.paint(bold, name) + "  " + what
	if state != "" {
		text += "  " + p.sheet.paint(code, state)
	}
	fmt.Fprintln(p.sheet.out, text)
}

// field prints a line of the explanation, unless it has no text.
func (p *whyPrinter) field(name, text string) {
	if text != "" {
		p.line(2, name, text, "")
	}
}

// section prints a heading.
func (p *whyPrinter) section(format string, args ...any) {
	fmt.Fprintln(p.sheet.out, p.sheet.paint(faint, fmt.Sprintf(format, args...)))
}

// stateCodes are the colours of states that need attention.
var stateCodes = map[string]string{"gated": yellow, "waiting": yellow, "spent": yellow, "halted": red, "failed": red, "refused": red}

func (p *whyPrinter) node(n *questions.Node, whole bool) {
	if whole {
		p.title(n.ID, n.Kind, n.State, stateCodes[n.State])
	}
	p.field("now", withClock(n.Reason))
	if n.Live {
		p.field("needed", n.Need)
	} else if n.State != "" {
		p.field("not needed", n.Need)
	}
	p.field("behind", withClock(n.Behind))
	p.field("last error", n.LastError)
	for i, c := range n.Pending {
		name := ""
		if i == 0 {
			name = "changed since it ran"
		}
		p.line(2, name, causeText(&c), "")
	}
	if len(n.Circle) > 0 {
		p.line(2, "on a circle", strings.Join(n.Circle, ", "), yellow)
	}
	p.lastRun(n)
	p.recent(n)
	if whole {
		p.machinery(n)
	}
}

func causeText(c *questions.Cause) string {
	if c.By == "" {
		return c.Address
	}
	return c.Address + "  (" + c.By + ")"
}

// lastRun prints the last run that is in the log.
func (p *whyPrinter) lastRun(n *questions.Node) {
	if n.Last == nil {
		if n.Kind != "" {
			p.section("no run of it has changed anything, as far back as the log was read")
		}
		return
	}
	l := n.Last
	p.section("why it ran last")
	p.field("revision", fmt.Sprintf("%d, at %s, on %s", l.Revision, p.sheet.when(l.Time), l.Runtime))
	if l.Event != nil {
		p.field("event", l.Event.Event+" of stream "+l.Event.Stream)
	}
	if len(n.Inputs) == 0 {
		p.field("because", because(nil))
	}
	for i := range n.Inputs {
		p.input(&n.Inputs[i])
	}
	for i := range l.Changes {
		p.line(2, "wrote", l.Changes[i].Document+l.Changes[i].Path+"  "+p.fromTo(&l.Changes[i], (p.width-label-40)/2), "")
	}
	if l.More > 0 {
		p.field("", fmt.Sprintf("and %s more", display.Count(l.More, "change")))
	}
}

func (p *whyPrinter) input(in *questions.Input) {
	text := in.Address + " changed"
	if in.Change != nil {
		at := in.Change.Document + in.Change.Path
		text = at + "  " + p.fromTo(in.Change, (p.width-label-40)/2)
	}
	if in.By != "" && !strings.HasPrefix(in.By, "event ") {
		text += "  by " + in.By
	}
	p.line(2, "because", text, "")
}

// recent prints the recorded runs.
func (p *whyPrinter) recent(n *questions.Node) {
	p.field("not idempotent", n.NotIdempotent)
	if len(n.Recent) == 0 {
		return
	}
	p.section("last runs, recorded for %s", brief(n.Recorded))
	var rows [][]cell
	for i := range n.Recent {
		r := &n.Recent[i]
		var causes []string
		for _, c := range r.Causes {
			causes = append(causes, causeText(&c))
		}
		result := cell{text: "changed " + display.Count(r.Wrote, "place")}
		switch {
		case r.Error != "":
			result = cell{text: r.Error, code: red}
		case r.Waits != "":
			result = cell{text: "waits for " + r.Waits, code: yellow}
		case r.Wrote == 0:
			result = cell{text: "changed nothing", code: faint}
		}
		result.text = clip(unbroken(result.text), 30)
		rows = append(rows, []cell{
			{text: below[2:] + p.sheet.when(r.Time)},
			{text: fmt.Sprint(r.Pass), right: true},
			{text: fmt.Sprintf("%d of %d", r.Order, r.Of), right: true},
			result,
			{text: clip(strings.Join(causes, ", "), 60)},
		})
	}
	p.sheet.table([]string{below[2:] + "TIME", "PASS", "ORDER", "RESULT", "BECAUSE"}, rows)
}

// machinery prints what the node is made of.
func (p *whyPrinter) machinery(n *questions.Node) {
	p.section("the node")
	if n.Kind != "" {
		runs := display.Grouped(n.Runs)
		if n.Errors > 0 {
			runs += fmt.Sprintf(", %s with an error", display.Grouped(n.Errors))
		}
		p.field("runs since loaded", runs)
		p.field("height", fmt.Sprint(n.Height))
	}
	p.field("cost", costText(n.Cost))
	p.field("reads", strings.Join(n.Reads, ", "))
	p.field("writes", strings.Join(n.Writes, ", "))
}

// costText describes what the runs of a node have cost.
func costText(u *worker.Usage) string {
	if u == nil || u.Runs == 0 {
		return ""
	}
	return fmt.Sprintf("%s per run, the last one %s; %s measured, %s changed nothing", lasted(u.Time/time.Duration(u.Runs)), lasted(u.Last),
		display.Count(int(u.Runs), "run"), display.Grouped(u.Wasted))
}

// lasted returns a duration with three digits.
func lasted(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	}
	return brief(d)
}

func (p *whyPrinter) document(d *questions.Document) {
	what := "document"
	if d.Derived != nil {
		what = "derived document"
	}
	p.title(d.ID, what, "", "")
	p.field("value", valueText(d.Value))
	if d.Derived != nil {
		p.node(d.Derived, false)
	}
	if len(d.Changes) > 0 {
		p.section("last changes")
	}
	for i := range d.Changes {
		c := &d.Changes[i]
		fmt.Fprintf(p.sheet.out, "  %d  %s  %s\n", c.Revision, p.sheet.when(c.Time), changedBy(&c.Step))
		for k := range c.Changes {
			p.change(&c.Changes[k])
		}
	}
	p.section("the document")
	if d.Observed {
		p.field("observed", "yes")
	}
	p.field("written by nodes", strings.Join(d.Writers, ", "))
	p.field("read by nodes", strings.Join(d.Readers, ", "))
	if len(d.Changes) > 0 {
		p.field("all its values", "settle history "+p.space+" "+d.ID)
	}
}

// changedBy names what made a change, and the event that it follows from.
func changedBy(s *history.Step) string {
	switch {
	case s.Event == nil:
		return stepName(s)
	case s.Kind == history.StepHandler:
		return "event " + s.Event.Event + " of stream " + s.Event.Stream
	}
	return stepName(s) + ", after event " + s.Event.Event + " of stream " + s.Event.Stream
}

func (p *whyPrinter) event(e *questions.Event) {
	p.title(e.Event, "event of stream "+e.Stream, e.State, stateCodes[e.State])
	p.field("now", withClock(e.Reason))
	if !e.Result.IsAbsent() && !e.Result.IsNull() {
		p.field("result", e.Result.String())
	}
	if e.Ahead > 0 {
		p.field("before it", display.Count(e.Ahead, "event")+" in the lane")
	}
	if e.Attempts > 0 {
		p.field("attempts", fmt.Sprint(e.Attempts))
	}
	if !e.Until.IsZero() {
		p.field("not before", p.sheet.when(e.Until))
	}
	if !e.Sent.IsZero() {
		p.field("stored", fmt.Sprintf("%s, at %d of the lane", p.sheet.when(e.Sent), e.Lane))
	}
	if !e.Ended.IsZero() {
		took := ""
		if !e.Sent.IsZero() {
			took = ", after " + lasted(e.Ended.Sub(e.Sent))
		}
		p.field("ended", p.sheet.when(e.Ended)+took)
	}
	if len(e.CausedBy) > 0 {
		var by []string
		for _, r := range e.CausedBy[:min(len(e.CausedBy), 3)] {
			by = append(by, r.Event+" ("+r.Space+"/"+r.Stream+")")
		}
		p.field("caused by", strings.Join(by, ", "))
	}
	if e.Caused > 0 {
		p.field("has sent", display.Count(e.Caused, "event"))
	}
	p.field("its tree", fmt.Sprintf("settle tree %s --space %s --stream %s", e.Event, e.Space, e.Stream))
	if e.Revision > 0 {
		p.field("what it changed", fmt.Sprintf("settle log %s --before %d --limit 1", e.Space, e.Revision+1))
	}
}

// about prints which worker has answered, or why the space could not be inspected.
func (p *whyPrinter) about(a *questions.About) {
	if a.State != questions.Awake {
		text := fmt.Sprintf("space %s is %s: %s", a.Space, a.State, a.Note)
		if a.State == questions.Asleep {
			text = fmt.Sprintf("space %s is asleep: not in memory, so this is what the log knows (--load loads it)", a.Space)
		}
		fmt.Fprintln(p.sheet.out, p.sheet.paint(yellow, text))
		return
	}
	text := fmt.Sprintf("space %s on %s, at revision %d", a.Space, a.Worker, a.Revision)
	if a.Program != "" {
		text += ", program " + strings.TrimSuffix(a.Program+"@"+a.Version, "@")
	}
	if a.Halt != "" {
		text += "; it runs nothing: " + a.Halt
	}
	p.section("%s", text)
}

// withClock replaces times in a sentence by those of the local time zone.
func withClock(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		bare := strings.TrimRight(w, ",;:.")
		if at, err := time.Parse(time.RFC3339, bare); err == nil {
			words[i] = at.Local().Format(time.TimeOnly) + w[len(bare):]
		}
	}
	return strings.Join(words, " ")
}
