package runs

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
)

// A child is a run that another run has started, its parent, and waits for. Their spaces send each other events
// (docs/adr/0054): StreamChild starts it, in the commit of the parent's step; StreamChildEnd has its end, in the commit
// that ends it; StreamChildCancel ends it because the parent does not wait any more. A call is named by a hash of the
// parent, the activation and the attempt, so that an event of an abandoned call has no effect.

// Bounds of children.
const (
	// maxDepth is the largest number of runs that wait for each other in a chain.
	maxDepth = 32
	// maxJoined is the largest number of calls that join a run which exists.
	maxJoined = 1000
	// keptChildren is the number of ended children that a run keeps for its status, at least.
	keptChildren = 64
	// maxReports is the number of ends that one transaction sends.
	maxReports = 256
	// maxChildBytes bounds what the starts of one step need in its commit, and childBytes is what each needs besides its
	// arguments and its chain. The others wait for the next step.
	maxChildBytes = 160 << 10
	childBytes    = 500
	// maxLinks is the place in a chain of events (model.Event.Depth) from which on runs send with a delay, which
	// begins a new chain: a loop of children is no runaway, nor is a run that starts many calls.
	maxLinks = 500
)

// Types of the errors of a child that is not started. UnknownWorkflowError and RunExistsError descend from StartError, and
// so does the LimitError of a space without room.
const (
	StartError           = "StartError"
	UnknownWorkflowError = "UnknownWorkflowError"
	RunExistsError       = "RunExistsError"
)

// childTimer is in front of the IDs of the timers that limit children.
const childTimer = "child "

// checkChildren returns an error if a workflow starts runs in its own space of one that the program does not have.
func (s *Set) checkChildren() error {
	for _, d := range s.Definitions() {
		for _, name := range d.Graph.Children() {
			if s.byName[name] == nil {
				return fmt.Errorf("workflow %s starts runs of workflow %q, and this program has %s; if another space runs it, name that: child(%q, {...}, space = ...)", d.Name, name, s.names(), name)
			}
		}
	}
	return nil
}

// options are what a call says of a child besides its arguments.
type options struct {
	ID    string `json:"id,omitzero"`
	Space string `json:"space,omitzero"`
}

// refusedChild returns why a child cannot be started, as far as that is known here.
func (d *driver) refusedChild(w *workflow.Work) *workflow.Failed {
	var o options
	err := json.Unmarshal(w.Named, &o)
	if err == nil && o.ID != "" {
		err = CheckID(o.ID)
	}
	if err == nil && o.Space != "" {
		err = model.CheckName("space", o.Space)
	}
	f := &workflow.Failed{Work: w.ID, Attempt: w.Attempt, Type: StartError}
	switch {
	case err != nil:
		f.Message = fmt.Sprintf("child %s: %v", w.Child, err)
	case len(d.chain)+1 >= maxDepth:
		f.Type, f.Ancestors = workflow.LimitError, []string{StartError}
		f.Message = fmt.Sprintf("child %s: %d runs wait for each other, the first of them %s; more are not possible: does a workflow start itself without end?", w.Child, len(d.chain)+1, d.chain[0])
	default:
		return nil
	}
	return f
}

// costOf returns what the start of a child needs in a commit, 0 for an action.
func (d *driver) costOf(w *workflow.Work) int {
	if w.Child == "" {
		return 0
	}
	n := sizeOf(w) + childBytes
	for _, name := range d.chain {
		n += len(name) + 3
	}
	return n
}

// childTimedOut ends the wait for a child, and returns the input of that.
func (d *driver) childTimedOut(work string, p *plan) workflow.Input {
	was, is := d.end(work, p)
	if is {
		p.cancel[work] = was
	}
	return workflow.Input{Now: d.now, Failed: &workflow.Failed{
		Work: work, Attempt: was.Attempt, Type: workflow.TimeoutError, Message: fmt.Sprintf("child %s has not ended in time", was.Child),
	}}
}

// callName returns the name of a call: 26 letters and digits, which differ for each attempt of each call of each run. A
// run whose ID was used before differs from the earlier one by what has started it.
func callName(in, id, cause string, work string, attempt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s/%d/%s", in, id, cause, attempt, work))
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// callNameLen is the length of the name of a call.
const callNameLen = 26

// childID returns the ID of a child whose call gives none.
func childID(parent, call string) string {
	return parent[:min(len(parent), maxRunID-callNameLen-1)] + "-" + call
}

// callOf returns the name of a call of a run of this space.
func (h *host) callOf(id, work string, attempt int) string {
	doc := h.tx.Peek(Doc(id))
	cause, is := doc.Get("cause").AsString()
	if !is {
		cause = doc.Get("at").String()
	}
	return callName(h.tx.Space(), id, cause, work, attempt)
}

// causeOf returns what identifies the event that starts a run, absent if it is not known. It is the same if the event is
// handled again because a server has lost the commit: another space may have been sent the starts of that one.
func causeOf(ev *model.Event) model.Value {
	if key := ev.CauseKey(); key != 0 {
		return model.String(strconv.FormatUint(key, 36))
	}
	return model.Value{}
}

// States of a call of a child beside those of its run.
const refused State = "refused"

// writeChildren sends what a step requests of children: first what is no longer needed, then what is to be started.
func (h *host) writeChildren(id string, p *plan) {
	for _, work := range slices.Sorted(maps.Keys(p.cancel)) {
		if was := p.cancel[work]; was.Child != "" {
			h.cancelChild(id, h.callOf(id, work, was.Attempt))
		}
	}
	var own, away []*workflow.Work
	for i := range p.start {
		switch w := &p.start[i]; {
		case w.Child == "":
		case h.spaceOf(w) == h.tx.Space():
			own = append(own, w)
		default:
			away = append(away, w)
		}
	}
	if len(own)+len(away) == 0 {
		return
	}
	h.forgetChildren(id)
	for _, w := range own {
		h.startChild(id, w)
	}
	if len(away) == 0 {
		return
	}
	var sent []model.Value
	for _, w := range away {
		sent = append(sent, model.String(h.startChild(id, w)))
	}
	h.tx.Send(h.tx.Space(), StreamChildSent, model.Object(model.F("run", id), model.F("calls", model.Array(sent...))))
}

// optionsOf returns the options of a call, which were checked.
func optionsOf(w *workflow.Work) (o options) {
	_ = json.Unmarshal(w.Named, &o)
	return o
}

func (h *host) spaceOf(w *workflow.Work) string { return cmp.Or(optionsOf(w).Space, h.tx.Space()) }

// startChild sends the start of a child, and returns the name of the call.
func (h *host) startChild(id string, w *workflow.Work) string {
	call, in := h.callOf(id, w.ID, w.Attempt), h.spaceOf(w)
	run := cmp.Or(optionsOf(w).ID, childID(id, call))
	args, err := model.ParseValue(w.Args)
	if err != nil {
		h.tx.Fail(err)
		return call
	}
	chain := append(chainOf(h.tx.Peek(Doc(id))), h.tx.Space()+"/"+id)
	h.tx.Set(childrenDoc(id), model.Object(
		model.F("workflow", w.Child), model.F("space", in), model.F("run", run), model.F("state", string(Running)), model.F("at", h.now()),
		model.F("work", w.ID), model.F("attempt", w.Attempt),
	), call)
	start := []model.Field{
		model.F("workflow", w.Child), model.F("run", run), model.F("args", args), model.F("parent", id), model.F("call", call), model.F("chain", array(chain)),
	}
	if priority := priorityOf(h.tx.Peek(Doc(id))); priority != 0 {
		start = append(start, model.F("priority", priority))
	}
	h.tx.Send(in, StreamChild, model.Object(start...))
	return call
}

func array(list []string) model.Value {
	out := make([]model.Value, len(list))
	for i, text := range list {
		out[i] = model.String(text)
	}
	return model.Array(out...)
}

// textsOf is the inverse of array.
func textsOf(v model.Value) (list []string) {
	for e := range v.Elements() {
		text, _ := e.AsString()
		list = append(list, text)
	}
	return list
}

// cancelChild sends that a call is abandoned.
func (h *host) cancelChild(id, call string) {
	entry := h.tx.Peek(childrenDoc(id), call)
	in, _ := entry.Get("space").AsString()
	run, is := entry.Get("run").AsString()
	if !is {
		return
	}
	h.callEnded(id, call, Cancelled)
	h.tx.Send(in, StreamChildCancel, model.Object(model.F("run", run), model.F("call", call)))
}

// callEnded notes how a call has ended.
func (h *host) callEnded(id, call string, state State) {
	h.tx.Set(childrenDoc(id), string(state), call, "state")
	h.tx.Set(childrenDoc(id), h.now(), call, "ended")
}

// forgetChildren removes ended children from the status of a run if there are many.
func (h *host) forgetChildren(id string) {
	all := h.tx.Peek(childrenDoc(id))
	if all.Len() < maxChildren+keptChildren {
		return
	}
	var list []Child
	for call, entry := range all.All() {
		if c := childOf(entry); c.State != Running {
			c.call = call
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b Child) int { return cmp.Or(cmp.Compare(a.Ended, b.Ended), cmp.Compare(a.call, b.call)) })
	for _, c := range list[:max(len(list)-keptChildren, 0)] {
		h.tx.Delete(childrenDoc(id), c.call)
	}
}

// sender returns the space that has sent an event. Its name is in the ID, which only the system mints; so it is in that
// of an event which was redriven.
func sender(ev *model.Event) (string, error) {
	tx, minted := model.OriginOf(model.FirstID(ev.ID))
	if !minted {
		return "", fmt.Errorf("only spaces send events of stream %s, on which runs report to each other; clients send %s, %s and %s", ev.Stream, StreamStart, StreamSignal, StreamCancel)
	}
	return tx.Space, nil
}

// caller is the call that waits for a run.
type caller struct {
	space, run, call string
	chain            []string
}

// callerOf returns the caller that an event names.
func callerOf(ev *model.Event) (by caller, err error) {
	if by.space, err = sender(ev); err != nil {
		return by, err
	}
	by.run, _ = ev.Payload.Get("parent").AsString()
	by.call, _ = ev.Payload.Get("call").AsString()
	by.chain = textsOf(ev.Payload.Get("chain"))
	if err := CheckID(by.run); err != nil {
		return by, err
	}
	if len(by.call) != callNameLen {
		return by, fmt.Errorf("%.50q is no name of a call", by.call)
	}
	return by, nil
}

// childStart handles the start of a child. Whatever the caller can be the reason of is reported to it, and no failure of the
// event.
func (s *Set) childStart(tx *space.Tx, ev *model.Event) (model.Value, error) {
	by, err := callerOf(ev)
	if err != nil {
		return model.Value{}, err
	}
	h := s.host(tx)
	started, why, err := h.startOrJoin(ev, &by)
	switch {
	case err != nil:
		return model.Value{}, err
	case why != nil:
		h.send(by.space, StreamChildEnd, model.Object(
			model.F("run", by.run), model.F("call", by.call), model.F("state", string(refused)), model.F("error", errorValue(why)),
		))
		return model.Object(model.F("refused", why.Message)), nil
	}
	return model.Object(model.F("run", ev.Payload.Get("run")), model.F("started", started)), nil
}

// startOrJoin starts a child, or joins it if it exists with the same workflow and arguments. why is the reason for a refusal.
func (h *host) startOrJoin(ev *model.Event, by *caller) (started bool, why *ActionError, err error) {
	id, _ := ev.Payload.Get("run").AsString()
	name, _ := ev.Payload.Get("workflow").AsString()
	args := ev.Payload.Get("args")
	d := h.set.byName[name]
	if err := CheckID(id); err != nil {
		return false, &ActionError{Type: StartError, Message: err.Error()}, nil
	}
	if args.Kind() != model.KindObject || len(args.String()) > MaxValue || len(by.chain) > maxDepth {
		return false, &ActionError{Type: StartError, Message: "the start of run " + id + " is not as this version sends it"}, nil
	}
	if state := h.state(id); state != "" {
		if _, err := h.exists(id, name, args, state); err != nil {
			return false, &ActionError{Type: RunExistsError, Ancestors: []string{StartError}, Message: err.Error()}, nil
		}
		return false, h.join(id, state, by), nil
	}
	if d == nil {
		return false, &ActionError{Type: UnknownWorkflowError, Ancestors: []string{StartError}, Message: fmt.Sprintf("the program of space %s has no workflow %q; it has %s", h.tx.Space(), name, h.set.names())}, nil
	}
	err = h.create(d, id, args, origin{by: by, priority: priorityOf(ev.Payload)})
	if errors.Is(err, ErrFull) {
		return false, &ActionError{Type: workflow.LimitError, Ancestors: []string{StartError}, Message: err.Error()}, nil
	}
	return true, nil, err
}

// writeParent writes which call waits for a new run.
func (h *host) writeParent(id string, by *caller) {
	h.tx.Set(Index, by.space+"/"+by.run, id, "parent")
	h.tx.Set(Doc(id), model.Object(model.F("space", by.space), model.F("run", by.run), model.F("call", by.call)), "parent")
	h.tx.Set(Doc(id), array(by.chain), "chain")
}

// chainOf returns the runs that wait for a run, from the first on.
func chainOf(doc model.Value) []string { return textsOf(doc.Get("chain")) }

// join has a call wait for a run that exists.
func (h *host) join(id string, state State, by *caller) *ActionError {
	doc := h.tx.Peek(Doc(id))
	first, _ := doc.Get("parent").Get("call").AsString()
	switch {
	case first == by.call && state == Running: // it is this call that has started the run
	case first != by.call && id == childID(by.run, by.call):
		return &ActionError{Type: RunExistsError, Ancestors: []string{StartError}, Message: fmt.Sprintf("run %s exists, and is not of this call, from which its ID follows", id)}
	case state != Running:
		h.end(doc, by)
	case slices.Contains(by.chain, h.tx.Space()+"/"+id):
		return &ActionError{Type: StartError, Message: fmt.Sprintf("run %s waits for this call, so the call cannot wait for it; give the child another ID", id)}
	case doc.Get("joined").Len() >= maxJoined:
		return &ActionError{Type: workflow.LimitError, Ancestors: []string{StartError}, Message: fmt.Sprintf("%d calls have joined run %s; more are not possible", maxJoined, id)}
	default:
		h.tx.Set(Doc(id), model.Object(model.F("space", by.space), model.F("run", by.run)), "joined", by.call)
	}
	return nil
}

// send sends an event that is no reason to end a chain of events.
func (h *host) send(to, stream string, payload model.Value) {
	if ev := h.tx.Event(); ev != nil && ev.Depth >= maxLinks {
		h.tx.SendAfter(to, stream, time.Millisecond, payload)
		return
	}
	h.tx.Send(to, stream, payload)
}

// end sends the end of a run to a call that waits for it.
func (h *host) end(doc model.Value, by *caller) {
	fields := []model.Field{model.F("run", by.run), model.F("call", by.call), model.F("state", doc.Get("state"))}
	for _, name := range []string{"result", "error"} {
		if v := doc.Get(name); !v.IsAbsent() {
			fields = append(fields, model.F(name, v))
		}
	}
	h.send(by.space, StreamChildEnd, model.Object(fields...))
}

// report sends the end of a run to the call that has started it, and to those that have joined it.
func (h *host) report(id string) {
	doc := h.tx.Peek(Doc(id))
	if by := joinedBy(doc.Get("parent")); by.space != "" {
		by.call, _ = doc.Get("parent").Get("call").AsString()
		h.end(doc, &by)
	}
	h.reportJoined(id, doc)
}

func joinedBy(v model.Value) (by caller) {
	by.space, _ = v.Get("space").AsString()
	by.run, _ = v.Get("run").AsString()
	return by
}

// reportJoined sends the end of a run to calls that have joined it. What is too much for a transaction is for another one.
func (h *host) reportJoined(id string, doc model.Value) {
	calls := doc.Get("joined").Keys()
	if len(calls) == 0 {
		return
	}
	size := len(doc.Get("result").String()) + len(doc.Get("error").String())
	now := min(len(calls), maxReports, max(MaxValue/max(size, 1), 1))
	for _, call := range calls[:now] {
		by := joinedBy(doc.Get("joined").Get(call))
		by.call = call
		h.end(doc, &by)
		h.tx.Delete(Doc(id), "joined", call)
	}
	if now < len(calls) {
		h.send(h.tx.Space(), StreamTimer, model.Object(model.F("run", id)))
	}
}

// reportMore continues reportJoined, of a run that has ended.
func (h *host) reportMore(id string) {
	if state := h.state(id); state != "" && state != Running {
		h.reportJoined(id, h.tx.Peek(Doc(id)))
	}
}

// unreported reports whether calls wait for the report of an end.
func (h *host) unreported(id string) bool { return h.tx.Peek(Doc(id)).Get("joined").Len() > 0 }

func ignored(why string) model.Value { return model.Object(model.F("ignored", why)) }

// childCancel handles that a call does not wait any more: the run that it has started is cancelled, and one that it has
// joined goes on.
func (s *Set) childCancel(tx *space.Tx, ev *model.Event) (model.Value, error) {
	from, err := sender(ev)
	if err != nil {
		return model.Value{}, err
	}
	h := s.host(tx)
	id, _ := ev.Payload.Get("run").AsString()
	call, _ := ev.Payload.Get("call").AsString()
	if h.state(id) != Running {
		return ignored("the run has ended"), nil
	}
	doc := tx.Peek(Doc(id))
	if by := joinedBy(doc.Get("joined").Get(call)); by.space == from {
		tx.Delete(Doc(id), "joined", call)
		return model.Value{}, nil
	}
	by := joinedBy(doc.Get("parent"))
	if first, _ := doc.Get("parent").Get("call").AsString(); by.space != from || first != call {
		return ignored("the call has not started the run"), nil
	}
	if err := h.step(id, &record{Cancel: fmt.Sprintf("run %s in space %s, which has started it, does not wait for it any more", by.run, from)}); err != nil {
		return model.Value{}, err
	}
	return model.Value{}, h.wake()
}

// childEnd handles the end of a child, or the refusal of its start.
func (s *Set) childEnd(tx *space.Tx, ev *model.Event) (model.Value, error) {
	from, err := sender(ev)
	if err != nil {
		return model.Value{}, err
	}
	h := s.host(tx)
	id, _ := ev.Payload.Get("run").AsString()
	call, _ := ev.Payload.Get("call").AsString()
	if h.state(id) != Running {
		return ignored("the run has ended"), nil
	}
	entry := tx.Peek(childrenDoc(id), call)
	if in, _ := entry.Get("space").AsString(); in != from {
		return ignored("the run does not wait for a child in space " + from), nil
	}
	state, _ := ev.Payload.Get("state").AsString()
	return h.childEnded(id, call, State(state), ev.Payload.Get("result"), ev.Payload.Get("error"))
}

// childEnded completes a call, unless it was abandoned.
func (h *host) childEnded(id, call string, state State, result, failure model.Value) (model.Value, error) {
	entry := h.tx.Peek(childrenDoc(id), call)
	if childOf(entry).State != Running {
		return ignored("the run does not wait for it any more"), nil
	}
	work, _ := entry.Get("work").AsString()
	attempt, _ := entry.Get("attempt").AsInt()
	rec := &record{Done: &workflow.Done{Work: work, Attempt: int(attempt)}}
	why := ActionError{}
	switch {
	case state == Done && !result.IsAbsent():
		rec.Done.Result = jsontext.Value(result.String())
		if size := len(rec.Done.Result); size > MaxValue {
			why = ParseError(tooLarge("the result", size))
		}
	case state != Done:
		if why = causeIn(failure); len(why.Text()) > MaxValue {
			why = ParseError(tooLarge("the error", len(why.Text())))
		}
	}
	if why.Type != "" {
		rec.Done, rec.Failed = nil, &workflow.Failed{Work: work, Attempt: int(attempt), Type: why.Type, Ancestors: why.Ancestors, Message: why.Message, Detail: why.Detail}
	}
	h.callEnded(id, call, state)
	if err := h.step(id, rec); err != nil {
		return model.Value{}, err
	}
	return model.Value{}, h.wake()
}

// errorValue returns an error as documents and events have it.
func errorValue(e *ActionError) model.Value {
	fields := []model.Field{model.F("type", e.Type), model.F("message", e.Message)}
	if len(e.Ancestors) > 0 {
		fields = append(fields, model.F("ancestors", array(e.Ancestors)))
	}
	return model.Object(fields...)
}

// causeIn returns the error in a document or an event.
func causeIn(v model.Value) (e ActionError) {
	e.Type, _ = v.Get("type").AsString()
	e.Type = cmp.Or(e.Type, "Error")
	e.Message, _ = v.Get("message").AsString()
	e.Ancestors = textsOf(v.Get("ancestors"))
	if d := v.Get("detail"); !d.IsAbsent() {
		e.Detail = jsontext.Value(d.String())
	}
	return e
}

// childSent handles what a space sends to itself with the starts for other spaces: by its own ID, it knows theirs.
func (s *Set) childSent(tx *space.Tx, ev *model.Event) (model.Value, error) {
	from, err := sender(ev)
	if err != nil {
		return model.Value{}, err
	}
	if from != tx.Space() {
		return ignored("it is of another space"), nil
	}
	id, _ := ev.Payload.Get("run").AsString()
	calls := textsOf(ev.Payload.Get("calls"))
	own := model.FirstID(ev.ID)
	of, _ := model.OriginOf(own)
	for i, call := range calls {
		if tx.Peek(childrenDoc(id), call).IsAbsent() {
			continue // it has ended long since
		}
		if k := numberOf(own) - len(calls) + i; k >= 0 {
			tx.Set(childrenDoc(id), of.Event(k), call, "sent")
		}
	}
	return model.Value{}, nil
}

// undelivered fails the call of a start that its space has refused without a call of a handler: its program has no
// workflows, or an operator has cancelled the event.
func (s *Set) undelivered(tx *space.Tx, ev *model.Event) error {
	event, _ := ev.Payload.Get("event").AsString()
	if stream, _ := ev.Payload.Get("stream").AsString(); stream != StreamChild || ev.ID != model.NoticeID(event) {
		return nil
	}
	h := s.host(tx)
	for id, entry := range tx.Peek(Index).All() {
		if state, _ := entry.Get("state").AsString(); State(state) != Running {
			continue
		}
		for call, child := range tx.Peek(childrenDoc(id)).All() {
			if sent, _ := child.Get("sent").AsString(); sent != event {
				continue
			}
			to, _ := ev.Payload.Get("to").AsString()
			reason, _ := ev.Payload.Get("reason").AsString()
			why := ActionError{Type: StartError, Message: fmt.Sprintf("space %s has not taken the start: %s", to, reason)}
			_, err := h.childEnded(id, call, refused, model.Value{}, errorValue(&why))
			return err
		}
	}
	return nil
}

// numberOf returns the place of an event among those that its transaction has sent.
func numberOf(event string) int {
	n, err := strconv.Atoi(event[strings.LastIndexByte(event, ':')+1:])
	if err != nil {
		return -1
	}
	return n
}

// RunName names a run.
type RunName struct{ Space, Run string }

func (n RunName) String() string { return n.Space + "/" + n.Run }

// parseRunName is the inverse of RunName.String, nil for "".
func parseRunName(text string) *RunName {
	in, run, is := strings.Cut(text, "/")
	if !is {
		return nil
	}
	return &RunName{in, run}
}

// Child is a run that another one has started or joined, as that one knows it.
type Child struct {
	RunName
	Workflow string
	// State is that of the run, or "refused" if it was not started. A child that its parent does not wait for any more is
	// cancelled here, also if it goes on because the parent had joined it.
	State State
	// Started and Ended are times in milliseconds since 1970; Ended is 0 before the end.
	Started, Ended int64
	call           string
}

func childOf(v model.Value) (c Child) {
	c.Space, _ = v.Get("space").AsString()
	c.Run, _ = v.Get("run").AsString()
	c.Workflow, _ = v.Get("workflow").AsString()
	state, _ := v.Get("state").AsString()
	c.State = State(state)
	c.Started, _ = v.Get("at").AsInt()
	c.Ended, _ = v.Get("ended").AsInt()
	return c
}

// childrenOf returns the children in a document, in the order of their starts.
func childrenOf(doc model.Value) (list []Child) {
	for call, v := range doc.All() {
		c := childOf(v)
		c.call = call
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Child) int { return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.call, b.call)) })
	return list
}

// parentOf returns the run that has started the run of a document, nil if none has.
func parentOf(doc model.Value) *RunName {
	if by := joinedBy(doc.Get("parent")); by.space != "" {
		return &RunName{by.space, by.run}
	}
	return nil
}

// ParentOf returns the run that has started the run of an entry of Index, nil if none has.
func ParentOf(entry model.Value) *RunName {
	text, _ := entry.Get("parent").AsString()
	return parseRunName(text)
}
