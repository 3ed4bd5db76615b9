package simkit

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

// firstSample and longestPause bound the pauses between samples, which double. They determine when a
// state is sampled; the state decides.
const (
	firstSample  = time.Millisecond
	longestPause = 100 * time.Millisecond
	seenTwice    = 2
	seenOften    = 8
)

// BlockedError reports that a function blocks.
type BlockedError struct {
	// Function is what blocks: a handler, computation or effect, and its space.
	Function string
	// State is the runtime's name of its goroutine's state: "sleep", "chan receive", "IO wait".
	State string
	// Stack is where it waits, with the function's own frames.
	Stack string
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%s blocks: it waits in [%s]. %s\n%s", e.Function, e.State, instead(e.State), indent(e.Stack))
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

// turns runs one call into the world after the other, and gives up where one does not return.
type turns struct {
	mayBlock bool // functions are not sampled
	inside   bool
	// current is the function that runs: a turn stores it, and the goroutine that waits reads it.
	current atomic.Pointer[string]
	// broken is why there can be no further turn: a function has not returned.
	broken error
	timer  *time.Timer
	seen   sight
	// abandoned makes the goroutine that is left behind end when it returns.
	abandoned atomic.Bool
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
func (ts *turns) do(f func() error) error {
	switch {
	case ts.broken != nil:
		return ts.broken
	case ts.inside:
		return f()
	}
	ts.inside = true
	t := &turn{done: make(chan struct{})}
	go t.run(f) // ends when f returns; if it never does the test has failed
	err := ts.await(t)
	ts.inside = false
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

func (ts *turns) await(t *turn) error {
	if ts.timer == nil {
		ts.timer = time.NewTimer(firstSample)
	} else {
		ts.timer.Reset(firstSample)
	}
	defer ts.timer.Stop()
	seen := &ts.seen
	seen.state, seen.times = "", 0
	for pause := firstSample; ; pause = min(2*pause, longestPause) {
		select {
		case <-t.done:
			return ts.outcome(t)
		case <-ts.timer.C:
		}
		if !ts.mayBlock && seen.again(t.id.Load()) {
			return ts.giveUp(&BlockedError{Function: ts.function(), State: seen.state, Stack: userFrames(seen.stack)})
		}
		ts.timer.Reset(pause)
	}
}

// outcome returns how a turn ended.
func (ts *turns) outcome(t *turn) error {
	switch {
	case t.panicked != nil:
		_ = ts.giveUp(errors.New("the test kit has panicked before"))
		panic(fmt.Sprintf("%v\n\n%s", t.panicked, t.stack))
	case !t.ended:
		return ts.giveUp(fmt.Errorf("%s has ended its goroutine (runtime.Goexit, or FailNow, Fatal or Skip of a test). Return an error instead", ts.function()))
	}
	return t.err
}

// giveUp ends the world: a function is still running and cannot be stopped.
func (ts *turns) giveUp(err error) error {
	ts.broken = err
	ts.abandoned.Store(true)
	return err
}

// exitIfAbandoned ends the goroutine of a turn that has been given up.
func (ts *turns) exitIfAbandoned() {
	if ts.abandoned.Load() {
		runtime.Goexit()
	}
}

// function names what runs.
func (ts *turns) function() string {
	if c := ts.current.Load(); c != nil {
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
