package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/receipts"
)

// sendForm is what the template of the form that sends an event gets.
type sendForm struct {
	Space, Stream string
	Streams       []streamLink
	// OfWorkflows are the streams that each program with a workflow has: pages of runs and schedules send to them. UsesWorkflows is set if the form
	// is for one of them.
	OfWorkflows   []streamLink
	UsesWorkflows bool
	// Fields are those of the payload; nil if the payload is written as JSON.
	Fields []payloadField
	// Sample is JSON to begin with.
	Sample string
	// Known is set if the streams are those of the program, and not only those that were seen lately.
	Known bool
	// Refused is why the visitor may not send, and Closed is set if no client may: the program has no handler for them.
	Refused string
	Closed  bool
	Back    string
}

type streamLink struct {
	Name, URL string
	Here      bool
}

// payloadField is an input.
type payloadField struct {
	Name, Type string
	Optional   bool
}

// Input is the kind of input for the field.
func (f payloadField) Input() string {
	switch f.Type {
	case "int", "float":
		return "number"
	case "bool":
		return "bool"
	case "str":
		return "text"
	}
	return "json"
}

// sendForm returns the form that sends an event to a space.
func (c *Console) sendForm(ctx context.Context, space string, q *query, recent []*history.Entry) *sendForm {
	f := &sendForm{Space: space, Stream: q.Param("stream"), Back: pathOf("spaces", space)}
	var names []string
	p := c.programOf(ctx, space)
	if p != nil {
		names, f.Known = p.ClientStreams(), true
	} else {
		names = seenStreams(recent)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return model.CheckSendStream(name) != nil })
	f.Closed = f.Known && len(names) == 0
	names = slices.DeleteFunc(names, func(name string) bool { return q.visitor.MaySend(space, name) != nil })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rankOfStream(a), rankOfStream(b)) })
	if f.Stream != "" && !slices.Contains(names, f.Stream) && !f.Known {
		names = append(names, f.Stream)
	}
	if f.Stream == "" && len(names) > 0 {
		f.Stream = names[0]
	}
	for _, name := range names {
		link := streamLink{name, q.Address("stream", name) + "#send", name == f.Stream}
		if rankOfStream(name) == 0 {
			f.Streams = append(f.Streams, link)
			continue
		}
		f.OfWorkflows, f.UsesWorkflows = append(f.OfWorkflows, link), f.UsesWorkflows || link.Here
	}
	if f.Stream != "" {
		f.Back = q.Address("stream", f.Stream)
		if err := q.visitor.MaySend(space, f.Stream); err != nil {
			f.Refused = err.Error()
		}
	} else if err := q.visitor.MaySend(space, "x"); err != nil {
		f.Refused = err.Error()
	}
	if p == nil {
		return f // the log has the effects of events, and not their payloads
	}
	for _, s := range p.Samples() {
		if s.Stream == f.Stream {
			f.Sample = s.Payload
		}
	}
	for _, field := range p.Fields(f.Stream) {
		f.Fields = append(f.Fields, payloadField(field))
	}
	return f
}

// rankOfStream orders streams: those that each program with a workflow has come last, since the pages of runs and schedules send to them.
func rankOfStream(stream string) int {
	if strings.HasPrefix(stream, "workflow-") {
		return 1
	}
	return 0
}

// seenStreams are the streams of the events that were handled lately.
func seenStreams(recent []*history.Entry) (names []string) {
	for _, e := range recent {
		for i := range e.Steps {
			if s := &e.Steps[i]; s.Kind == history.StepHandler && !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// programOf returns the deployed program of a space, nil if there is none or it is not known.
func (c *Console) programOf(ctx context.Context, space string) *star.Program {
	rules, err := c.shared.Rules(ctx, 5*time.Second)
	if err != nil {
		return nil
	}
	target, is := rules.Of(space)
	if !is {
		return nil
	}
	c.mu.Lock()
	p, known := c.programs[target]
	c.mu.Unlock()
	if known {
		return p
	}
	v, err := program.Load(ctx, c.cfg.Bus, target)
	if err != nil {
		return nil
	}
	if p, err = star.Compile(v.Source(), star.Options{}); err != nil {
		p = nil // of another version of the language: its streams are not known
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.programs) >= maxPrograms {
		clear(c.programs)
	}
	c.programs[target] = p
	return p
}

// maxPrograms bounds the compiled programs that are kept.
const maxPrograms = 32

// receiptPatience is how long the form waits for the receipt of what it has sent.
const receiptPatience = 4 * time.Second

// sendAction sends an event.
func sendAction() action {
	return action{
		name: "send",
		may:  func(a *act) error { return a.Visitor.MaySend(a.Get("space"), a.Get("stream")) },
		do:   func(ctx context.Context, a *act) (*done, error) { return a.send(ctx) },
	}
}

// badForm is an error in what a visitor has written.
func badForm(format string, args ...any) error {
	return &model.ServiceError{Code: model.CodeBadRequest, Text: fmt.Sprintf(format, args...) + ". Nothing was sent"}
}

func (a *act) send(ctx context.Context) (*done, error) {
	space, stream := a.Get("space"), a.Get("stream")
	if err := errors.Join(model.CheckName("space", space), model.CheckSendStream(stream)); err != nil {
		return nil, badForm("%v", err)
	}
	payload, err := a.payload()
	if err != nil {
		return nil, err
	}
	if p := a.programOf(ctx, space); p != nil {
		if !p.Space().Handles(stream) {
			return nil, badForm("the program of space %s has no handler for stream %s", space, stream)
		}
		if err := p.Space().CheckPayload(stream, payload); err != nil {
			return nil, badForm("%v", err)
		}
	}
	id := settle.NewID()
	if given := strings.TrimSpace(a.Get("id")); given != "" {
		if err := model.CheckEventID(given); err != nil {
			return nil, badForm("%v", err)
		}
		id = settle.ID(given)
	}
	by := cmp.Or(a.Visitor.Name(), a.cfg.SendAs, a.Visitor.SendsAs())
	client, err := a.client(by)
	if err != nil {
		return nil, err
	}
	out := settle.Outgoing{Space: space, Stream: stream, ID: id}
	command := []string{"settle send", space, stream}
	if !payload.IsAbsent() {
		out.Payload = payload
		command = append(command, quoted(payload.String()))
	}
	command = append(command, "--id", id.String())
	if by == model.Operator {
		command = append(command, "--principal", by)
	}
	sent, err := client.Send(ctx, out)
	if err != nil {
		return nil, err
	}
	d := &done{To: a.Get("back"), Command: strings.Join(command, " ")}
	name := model.EventIDOf(by, id.String())
	if a.looks.leads(eventURL(space, stream, name)) {
		d.URL, d.Link = eventURL(space, stream, name), "what it caused"
	}
	d.Text = a.outcome(ctx, client, space, stream, id, sent.Duplicate)
	return d, nil
}

// outcome waits for the receipt of an event for a while, and says how it has ended.
func (a *act) outcome(ctx context.Context, client *settle.Client, space, stream string, id settle.EventID, again bool) string {
	text := fmt.Sprintf("Event %s %s", stream, id)
	if again {
		text += " had been sent before"
	}
	ctx, cancel := context.WithTimeout(ctx, receiptPatience)
	defer cancel()
	rc, err := client.Space(space).Await(ctx, stream, id)
	switch {
	case err != nil:
		return text + " is stored, and was not handled within " + display.Duration(receiptPatience) + ": see what waits in the lane"
	case rc.Outcome == model.Rejected && !rc.Result.IsAbsent():
		return text + " was rejected: " + receipts.Reason(rc) + ", with the data " + cut(rc.Result.String(), 200)
	case rc.Outcome == model.Rejected:
		return text + " was rejected: " + receipts.Reason(rc)
	case rc.Outcome != model.Handled:
		return text + " " + string(rc.Outcome) + ": " + rc.Error
	case !rc.Result.IsAbsent():
		return text + " was handled, with the result " + cut(rc.Result.String(), 200)
	}
	return text + " was handled"
}

// payload returns what the form has as the payload: its fields, or JSON.
func (a *act) payload() (model.Value, error) {
	if a.Get("fields") == "" {
		text := strings.TrimSpace(a.Get("payload"))
		if text == "" {
			return model.Value{}, nil
		}
		v, err := model.ParseValue([]byte(text))
		if err != nil {
			return v, badForm("the payload is not JSON: %v", err)
		}
		return v, nil
	}
	object := map[string]json.RawMessage{}
	for pair := range strings.SplitSeq(a.Get("fields"), ",") {
		name, kind, _ := strings.Cut(pair, ":")
		text, err := fieldJSON(kind, a.Get("f."+name), a.Form["f."+name])
		if err != nil {
			return model.Value{}, badForm("field %s: %v", name, err)
		}
		if text != "" {
			object[name] = json.RawMessage(text)
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		return model.Value{}, badForm("%v", err)
	}
	return model.ParseValue(text)
}

// fieldJSON returns the JSON of a field, "" if it is left out.
func fieldJSON(kind, given string, all []string) (string, error) {
	switch kind {
	case "bool":
		return strconv.FormatBool(given == "on"), nil
	case "text":
		if len(all) == 0 {
			return "", nil
		}
		text, err := json.Marshal(given)
		return string(text), err
	}
	given = strings.TrimSpace(given)
	if given == "" {
		return "", nil
	}
	if kind == "number" {
		if _, err := strconv.ParseFloat(given, 64); err != nil {
			return "", fmt.Errorf("%q is no number", cut(given, 40))
		}
	}
	if !json.Valid([]byte(given)) {
		return "", fmt.Errorf("%q is not JSON; a text has quotes", cut(given, 40))
	}
	return given, nil
}

// quoted returns a text for a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// FieldList lists the fields of a form, for the action.
func (f *sendForm) FieldList() string {
	parts := make([]string, len(f.Fields))
	for i := range f.Fields {
		parts[i] = f.Fields[i].Name + ":" + f.Fields[i].Input()
	}
	return strings.Join(parts, ",")
}
