package workflow

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"
)

// Bounds of a run. It fails with a LimitError beyond them.
const (
	// maxVisits is the largest number of nodes that a step may visit.
	maxVisits = 1_000_000
	// maxOpen is the largest number of actions that may be under way at once.
	maxOpen = 100_000
	// MaxValue is the largest size of an action's arguments, of its result, and of the result of a run, in bytes.
	MaxValue = 128 << 10
)

// ErrOverflow reports that an activation was completed more often than it needs: a bug in this package. The
// step is refused, and the run must be loaded again.
var ErrOverflow = errors.New("an activation has more completions than it needs")

// Run is one execution of a graph.
type Run struct {
	program *Program
	frames  map[string]*frame // by ID; that of the run itself is ""
	works   map[string]*work  // under way, by ID
	timers  map[string]*frame // of sleeps and of waits with a timeout, by ID
	retries map[string]*work  // waiting for another attempt, by the ID of their timer
	signals signals
	// conditions are those that it waits for.
	conditions conditions
	undos      undos
	memory     memory
	marks      marks
	passed     passes
	outcome    *Outcome
	begun      bool
	// deadline is how long the run may take from its begin, in milliseconds; 0 if it has none, or not any more.
	deadline int64

	// State of the current step:
	now     int64
	step    int // its number since the run was loaded
	ready   []arrival
	visits  int
	steps   uint64          // of the interpreter
	undone  map[string]bool // work that was started in this step and is no longer needed
	effects Effects
	bug     error
	// thread evaluates the code of the run; nil before the first evaluation, and during one.
	thread *starlark.Thread
}

// frame is one call of a function.
type frame struct {
	id    string
	fn    int
	vars  starlark.StringDict
	loops []loop // the enclosing loops, the innermost last
	// caller is the frame that waits for this one, as the call slot of its fan-out.
	caller *frame
	slot   int
	wait   *activation // what it waits for, nil if nothing
	gone   bool
	// undos are the undo steps that this call and the calls that it has made have registered.
	undos []undo
	// undoing is set in the frame that executes undo steps in place of a failed call.
	undoing *undoing
}

// loop is a loop that a frame is in.
type loop struct {
	head  int
	index int
	over  starlark.Value    // nil in a while loop
	iter  starlark.Iterator // of over, after index elements
}

// activation counts the completions of an action or a fan-out.
type activation struct {
	node      int // the action, or the join of the fan-out
	need, got int
	results   []starlark.Value // by slot; a *Failure for a failed call
	timer     string           // of a sleep, or of a wait with a timeout
	signal    string           // that a wait waits for
	until     jsontext.Value   // the variables of the condition that a wait waits for, nil if it does not
	since     int64            // when it began, in milliseconds since 1970
}

// work is an action under way.
type work struct {
	id      string
	frame   *frame
	slot    int
	node    int // the node of the call, and its number there
	number  int
	call    *Call
	attempt int
	spent   int // attempts before it was tried again, which its policy does not count
	step    int // that started the attempt
	args    jsontext.Value
	named   jsontext.Value
	retry   string // the timer of the next attempt, "" during an attempt
	since   int64  // when the attempt began, or the pause before it, in milliseconds since 1970
	failed  string // the error of the attempt before, "" for the first
}

// arrival is a node to be visited.
type arrival struct {
	f    *frame
	node int
	via  EdgeKind
}

// New returns a run that has not begun.
func New(p *Program) *Run {
	return &Run{program: p, memory: memory{limit: maxMemory}, frames: map[string]*frame{}, works: map[string]*work{}, timers: map[string]*frame{}, retries: map[string]*work{}}
}

// Outcome returns how the run has ended, nil before that.
func (r *Run) Outcome() *Outcome { return r.outcome }

// Step processes an input. An input that the run knows already, or does not wait for, has no effect. After an
// error the run must not be used any more.
func (r *Run) Step(in Input) (Effects, error) {
	r.now, r.visits, r.steps, r.effects, r.bug, r.undone = in.Now, 0, 0, Effects{}, nil, nil
	r.step++
	if r.outcome == nil {
		if err := r.take(&in); err != nil {
			return Effects{}, err
		}
		r.advance()
	}
	if len(r.undone) > 0 {
		r.effects.Start = slices.DeleteFunc(r.effects.Start, func(w Work) bool { return r.undone[w.ID] })
	}
	return r.effects, r.bug
}

func (r *Run) take(in *Input) error {
	switch {
	case in.Begin != nil:
		if r.begun {
			return nil
		}
		r.begun = true
		return r.begin(in)
	case in.Done != nil:
		if w := r.current(in.Done.Work, in.Done.Attempt); w != nil {
			return r.done(w, in.Done.Result)
		}
	case in.Failed != nil:
		if w := r.current(in.Failed.Work, in.Failed.Attempt); w != nil {
			return r.failed(w, in.Failed)
		}
	case in.Timer != "":
		r.wake(in.Timer)
	case in.Signal != nil:
		return r.signal(in.Signal)
	case in.Met != nil:
		return r.met(in.Met)
	case in.Abort != nil:
		r.interrupt(&Failure{Name: in.Abort.Type, Ancestors: in.Abort.Ancestors, Message: in.Abort.Message}, r.Undoing() != nil)
	case in.Cancel != "":
		r.interrupt(&Failure{Name: CancelledError, Message: in.Cancel}, in.AtOnce)
	case in.Again != "":
		r.again(in.Again)
	default:
		return errors.New("an input says nothing")
	}
	return nil
}

// current returns the work that an answer belongs to, nil if the run does not wait for it.
func (r *Run) current(id string, attempt int) *work {
	if w := r.works[id]; w != nil && w.attempt == attempt && w.retry == "" {
		return w
	}
	return nil
}

func (r *Run) begin(in *Input) error {
	v, err := FromJSON(in.Begin)
	if err != nil {
		return fmt.Errorf("arguments of workflow %s: %w", r.program.Graph.Name, err)
	}
	named, ok := v.(*starlark.Dict)
	if !ok {
		return fmt.Errorf("arguments of workflow %s must be an object, and are a %s", r.program.Graph.Name, v.Type())
	}
	if f, err := r.enter(nil, 0, 0, nil, named); err != nil {
		r.end(&Outcome{Error: failureOf(err)})
	} else {
		r.setDeadline(r.program.Graph.Deadline, in.Deadline)
		r.push(f, 0, Forward)
	}
	return nil
}

// enter creates the frame of a call.
func (r *Run) enter(caller *frame, slot, fn int, args starlark.Tuple, named *starlark.Dict) (*frame, error) {
	f := &frame{fn: fn, vars: starlark.StringDict{}, caller: caller, slot: slot}
	if caller != nil {
		f.id = caller.key(caller.wait.node) + "/" + strconv.Itoa(slot) + "."
	}
	if err := r.bind(f, args, named); err != nil {
		return nil, err
	}
	if _, twice := r.frames[f.id]; twice {
		r.bug = fmt.Errorf("%w: call %q is under way", ErrOverflow, f.id)
	}
	r.frames[f.id] = f
	return f, nil
}

// bind assigns arguments to parameters.
func (r *Run) bind(f *frame, args starlark.Tuple, named *starlark.Dict) error {
	fn := &r.program.Graph.Funcs[f.fn]
	if fn.Whole {
		f.vars[fn.Params[0].Name] = named
		return nil
	}
	if len(args) > len(fn.Params) {
		return fmt.Errorf("%s takes %d arguments, and is given %d", fn.Name, len(fn.Params), len(args))
	}
	given := 0
	for i := range fn.Params {
		p := &fn.Params[i]
		v, there, err := named.Get(starlark.String(p.Name))
		switch {
		case err != nil:
			return err
		case there && i < len(args):
			return fmt.Errorf("%s is given argument %s twice", fn.Name, p.Name)
		case there:
			given++
			f.vars[p.Name] = v
		case i < len(args):
			f.vars[p.Name] = args[i]
		case p.Default == nil:
			return fmt.Errorf("%s needs argument %s", fn.Name, p.Name)
		default:
			if v, err = r.eval(p.Default, nil); err != nil {
				return err
			}
			v.Freeze() // as in the interpreter, where all calls share it
			f.vars[p.Name] = v
		}
	}
	if given < named.Len() {
		for _, k := range named.Keys() {
			if name, _ := starlark.AsString(k); !slices.ContainsFunc(fn.Params, func(p Param) bool { return p.Name == name }) {
				return fmt.Errorf("%s has no argument %s", fn.Name, k)
			}
		}
	}
	return nil
}

// key names an activation of a node: the call, the node, and the iterations.
func (f *frame) key(node int) string {
	var b strings.Builder
	b.WriteString(f.id)
	b.WriteString(strconv.Itoa(node))
	for i := range f.loops {
		b.WriteByte("[,"[min(i, 1)])
		b.WriteString(strconv.Itoa(f.loops[i].index))
	}
	if len(f.loops) > 0 {
		b.WriteByte(']')
	}
	return b.String()
}

func (r *Run) push(f *frame, node int, via EdgeKind) {
	r.ready = append(r.ready, arrival{f, node, via})
}

// advance visits nodes until the whole run waits.
func (r *Run) advance() {
	for len(r.ready) > 0 && r.outcome == nil && r.bug == nil {
		a := r.ready[0]
		r.ready = r.ready[1:]
		if a.f.gone {
			continue
		}
		if r.visits++; r.visits > maxVisits {
			why := &Failure{Name: LimitError, Message: fmt.Sprintf("%d steps without an action, a sleep or a wait: the workflow does not come to an end", maxVisits)}
			r.interrupt(why, r.Undoing() != nil)
			if !a.f.gone && r.outcome == nil { // an undo step, which goes on when the run fails
				r.fail(a.f, why)
			}
			continue
		}
		if why := r.count(); why != nil {
			r.memory.held = 0 // its undo steps have room, and fail when it is used up
			r.interrupt(why, r.Undoing() != nil)
			if a.f.gone || r.outcome != nil {
				continue
			}
		}
		if a.f.undoing == nil {
			r.passed.add(a.f.fn, a.node)
		}
		if err := r.visit(a); err != nil {
			r.mark(a.f, a.node, failedAt)
			r.fail(a.f, failureOf(err))
		}
	}
	r.ready = nil
}

func (r *Run) node(f *frame, at int) *Node { return &r.program.Graph.Funcs[f.fn].Nodes[at] }

// follow follows an edge of a node, and leaves the loops that it leads out of.
func (r *Run) follow(f *frame, n *Node, edge int) {
	e := n.Edges[edge]
	depth := r.node(f, e.To).Depth
	if e.Kind == Back {
		depth++
	}
	f.leave(depth)
	r.push(f, e.To, e.Kind)
}

// leave ends all loops deeper than depth.
func (f *frame) leave(depth int) {
	for i := depth; i < len(f.loops); i++ {
		if it := f.loops[i].iter; it != nil {
			it.Done()
		}
	}
	f.loops = f.loops[:min(depth, len(f.loops))]
}

func (r *Run) visit(a arrival) error {
	if a.f.undoing != nil {
		r.undoNext(a.f)
		return nil
	}
	f, n := a.f, r.node(a.f, a.node)
	r.mark(f, a.node, passed)
	switch n.Kind {
	case Do:
		if err := r.exec(n.Code, f.vars); err != nil {
			return err
		}
		r.follow(f, n, 0)
	case Merge:
		r.follow(f, n, 0)
	case Branch:
		v, err := r.eval(n.Code, f.vars)
		if err != nil {
			return err
		}
		edge := 1
		if v.Truth() {
			edge = 0
		}
		r.follow(f, n, edge)
	case Loop:
		return r.round(f, n, a)
	case Action, Child:
		return r.call(f, n, a.node)
	case Fan:
		return r.fan(f, n, a.node)
	case Sleep:
		return r.sleep(f, n, a.node)
	case Wait:
		return r.await(f, n, a.node)
	case Compensate:
		return r.compensate(f, n, a.node)
	case Return:
		v, err := r.eval(n.Code, f.vars)
		if err != nil {
			return err
		}
		return r.finish(f, v)
	default:
		return fmt.Errorf("node %d is a %s, which is visited only when it is complete", a.node, n.Kind)
	}
	return nil
}

// round begins a loop, or its next iteration, or leaves it.
func (r *Run) round(f *frame, n *Node, a arrival) error {
	if a.via == Back {
		f.loops[len(f.loops)-1].index++
	} else {
		l := loop{head: a.node}
		if !n.While {
			over, err := r.eval(n.Code, f.vars)
			if err != nil {
				return err
			}
			if err := l.iterate(over); err != nil {
				return fmt.Errorf("%s:%d:%d: for loop: %w", r.program.Graph.Name, n.Code.Line, n.Code.Col, err)
			}
		}
		f.loops = append(f.loops, l)
	}
	l := &f.loops[len(f.loops)-1]
	if n.While {
		v, err := r.eval(n.Code, f.vars)
		if err != nil {
			return err
		}
		if !v.Truth() {
			r.follow(f, n, 1)
			return nil
		}
	} else {
		var v starlark.Value
		if !l.iter.Next(&v) {
			r.follow(f, n, 1)
			return nil
		}
		if err := r.assign(f, n.Into, v); err != nil {
			return err
		}
	}
	r.push(f, n.Edges[0].To, Continue)
	return nil
}

// iterate begins to iterate over a value, which is immutable until the iteration ends.
func (l *loop) iterate(over starlark.Value) error {
	it := starlark.Iterate(over)
	if it == nil {
		return fmt.Errorf("%s value is not iterable", over.Type())
	}
	switch over.(type) {
	case *starlark.List, *starlark.Dict, *starlark.Set, starlark.Tuple:
	default:
		if over.Type() == "range" {
			break
		}
		list := starlark.NewList(slices.Collect(starlark.Elements(over.(starlark.Iterable)))) // which can be stored, other than "abc".elems()
		it.Done()
		over, it = list, list.Iterate()
	}
	l.over, l.iter = over, it
	return nil
}

// assign assigns a result to the target of a node.
func (r *Run) assign(f *frame, into *Code, v starlark.Value) error {
	if into == nil {
		return nil
	}
	f.vars[ResultName] = v
	err := r.exec(into, f.vars)
	delete(f.vars, ResultName)
	return err
}

// DeadlineTimer is the ID of the timer of the run's deadline.
const DeadlineTimer = "deadline"

// Deadline returns how long the run may take from its begin, in milliseconds; 0 if it has no deadline, or not any more.
func (r *Run) Deadline() int64 { return r.deadline }

// setDeadline sets the time at which the run fails, some milliseconds after its begin.
func (r *Run) setDeadline(after ...int64) {
	for _, ms := range after {
		if ms > 0 && (r.deadline == 0 || ms < r.deadline) {
			r.deadline = ms
		}
	}
	if r.deadline > 0 {
		r.effects.Timers = append(r.effects.Timers, Timer{ID: DeadlineTimer, At: r.now + r.deadline})
	}
}

// dropDeadline makes the run continue without its deadline.
func (r *Run) dropDeadline() {
	if r.deadline > 0 {
		r.effects.Drop = append(r.effects.Drop, DeadlineTimer)
	}
	r.deadline = 0
}

// late ends a run that has not ended before its deadline.
func (r *Run) late() {
	after := time.Duration(r.deadline) * time.Millisecond
	if r.deadline == 0 {
		return
	}
	r.deadline = 0
	r.interrupt(&Failure{Name: DeadlineError, Ancestors: []string{TimeoutError}, Message: fmt.Sprintf("the run has not ended within %v", after)}, false)
}

// wake continues after a timer.
func (r *Run) wake(id string) {
	if id == DeadlineTimer {
		r.late()
		return
	}
	if w := r.retries[id]; w != nil {
		delete(r.retries, id)
		w.retry = ""
		r.attempt(w)
		return
	}
	if f := r.timers[id]; f != nil {
		delete(r.timers, id)
		n := r.node(f, f.wait.node)
		f.wait.timer = "" // it has fired
		if n.Kind == Wait {
			r.timedOut(f)
			return
		}
		f.wait = nil
		r.follow(f, n, 0)
	}
}

func (r *Run) sleep(f *frame, n *Node, at int) error {
	v, err := r.eval(n.Code, f.vars)
	if err != nil {
		return err
	}
	seconds, err := Seconds(v)
	if err != nil {
		return fmt.Errorf("sleep: %w", err)
	}
	if seconds <= 0 {
		r.follow(f, n, 0)
		return nil
	}
	f.wait = &activation{node: at, since: r.now}
	r.setTimer(f, "sleep "+f.key(at), seconds)
	return nil
}

// setTimer sets the timer of what a frame waits for.
func (r *Run) setTimer(f *frame, id string, seconds float64) {
	f.wait.timer = id
	r.timers[id] = f
	r.effects.Timers = append(r.effects.Timers, Timer{ID: id, At: r.now + int64(math.Ceil(seconds*1000))})
}

// maxSleep is a hundred years, in seconds.
const maxSleep = 100 * 366 * 24 * 60 * 60

// Seconds returns a duration in seconds: a number, or a text such as "100ms", "90s", "24h" or "7d".
func Seconds(v starlark.Value) (float64, error) {
	var seconds float64
	if text, is := starlark.AsString(v); is {
		d, err := time.ParseDuration(text)
		seconds = d.Seconds()
		if days, is := strings.CutSuffix(text, "d"); is {
			var n int
			n, err = strconv.Atoi(days)
			seconds = float64(n) * 24 * 60 * 60
		}
		if err != nil {
			return 0, fmt.Errorf("%.50q is not a duration; write it like \"100ms\", \"90s\", \"24h\" or \"7d\", or as a number of seconds", text)
		}
	} else if seconds, is = starlark.AsFloat(v); !is {
		return 0, fmt.Errorf("a duration is a number of seconds or a text such as \"90s\", not a %s", v.Type())
	}
	if math.IsNaN(seconds) || math.IsInf(seconds, 0) || seconds > maxSleep {
		return 0, fmt.Errorf("%v: a duration must be a number of at most %d seconds", v, int64(maxSleep))
	}
	return seconds, nil
}

// drop removes a frame.
func (r *Run) drop(f *frame) {
	f.leave(0)
	f.gone = true
	delete(r.frames, f.id)
}

// finish ends a call with its value.
func (r *Run) finish(f *frame, v starlark.Value) error {
	if f.caller != nil {
		r.drop(f)
		f.caller.undos = append(f.caller.undos, f.undos...)
		r.settled(f.caller, f.slot, v, nil)
		return nil
	}
	data, err := ToJSON(v)
	switch {
	case err != nil:
		return fmt.Errorf("the result of the workflow: %w", err)
	case len(data) > MaxValue:
		return &Failure{Name: LimitError, Message: fmt.Sprintf("the result of the run has %d bytes; at most %d are possible: return a reference to what is large", len(data), MaxValue)}
	}
	r.drop(f)
	r.dropDeadline()
	r.end(&Outcome{Result: data})
	return nil
}

// fail ends a call with an error, and all its callers that do not attempt it.
func (r *Run) fail(f *frame, why *Failure) { r.failWith(f, why, undoing{}) }

// failWith is fail, and left are the undo steps of calls that have failed with it.
func (r *Run) failWith(f *frame, why *Failure, left undoing) {
	left.add(r.abandon(f))
	left.todo = append(left.todo, f.undos...)
	r.drop(f)
	if f.caller == nil {
		r.stop(why, left)
		return
	}
	r.failCall(f.caller, f.slot, why, left)
}

// end ends the run, which waits for nothing any more.
func (r *Run) end(o *Outcome) { r.outcome, r.effects.Outcome = o, o }
