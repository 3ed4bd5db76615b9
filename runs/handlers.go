package runs

import (
	"cmp"
	"errors"
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

// start handles {"workflow": NAME, "run": ID, "args": {...}}.
func (s *Set) start(tx *space.Tx, ev *model.Event) (model.Value, error) {
	name, _ := ev.Payload.Get("workflow").AsString()
	d := s.byName[name]
	if d == nil {
		return model.Value{}, fmt.Errorf("this program has no workflow %q; it has %s", name, s.names())
	}
	id, is := ev.Payload.Get("run").AsString()
	if !is {
		id = model.NameOf(ev.ID)
	}
	if err := CheckID(id); err != nil {
		return model.Value{}, err
	}
	args := ev.Payload.Get("args")
	switch {
	case args.IsAbsent() || args.IsNull():
		args = model.Object()
	case args.Kind() != model.KindObject:
		return model.Value{}, fmt.Errorf(`the arguments are a %s; they must be an object by name, such as {"n": 1}`, args.Kind())
	}
	if size := len(args.String()); size > MaxValue {
		return model.Value{}, fmt.Errorf("the arguments have %d bytes; at most %d are possible: pass a reference to what is large", size, MaxValue)
	}
	h := s.host(tx)
	if state := h.state(id); state != "" {
		return h.exists(id, name, args, state)
	}
	if err := h.tidy(); err != nil {
		return model.Value{}, err
	}
	if err := h.begin(d, id, args); err != nil {
		return model.Value{}, err
	}
	return model.Object(model.F("run", id), model.F("started", true)), nil
}

// begin makes the first step of a run that does not exist yet. Its document gets the fields.
func (h *host) begin(d *Definition, id string, args model.Value, fields ...model.Field) error {
	tx := h.tx
	if tx.Peek(graphDoc(d.Version)).IsAbsent() {
		tx.Set(graphDoc(d.Version), d.text)
	}
	tx.Set(Index, model.Object(model.F("workflow", d.Name), model.F("state", string(Running)), model.F("at", h.now())), id)
	tx.Set(Doc(id), model.Object(append(fields,
		model.F("workflow", d.Name), model.F("version", d.Version), model.F("state", string(Running)), model.F("at", h.now()),
		model.F("args", args), model.F("head", head{hash: firstHash(d.Version, jsontext.Value(args.String()))}.String()),
	)...))
	return h.step(id, &record{Begin: true})
}

func (s *Set) names() string {
	var list []string
	for _, d := range s.Definitions() {
		list = append(list, d.Name)
	}
	return strings.Join(list, ", ")
}

// exists answers a start of a run that exists.
func (h *host) exists(id, name string, args model.Value, state State) (model.Value, error) {
	doc := h.tx.Peek(Doc(id))
	if was, _ := doc.Get("workflow").AsString(); was != name || !model.Equal(doc.Get("args"), args) {
		return model.Value{}, fmt.Errorf("run %s exists, with workflow %s and arguments %.200s; choose another ID", id, was, doc.Get("args").String())
	}
	return model.Object(model.F("run", id), model.F("started", false), model.F("state", string(state))), nil
}

// tidy removes ended runs when there are many.
func (h *host) tidy() error {
	index := h.tx.Peek(Index)
	if index.Len() < maxEnded {
		return nil
	}
	type ended struct {
		id string
		at int64
	}
	var list []ended
	for id, entry := range index.All() {
		if at, is := entry.Get("ended").AsInt(); is {
			list = append(list, ended{id, at})
		}
	}
	slices.SortFunc(list, func(a, b ended) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	excess := max(len(list)-maxEnded+1, 0)
	for _, e := range list[:min(excess, 100)] {
		h.tx.Delete(Index, e.id)
		h.tx.Delete(Doc(e.id))
	}
	if n := h.tx.Peek(Index).Len(); n >= maxRuns {
		return fmt.Errorf("space %s has %d runs; more are not possible: start runs in several spaces", h.tx.Space(), n)
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
		return id, fmt.Errorf("space %s has no run %q", h.tx.Space(), id)
	default:
		return id, fmt.Errorf("run %s has ended: it is %s", id, state)
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
		return model.Value{}, errors.New(`the payload names no signal: {"run": ID, "signal": NAME, "value": VALUE}`)
	}
	if v := ev.Payload.Get("value"); !v.IsAbsent() {
		in.Value = jsontext.Value(v.String())
	}
	if size := len(in.Name) + len(in.Value); size > MaxValue {
		return model.Value{}, fmt.Errorf("the signal has %d bytes; at most %d are possible", size, MaxValue)
	}
	return model.Value{}, h.step(id, &record{Signal: &in})
}

// cancel handles {"run": ID, "why": TEXT}.
func (s *Set) cancel(tx *space.Tx, ev *model.Event) (model.Value, error) {
	h := s.host(tx)
	id, err := h.ongoing(ev)
	if err != nil {
		return model.Value{}, err
	}
	why, _ := ev.Payload.Get("why").AsString()
	if len(why) > model.MaxReasonLen {
		return model.Value{}, fmt.Errorf("the reason has %d bytes; at most %d are possible", len(why), model.MaxReasonLen)
	}
	if err := h.step(id, &record{Cancel: cmp.Or(why, "cancelled")}); err != nil {
		return model.Value{}, err
	}
	return model.Value{}, h.wake()
}

// timer handles the timer of a run.
func (s *Set) timer(tx *space.Tx, ev *model.Event) (model.Value, error) {
	h := s.host(tx)
	id, err := h.ongoing(ev)
	if err != nil {
		return model.Object(model.F("ignored", err.Error())), nil
	}
	return model.Value{}, h.step(id, &record{Due: true})
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
	if err := h.step(id, rec); err != nil {
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
