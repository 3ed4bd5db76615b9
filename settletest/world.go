package settletest

import (
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/kit"
	"github.com/settlehq/settle/internal/reveal"
	"github.com/settlehq/settle/space"
)

// World is a deployment in memory: spaces that send each other events and read each other's
// documents, and a time of its own, which passes when Advance says so. It belongs to the
// goroutine of its test.
type World struct {
	t        TB
	w        *kit.World
	o        options
	problems []Problem
}

// Source is what tells the programs of a world: one for all spaces, or by name.
type Source interface {
	*settle.Program | settle.Programs | func(string) *settle.Program
}

// New makes a world whose spaces run these programs: a *settle.Program in every space, or
// settle.Programs, which may return nil for spaces that have none. It begins on 2026-01-01 at
// midnight, UTC.
func New[P Source](t TB, programs P, opts ...Option) *World {
	t.Helper()
	if p, ok := any(programs).(*settle.Program); ok && p.Err() != nil {
		t.Fatalf("the program is broken: %v", p.Err())
	}
	w := newWorld(t, tellers(programs), opts)
	if _, one := any(programs).(*settle.Program); one {
		w.checkNames()
	}
	return w
}

// tellers makes one function of all that can be a Source.
func tellers(programs any) kit.Programs {
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
		return reveal.Program(p)
	}
}

func newWorld(t TB, programs kit.Programs, opts []Option) *World {
	w := &World{t: t}
	for _, o := range opts {
		o(&w.o)
	}
	if w.o.log {
		w.o.kit.Log = func(i space.ConsoleInfo) { t.Logf("%s", consoleLine(i)) }
	}
	w.w = kit.New(programs, w.o.kit)
	return w
}

func consoleLine(i space.ConsoleInfo) string {
	who := i.Node
	if who == "" {
		who = i.Stream + " " + i.Event
	}
	line := i.Space + ": " + who + ": " + i.Message
	for k := 0; k+1 < len(i.Args); k += 2 {
		line += fmt.Sprintf(" %v=%v", i.Args[k], i.Args[k+1])
	}
	return line
}

// Space is the space of a name. It comes to life when it is asked for the first time, or sent
// an event, or read from another: its effects run, and the times of its cron jobs begin.
func (w *World) Space(name string) *Space {
	w.t.Helper()
	s, err := w.w.Space(name)
	w.check(err)
	return &Space{w: w, s: s}
}

// Now is the time in the world.
func (w *World) Now() time.Time { return w.w.Now() }

// Advance lets time pass: timers, cron jobs, delayed events, debounced nodes and retries happen
// in every space, each at its time.
func (w *World) Advance(d time.Duration) {
	w.t.Helper()
	w.check(w.w.Advance(d))
}

// AdvanceTo is Advance to a time.
func (w *World) AdvanceTo(t time.Time) {
	w.t.Helper()
	w.check(w.w.AdvanceTo(t))
}

// Next is when something is to happen by itself; false if nothing is.
func (w *World) Next() (time.Time, bool) { return w.w.Next() }

// AdvanceToNext is Advance to when something happens by itself, and returns that time. If
// nothing will, the test ends.
func (w *World) AdvanceToNext() time.Time {
	w.t.Helper()
	next, ok := w.w.Next()
	if !ok {
		w.t.Fatalf("settletest: nothing waits for a time, so there is nothing to advance to")
	}
	w.AdvanceTo(next)
	return next
}

// Restart ends every process of the world in order and starts it again: each space is loaded
// from what is saved of it. What is still up to date does not run again; ExpectRuns shows it.
func (w *World) Restart() {
	w.t.Helper()
	w.check(w.w.Restart())
}

// Crash is Restart after a power cut: nothing was saved in time, and each space is loaded from
// its log (since the last Restart). What is observed runs again; what events have done is done.
func (w *World) Crash() {
	w.t.Helper()
	w.check(w.w.Crash())
}

// DeadLetters are the events that failed or were refused so far, oldest first.
func (w *World) DeadLetters() []DeadLetter { return w.w.Letters() }

// DeadLetter is an event that failed or was refused: its space and stream, and the receipt.
type DeadLetter = kit.Letter

// Undelivered are the events that were sent to spaces which have no program. They wait in
// their lanes until one has.
func (w *World) Undelivered() []settle.Event { return w.w.Undelivered() }

// check ends the test if the world cannot go on, and tells what else went wrong.
func (w *World) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("settletest: %s%s", w.why(err), here())
		return // a TB that does not end anything
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
