package questions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/inspect"
	"github.com/settlehq/settle/worker"
)

// why answers why something in a space is as it is.
func (s *Server) why(ctx context.Context, q *Query) (*Why, error) {
	o := worker.InspectOptions{Record: true, Check: q.Check}
	if model.CheckName("document", q.Of) == nil {
		o.Document = q.Of
	}
	about, i, err := s.see(ctx, q, o)
	if err != nil {
		return nil, err
	}
	w := &Why{About: about}
	for _, try := range []struct {
		kind Kind
		find func(context.Context, *Query, *Why, *worker.Inspected) (bool, error)
	}{{KindNode, s.findNode}, {KindDocument, s.findDocument}, {KindEvent, s.findEvent}} {
		if q.As != "" && q.As != try.kind {
			continue
		}
		found, err := try.find(ctx, q, w, i)
		if err != nil {
			return nil, err
		}
		if found {
			w.Kind = try.kind
			return w, nil
		}
	}
	return nil, &model.ServiceError{Code: model.CodeNotFound, Text: notFound(q, i, &about) + ofPrincipal(q)}
}

// ofPrincipal is a hint at the id of an event for which the name may be a part: what the principal that has sent it has chosen.
func ofPrincipal(q *Query) string {
	if q.As != "" && q.As != KindEvent || model.CheckEventID(q.Of) != nil {
		return ""
	}
	return ". The id of an event that a principal has sent is PRINCIPAL=" + q.Of
}

// notFound says that a name was not found, and which nodes there are.
func notFound(q *Query, i *worker.Inspected, a *About) string {
	kinds := "node, document or event"
	if q.As != "" {
		kinds = string(q.As)
	}
	text := fmt.Sprintf("space %s has no %s %s", q.Space, kinds, clip(q.Of))
	if a.State == Unserved {
		return text + " that the log knows; " + a.Note
	}
	if i == nil {
		return text + " that the log knows; it is not in memory, and may have nodes that never ran"
	}
	var names []string
	for _, n := range i.Nodes() {
		if !isObserver(n.ID) {
			names = append(names, n.ID)
		}
	}
	if len(names) == 0 {
		return text + "; it has no nodes"
	}
	more := ""
	if most := 10; len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text + "; its nodes are " + strings.Join(names, ", ") + more
}

// findNode explains a node, also one that only the log knows.
func (s *Server) findNode(ctx context.Context, q *Query, w *Why, i *worker.Inspected) (bool, error) {
	if model.CheckName("node", q.Of) != nil {
		return false, nil
	}
	if i != nil {
		if _, there := i.Node(q.Of); !there {
			return false, nil
		}
	}
	n, err := s.node(ctx, q, i, q.Of)
	if err != nil || i == nil && n.Last == nil {
		return false, err
	}
	if i == nil {
		n.Reason = "the space is " + string(w.State) + ": " + w.Note
	}
	w.Node = n
	return true, nil
}

// node explains a node, from the log alone if i is nil.
func (s *Server) node(ctx context.Context, q *Query, i *worker.Inspected, id string) (*Node, error) {
	n := &Node{ID: id}
	if i != nil {
		e, _ := i.Explain(id)
		n.explain(&e, i)
		n.Circle = circleOf(i, id)
		n.Recent = recent(i, id, q.Limit)
		n.Recorded = i.Recorded
		n.NotIdempotent = contradiction(i, id)
	}
	if u, known := s.host.Cost(q.Space, id, false); known {
		n.Cost = &u
	}
	page, err := history.ReadEntries(ctx, s.bus, q.Space, history.LogQuery{Node: id, Limit: 1})
	if err != nil || len(page.Entries) == 0 {
		return n, err
	}
	e := page.Entries[0]
	n.Last = change(e, &e.Steps[len(e.Steps)-1])
	n.Inputs, err = s.inputs(ctx, q.Space, n.Last)
	return n, err
}

func change(e *history.Entry, s *history.Step) *Change {
	c := &Change{e.Revision, e.Time, e.Runtime, *s}
	for i := range c.Changes {
		c.Changes[i] = cut(c.Changes[i])
	}
	c.Result = cutValue(c.Result)
	c.Error = clip(c.Error)
	return c
}

// inputsWithin is how many commits before a run are searched for what made it run.
const inputsWithin = 50

// inputs finds the changes that made a run happen.
func (s *Server) inputs(ctx context.Context, space string, run *Change) ([]Input, error) {
	if len(run.Causes) == 0 {
		return nil, nil
	}
	page, err := history.ReadEntries(ctx, s.bus, space, history.LogQuery{Before: run.Revision + 1, Limit: inputsWithin})
	if err != nil {
		return nil, err
	}
	out := make([]Input, len(run.Causes))
	for n, cause := range run.Causes {
		out[n] = Input{Address: cause}
	}
	for _, e := range page.Entries {
		for k := range e.Steps {
			step := &e.Steps[k]
			if step.Transaction == run.Transaction {
				return out, nil
			}
			for n := range out {
				out[n].take(step)
			}
		}
	}
	return out, nil
}

// take keeps the change of a step, if it is one of the input.
func (in *Input) take(step *history.Step) {
	address := strings.TrimSuffix(in.Address, "#")
	for i := range step.Changes {
		c := &step.Changes[i]
		at := c.Document + c.Path
		if at == address || strings.HasPrefix(at, address+"/") || strings.HasPrefix(address, at+"/") {
			kept := cut(*c)
			in.Change, in.By = &kept, byOf(step)
			return
		}
	}
}

// byOf names what made a step.
func byOf(step *history.Step) string {
	if step.Event != nil && step.Kind == history.StepHandler {
		return fmt.Sprintf("event %s of stream %s", step.Event.Event, step.Name)
	}
	return string(step.Kind) + " " + step.Name
}

// explain fills in what the tables have.
func (n *Node) explain(e *inspect.Explanation, i *worker.Inspected) {
	n.Kind, n.Output, n.Height = e.Kind, e.Output, e.Height
	n.State, n.Status, n.Live = e.RunState.String(), e.Status, e.Live
	n.Runs, n.Errors = e.Stats.Runs, e.Stats.Errors
	if e.Stats.LastErr != nil {
		n.LastError = clip(e.Stats.LastErr.Error())
	}
	if e.RunState == inspect.Gated {
		n.Gate, n.Until = e.Gate, i.Time(e.Until).UTC()
	}
	n.Waits = e.Waits
	n.Reason, n.Need = reason(e, i), need(e)
	n.Pending = causesOf(e.Causes, e.Triggers)
	if b := e.Behind; b != nil {
		n.Behind = b.ID + ": " + reason(b, i)
	}
	for k := range e.Reads[:min(len(e.Reads), maxPlaces)] {
		n.Reads = append(n.Reads, clip(e.Reads[k].String()))
	}
	for k := range e.Writes[:min(len(e.Writes), maxPlaces)] {
		n.Writes = append(n.Writes, clip(e.Writes[k].Doc+e.Writes[k].Path.String()))
	}
}

// reason is why a node does not run now.
func reason(e *inspect.Explanation, i *worker.Inspected) string {
	switch e.RunState {
	case inspect.Running:
		return "it is running"
	case inspect.Runnable:
		return "it runs in the next pass"
	case inspect.Dormant:
		if e.Status == inspect.NeverRan {
			return "dormant: it never ran, since no observer needs it; what it reads is not known yet"
		}
		return "dormant: inputs have changed, and no observer needs it"
	case inspect.Gated:
		return fmt.Sprintf("held by its %s until %s", e.Gate, i.Time(e.Until).UTC().Format(time.RFC3339))
	case inspect.Waiting:
		return "waits for document " + e.Waits + ", which has not arrived"
	case inspect.Spent:
		return "over budget: it has run so often in this pass that it continues in the next one"
	case inspect.Halted:
		return "the space runs nothing: " + e.Halt
	}
	return "clean: nothing that it reads has changed since it ran"
}

// need is what needs a node, or what is missing.
func need(e *inspect.Explanation) string {
	var way []string
	root := e.Need
	for _, at := range e.Readers {
		if doc, is := inspect.Observed(at.Node); is {
			root = "document " + doc + " is observed"
			break
		}
		way = append(way, at.Node)
	}
	by := strings.Join(way, ", which is read by ")
	switch {
	case root != "" && by == "":
		return root
	case root != "":
		return "read by " + by + "; " + root
	case e.Live:
		return "needed"
	case by == "":
		return "no node reads it, and it is not observed"
	case e.Round:
		return "read by " + by + ", a circle that nothing outside of it needs"
	}
	return "read by " + by + ", which no node reads and which is not observed"
}

func causesOf(causes []string, triggers []inspect.TriggerEntry) (out []Cause) {
	for _, address := range causes {
		c := Cause{Address: clip(address)}
		for i := range triggers {
			if triggers[i].Cause == address {
				c.By = strings.Trim(triggers[i].Origin(), " ()")
			}
		}
		out = append(out, c)
	}
	return out
}

// contradiction describes the runs of a node that have read the same and written different values, "" if there are none.
func contradiction(i *worker.Inspected, id string) string {
	for _, c := range i.History().Contradictions() {
		if c.First.Node == id {
			return fmt.Sprintf("runs %d and %d have read the same; the first returned %s, the second %s",
				c.First.Run, c.Second.Run, clip(c.First.Value.String()), clip(c.Second.Value.String()))
		}
	}
	return ""
}

// recent returns the last recorded runs of a node, newest first.
func recent(i *worker.Inspected, id string, limit int) (out []Run) {
	h := i.History()
	pass := map[uint64][2]int{} // the first entry of a pass, and the number of its entries
	for k := range h.Runs {
		at, known := pass[h.Runs[k].Pass]
		if !known {
			at[0] = k
		}
		at[1]++
		pass[h.Runs[k].Pass] = at
	}
	for k := len(h.Runs) - 1; k >= 0 && len(out) < limit; k-- {
		r := &h.Runs[k]
		if r.Node != id {
			continue
		}
		run := Run{Time: i.Time(r.At).UTC(), Pass: r.Pass, Order: k - pass[r.Pass][0] + 1, Of: pass[r.Pass][1], Wrote: r.Wrote, Transaction: r.Tx, Waits: r.Waits}
		if r.Err != nil {
			run.Error = clip(r.Err.Error())
		}
		run.Causes = causesOf(r.Causes, before(h.Triggers, id, r))
		out = append(out, run)
	}
	return out
}

// before returns the last trigger for each cause of a run.
func before(triggers []inspect.TriggerEntry, id string, r *inspect.RunEntry) (out []inspect.TriggerEntry) {
	for _, cause := range r.Causes {
		for i := len(triggers) - 1; i >= 0; i-- {
			if t := &triggers[i]; t.N < r.N && t.Node == id && t.Cause == cause {
				out = append(out, *t)
				break
			}
		}
	}
	return out
}

// findDocument explains a document.
func (s *Server) findDocument(ctx context.Context, q *Query, w *Why, i *worker.Inspected) (bool, error) {
	if model.CheckName("document", q.Of) != nil {
		return false, nil
	}
	page, err := history.ReadEntries(ctx, s.bus, q.Space, history.LogQuery{Document: q.Of, Limit: q.Limit})
	if err != nil {
		return false, err
	}
	d := &Document{ID: q.Of, End: page.End}
	for _, e := range slices.Backward(page.Entries) {
		for k := range slices.Backward(e.Steps) {
			d.Changes = append(d.Changes, *change(e, &e.Steps[k]))
		}
	}
	d.Changes = d.Changes[:min(len(d.Changes), q.Limit)]
	if i == nil {
		return len(d.Changes) > 0, w.set(d)
	}
	readers := i.ReadersOf("", q.Of)
	d.Observed = slices.ContainsFunc(readers, isObserver)
	d.Value, d.Writers, d.Readers = cutValue(i.Value), bounded(i.WritersOf(q.Of)), bounded(slices.DeleteFunc(readers, isObserver))
	for _, id := range d.Writers {
		if n, _ := i.Node(id); n.Output == q.Of {
			if d.Derived, err = s.node(ctx, q, i, id); err != nil {
				return false, err
			}
		}
	}
	return !i.Value.IsAbsent() || len(d.Changes)+len(d.Writers)+len(d.Readers) > 0, w.set(d)
}

func (w *Why) set(d *Document) error {
	w.Document = d
	return nil
}

func bounded(names []string) []string { return names[:min(len(names), maxPlaces)] }

// findEvent explains an event.
func (s *Server) findEvent(ctx context.Context, q *Query, w *Why, i *worker.Inspected) (bool, error) {
	w.Document = nil
	tree, err := history.ReadTree(ctx, s.bus, history.TreeQuery{Event: q.Of, Space: q.Space, Stream: q.Stream, MaxEvents: 1})
	if missing, is := errors.AsType[*history.MissingError](err); is && !missing.Receipt {
		return false, nil
	}
	if _, ambiguous := errors.AsType[*history.AmbiguousError](err); ambiguous {
		return false, &model.ServiceError{Code: model.CodeBadRequest, Text: err.Error() + "; name the stream"}
	}
	if err != nil {
		return false, err
	}
	r := tree.Root
	e := &Event{
		EventRef: r.EventRef, State: string(r.State), Attempts: r.Attempts, Until: r.Until, Result: cutValue(r.Result), Error: clip(r.Error),
		Lane: r.Lane, Sent: r.Sent, Ended: r.Ended, Revision: r.Commit, CausedBy: tree.CausedBy, Caused: len(r.Caused) + r.More,
	}
	e.Reason = ended(e)
	if i != nil && !r.State.Ended() {
		e.wait(i)
	} else if i == nil && !r.State.Ended() {
		e.Reason = "it waits, and the space is " + string(w.State) + ": " + w.Note
	}
	w.Event = e
	return true, nil
}

// ended is how an event has ended, as a sentence.
func ended(e *Event) string {
	switch {
	case e.Ended.IsZero() && e.Error != "":
		return e.State + ": " + e.Error
	case e.Ended.IsZero():
		return e.State
	case e.Error != "":
		return fmt.Sprintf("%s at revision %d: %s", e.State, e.Revision, e.Error)
	}
	return fmt.Sprintf("%s at revision %d", e.State, e.Revision)
}

// wait explains an event that has not ended.
func (e *Event) wait(i *worker.Inspected) {
	for _, p := range i.Lane().Pending() {
		if p.ID != e.Event || e.Stream != "" && p.Stream != e.Stream {
			continue
		}
		e.State, e.Ahead = p.Reason.String(), p.Ahead
		switch p.Reason {
		case inspect.AtHead:
			head := headOf(i)
			e.Reason, e.Attempts, e.LastError, e.Until = head.Reason, head.Attempts, head.LastError, head.Until
		case inspect.Queued:
			e.Reason = fmt.Sprintf("%d events are before it; the first one: %s", p.Ahead, headOf(i).Reason)
		case inspect.ForItsTime:
			e.Until = time.UnixMilli(p.At).UTC()
			e.Reason = "it waits for its time, " + e.Until.Format(time.RFC3339)
		case inspect.Uncommitted:
			e.Reason = "it was handled, and the log has not confirmed that yet"
		case inspect.BeforeItsTurn:
			e.Reason = "it waits for the event before it from the same space, which has not arrived"
		case inspect.Behind:
			e.Reason = "the space sent it to itself, and it comes after events that have not been read yet"
		}
		return
	}
	e.Reason = "it is in the lane, and the space has not read it yet"
}

// clip bounds a text.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// cut bounds the values of a change.
func cut(c history.Place) history.Place {
	c.From, c.To = cutValue(c.From), cutValue(c.To)
	return c
}

// maxValue bounds the encoded values in answers.
const maxValue = 1024

// cutValue returns a value, or the beginning of its JSON as a string if that is too long.
func cutValue(v model.Value) model.Value {
	if v.IsAbsent() {
		return v
	}
	text := v.AppendJSON(nil)
	if len(text) <= maxValue {
		return v
	}
	return model.MustOf(strings.ToValidUTF8(string(text[:maxValue]), "") + "…")
}
