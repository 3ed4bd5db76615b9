package runs

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/workflow"
)

// Attempt is an attempt of an action of a run, or a child that the run has started.
type Attempt struct {
	// Work is the call that it belongs to, Number which attempt of it, and Line the place of the call in the source.
	Work   string `json:"work"`
	Number int    `json:"number"`
	Line   int32  `json:"line,omitzero"`
	// Action is what is called, or Child the workflow that a run was started of.
	Action string `json:"action,omitzero"`
	Child  string `json:"child,omitzero"`
	// Args is an array of the positional arguments, and Named an object of the named ones. Of a child, Args is the object of its arguments.
	Args  jsontext.Value `json:"args,omitzero"`
	Named jsontext.Value `json:"named,omitzero"`
	// State is that of the attempt; Started and Ended are times in milliseconds since 1970, Ended is 0 before the end. Step is the step that has
	// started it, and EndedStep that which has ended it.
	State     State `json:"state"`
	Started   int64 `json:"started"`
	Ended     int64 `json:"ended,omitzero"`
	Step      int   `json:"step"`
	EndedStep int   `json:"ended_step,omitzero"`
	// Result or Error is how it has ended.
	Result jsontext.Value `json:"result,omitzero"`
	Error  *ActionError   `json:"error,omitzero"`
}

// Timeline are the attempts of a run, in the order in which they were started.
type Timeline struct {
	Attempts []Attempt `json:"attempts"`
	// From is the number of steps before the first that is kept: attempts that ended in those are not known.
	From int `json:"from,omitzero"`
	// Opaque reports that attempts are not known: the code of the run calls functions of the worker's process.
	Opaque bool `json:"opaque,omitzero"`
}

// timelineBuilder notes attempts.
type timelineBuilder struct {
	graph *workflow.Graph
	open  map[string]int // the newest attempt of each call that has not ended, by its place in the list
	t     *Timeline
}

// newTimeline returns the timeline of a run from its present state on.
func newTimeline(d *driver, g *workflow.Graph) *timelineBuilder {
	b := &timelineBuilder{graph: g, open: map[string]int{}, t: &Timeline{From: d.n}}
	for _, w := range d.run.Open() {
		if was, is := d.pending[w.ID]; is {
			b.add(Attempt{Work: w.ID, Number: was.Attempt, Action: w.Action, Child: w.Child, Started: w.Since})
		}
	}
	return b
}

func (b *timelineBuilder) add(a Attempt) {
	a.State = Running
	if _, line := b.graph.ActionOf(a.Work); line > 0 {
		a.Line = line
	}
	b.open[a.Work] = len(b.t.Attempts)
	b.t.Attempts = append(b.t.Attempts, a)
}

// end notes the end of the attempt of a call that has not ended, and returns it, nil if there is none.
func (b *timelineBuilder) end(d *driver, work string, how State) *Attempt {
	i, is := b.open[work]
	if !is {
		return nil
	}
	delete(b.open, work)
	a := &b.t.Attempts[i]
	a.State, a.Ended, a.EndedStep = how, d.now, d.n
	return a
}

// step notes what a step has ended and started.
func (b *timelineBuilder) step(d *driver, rec *record, did *plan) {
	switch {
	case rec.Done != nil:
		if a := b.end(d, rec.Done.Work, Done); a != nil {
			a.Result = rec.Done.Result
		}
	case rec.Failed != nil:
		if a := b.end(d, rec.Failed.Work, Failed); a != nil {
			a.Error = errorIn(rec.Failed)
		}
	}
	for id := range did.cancel { // any order: each is its own
		b.end(d, id, Cancelled)
	}
	if did.outcome != nil || rec.Resume != nil { // a run that goes on starts anew what was pending
		for id := range b.open { // any order: each is its own
			b.end(d, id, Cancelled)
		}
	}
	for i := range did.start {
		w := &did.start[i]
		b.add(Attempt{Work: w.ID, Number: w.Attempt, Action: w.Action, Child: w.Child, Args: w.Args, Named: w.Named, Started: d.now, Step: d.n})
	}
}
