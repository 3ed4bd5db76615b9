package kit

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Functions of programs run on a goroutine of their own, one per call of the world, so that
// one that blocks can be seen: whoever waits for it looks, now and then, at what that
// goroutine is doing. Only its state counts and not how long it takes: one that computes, or
// that a slow machine has not got to, is waited for as long as it needs.
//
// A state in which a function waits for somebody else must be seen twice in a row, with the
// same stack. Locks, which the runtime and libraries take for a moment, must be seen more
// often than that.

// firstLook and longestLook bound the pauses between looks, which double. They say when a
// state is looked at; the state decides.
const (
	firstLook   = time.Millisecond
	longestLook = 100 * time.Millisecond
	seenTwice   = 2
	seenOften   = 8
)

// BlockedError says that a function waits for something.
type BlockedError struct {
	// Who is the function: a handler, computation or effect, and its space.
	Who string
	// State is what the runtime says of its goroutine: "sleep", "chan receive", "IO wait".
	State string
	// Stack is where it waits, the function's own frames.
	Stack string
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%s blocks: it waits in [%s]. %s\n%s", e.Who, e.State, instead(e.State), indent(e.Stack))
}

// instead says what to do.
func instead(state string) string {
	const general = "A function of a program holds up its whole space while it runs, and may be run again at any time"
	switch {
	case strings.HasPrefix(state, "sleep"):
		return general + ". To do something later, send an event for later (SendAfter, SendAt, a timer) or use Debounce; time passes in the world, not in the function"
	case strings.HasPrefix(state, "IO wait"), strings.HasPrefix(state, "syscall"), strings.HasPrefix(state, "select"):
		return general + ". Talk to the world outside in an action or another process, and let it send the answer as an event"
	default:
		return general + ". It shares nothing with goroutines: keep state in documents, and let others send events"
	}
}

// turn is one call into the world.
type turn struct {
	done chan struct{}
	id   atomic.Pointer[string] // of the goroutine, as the runtime prints it
	err  error
	// ended is false if the goroutine ended without coming back; panicked is with what.
	ended    bool
	panicked any
	stack    []byte
}

// do has f called on a goroutine of its own, and waits for it.
func (w *World) do(f func() error) error {
	switch {
	case w.broken != nil:
		return w.broken
	case w.inside:
		return f()
	}
	w.inside = true
	t := &turn{done: make(chan struct{})}
	go t.run(f) // ends when f returns; if it never does the test has failed
	err := w.await(t)
	w.inside = false
	return err
}

func (t *turn) run(f func() error) {
	defer close(t.done)
	defer func() {
		if p := recover(); p != nil {
			t.panicked, t.stack = p, debug.Stack()
		}
	}()
	id := goroutineID()
	t.id.Store(&id)
	t.err = f()
	t.ended = true
}

func (w *World) await(t *turn) error {
	if w.timer == nil {
		w.timer = time.NewTimer(firstLook)
	} else {
		w.timer.Reset(firstLook)
	}
	defer w.timer.Stop()
	seen := &w.seen
	seen.state, seen.times = "", 0
	for pause := firstLook; ; pause = min(2*pause, longestLook) {
		select {
		case <-t.done:
			return w.outcome(t)
		case <-w.timer.C:
		}
		if !w.opts.Blocking && seen.again(t.id.Load()) {
			return w.giveUp(&BlockedError{Who: w.who(), State: seen.state, Stack: userFrames(seen.stack)})
		}
		w.timer.Reset(pause)
	}
}

// outcome is how a turn has ended.
func (w *World) outcome(t *turn) error {
	switch {
	case t.panicked != nil:
		_ = w.giveUp(errors.New("the test kit has panicked before"))
		panic(fmt.Sprintf("%v\n\n%s", t.panicked, t.stack))
	case !t.ended:
		return w.giveUp(fmt.Errorf("%s has ended its goroutine (runtime.Goexit, or FailNow, Fatal or Skip of a test). Return an error instead", w.who()))
	}
	return t.err
}

// giveUp ends the world: a function is in the middle of something and cannot be called back.
func (w *World) giveUp(err error) error {
	w.broken = err
	w.abandoned.Store(true)
	return err
}

func (w *World) who() string {
	if c := w.current.Load(); c != nil {
		return *c
	}
	return "a function of the program"
}

// sight is what a look at the goroutine of a turn has shown.
type sight struct {
	state, stack string
	times        int
	buf          []byte
}

// again looks once more, and reports whether the goroutine blocks.
func (s *sight) again(id *string) bool {
	if id == nil {
		return false // it has not begun
	}
	state, stack := s.stateOf(*id)
	limit := patience(state, stack)
	if limit == 0 {
		s.state, s.times = "", 0
		return false
	}
	if state != s.state || stack != s.stack {
		s.state, s.stack, s.times = state, stack, 0
	}
	s.times++
	return s.times >= limit
}

// waiting are the states in which a goroutine waits for another, for time or for the world
// outside, as the runtime prints them (waitReasonStrings in package runtime).
var waiting = []string{"sleep", "chan receive", "chan send", "select", "IO wait", "sync.Cond.Wait", "sync.WaitGroup.Wait"}

// brief are those that pass by themselves, mostly.
var brief = []string{"sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock", "semacquire", "syscall"}

// patience is how often a state must be seen in a row, 0 if it is none that matters. What is
// printed for somebody to read (fmt.Println, a log) is not meant.
func patience(state, stack string) int {
	switch {
	case strings.Contains(stack, "os.(*File).Write("), strings.Contains(stack, "testing.(*common).log"):
		return 0
	case slices.ContainsFunc(waiting, func(w string) bool { return strings.HasPrefix(state, w) }):
		return seenTwice
	case slices.ContainsFunc(brief, func(w string) bool { return strings.HasPrefix(state, w) }):
		return seenOften
	}
	return 0
}

// goroutineID is the number of this goroutine: "goroutine 12 [running]: ...".
func goroutineID() string {
	buf := make([]byte, 40)
	head := buf[:runtime.Stack(buf, false)]
	if id, _, ok := bytes.Cut(bytes.TrimPrefix(head, []byte("goroutine ")), []byte(" ")); ok {
		return string(id)
	}
	return ""
}

// stateOf is what the runtime says of a goroutine, and its stack; "" if there is none.
func (s *sight) stateOf(id string) (state, stack string) {
	if s.buf == nil {
		s.buf = make([]byte, 32<<10)
	}
	for {
		n := runtime.Stack(s.buf, true)
		if n < len(s.buf) || n >= 64<<20 {
			return find(s.buf[:n], "goroutine "+id+" [")
		}
		s.buf = make([]byte, 2*len(s.buf))
	}
}

// find cuts one goroutine out of the listing of all.
func find(all []byte, head string) (state, stack string) {
	at := bytes.Index(all, []byte(head))
	if at < 0 || at > 0 && all[at-1] != '\n' {
		return "", ""
	}
	one, _, _ := bytes.Cut(all[at:], []byte("\n\n"))
	first, stack, _ := strings.Cut(string(one), "\n")
	state, _, _ = strings.Cut(strings.TrimPrefix(first, head), "]")
	state, _, _ = strings.Cut(state, ",") // how long, and other remarks
	return state, stack
}

// userFrames leaves of a stack what belongs to the function that was called and what it has
// called: without the runtime, and without what called it.
func userFrames(stack string) string {
	if _, below, ok := strings.Cut(stack, "\npanic("); ok { // above it are those who recover
		_, stack, _ = strings.Cut(below, "\n\t")
		_, stack, _ = strings.Cut(stack, "\n")
	}
	lines := strings.Split(strings.TrimSpace(stack), "\n")
	var out []string
	for i := 0; i+1 < len(lines); i += 2 {
		name, place := lines[i], lines[i+1]
		if strings.HasPrefix(name, "goroutine ") {
			i--
			continue
		}
		if strings.HasPrefix(name, "github.com/settlehq/settle/space.call") {
			break
		}
		if strings.HasPrefix(name, "runtime.") || strings.HasPrefix(name, "runtime/") || strings.HasPrefix(name, "panic(") {
			continue
		}
		if at := strings.LastIndex(name, "("); at > 0 {
			name = name[:at]
		}
		place, _, _ = strings.Cut(strings.TrimSpace(place), " +0x")
		out = append(out, name+"\n    "+place)
	}
	return strings.Join(out, "\n")
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}
