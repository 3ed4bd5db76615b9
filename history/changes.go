package history

import (
	"strings"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// Entry is a commit of a space's log as people read it.
type Entry struct {
	Space string `json:"space"`
	// Revision is the log sequence of the commit, and Previous that of the commit before it, 0 for the first one of the space. Time
	// is when it was stored, by the server's clock, and Runtime the process that made it.
	Revision uint64    `json:"revision"`
	Previous uint64    `json:"previous,omitzero"`
	Time     time.Time `json:"time"`
	Runtime  string    `json:"runtime"`
	// Takeover is set if the runtime owns the space from this commit on, Join if it takes part beside the owner. Program is the version
	// of the program from this commit on, "" for that of the commit before.
	Takeover bool   `json:"takeover,omitzero"`
	Join     bool   `json:"join,omitzero"`
	Program  string `json:"program,omitzero"`
	// Attempt is set if the commit records an attempt at an event.
	Attempt *model.Trying `json:"attempt,omitzero"`
	// Steps are the transactions, in the order in which they took effect.
	Steps []Step `json:"steps,omitzero"`
}

// StepKind is what made a transaction.
type StepKind string

const (
	// StepHandler is the handling of an event: Step.Name is its stream.
	StepHandler StepKind = "handler"
	// StepComputation and StepEffect are runs of a node: Step.Name is its id.
	StepComputation StepKind = "computation"
	StepEffect      StepKind = "effect"
	// StepLater is an event of the lane that waits in the space from here on, until its time.
	StepLater StepKind = "later"
	// StepDirect is a transaction of the application that hosts the space, or of a command: Step.Name is the name that it has chosen.
	StepDirect StepKind = "direct"
)

// Step is one transaction.
type Step struct {
	// Transaction is its id.
	Transaction string   `json:"transaction"`
	Kind        StepKind `json:"kind"`
	Name        string   `json:"name"`
	// Event is the event that was handled or, for a run, one whose handling changed what made the node run; nil if it is not known.
	Event *EventRef `json:"event,omitzero"`
	// Causes are the addresses whose changes made a node run.
	Causes []string `json:"causes,omitzero"`
	// Receipt is how the event of a handler ended.
	Receipt *model.Receipt `json:"receipt,omitzero"`
	// Changes are the changed places, at most maxChanges; More is the number of the others.
	Changes []Place `json:"changes,omitzero"`
	More    int     `json:"more_changes,omitzero"`
	// Sends are the events that were sent, and timers that were set. Cancelled are the waiting events that will not be handled.
	Sends     []model.Send   `json:"sends,omitzero"`
	Later     *model.Waiting `json:"later,omitzero"`
	Cancelled []model.Cancel `json:"cancelled,omitzero"`
	Trace     string         `json:"trace,omitzero"`
}

// Place is a place of a document with another value than before.
type Place struct {
	Document string `json:"document"`
	// Path is a JSON pointer, "" for the whole document.
	Path string `json:"path,omitzero"`
	// From and To are the values, absent if there is none. Unknown is set if what is left of the log, or what was read of it, does not
	// contain the value before.
	From    model.Value `json:"from,omitzero"`
	To      model.Value `json:"to,omitzero"`
	Unknown bool        `json:"from_unknown,omitzero"`
}

// maxChanges is the largest number of changes that a step lists.
const maxChanges = 200

// teller describes commits that follow each other, oldest first. It keeps what they have written.
type teller struct {
	space string
	docs  map[string]*partial
	// events are those whose handlings last led to a change of a document.
	events map[string]*EventRef
	// whole reports that the commits began with the first one of the space: what was not written has no value.
	whole bool
}

// maxDocs is how many documents a teller keeps; it begins anew, knowing nothing, when there are more.
const maxDocs = 4096

func newTeller(space string, whole bool) *teller {
	return &teller{space: space, docs: map[string]*partial{}, events: map[string]*EventRef{}, whole: whole}
}

func (t *teller) doc(id string) *partial {
	p := t.docs[id]
	if p == nil {
		if len(t.docs) >= maxDocs {
			*t = *newTeller(t.space, false)
		}
		p = &partial{known: t.whole}
		t.docs[id] = p
	}
	return p
}

// tell describes the next commit.
func (t *teller) tell(e *logged) *Entry {
	out := &Entry{
		Space: t.space, Revision: e.seq, Previous: e.prev, Time: e.stored, Runtime: e.c.Runtime,
		Takeover: e.c.Takeover, Join: e.c.Join, Program: e.c.Program, Attempt: e.c.Trying,
	}
	for i := range e.c.Txs {
		out.Steps = append(out.Steps, t.step(e, &e.c.Txs[i]))
	}
	return out
}

func (t *teller) step(e *logged, tx *model.Tx) Step {
	s := Step{
		Transaction: model.TxID{Space: t.space, Epoch: e.c.Epoch, N: tx.N}.String(), Causes: tx.Causes, Receipt: tx.Receipt,
		Sends: tx.Sends, Later: tx.Later, Cancelled: tx.Cancels, Trace: tx.Parent,
	}
	s.Kind, s.Name = kindOf(tx)
	s.Event = t.eventOf(tx, &s)
	for i := range tx.Writes {
		w := &tx.Writes[i]
		s.change(t.doc(w.Doc), w)
		if s.Event != nil {
			t.events[w.Doc] = s.Event
		} else {
			delete(t.events, w.Doc)
		}
	}
	return s
}

// kindOf returns what made a transaction.
func kindOf(tx *model.Tx) (StepKind, string) {
	if stream, is := receipts.Stream(tx.By); is && (tx.Receipt != nil || tx.Later == nil) {
		return StepHandler, stream
	}
	if tx.Later != nil {
		return StepLater, tx.Later.Stream
	}
	if id, is := strings.CutPrefix(tx.By, "compute "); is {
		return StepComputation, id
	}
	if id, is := strings.CutPrefix(tx.By, "effect "); is {
		return StepEffect, id
	}
	return StepDirect, tx.By
}

// eventOf returns the event of a handling, or that of the last known change of something that made a node run.
func (t *teller) eventOf(tx *model.Tx, s *Step) *EventRef {
	switch {
	case s.Kind == StepHandler && tx.Receipt != nil:
		return &EventRef{t.space, s.Name, tx.Receipt.Event}
	case s.Kind == StepLater:
		return &EventRef{t.space, s.Name, tx.Later.ID}
	case s.Kind == StepDirect:
		return nil
	}
	for _, cause := range tx.Causes {
		if ev := t.events[documentOf(cause)]; ev != nil {
			return ev
		}
	}
	return nil
}

// documentOf returns the document of an address of the space, "" for one of another space.
func documentOf(address string) string {
	if strings.HasPrefix(address, "@") {
		return ""
	}
	if i := strings.IndexAny(address, "/#"); i >= 0 {
		return address[:i]
	}
	return address
}

// change applies a write, and adds what it changes.
func (s *Step) change(p *partial, w *model.Write) {
	before, known := p.at(w.Path)
	p.set(w)
	after := w.Value
	if w.Delete {
		after = model.Value{}
	}
	if !known {
		s.add(Place{Document: w.Doc, Path: w.Path.String(), To: after, Unknown: true})
		return
	}
	for _, d := range model.Diff(w.Doc, before, after) {
		path := append(w.Path[:len(w.Path):len(w.Path)], d.Path...)
		s.add(Place{Document: w.Doc, Path: path.String(), From: before.At(d.Path), To: after.At(d.Path)})
	}
}

func (s *Step) add(c Place) {
	if len(s.Changes) == maxChanges {
		s.More++
		return
	}
	s.Changes = append(s.Changes, c)
}
