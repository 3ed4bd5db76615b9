package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/questions"
)

// laneCmd is `settle lane`.
type laneCmd struct {
	question
	Space string `arg:"" help:"A space."`
	Limit int    `short:"n" help:"Number of waiting events to print, at most 500." default:"50"`
	After int    `help:"Leave out so many events at the beginning." default:"0"`
}

// Run prints what waits in a space.
func (c *laneCmd) Run(ctx context.Context, io streams) error {
	return c.ask(ctx, io, func(ctx context.Context, client *settle.Client) error {
		l, err := client.Space(c.Space).Lane(ctx, questions.Query{Load: c.Load, Limit: c.Limit, After: c.After})
		if err != nil {
			return err
		}
		if c.JSON {
			return printLine(io.out, l)
		}
		p := &whyPrinter{logPrinter: newLogPrinter(io, false), space: c.Space}
		switch l.State {
		case questions.Awake:
			p.lane(l)
		case questions.Unserved:
			p.waiting(l)
		}
		p.about(&l.About)
		if l.State == questions.Asleep {
			p.field("timers", "settle timers "+c.Space)
		}
		return nil
	})
}

func (p *whyPrinter) lane(l *questions.Lane) {
	if h := l.Head; h == nil {
		p.title("nothing waits to be handled", laneRest(l), "", "")
	} else {
		p.title(h.Event, "event of stream "+h.Stream, "is at the head", yellow)
		full := p.full
		p.full = true // it has what to do about it
		p.field("waits because", withClock(h.Reason))
		p.full = full
		switch {
		case h.Attempts > 0 && h.Most == 0:
			p.field("attempts", fmt.Sprintf("%d, without a limit", h.Attempts))
		case h.Attempts > 0:
			p.field("attempts", fmt.Sprintf("%d of %d have ended in an error that may pass", h.Attempts, h.Most))
		}
		if h.Lost > 0 {
			p.field("lost attempts", fmt.Sprintf("%d of %d have ended with their process", h.Lost, h.MostLost))
		}
		if !h.Until.IsZero() {
			p.field("tried again", p.sheet.when(h.Until))
		}
		if !h.Fails.IsZero() {
			p.field("fails", p.sheet.when(h.Fails))
		}
		p.field("waits for documents", strings.Join(h.Documents, ", "))
		p.field("needs nodes", strings.Join(h.Nodes, ", "))
		p.field("lane", laneRest(l))
	}
	p.waiting(l)
}

// waiting prints the events that wait.
func (p *whyPrinter) waiting(l *questions.Lane) {
	if len(l.Pending) > 0 {
		p.pending(l)
	}
	if l.Next > 0 {
		p.section("more: settle lane %s --after %d", p.space, l.Next)
	}
}

// laneRest counts what waits.
func laneRest(l *questions.Lane) string {
	var parts []string
	for _, c := range []struct {
		n    int
		noun string
		what string
	}{
		{l.Queued, "event", "queued"},
		{l.Uncommitted, "event", "not confirmed by the log yet"},
		{l.Early, "event", "before its turn"},
		{l.FollowUps, "event", "to the space itself, behind events to come"},
		{l.Timers, "timer or delayed event", "not due yet"},
	} {
		if c.n > 0 {
			parts = append(parts, display.Count(c.n, c.noun)+" "+c.what)
		}
	}
	if l.Unread {
		parts = append(parts, "more in the stream")
	}
	return strings.Join(parts, "; ")
}

func (p *whyPrinter) pending(l *questions.Lane) {
	rows := make([][]cell, len(l.Pending))
	for i := range l.Pending {
		e := &l.Pending[i]
		lane, what := "-", e.Reason
		if e.Lane > 0 {
			lane = fmt.Sprint(e.Lane)
		}
		switch {
		case e.Timer != "":
			what = "timer " + e.Timer + ", in " + until(time.Now(), e.At)
		case !e.At.IsZero():
			what += ", in " + until(time.Now(), e.At)
		case e.Origin != "":
			what += fmt.Sprintf(", number %d of space %s", e.Position, e.Origin)
		}
		rows[i] = []cell{{text: lane, right: true}, {text: e.Stream}, {text: e.Event}, {text: what}}
	}
	p.sheet.table([]string{"LANE", "STREAM", "EVENT", "WAITS"}, rows)
}
