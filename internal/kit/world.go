package kit

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Start is what the time is when a world begins, unless Options say otherwise.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// maxSteps and maxEvents bound what a world does at one moment: a program that sends itself one
// event after another never comes to rest.
const (
	maxSteps  = 20_000
	maxEvents = 50_000
)

// Programs tells which program a space runs, nil for none.
type Programs func(space string) (*space.Program, error)

// Always runs one program in every space.
func Always(p *space.Program) Programs {
	return func(string) (*space.Program, error) { return p, nil }
}

// Options say how a world behaves. The zero value of each is its default.
type Options struct {
	// Start is what the time is at the beginning; Start of this package.
	Start time.Time
	// Space is how the cores are configured. Its names, its trace and CheckIdempotency are
	// the world's.
	Space space.Config
	// Lenient leaves out the second run of every function that shows whether it is
	// idempotent.
	Lenient bool
	// Blocking allows functions to block: they are not looked at while they run.
	Blocking bool
	// Log is told what functions of the program log (Tx.Log); nil for nobody.
	Log func(space.ConsoleInfo)
}

// World is spaces in memory, in virtual time. It belongs to one goroutine at a time.
type World struct {
	programs Programs
	opts     Options

	start, now time.Time
	// seq numbers the log entries of all spaces, lane what is in their lanes.
	seq, lane uint64
	spaces    map[string]*Space
	// order are the spaces in the order in which they came to life, due those that are to
	// be settled, in the order in which that became known.
	order, due []*Space
	nextID     int
	handled    int // events

	problems    []Problem
	told        map[string]bool // see problem
	letters     []Letter
	undelivered []model.Event

	// current is what runs, for who looks from outside (see turn).
	current atomic.Pointer[string]
	inside  bool
	// broken is why nothing can be done any more: a function has not come back.
	broken error
	timer  *time.Timer
	seen   sight
	// abandoned tells the goroutine that is left behind to end when it comes back.
	abandoned atomic.Bool
}

// New makes a world without spaces.
func New(programs Programs, o Options) *World {
	if o.Start.IsZero() {
		o.Start = Start
	}
	return &World{
		programs: programs, opts: o, start: o.Start, now: o.Start,
		spaces: map[string]*Space{}, told: map[string]bool{},
	}
}

// Now is the time in the world.
func (w *World) Now() time.Time { return w.now }

// Spaces lists the spaces that have come to life, in that order.
func (w *World) Spaces() []*Space { return slices.Clone(w.order) }

// ErrNoProgram says that a space has no program.
var ErrNoProgram = errors.New("the space has no program")

// Space brings a space to life, or returns the one that is. The error is ErrNoProgram, that
// of a name, or what is wrong with its program.
func (w *World) Space(name string) (s *Space, err error) {
	err = w.do(func() error {
		if s, err = w.awaken(name); err != nil {
			return err
		}
		return w.run()
	})
	return s, err
}

func (w *World) awaken(name string) (*Space, error) {
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
		return nil, fmt.Errorf("space %s: %w; what tells the programs returns nil for it", name, ErrNoProgram)
	}
	s := newSpace(w, name, program)
	if err := s.load(); err != nil {
		return nil, err
	}
	w.spaces[name] = s
	w.order = append(w.order, s)
	return s, nil
}

// elapsed is the monotonic time of the cores.
func (w *World) elapsed() time.Duration { return w.now.Sub(w.start) }

// touch has a space settled when its turn comes.
func (w *World) touch(s *Space) {
	if !s.due {
		s.due = true
		w.due = append(w.due, s)
	}
}

// Run does all that can be done at this time. Verbs that give the world something to do have
// done it when they return.
func (w *World) Run() error { return w.do(w.run) }

func (w *World) run() error {
	began := w.handled
	for steps := 0; len(w.due) > 0; steps++ {
		if events := w.handled - began; steps == maxSteps || events > maxEvents {
			return fmt.Errorf("no rest after %d events and %d steps at %s; the last to run was %s. A handler that always sends another event, to this space or back and forth, goes on for ever", events, steps, w.clock(), w.who())
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

// Advance lets time pass. What is due on the way happens at its time, in order.
func (w *World) Advance(d time.Duration) error { return w.AdvanceTo(w.now.Add(d)) }

// AdvanceTo lets time pass until t. Time does not go back.
func (w *World) AdvanceTo(t time.Time) error {
	if t.Before(w.now) {
		return fmt.Errorf("advance to %s: it is %s already, and time does not go back", t.UTC().Format(time.RFC3339Nano), w.clock())
	}
	return w.do(func() error { return w.advance(t) })
}

func (w *World) advance(to time.Time) error {
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

// Next is when something is to happen by itself; false if nothing is.
func (w *World) Next() (time.Time, bool) { return w.next() }

func (w *World) next() (first time.Time, ok bool) {
	for _, s := range w.order {
		if at, some := s.wakes(); some && (!ok || at.Before(first)) {
			first, ok = at, true
		}
	}
	return first, ok
}
