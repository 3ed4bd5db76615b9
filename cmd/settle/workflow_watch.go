package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/redraw"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
)

// workflowWatchCmd is `settle workflow watch`.
type workflowWatchCmd struct {
	inName
	Space string `arg:"" help:"A space."`
	ID    string `arg:"" name:"run" help:"A run. One that does not exist yet is waited for."`
	JSON  bool   `name:"json" help:"Print a JSON object per line, as status --json does, after each change."`
}

// Help describes the signs.
func (workflowWatchCmd) Help() string {
	return `On a terminal, it draws the run and its graph in place, with a sign for each node:

    ` + signPassed + `  the run has been there, and ×N how often
    ` + signActive + `  it waits there for actions
    ` + signPaused + `  it waits there for a time or a signal
    ` + signAgain + `  an attempt has failed, and it waits there for another one
    ` + signAhead + `  it has not been there

Elsewhere it prints a line per change. Changes that follow each other within a tenth of a second, or more for a run with
much state, are one. It ends when the run ends, with its result or its error. The exit code is 0 either way; that of 'settle workflow result' is
1 unless the run is done.`
}

// Run prints the states of a run until it has ended.
func (c *workflowWatchCmd) Run(ctx context.Context, io streams) error {
	if err := errors.Join(model.CheckName("space", c.Space), runs.CheckID(c.ID)); err != nil {
		return usage(err)
	}
	return c.use(ctx, io, ofSpaces(c.Space), func(b *bus.Bus, client *settle.Client) error {
		space := client.Space(c.Space)
		var show runScreen = &runLines{io: io, json: c.JSON}
		if f, is := redraw.Terminal(io.out); is && !c.JSON {
			show = newRunFrame(f, io)
		}
		return watchRun(ctx, b, space, c.ID, show)
	})
}

// runScreen shows a run.
type runScreen interface {
	// begin is called first, and end last, in any case.
	begin()
	end()
	// show shows a state, one that the run has had; tick is called about every tenth of a second.
	show(s *flow.Status) error
	tick()
	// missing shows that there is no run.
	missing()
	// without shows which actions that the run waits for have no performer, and idling returns them.
	without(list []fleet.Unperformed) error
	idling() []fleet.Unperformed
}

// looks is how often a run is read at most, and a terminal drawn.
const looks = 100 * time.Millisecond

// restPerLook is how much longer than a read the pause after it is at least.
const restPerLook = 3

// asks is how often workers are asked whether the actions that a run waits for have a performer.
const asks = 3 * time.Second

// watchRun shows each state of a run until it has ended.
func watchRun(ctx context.Context, b fleet.Bus, space settle.Space, id string, show runScreen) error {
	show.begin()
	defer show.end()
	g, ctx := errgroup.WithContext(ctx)
	ctx, done := context.WithCancel(ctx)
	defer done()
	changed, missing := make(chan struct{}, 1), make(chan struct{}, 1)
	g.Go(func() error { // ends with ctx
		defer done()
		for u, err := range space.Watch(ctx, runs.Doc(id)) {
			if err != nil {
				return err
			}
			signal := changed
			if !u.Exists {
				signal = missing
			}
			select {
			case signal <- struct{}{}:
			default: // it is about to be read
			}
		}
		return nil
	})
	var last atomic.Pointer[flow.Status]
	idle := make(chan []fleet.Unperformed)
	g.Go(func() error { // ends with ctx
		for pause.For(ctx, asks) == nil {
			if s := last.Load(); s != nil {
				select {
				case idle <- idleFor(ctx, b, space.Name(), s):
				case <-ctx.Done():
				}
			}
		}
		return nil
	})
	g.Go(func() error { // ends with ctx
		defer done()
		run := flow.In(space).Reader(id)
		var next time.Time // when it may be read again
		for {
			show.tick()
			if err := pause.For(ctx, looks); err != nil {
				return nil
			}
			began := time.Now()
			if began.Before(next) {
				continue
			}
			select {
			case list := <-idle:
				if err := show.without(list); err != nil {
					return err
				}
				continue
			case <-missing:
				show.missing()
				continue
			case <-changed:
			default:
				continue
			}
			s, err := run.Status(ctx)
			if err == nil {
				if before := last.Swap(s); before != nil {
					err = show.without(stillIdle(show.idling(), before, s))
				}
				err = errors.Join(err, show.show(s))
			}
			if err != nil || s.State != flow.Running {
				return err
			}
			next = time.Now().Add(restPerLook * time.Since(began))
		}
	})
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // the run has ended, or the command was interrupted: both are normal ends
}

// stillIdle drops the actions of which a run waits for fewer calls than before: a performer may have ended one.
func stillIdle(list []fleet.Unperformed, before, now *flow.Status) []fleet.Unperformed {
	count := func(s *flow.Status, action string) (n int) {
		for i := range s.Waiting {
			if s.Waiting[i].Action == action {
				n++
			}
		}
		return n
	}
	return slices.DeleteFunc(slices.Clone(list), func(u fleet.Unperformed) bool {
		n := count(now, u.Action)
		return n < count(before, u.Action) || n == 0 && !now.Opaque
	})
}

// runLines prints a line per change.
type runLines struct {
	io    streams
	json  bool
	last  string
	state *flow.Status
	idle  []fleet.Unperformed
}

func (*runLines) begin() {}
func (*runLines) end()   {}
func (*runLines) tick()  {}

func (l *runLines) missing() { fmt.Fprintln(l.io.err, noRunYet) }

const noRunYet = "there is no such run yet; waiting"

// without prints the state again if more actions than before have no performer.
func (l *runLines) without(list []fleet.Unperformed) error {
	news := slices.ContainsFunc(list, func(a fleet.Unperformed) bool {
		return !slices.ContainsFunc(l.idle, func(b fleet.Unperformed) bool { return a.Reason() == b.Reason() })
	})
	l.idle = list
	if !news || l.state == nil {
		return nil
	}
	return l.show(l.state)
}

func (l *runLines) idling() []fleet.Unperformed { return l.idle }

func (l *runLines) show(s *flow.Status) error {
	l.state = s
	if l.json {
		line := lineOf(s)
		line.Unperformed = l.idle
		return printLine(l.io.out, line)
	}
	d := runText{now: l.io.now(), idle: l.idle}
	if s.State != flow.Running {
		for _, line := range d.lines(s) {
			fmt.Fprintln(l.io.out, line)
		}
		return nil
	}
	if text := d.summary(s); text != l.last {
		l.last = text
		fmt.Fprintf(l.io.out, "%s  %s: %s\n", d.now.Format(time.TimeOnly), s.ID, text)
	}
	return nil
}

// runFrame draws a run in place.
type runFrame struct {
	io     streams
	screen *redraw.Screen
	draw   runText
	last   *flow.Status
	none   bool // there is no run yet
}

func newRunFrame(f *os.File, io streams) *runFrame {
	return &runFrame{io: io, screen: redraw.New(f), draw: runText{sheet: sheet{out: f, color: redraw.Colours(f)}}}
}

func (f *runFrame) begin() { f.screen.Begin() }

func (f *runFrame) show(s *flow.Status) error {
	f.last = s
	f.tick()
	return nil
}

func (f *runFrame) missing() { f.none = true }

func (f *runFrame) idling() []fleet.Unperformed { return f.draw.idle }

func (f *runFrame) without(list []fleet.Unperformed) error {
	f.draw.idle = list
	f.tick()
	return nil
}

// tick draws the last state again: durations go on.
func (f *runFrame) tick() {
	switch {
	case f.last == nil && f.none:
		f.screen.Draw([]string{f.draw.paint(faint, noRunYet)})
		return
	case f.last == nil:
		return
	}
	f.draw.now = f.io.now()
	_, rows := f.screen.Size()
	f.screen.Draw(f.draw.frame(f.last, rows))
}

// frame returns the state and the graph of a run, in at most so many lines. What it waits for is below the graph, which stays where
// it is when there is more or less of that.
func (d runText) frame(s *flow.Status, rows int) []string {
	lines := d.lines(s)
	const gaps = 2
	if left := rows - len(lines) - gaps; left >= 3 && s.State == flow.Running {
		if graph := d.graph(s, left); len(graph) > 0 {
			return slices.Concat(lines[:1], []string{""}, graph, []string{""}, lines[1:])
		}
	}
	return lines
}

// end replaces the frame by the last state, which stays: with its result, if the run has ended.
func (f *runFrame) end() {
	f.screen.End()
	if f.last == nil {
		return
	}
	f.draw.now = f.io.now()
	lines := f.draw.lines(f.last)
	if f.last.State == flow.Running { // interrupted
		lines = f.draw.frame(f.last, math.MaxInt)
	}
	for _, line := range lines {
		fmt.Fprintln(f.io.out, line)
	}
}
