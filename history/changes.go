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
	Attempt *Attempt `json:"attempt,omitzero"`
	// Steps are the transactions, in the order in which they took effect.
	Steps []Step `json:"steps,omitzero"`
}

// Attempt is the record of an attempt at an event whose earlier attempts may have ended with their process.
type Attempt struct {
	Event  string `json:"event"`
	Number int    `json:"number,omitzero"`
	// Returned is set if the attempt has returned without a result.
	Returned bool `json:"returned,omitzero"`
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

// isRun reports whether it is a run of a node.
func (k StepKind) isRun() bool { return k == StepComputation || k == StepEffect }

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
	// Outcome is how the event of a handler ended; the rest is as in model.Receipt.
	Outcome  model.Outcome `json:"outcome,omitzero"`
	Result   model.Value   `json:"result,omitzero"`
	Error    string        `json:"error,omitzero"`
	Code     string        `json:"code,omitzero"`
	Attempts int           `json:"attempts,omitzero"`
	// Until is the time until which an event waits (StepLater).
	Until time.Time `json:"until,omitzero"`
	// Changes are the changed places, at most maxChanges; More is the number of the others.
	Changes []Place `json:"changes,omitzero"`
	More    int     `json:"more_changes,omitzero"`
	// Sends are the events that were sent, and timers that were set. Cancelled are waiting events that will not be handled, with what is
	// known of them besides their ids.
	Sends     []SentEvent `json:"sends,omitzero"`
	Cancelled []SentEvent `json:"cancelled,omitzero"`
	// Trace is the W3C traceparent of the transaction, if it has one.
	Trace string `json:"trace,omitzero"`
}

// SentEvent is an event that a transaction has sent.
type SentEvent struct {
	EventRef
	// Timer is the name of a timer, "" for other events. At is the time before which it is not handled, zero for at once.
	Timer string    `json:"timer,omitzero"`
	At    time.Time `json:"at,omitzero"`
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

// narrator describes commits that follow each other, oldest first. It keeps what they have written.
type narrator struct {
	space string
	docs  map[string]*partial
	// events are those whose handlings last led to a change of a document.
	events map[string]*EventRef
	// timers are those that were set and not cancelled, by the ids of their events.
	timers map[string]SentEvent
	// whole reports that the commits began with the first one of the space: what was not written has no value.
	whole bool
}

// maxDocs is how many documents and timers a narrator keeps; it begins anew, knowing nothing, when there are more.
const maxDocs = 4096

func newNarrator(space string, whole bool) *narrator {
	return &narrator{space: space, docs: map[string]*partial{}, events: map[string]*EventRef{}, timers: map[string]SentEvent{}, whole: whole}
}

// cancelled returns what is known of a waiting event that was cancelled.
func (t *narrator) cancelled(id string) SentEvent {
	e, known := t.timers[id]
	if !known {
		return SentEvent{EventRef: EventRef{Space: t.space, Event: id}}
	}
	delete(t.timers, id)
	return e
}

func (t *narrator) doc(id string) *partial {
	p := t.docs[id]
	if p == nil {
		if len(t.docs) >= maxDocs {
			*t = *newNarrator(t.space, false)
		}
		p = &partial{known: t.whole}
		t.docs[id] = p
	}
	return p
}

// take takes a commit that is not described: only the documents of those that are described matter.
func (t *narrator) take(c *model.Commit) {
	for i := range c.Txs {
		for j := range c.Txs[i].Writes {
			w := &c.Txs[i].Writes[j]
			if p := t.docs[w.Doc]; p != nil || t.whole {
				t.doc(w.Doc).set(w)
				delete(t.events, w.Doc)
			}
		}
	}
}

// describe returns the next commit as people read it.
func (t *narrator) describe(e *logged) *Entry {
	if len(t.timers) > maxDocs {
		clear(t.timers)
	}
	out := &Entry{
		Space: t.space, Revision: e.seq, Previous: e.prev, Time: e.stored, Runtime: e.c.Runtime,
		Takeover: e.c.Takeover, Join: e.c.Join, Program: e.c.Program,
	}
	if a := e.c.Trying; a != nil {
		out.Attempt = &Attempt{a.Event, a.Tries, a.Back}
	}
	for i := range e.c.Txs {
		out.Steps = append(out.Steps, t.step(e, &e.c.Txs[i]))
	}
	return out
}

func (t *narrator) step(e *logged, tx *model.Tx) Step {
	s := Step{Transaction: model.TxID{Space: t.space, Epoch: e.c.Epoch, N: tx.N}.String(), Causes: tx.Causes, Trace: tx.Parent}
	s.Kind, s.Name = kindOf(tx)
	s.Event = t.eventOf(tx, &s)
	if rc := tx.Receipt; rc != nil {
		s.Outcome, s.Result, s.Error, s.Code, s.Attempts = rc.Outcome, rc.Result, rc.Error, rc.Code, max(rc.Attempts, 1)
	}
	if tx.Later != nil {
		s.Until = timeOf(tx.Later.NotBefore)
	}
	for i := range tx.Sends {
		sent := &tx.Sends[i]
		s.Sends = append(s.Sends, SentEvent{EventRef{sent.To, sent.Stream, sent.ID}, sent.Timer, timeOf(sent.NotBefore)})
		if sent.Timer != "" {
			t.timers[sent.ID] = s.Sends[i]
		}
	}
	for _, c := range tx.Cancels {
		s.Cancelled = append(s.Cancelled, t.cancelled(c.ID))
	}
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

// timeOf returns a time in milliseconds since 1970, the zero time for 0.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// kindOf returns what made a transaction.
func kindOf(tx *model.Tx) (StepKind, string) {
	if stream, is := receipts.Stream(tx.By); is && tx.Receipt != nil {
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
func (t *narrator) eventOf(tx *model.Tx, s *Step) *EventRef {
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
	for d := range model.Differences(w.Doc, before, after) {
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
