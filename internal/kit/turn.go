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
// blocking can be detected: the waiting caller samples the state of that goroutine. Only its state
// counts, not how long it takes: a function that computes, or that a slow machine has not
// scheduled, is waited for.
//
// A state in which a function waits for another goroutine must be seen twice in a row, with the
// same stack. Locks, which the runtime and libraries hold for a moment, must be seen more often.

// firstLook and longestLook bound the pauses between samples, which double. They determine when a
// state is sampled; the state decides.
const (
	firstLook   = time.Millisecond
	longestLook = 100 * time.Millisecond
	seenTwice   = 2
	seenOften   = 8
)

// BlockedError reports that a function blocks.
type BlockedError struct {
	// Who is the function: a handler, computation or effect, and its space.
	Who string
	// State is the runtime's name of its goroutine's state: "sleep", "chan receive", "IO wait".
	State string
	// Stack is where it waits, with the function's own frames.
	Stack string
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%s blocks: it waits in [%s]. %s\n%s", e.Who, e.State, instead(e.State), indent(e.Stack))
}

// instead returns advice for a state.
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
	id   atomic.Pointer[string] // of the goroutine, as printed by the runtime
	err  error
	// ended is false if the goroutine ended without returning; panicked is the value of its panic.
	ended    bool
	panicked any
	stack    []byte
}

// do calls f on a goroutine of its own, and waits for it.
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

// outcome returns how a turn ended.
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

// giveUp ends the world: a function is still running and cannot be stopped.
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

// sight is the result of sampling the goroutine of a turn.
type sight struct {
	state, stack string
	times        int
	buf          []byte
}

// again samples once more, and reports whether the goroutine blocks.
func (s *sight) again(id *string) bool {
	if id == nil {
		return false // it has not started
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

// waiting are the states in which a goroutine waits for another one, for time or for I/O, as
// printed by the runtime (waitReasonStrings in package runtime).
var waiting = []string{"sleep", "chan receive", "chan send", "select", "IO wait", "sync.Cond.Wait", "sync.WaitGroup.Wait"}

// brief are the states that usually end by themselves.
var brief = []string{"sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock", "semacquire", "syscall"}

// patience returns how often a state must be seen in a row, 0 if it does not count. Writing output
// (fmt.Println, a log) does not count.
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

// goroutineID returns the number of this goroutine: "goroutine 12 [running]: ...".
func goroutineID() string {
	buf := make([]byte, 40)
	head := buf[:runtime.Stack(buf, false)]
	if id, _, ok := bytes.Cut(bytes.TrimPrefix(head, []byte("goroutine ")), []byte(" ")); ok {
		return string(id)
	}
	return ""
}

// stateOf returns the state and the stack of a goroutine; "" if there is none.
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

// find extracts one goroutine from the listing of all.
func find(all []byte, head string) (state, stack string) {
	at := bytes.Index(all, []byte(head))
	if at < 0 || at > 0 && all[at-1] != '\n' {
		return "", ""
	}
	one, _, _ := bytes.Cut(all[at:], []byte("\n\n"))
	first, stack, _ := strings.Cut(string(one), "\n")
	state, _, _ = strings.Cut(strings.TrimPrefix(first, head), "]")
	state, _, _ = strings.Cut(state, ",") // the duration and other remarks
	return state, stack
}

// userFrames reduces a stack to the frames of the called function and its callees: without the
// runtime, and without its callers.
func userFrames(stack string) string {
	if _, below, ok := strings.Cut(stack, "\npanic("); ok { // above it are the frames that recover
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
