package workflow

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"
)

// stored is the encoding of a run in a snapshot.
type stored struct {
	Format  int    `json:"format"`
	Version string `json:"version"` // of the graph
	Begun   bool   `json:"begun,omitzero"`
	// Deadline is that of the run in milliseconds from its begin, Undos the number of the last undo step.
	Deadline int64 `json:"deadline,omitzero"`
	Undos    int   `json:"undos,omitzero"`
	// Marks are the nodes that the run has passed, see Run.Marks.
	Marks  string        `json:"marks,omitzero"`
	Frames []storedFrame `json:"frames,omitzero"` // callers first
	Works  []storedWork  `json:"works,omitzero"`
	// Waiting are the frames that wait for signals, the first in front, Kept the signals that no frame waits for.
	Waiting map[string][]string `json:"waiting,omitzero"`
	Kept    []Signal            `json:"kept,omitzero"`
	Heap    []object            `json:"heap,omitzero"`
	// Held and Used are the bytes of its memory, see memory.
	Held   int            `json:"held,omitzero"`
	Used   int            `json:"used,omitzero"`
	Passed passes         `json:"passed,omitzero"`
	Result jsontext.Value `json:"result,omitzero"`
	Error  *storedFailure `json:"error,omitzero"`
}

type storedFrame struct {
	ID      string                    `json:"id,omitzero"`
	Func    int                       `json:"fn,omitzero"`
	Vars    map[string]jsontext.Value `json:"vars,omitzero"`
	Loops   []storedLoop              `json:"loops,omitzero"`
	Caller  string                    `json:"caller,omitzero"`
	Called  bool                      `json:"called,omitzero"` // has a caller
	Slot    int                       `json:"slot,omitzero"`
	Wait    *storedWait               `json:"wait,omitzero"`
	Undos   []storedUndo              `json:"undos,omitzero"`
	Undoing *storedUndoing            `json:"undoing,omitzero"`
}

type storedUndo struct {
	Number int            `json:"n"`
	Func   int            `json:"fn,omitzero"`
	Node   int            `json:"node"`
	Args   jsontext.Value `json:"args"`
	Named  jsontext.Value `json:"named"`
}

type storedUndoing struct {
	Why    *storedFailure `json:"why"`
	Todo   []storedUndo   `json:"todo,omitzero"`
	Undone *Undone        `json:"undone,omitzero"`
}

type storedLoop struct {
	Head  int            `json:"head"`
	Index int            `json:"i,omitzero"`
	Over  jsontext.Value `json:"over,omitzero"`
}

type storedWait struct {
	Node    int                    `json:"node"`
	Need    int                    `json:"need,omitzero"`
	Results map[int]jsontext.Value `json:"results,omitzero"` // by slot
	Timer   string                 `json:"timer,omitzero"`
	Signal  string                 `json:"signal,omitzero"`
	Until   jsontext.Value         `json:"until,omitzero"`
	Since   int64                  `json:"since,omitzero"`
}

type storedWork struct {
	ID      string         `json:"id"`
	Frame   string         `json:"frame,omitzero"`
	Slot    int            `json:"slot,omitzero"`
	Node    int            `json:"node"` // the node of the call
	Call    int            `json:"call,omitzero"`
	Attempt int            `json:"n"`
	Spent   int            `json:"spent,omitzero"`
	Args    jsontext.Value `json:"args"`
	Named   jsontext.Value `json:"named"`
	Retry   string         `json:"retry,omitzero"`
	Since   int64          `json:"since,omitzero"`
	Failed  string         `json:"failed,omitzero"`
}

// Snapshot returns the complete state of a run between two steps.
func (r *Run) Snapshot() ([]byte, error) {
	s := &saver{p: r.program, ids: map[starlark.Value]int{}}
	out := stored{Format: Format, Version: r.program.Version, Begun: r.begun, Deadline: r.deadline, Undos: r.undos.last, Marks: r.Marks(), Passed: r.passed, Held: r.memory.held, Used: r.memory.used}
	var err error
	for _, id := range slices.Sorted(maps.Keys(r.frames)) { // the ID of a caller is a prefix of those of its calls
		f, err := s.frame(r.frames[id])
		if err != nil {
			return nil, fmt.Errorf("store a run of workflow %s: %w", r.program.Graph.Name, err)
		}
		out.Frames = append(out.Frames, f)
	}
	for _, id := range slices.Sorted(maps.Keys(r.works)) {
		w := r.works[id]
		out.Works = append(out.Works, storedWork{ID: w.id, Frame: w.frame.id, Slot: w.slot, Node: w.node, Call: w.number, Attempt: w.attempt, Spent: w.spent, Args: w.args, Named: w.named, Retry: w.retry, Since: w.since, Failed: w.failed})
	}
	out.Kept = r.signals.kept
	for name, list := range r.signals.waiting { // any order: each on its own
		if out.Waiting == nil {
			out.Waiting = map[string][]string{}
		}
		for _, f := range list {
			out.Waiting[name] = append(out.Waiting[name], f.id)
		}
	}
	if o := r.outcome; o != nil {
		if out.Result = o.Result; o.Error != nil {
			if out.Error, err = s.failure(o.Error, 0); err != nil {
				return nil, err
			}
		}
	}
	if out.Heap, err = s.heap(); err != nil {
		return nil, fmt.Errorf("store a run of workflow %s: %w", r.program.Graph.Name, err)
	}
	return json.Marshal(&out, json.Deterministic(true))
}

func (s *saver) frame(f *frame) (out storedFrame, err error) {
	out = storedFrame{ID: f.id, Func: f.fn, Vars: map[string]jsontext.Value{}, Slot: f.slot}
	if f.caller != nil {
		out.Caller, out.Called = f.caller.id, true
	}
	for _, name := range slices.Sorted(maps.Keys(f.vars)) {
		if out.Vars[name], err = s.value(f.vars[name], 0); err != nil {
			return out, fmt.Errorf("variable %s: %w", name, err)
		}
	}
	for i := range f.loops {
		l := storedLoop{Head: f.loops[i].head, Index: f.loops[i].index}
		if over := f.loops[i].over; over != nil {
			if l.Over, err = s.value(over, 0); err != nil {
				return out, err
			}
		}
		out.Loops = append(out.Loops, l)
	}
	out.Undos = storedUndos(f.undos)
	if u := f.undoing; u != nil {
		out.Undoing = &storedUndoing{Todo: storedUndos(u.todo), Undone: &u.undone}
		if out.Undoing.Why, err = s.failure(u.why, 0); err != nil {
			return out, err
		}
	}
	if a := f.wait; a != nil {
		out.Wait = &storedWait{Node: a.node, Need: a.need, Timer: a.timer, Signal: a.signal, Until: a.until, Since: a.since, Results: map[int]jsontext.Value{}}
		for i, v := range a.results {
			if v != nil {
				if out.Wait.Results[i], err = s.value(v, 0); err != nil {
					return out, err
				}
			}
		}
	}
	return out, nil
}

func storedUndos(list []undo) (out []storedUndo) {
	for _, u := range list {
		out = append(out, storedUndo{Number: u.number, Func: u.fn, Node: u.node, Args: u.args, Named: u.named})
	}
	return out
}

// Load returns the run of a snapshot.
func Load(p *Program, snapshot []byte) (*Run, error) {
	var in stored
	if err := json.Unmarshal(snapshot, &in, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("load a run of workflow %s: %w", p.Graph.Name, err)
	}
	if in.Format != Format || in.Version != p.Version {
		return nil, fmt.Errorf("load a run of workflow %s: it has format %d and version %s, want %d and %s", p.Graph.Name, in.Format, in.Version, Format, p.Version)
	}
	r := New(p)
	l := &loader{p: p}
	err := l.load(in.Heap)
	for i := 0; err == nil && i < len(in.Frames); i++ {
		err = r.loadFrame(l, &in.Frames[i])
	}
	for i := 0; err == nil && i < len(in.Works); i++ {
		err = r.loadWork(&in.Works[i])
	}
	if err == nil {
		err = r.loadSignals(&in)
	}
	if err == nil {
		err = r.loadOutcome(l, &in)
	}
	if err == nil {
		err = r.loadMarks(in.Marks)
	}
	if err != nil {
		return nil, fmt.Errorf("load a run of workflow %s: %w", p.Graph.Name, err)
	}
	r.begun, r.deadline, r.undos.last, r.passed = in.Begun, in.Deadline, in.Undos, in.Passed
	r.memory.held, r.memory.used = max(in.Held, 0), max(in.Used, 0)
	return r, nil
}

func (r *Run) loadSignals(in *stored) error {
	r.signals.kept = in.Kept
	for name, list := range in.Waiting { // any order: each on its own
		for _, id := range list {
			f := r.frames[id]
			if f == nil || f.wait == nil || f.wait.signal != name {
				return fmt.Errorf("call %q does not wait for signal %s", id, name)
			}
			r.signals.enter(f, name)
		}
	}
	return nil
}

func (r *Run) loadOutcome(l *loader, in *stored) (err error) {
	if in.Result == nil && in.Error == nil {
		return nil
	}
	r.outcome = &Outcome{Result: in.Result}
	if in.Error != nil {
		r.outcome.Error, err = l.failure(in.Error)
	}
	return err
}

func (r *Run) loadFrame(l *loader, in *storedFrame) (err error) {
	if in.Func < 0 || in.Func >= len(r.program.Graph.Funcs) {
		return fmt.Errorf("the graph has no function %d", in.Func)
	}
	f := &frame{id: in.ID, fn: in.Func, slot: in.Slot, vars: starlark.StringDict{}}
	if in.Called {
		if f.caller = r.frames[in.Caller]; f.caller == nil {
			return fmt.Errorf("call %s has no caller", in.ID)
		}
	}
	if err := r.loadUndo(l, f, in); err != nil {
		return err
	}
	for name, data := range in.Vars { // any order: each on its own
		if f.vars[name], err = l.value(data); err != nil {
			return fmt.Errorf("variable %s: %w", name, err)
		}
	}
	nodes := len(r.program.Graph.Funcs[f.fn].Nodes)
	for _, s := range in.Loops {
		lp := loop{head: s.Head, index: s.Index}
		if s.Over != nil {
			over, err := l.value(s.Over)
			if err == nil {
				err = lp.iterate(over)
			}
			if err != nil {
				return err
			}
			var v starlark.Value
			for range s.Index + 1 {
				lp.iter.Next(&v)
			}
		}
		f.loops = append(f.loops, lp)
	}
	if w := in.Wait; w != nil {
		if w.Node < 0 || w.Node >= nodes || w.Need < 0 || w.Need > maxOpen {
			return fmt.Errorf("call %s waits at node %d of %d for %d", in.ID, w.Node, nodes, w.Need)
		}
		f.wait = &activation{node: w.Node, need: w.Need, timer: w.Timer, signal: w.Signal, until: w.Until, since: w.Since, results: make([]starlark.Value, w.Need)}
		for i, data := range w.Results { // any order: each on its own
			if i < 0 || i >= w.Need {
				return fmt.Errorf("call %s has a result %d of %d", in.ID, i, w.Need)
			}
			if f.wait.results[i], err = l.value(data); err != nil {
				return err
			}
			f.wait.got++
		}
		if w.Timer != "" {
			r.timers[w.Timer] = f
		}
		if w.Until != nil {
			if r.program.Graph.Funcs[f.fn].Nodes[w.Node].Until == nil {
				return fmt.Errorf("call %s waits for a condition at node %d, which has none", in.ID, w.Node)
			}
			r.conditions.enter(waitID(f, w.Node), f)
		}
	}
	r.frames[f.id] = f
	return nil
}

// loadUndo loads the undo steps of a frame.
func (r *Run) loadUndo(l *loader, f *frame, in *storedFrame) (err error) {
	if f.undos, err = r.loadUndos(in.Undos); err != nil {
		return err
	}
	if f.isStep() {
		f.caller.undoing.running = append(f.caller.undoing.running, f)
	}
	if in.Undoing == nil {
		return nil
	}
	f.undoing = &undoing{}
	if in.Undoing.Undone != nil {
		f.undoing.undone = *in.Undoing.Undone
	}
	if in.Undoing.Why == nil {
		return fmt.Errorf("call %q has undo steps without an error", f.id)
	}
	if f.undoing.why, err = l.failure(in.Undoing.Why); err == nil {
		f.undoing.todo, err = r.loadUndos(in.Undoing.Todo)
	}
	return err
}

func (r *Run) loadUndos(list []storedUndo) (out []undo, err error) {
	for _, s := range list {
		u := undo{number: s.Number, fn: s.Func, node: s.Node, args: s.Args, named: s.Named}
		funcs := r.program.Graph.Funcs
		if u.fn < 0 || u.fn >= len(funcs) || u.node < 0 || u.node >= len(funcs[u.fn].Nodes) || funcs[u.fn].Nodes[u.node].Kind != Compensate {
			return nil, fmt.Errorf("undo step %d is of no node of the graph", u.number)
		}
		if _, _, err := u.arguments(); err != nil {
			return nil, err
		}
		r.undos.count(&u, 1)
		out = append(out, u)
	}
	return out, nil
}

func (r *Run) loadWork(in *storedWork) error {
	f := r.frames[in.Frame]
	if f == nil || f.wait == nil || in.Slot < 0 || in.Slot >= f.wait.need {
		return fmt.Errorf("nothing waits for work %s", in.ID)
	}
	nodes := r.program.Graph.Funcs[f.fn].Nodes
	if in.Node < 0 || in.Node >= len(nodes) || in.Call < 0 || in.Call >= len(nodes[in.Node].Calls) {
		return fmt.Errorf("work %s is of no call of the graph", in.ID)
	}
	w := &work{id: in.ID, frame: f, slot: in.Slot, node: in.Node, number: in.Call, call: &nodes[in.Node].Calls[in.Call], attempt: in.Attempt, spent: in.Spent, args: in.Args, named: in.Named, retry: in.Retry, since: in.Since, failed: in.Failed}
	r.works[w.id] = w
	if w.retry != "" {
		r.retries[w.retry] = w
	}
	return nil
}
