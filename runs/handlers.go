package runs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
)

// Bounds of the index of a space.
const (
	// maxRuns is the largest number of runs of a space, with those that have ended.
	maxRuns = 2000
	// maxEnded is the largest number of ended runs of a space; the oldest are removed.
	maxEnded = 1000
)

// start handles {"workflow": NAME, "run": ID, "args": {...}, "deadline": DURATION, "attributes": {...}, "priority": N}.
func (s *Set) start(tx *space.Tx, ev *model.Event) (model.Value, error) {
	name, _ := ev.Payload.Get("workflow").AsString()
	d := s.byName[name]
	for _, key := range ev.Payload.Keys() {
		if !slices.Contains(startFields, key) {
			return model.Value{}, refuse(Invalid, "the payload has a field %.100q; the start of a run has %s", key, strings.Join(startFields, ", "))
		}
	}
	if d == nil {
		return model.Value{}, refuse(NoWorkflow, "%s", s.lacks(name))
	}
	id, is := ev.Payload.Get("run").AsString()
	if !is {
		id = model.NameOf(ev.ID)
	}
	if err := CheckID(id); err != nil {
		return model.Value{}, refuse(Invalid, "%s", err)
	}
	args := ev.Payload.Get("args")
	switch {
	case args.IsAbsent() || args.IsNull():
		args = model.Object()
	case args.Kind() != model.KindObject:
		return model.Value{}, refuse(Invalid, `the arguments have the type %s; they must be an object by name, such as {"n": 1}`, args.Kind())
	}
	if size := len(args.String()); size > MaxValue {
		return model.Value{}, refuse(Invalid, "the arguments have %d bytes; at most %d are possible: pass a reference to what is large", size, MaxValue)
	}
	attributes, err := checkAttributes(ev.Payload.Get("attributes"))
	if err != nil {
		return model.Value{}, err
	}
	deadline, err := deadlineOf(ev.Payload.Get("deadline"))
	if err != nil {
		return model.Value{}, err
	}
	priority, err := checkPriority(ev.Payload.Get("priority"))
	if err != nil {
		return model.Value{}, err
	}
	h := s.host(tx)
	if state := h.state(id); state != "" {
		return h.exists(id, name, args, state)
	}
	if err := d.check(args); err != nil {
		return model.Value{}, refuse(Invalid, "%s", err)
	}
	h.retain(name, "")
	if err := h.create(d, id, args, origin{deadline: deadline, attributes: attributes, priority: priority}); err != nil {
		return model.Value{}, err
	}
	return model.Object(model.F("run", id), model.F("started", true)), nil
}

// startFields are the fields of the payload of a start.
var startFields = []string{"answer", "args", "attributes", "deadline", "priority", "run", "workflow"}

// origin is what a run has from its start, beside the arguments.
type origin struct {
	// deadline is how long the run may take, in milliseconds; 0 if the start says nothing.
	deadline   int64
	attributes model.Value
	priority   int
	// by is the call that has started the run, nil for none.
	by *caller
	// fields are more members of its document.
	fields []model.Field
}

// create creates a run, and makes its first step.
func (h *host) create(d *Definition, id string, args model.Value, from origin) error {
	if err := h.tidy(); err != nil {
		return err
	}
	return h.begin(d, id, args, from)
}

// begin is create where it is known that there is room.
func (h *host) begin(d *Definition, id string, args model.Value, from origin) error {
	tx := h.tx
	tx.Note(NoteStarted, d.Name)
	if tx.Peek(graphDoc(d.Version)).IsAbsent() {
		tx.Set(graphDoc(d.Version), d.text)
	}
	tx.Set(Index, model.Object(model.F("workflow", d.Name), model.F("state", string(Running)), model.F("at", h.now())), id)
	tx.Set(Doc(id), model.Object(append(from.fields,
		model.F("workflow", d.Name), model.F("version", d.Version), model.F("state", string(Running)), model.F("at", h.now()),
		model.F("args", args), model.F("head", head{hash: firstHash(d.Version, jsontext.Value(args.String()))}.String()), model.F("cause", causeOf(tx.Event())),
	)...))
	h.setAttributes(id, from.attributes)
	if from.priority != 0 {
		h.tx.Set(Doc(id), from.priority, "priority")
	}
	if from.by != nil {
		h.writeParent(id, from.by)
	}
	return h.step(id, &record{Begin: true, Deadline: from.deadline})
}

// deadlineOf returns a deadline in milliseconds, 0 if there is none: a text such as "24h", or a number of seconds.
func deadlineOf(v model.Value) (int64, error) {
	if v.IsAbsent() || v.IsNull() {
		return 0, nil
	}
	x, err := workflow.FromJSON(jsontext.Value(v.String()))
	if err != nil {
		return 0, err
	}
	seconds, err := workflow.Seconds(x)
	if err == nil && seconds <= 0 {
		err = fmt.Errorf("%s is not longer than nothing", v)
	}
	if err != nil {
		return 0, refuse(Invalid, "the deadline: %s", err)
	}
	return max(int64(seconds*1000), 1), nil
}

func (s *Set) names() string { return strings.Join(s.list(), ", ") }

// list returns the names of the workflows.
func (s *Set) list() (list []string) {
	for _, d := range s.Definitions() {
		list = append(list, d.Name)
	}
	return list
}

// exists answers a start of a run that exists.
func (h *host) exists(id, name string, args model.Value, state State) (model.Value, error) {
	doc := h.tx.Peek(Doc(id))
	if was, _ := doc.Get("workflow").AsString(); was != name || !model.Equal(doc.Get("args"), args) {
		return model.Value{}, refuse(Exists, "run %s exists, with workflow %s and arguments %.200s; choose another ID", id, was, doc.Get("args").String())
	}
	return model.Object(model.F("run", id), model.F("started", false), model.F("state", string(state))), nil
}

// tidy removes ended runs when there are many.
func (h *host) tidy() error {
	index := h.tx.Peek(Index)
	if index.Len() < maxEnded {
		return nil
	}
	list := h.ended()
	excess := max(len(list)-maxEnded+1, 0)
	for _, e := range list[:min(excess, maxRemoved)] {
		h.remove(e.id)
	}
	if n := h.tx.Peek(Index).Len(); n >= maxRuns {
		return refuse(Full, "space %s has %d runs; more are not possible: start runs in several spaces", h.tx.Space(), n)
	}
	return nil
}

// ongoing returns the run that a payload names.
func (h *host) ongoing(ev *model.Event) (string, error) {
	id, _ := ev.Payload.Get("run").AsString()
	switch state := h.state(id); state {
	case Running:
		return id, nil
	case "":
		return id, refuse(NoRun, "space %s has no run %.100q", h.tx.Space(), id)
	default:
		return id, refuse(Ended, "run %s has ended: it is %s", id, state)
	}
}

// signal handles {"run": ID, "signal": NAME, "value": VALUE}.
func (s *Set) signal(tx *space.Tx, ev *model.Event) (model.Value, error) {
	h := s.host(tx)
	id, err := h.ongoing(ev)
	if err != nil {
		return model.Value{}, err
	}
	in := workflow.Signal{}
	if in.Name, _ = ev.Payload.Get("signal").AsString(); in.Name == "" {
		return model.Value{}, refuse(Invalid, `the payload names no signal: {"run": ID, "signal": NAME, "value": VALUE}`)
	}
	if v := ev.Payload.Get("value"); !v.IsAbsent() {
		in.Value = jsontext.Value(v.String())
	}
	if size := len(in.Name) + len(in.Value); size > MaxValue {
		return model.Value{}, refuse(Invalid, "the signal has %d bytes; at most %d are possible", size, MaxValue)
	}
	if err := h.step(id, &record{Signal: &in}); err != nil {
		return model.Value{}, err
	}
	return model.Object(model.F("run", id)), h.wake() // a failure after the signal may have ended calls
}

// cancel handles {"run": ID, "why": TEXT, "at_once": BOOL}.
func (s *Set) cancel(tx *space.Tx, ev *model.Event) (model.Value, error) {
	h := s.host(tx)
	id, err := h.ongoing(ev)
	if err != nil {
		return model.Value{}, err
	}
	why, _ := ev.Payload.Get("why").AsString()
	if len(why) > model.MaxReasonLen {
		return model.Value{}, refuse(Invalid, "the reason has %d bytes; at most %d are possible", len(why), model.MaxReasonLen)
	}
	atOnce := ev.Payload.Get("at_once")
	now, is := atOnce.AsBool()
	if !is && !atOnce.IsAbsent() && !atOnce.IsNull() {
		return model.Value{}, refuse(Invalid, "at_once has the type %s; it must be true or false", atOnce.Kind())
	}
	if err := h.step(id, &record{Cancel: cmp.Or(why, "cancelled"), AtOnce: now}); err != nil {
		return model.Value{}, err
	}
	return model.Object(model.F("run", id)), h.wake()
}

// timer handles the timer of a run, and what it tells itself.
func (s *Set) timer(tx *space.Tx, ev *model.Event) (model.Value, error) {
	h := s.host(tx)
	id, err := h.ongoing(ev)
	what, _ := ev.Payload.Get("step").AsString()
	if what == stepDrop {
		return model.Value{}, h.dropTasks(id)
	}
	if err != nil {
		h.reportMore(id)
		return model.Object(model.F("ignored", err.Error())), nil
	}
	if err := h.step(id, &record{Due: what != stepMore}); err != nil {
		return model.Value{}, err
	}
	return model.Value{}, h.wake() // it may have given up calls whose time was over
}

// ended handles the end of a task of an action.
func (s *Set) ended(tx *space.Tx, t space.Task) error {
	h := s.host(tx)
	id, _ := t.In.Get("run").AsString()
	work, ofRun := t.In.Get("work").AsString()
	attempt, _ := t.In.Get("attempt").AsInt()
	if !ofRun || h.state(id) != Running {
		return nil // the run has ended in the meantime, or something else has started the task
	}
	rec := &record{Done: &workflow.Done{Work: work, Attempt: int(attempt)}}
	if !t.Out.IsAbsent() {
		rec.Done.Result = jsontext.Value(t.Out.String())
	}
	if size := len(rec.Done.Result); size > MaxValue {
		t.Err = tooLarge("the result", size)
	}
	if t.Err != "" {
		f := ParseError(t.Err)
		rec.Done, rec.Failed = nil, &workflow.Failed{Work: work, Attempt: int(attempt), Type: f.Type, Ancestors: f.Ancestors, Message: f.Message, Detail: f.Detail}
	}
	// The end of a task that was cancelled, and not removed yet, has no effect.
	if err := h.stepIf(id, rec, func(d *driver) bool { return d.waitsFor(tx.Space(), id, &t) }); err != nil {
		return err
	}
	return h.wake()
}

func tooLarge(what string, size int) string {
	e := ActionError{Type: workflow.LimitError, Message: fmt.Sprintf("%s has %d bytes; at most %d are possible: keep what is large elsewhere, and return a reference", what, size, MaxValue)}
	return e.Text()
}

// ActionError is how the performer of an action says of which type an error is. Its text is the error of the
// task's end.
type ActionError struct {
	Type      string         `json:"type"`
	Ancestors []string       `json:"ancestors,omitzero"` // types that it is a kind of, the nearest first
	Message   string         `json:"message,omitzero"`
	Detail    jsontext.Value `json:"detail,omitzero"`
	// Undone is how undo steps have ended, of the error of a run. A performer has none.
	Undone *workflow.Undone `json:"undone,omitzero"`
}

// Text returns the encoding that ParseError reads.
func (e *ActionError) Text() string {
	data, err := json.Marshal(e)
	if err != nil { // a detail that is not JSON
		e.Detail = nil
		data, _ = json.Marshal(e)
	}
	return string(data)
}

// Error returns the type and the message.
func (e *ActionError) Error() string { return e.Type + ": " + e.Message }

// maxErrorText bounds the text of an error without a type.
const maxErrorText = 2000

// ParseError reads the error of a task. A text that is not the encoding of an ActionError is the message of an
// error of type Error.
func ParseError(text string) ActionError {
	var e ActionError
	if strings.HasPrefix(text, "{") && len(text) <= MaxValue && json.Unmarshal([]byte(text), &e) == nil && e.Type != "" {
		return e
	}
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "..."
	}
	return ActionError{Type: "Error", Message: text}
}
