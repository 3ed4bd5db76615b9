package settletest

import (
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/space"
)

// World is a deployment in memory: spaces that send each other events and read each other's
// documents, and a virtual time that only Advance moves. It must be used from the goroutine of its
// test.
type World struct {
	t        TB
	w        *simkit.World
	o        options
	problems []Problem
}

// Source provides the programs of a world: one for all spaces, or one by space name.
type Source interface {
	*settle.Program | settle.Programs | func(string) *settle.Program
}

// New returns a world whose spaces run these programs: a *settle.Program in every space, or settle.Programs,
// which may return nil for spaces without a program. Time starts at 2026-01-01 00:00 UTC.
func New[P Source](t TB, programs P, opts ...Option) *World {
	t.Helper()
	if p, ok := any(programs).(*settle.Program); ok && p.Err() != nil {
		t.Fatalf("the program is broken: %v", p.Err())
	}
	w := newWorld(t, programsOf(programs), opts)
	if _, one := any(programs).(*settle.Program); one {
		w.checkNames()
	}
	return w
}

// programsOf converts a Source to the form of package simkit.
func programsOf(programs any) simkit.Programs {
	var of settle.Programs
	switch p := programs.(type) {
	case *settle.Program:
		of = settle.Always(p)
	case settle.Programs:
		of = p
	case func(string) *settle.Program:
		of = p
	}
	return func(name string) (*space.Program, error) {
		p := of(name)
		if p == nil {
			return nil, nil
		}
		return p.Core()
	}
}

func newWorld(t TB, programs simkit.Programs, opts []Option) *World {
	w := &World{t: t}
	for _, o := range opts {
		o(&w.o)
	}
	if w.o.log {
		w.o.world.Log = func(i space.ConsoleInfo) { t.Logf("%s", consoleLine(i)) }
	}
	w.w = simkit.New(programs, w.o.world)
	return w
}

func consoleLine(i space.ConsoleInfo) string {
	source := i.Node
	if source == "" {
		source = i.Stream + " " + i.Event
	}
	line := i.Space + ": " + source + ": " + i.Message
	for k := 0; k+1 < len(i.Args); k += 2 {
		line += fmt.Sprintf(" %v=%v", i.Args[k], i.Args[k+1])
	}
	return line
}

// Space returns the space with a name. A space is loaded when it is first requested, sent an event, or read
// from another space: then its effects run, and the ticks of its cron jobs begin.
func (w *World) Space(name string) *Space {
	w.t.Helper()
	s, err := w.w.Space(name)
	w.check(err)
	return &Space{w: w, s: s}
}

// Now returns the time in the world.
func (w *World) Now() time.Time { return w.w.Now() }

// Advance moves the time forward by d: timers, cron jobs, delayed events, debounced nodes and
// retries run in every space, each at its time.
func (w *World) Advance(d time.Duration) {
	w.t.Helper()
	w.check(w.w.Advance(d))
}

// AdvanceTo moves the time forward to t; see Advance.
func (w *World) AdvanceTo(t time.Time) {
	w.t.Helper()
	w.check(w.w.AdvanceTo(t))
}

// Next returns the time of the next scheduled action, or false if nothing is scheduled.
func (w *World) Next() (time.Time, bool) { return w.w.Next() }

// AdvanceToNext moves the time forward to the next scheduled action, and returns that time. It ends
// the test if nothing is scheduled.
func (w *World) AdvanceToNext() time.Time {
	w.t.Helper()
	next, ok := w.w.Next()
	if !ok {
		w.t.Fatalf("settletest: nothing waits for a time, so there is nothing to advance to")
	}
	w.AdvanceTo(next)
	return next
}

// Restart shuts down every process of the world and starts it again: each space is loaded from its
// saved state. Nodes that are up to date do not run again, as ExpectRuns can verify.
func (w *World) Restart() {
	w.t.Helper()
	w.check(w.w.Restart())
}

// Outage is Restart with a time d in between in which no process runs: timers and ticks that were due then are late.
func (w *World) Outage(d time.Duration) {
	w.t.Helper()
	w.check(w.w.Outage(d))
}

// Crash is Restart after a power cut: nothing was saved in time, and each space is loaded from its
// log (since the last Restart). Observed nodes run again; handled events are not handled again.
func (w *World) Crash() {
	w.t.Helper()
	w.check(w.w.Crash())
}

// DeadLetters returns the events that failed or were refused so far, oldest first.
func (w *World) DeadLetters() []DeadLetter { return w.w.Letters() }

// DeadLetter is an event that failed or was refused: its space, stream and receipt.
type DeadLetter = simkit.Letter

// Undelivered returns the events that the program has sent to spaces without a program. In a deployment they
// wait in their lanes until the space has one. Each fails the test, unless AllowUndelivered allows it.
func (w *World) Undelivered() []settle.Event { return w.w.Undelivered() }

// check ends the test if the world cannot continue, and reports other problems.
func (w *World) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("settletest: %s%s", w.why(err), here())
		return // in case Fatalf of this TB returns
	}
	for _, p := range w.w.TakeProblems() {
		w.problems = append(w.problems, p)
		if !w.o.expected(p) {
			w.t.Errorf("settletest: %s%s", p, here())
		}
	}
}

func (w *World) why(err error) string {
	var lines []string
	for _, p := range w.w.TakeProblems() {
		lines = append(lines, p.String())
	}
	if len(lines) == 0 {
		return err.Error()
	}
	return err.Error() + "\nbefore that:\n  " + strings.Join(lines, "\n  ")
}
