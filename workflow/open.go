package workflow

import (
	"maps"
	"slices"
)

// Open is something that a run waits for.
type Open struct {
	// ID is the ID of the work, of the timer, or of the activation that waits for a signal.
	ID string
	// Func and Node are the place in the graph.
	Func, Node int
	// Action is what is called, or Child the workflow that a run was started of, and Attempt the attempt; Retry means that the next attempt waits for its time.
	Action  string
	Child   string
	Attempt int
	Retry   bool
	// Since is when the run began to wait for it, for an action when the attempt began or the pause before it, in milliseconds
	// since 1970. It is 0 if a version of this package has stored the run that did not keep it.
	Since int64
	// Failed is the error of the attempt before, at most 100 characters of it.
	Failed string
	// Signal is the signal that is waited for, or Until the text of the condition.
	Signal string
	Until  string
}

// Open returns what a run waits for, sorted by ID.
func (r *Run) Open() []Open {
	var list []Open
	for _, id := range slices.Sorted(maps.Keys(r.works)) {
		w := r.works[id]
		list = append(list, Open{ID: id, Func: w.frame.fn, Node: w.node, Action: w.call.Action, Child: w.call.Child, Attempt: w.attempt, Retry: w.retry != "", Since: w.since, Failed: w.failed})
	}
	return append(list, r.waits()...)
}

// Waits returns the signals, conditions and times that a run waits for, sorted by ID. If more than most calls of functions are under way, none is
// returned, and false: it would take long to look at all.
func (r *Run) Waits(most int) (list []Open, known bool) {
	if len(r.frames) > most {
		return nil, false
	}
	return r.waits(), true
}

func (r *Run) waits() (list []Open) {
	for _, id := range slices.Sorted(maps.Keys(r.frames)) {
		f := r.frames[id]
		switch a := f.wait; {
		case a == nil:
		case a.signal != "":
			list = append(list, Open{ID: "wait " + f.key(a.node), Func: f.fn, Node: a.node, Signal: a.signal, Since: a.since})
		case a.until != nil:
			list = append(list, Open{ID: waitID(f, a.node), Func: f.fn, Node: a.node, Until: oneLine(r.node(f, a.node).Until.Text), Since: a.since})
		case a.timer != "":
			list = append(list, Open{ID: a.timer, Func: f.fn, Node: a.node, Since: a.since})
		}
	}
	return list
}
