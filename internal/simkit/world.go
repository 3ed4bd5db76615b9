package simkit

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Start is the initial time of a world, unless Options has another.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// maxSteps and maxEvents bound the work of a world at one moment: a program that sends itself one
// event after another never comes to rest.
const (
	maxSteps  = 20_000
	maxEvents = 50_000
)

// Programs returns the program of a space, nil for none.
type Programs func(space string) (*space.Program, error)

// Always returns Programs that run p in every space.
func Always(p *space.Program) Programs {
	return func(string) (*space.Program, error) { return p, nil }
}

// Options configures a world. The zero value of each field is its default.
type Options struct {
	// Start is the initial time; default Start of this package.
	Start time.Time
	// Space configures the cores. Its names, its trace and CheckIdempotency are set by the world.
	Space space.Config
	// Lenient omits the second run of every function, which checks that it is idempotent.
	Lenient bool
	// Blocking allows functions to block: they are not sampled while they run.
	Blocking bool
	// Log receives the output of the program's functions (Tx.Log); nil discards it.
	Log func(space.ConsoleInfo)
}

// World is a set of spaces in memory, in virtual time. It must not be used by several goroutines at
// a time.
type World struct {
	programs Programs
	opts     Options

	start, now time.Time
	// seq numbers the log entries of all spaces, lane the lane entries.
	seq, lane uint64
	spaces    map[string]*Space
	// order lists the spaces in the order in which they were loaded, due those to be settled, in
	// the order in which they got work.
	order, due []*Space
	// absences is the number of those that are held back in all spaces.
	absences int
	nextID   int
	handled  int // events

	// existing are the spaces that exist, sorted, and listings the readers of lists of spaces, by pattern.
	existing []string
	listings map[string][]*Space

	problems    []Problem
	reported    map[string]bool // see problem
	byTest      map[string]bool // the events that a test has had spaces send
	letters     []Letter
	undelivered []model.Event
	queued      bool // by Space.Queue, since the last run

	turns turns
}

// New returns a world without spaces.
func New(programs Programs, o Options) *World {
	if o.Start.IsZero() {
		o.Start = Start
	}
	return &World{
		programs: programs, opts: o, start: o.Start, now: o.Start,
		spaces: map[string]*Space{}, reported: map[string]bool{}, byTest: map[string]bool{}, listings: map[string][]*Space{}, turns: turns{mayBlock: o.Blocking},
	}
}

// Now returns the time in the world.
func (w *World) Now() time.Time { return w.now }

// Spaces returns the loaded spaces, in the order of loading.
func (w *World) Spaces() []*Space { return slices.Clone(w.order) }

// ErrNoProgram reports that a space has no program.
var ErrNoProgram = errors.New("the space has no program")

// Space returns a space, and loads it if necessary. The error is ErrNoProgram, that of an invalid
// name, or a mistake in its program.
func (w *World) Space(name string) (s *Space, err error) {
	err = w.do(func() error {
		if s, err = w.load(name); err != nil || w.queued {
			return err
		}
		return w.run()
	})
	return s, err
}

func (w *World) load(name string) (*Space, error) {
	if s := w.spaces[name]; s != nil {
		return s, nil
	}
	if err := model.CheckName("space", name); err != nil {
		return nil, err
	}
	program, err := w.programs(name)
	if err != nil {
		return nil, err
	}
	if program == nil {
		return nil, fmt.Errorf("space %s: %w; Programs returns nil for it", name, ErrNoProgram)
	}
	s := newSpace(w, name, program)
	if err := s.load(); err != nil {
		return nil, err
	}
	w.spaces[name] = s
	w.order = append(w.order, s)
	return s, nil
}

// elapsed returns the monotonic time of the cores.
func (w *World) elapsed() time.Duration { return w.now.Sub(w.start) }

// touch queues a space to be settled.
func (w *World) touch(s *Space) {
	if !s.due {
		s.due = true
		w.due = append(w.due, s)
	}
}

// Run does all work that can be done at this time. Methods that create work call it before they
// return.
func (w *World) Run() error { return w.do(w.run) }

// do calls f, which may run functions of programs, as a turn.
func (w *World) do(f func() error) error { return w.turns.do(f) }

func (w *World) run() error {
	began := w.handled
	w.queued = false
	for steps := 0; len(w.due) > 0 || w.passAbsence(); steps++ {
		if events := w.handled - began; steps == maxSteps || events > maxEvents {
			return fmt.Errorf("no rest after %d events and %d steps at %s; the last to run was %s. A handler that always sends another event, to this space or back and forth, never ends", events, steps, w.clock(), w.turns.function())
		}
		s := w.due[0]
		w.due = w.due[1:]
		s.due = false
		if err := s.step(); err != nil {
			return err
		}
	}
	w.due = nil
	return nil
}

func (w *World) clock() string { return w.now.UTC().Format(time.RFC3339Nano) }

// Advance moves time forward. Everything due on the way runs at its time, in order.
func (w *World) Advance(d time.Duration) error { return w.AdvanceTo(w.now.Add(d)) }

// AdvanceTo moves time forward to t. Time does not go back.
func (w *World) AdvanceTo(t time.Time) error {
	if t.Before(w.now) {
		return fmt.Errorf("advance to %s: it is %s already, and time does not go back", t.UTC().Format(time.RFC3339Nano), w.clock())
	}
	return w.do(func() error { return w.advance(t) })
}

func (w *World) advance(to time.Time) error {
	if err := w.run(); err != nil { // what is queued
		return err
	}
	for {
		next, ok := w.next()
		if !ok || next.After(to) {
			break
		}
		w.now = next
		for _, s := range w.order {
			if at, ok := s.wakes(); ok && !at.After(w.now) {
				w.touch(s)
			}
		}
		if err := w.run(); err != nil {
			return err
		}
	}
	w.now = to
	return nil
}

// Next returns the time of the next scheduled action; false if there is none.
func (w *World) Next() (time.Time, bool) { return w.next() }

func (w *World) next() (first time.Time, ok bool) {
	for _, s := range w.order {
		if at, some := s.wakes(); some && (!ok || at.Before(first)) {
			first, ok = at, true
		}
		for _, a := range s.absences {
			if !ok || a.until.Before(first) {
				first, ok = a.until, true
			}
		}
	}
	return first, ok
}
