package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/workflow"
)

// caller is a call that waits for a run.
type caller struct{ space, run, call string }

// childCall is a call of a child that has not ended. Its name is chosen by the space, and never used again.
type childCall struct {
	name, work string
	attempt    int
	space, run string
	sent       string // the event that starts the run
}

// children: what a step starts is sent to the space of the child, and what it does not need any more is cancelled there.
func (k *clerk) children(fl *flow, out *effects) {
	for i := range out.cancelled {
		if w := &out.cancelled[i]; w.Child != "" {
			k.abandon(fl, w.ID)
		}
	}
	var away []model.Value
	for i := range out.started {
		w := &out.started[i]
		if w.Child == "" {
			continue
		}
		if c := k.calls(fl, w); c != nil && c.space != k.f.space {
			away = append(away, model.String(c.name))
		}
	}
	if len(away) > 0 {
		k.want(k.f.space, runs.StreamChildSent, model.Object(model.F("run", fl.id), model.F("calls", model.Array(away...))))
	}
}

// calls finds the call of a child that has just been started among the documents.
func (k *clerk) calls(fl *flow, w *workflow.Work) *childCall {
	var o struct{ ID, Space string }
	_ = json.Unmarshal(w.Named, &o) // the plan has valid ones
	for name, entry := range k.after[childrenOf+fl.id].All() {
		work, _ := entry.Get("work").AsString()
		attempt, _ := entry.Get("attempt").AsInt()
		state, _ := entry.Get("state").AsString()
		if work != w.ID || int(attempt) != w.Attempt || state != string(runs.Running) || k.f.w.calls[name] {
			continue
		}
		k.f.w.calls[name] = true
		c := &childCall{name: name, work: work, attempt: w.Attempt}
		c.space, _ = entry.Get("space").AsString()
		c.run, _ = entry.Get("run").AsString()
		in := o.Space
		if in == "" {
			in = k.f.space
		}
		if c.space != in || o.ID != "" && c.run != o.ID || o.ID == "" && !strings.HasSuffix(c.run, name) {
			k.f.wrong("children", "run %s calls run %s in space %s, want %s in %s", fl.id, c.run, c.space, o.ID, in)
		}
		fl.calls[w.ID] = c
		var chain []model.Value
		for _, above := range append(slices.Clone(fl.chain), k.f.space+"/"+fl.id) {
			chain = append(chain, model.String(above))
		}
		args, _ := model.ParseValue(w.Args)
		k.want(in, runs.StreamChild, model.Object(
			model.F("workflow", w.Child), model.F("run", c.run), model.F("args", args), model.F("parent", fl.id), model.F("call", name), model.F("chain", model.Array(chain...)),
		))
		k.wants[len(k.wants)-1].call = c
		k.f.w.count("children that were called")
		return c
	}
	k.f.wrong("children", "run %s calls %s of %s, and its document has %s", fl.id, w.ID, w.Child, k.after[childrenOf+fl.id])
	return nil
}

// abandon ends a call that is not needed any more.
func (k *clerk) abandon(fl *flow, work string) {
	c := fl.calls[work]
	if c == nil {
		k.f.wrong("children", "run %s abandons %s, which it does not wait for", fl.id, work)
		return
	}
	delete(fl.calls, work)
	k.f.w.count("children that were abandoned")
	k.want(c.space, runs.StreamChildCancel, model.Object(model.F("run", c.run), model.F("call", c.name)))
}

// report: the end of a run is sent to the calls that wait for it.
func (k *clerk) report(fl *flow) {
	if fl.by != nil {
		k.tell(fl, *fl.by)
	}
	for _, by := range fl.joined { // any order: each once
		k.tell(fl, by)
	}
	fl.joined = map[string]caller{}
}

func (k *clerk) tell(fl *flow, by caller) {
	fields := []model.Field{model.F("run", by.run), model.F("call", by.call), model.F("state", string(fl.state))}
	doc, ok := k.after[runs.Doc(fl.id)]
	if !ok {
		doc = k.f.docs[runs.Doc(fl.id)]
	}
	for _, name := range []string{"result", "error"} {
		if v := doc.Get(name); !v.IsAbsent() {
			fields = append(fields, model.F(name, v))
		}
	}
	k.want(by.space, runs.StreamChildEnd, model.Object(fields...))
}

// takeChild takes the start of a child.
func (k *clerk) takeChild(ev *model.Event) {
	tx, minted := model.OriginOf(model.FirstID(ev.ID))
	if !minted {
		k.f.wrong("children", "a client has started a child by %s", ev.ID)
		return
	}
	by := caller{space: tx.Space}
	by.run, _ = ev.Payload.Get("parent").AsString()
	by.call, _ = ev.Payload.Get("call").AsString()
	id, _ := ev.Payload.Get("run").AsString()
	name, _ := ev.Payload.Get("workflow").AsString()
	args := ev.Payload.Get("args")
	var chain []string
	for v := range ev.Payload.Get("chain").Elements() {
		text, _ := v.AsString()
		chain = append(chain, text)
	}
	fl, known := k.flows[id], k.f.w.plan.definitions(k.f.edition)[name] != nil
	why := ""
	switch {
	case fl == nil && !known:
		why = runs.UnknownWorkflowError
	case fl == nil:
		k.create(id, name, args, &by, chain, made{begin: jsontext.Value(args.String())})
	case fl.workflow != name || !model.Equal(fl.args, args):
		why = runs.RunExistsError
	case fl.state != runs.Running:
		k.f.w.count("children that had ended when they were called")
		k.tell(fl, by)
	case fl.by != nil && fl.by.call == by.call:
	case slices.Contains(chain, k.f.space+"/"+id):
		why = runs.StartError
	default:
		k.f.w.count("children that were joined")
		k.touched[id] = fl
		fl.joined[by.call] = by
	}
	if why == "" {
		return
	}
	k.f.w.count("children that were refused: " + why)
	for i := range k.tx.Sends {
		s := &k.tx.Sends[i]
		got, _ := s.Payload.Get("error").Get("type").AsString()
		state, _ := s.Payload.Get("state").AsString()
		call, _ := s.Payload.Get("call").AsString()
		if s.Stream == runs.StreamChildEnd && s.To == by.space && got == why && state == "refused" && call == by.call {
			k.wants = append(k.wants, wanted{to: s.To, stream: s.Stream, payload: s.Payload.String()})
			return
		}
	}
	k.f.wrong("children", "run %s of %s must be refused with a %s, and no event reports that", id, name, why)
}

// takeChildEnd takes the end of a child.
func (k *clerk) takeChildEnd(ev *model.Event) {
	id, _ := ev.Payload.Get("run").AsString()
	name, _ := ev.Payload.Get("call").AsString()
	tx, _ := model.OriginOf(model.FirstID(ev.ID))
	fl := k.flows[id]
	if fl == nil || fl.state != runs.Running {
		return
	}
	for work, c := range fl.calls { // any order: there is one at most
		if c.name == name && c.space == tx.Space {
			state, _ := ev.Payload.Get("state").AsString()
			k.f.w.count("children that have ended: " + state)
			k.returns(fl, work, ev.Payload)
			return
		}
	}
	k.f.w.count("ends of children that are not waited for")
}

// returns completes a call.
func (k *clerk) returns(fl *flow, work string, end model.Value) {
	c := fl.calls[work]
	delete(fl.calls, work)
	m := made{done: &workflow.Done{Work: work, Attempt: c.attempt}}
	if v := end.Get("result"); !v.IsAbsent() {
		m.done.Result = jsontext.Value(v.String())
	}
	if state, _ := end.Get("state").AsString(); state != string(runs.Done) {
		m.done = nil
		m.failed = &workflow.Failed{Work: work, Attempt: c.attempt}
		v := end.Get("error")
		m.failed.Type, _ = v.Get("type").AsString()
		m.failed.Message, _ = v.Get("message").AsString()
		for a := range v.Get("ancestors").Elements() {
			text, _ := a.AsString()
			m.failed.Ancestors = append(m.failed.Ancestors, text)
		}
	}
	k.step(fl, m)
}

// takeChildCancel takes that a call does not wait any more.
func (k *clerk) takeChildCancel(ev *model.Event) {
	id, _ := ev.Payload.Get("run").AsString()
	name, _ := ev.Payload.Get("call").AsString()
	tx, _ := model.OriginOf(model.FirstID(ev.ID))
	fl := k.flows[id]
	switch {
	case fl == nil || fl.state != runs.Running:
	case fl.joined[name].space == tx.Space:
		k.touched[id] = fl
		delete(fl.joined, name)
	case fl.by != nil && fl.by.call == name && fl.by.space == tx.Space:
		k.f.w.count("children that were cancelled by their parent")
		k.step(fl, made{cancel: "run " + fl.by.run + " in space " + tx.Space + ", which has started it, does not wait for it any more"})
	}
}

// takeChildSent takes the IDs of the starts that the space has sent to others: they must be those.
func (k *clerk) takeChildSent(ev *model.Event) {
	id, _ := ev.Payload.Get("run").AsString()
	fl := k.flows[id]
	if fl == nil {
		return
	}
	for _, c := range fl.calls { // any order: each on its own
		if !slices.ContainsFunc(slices.Collect(ev.Payload.Get("calls").Elements()), func(v model.Value) bool { return model.Equal(v, model.String(c.name)) }) {
			continue
		}
		doc, ok := k.after[childrenOf+id]
		if !ok {
			doc = k.f.docs[childrenOf+id]
		}
		if got, _ := doc.Get(c.name).Get("sent").AsString(); got != c.sent {
			k.f.wrong("children", "run %s says that %s was started by %q, want %q", id, c.run, got, c.sent)
		}
	}
}

// takeNotice takes that an event was not delivered: if it was the start of a child, its call fails.
func (k *clerk) takeNotice(ev *model.Event) {
	event, _ := ev.Payload.Get("event").AsString()
	for _, fl := range k.flows { // any order: there is one at most
		for work, c := range fl.calls { // any order: there is one at most
			if c.sent != event || fl.state != runs.Running || event == "" {
				continue
			}
			to, _ := ev.Payload.Get("to").AsString()
			reason, _ := ev.Payload.Get("reason").AsString()
			k.f.w.count("children whose start was not delivered")
			k.returns(fl, work, model.Object(model.F("state", "refused"), model.F("error", model.Object(
				model.F("type", runs.StartError), model.F("message", "space "+to+" has not taken the start: "+reason),
			))))
			return
		}
	}
}

// compareChildren: the document of the children lists as running what the run waits for.
func (k *clerk) compareChildren(fl *flow) {
	open := map[string]bool{}
	for _, c := range fl.calls { // any order: a set
		open[c.name] = true
	}
	for name, entry := range k.f.docs[childrenOf+fl.id].All() {
		state, _ := entry.Get("state").AsString()
		if running := state == string(runs.Running); running != open[name] {
			k.f.wrong("children", "run %s: call %s is %s, and is waited for: %v", fl.id, name, entry, open[name])
		}
		delete(open, name)
	}
	if len(open) > 0 {
		k.f.wrong("children", "run %s waits for %v, which its document does not have", fl.id, open)
	}
	if fl.state != runs.Running && len(fl.calls) > 0 {
		k.f.wrong("children", "run %s has ended, and waits for %v", fl.id, fl.calls)
	}
	doc := k.f.docs[runs.Doc(fl.id)].Get("joined")
	if doc.Len() != len(fl.joined) {
		k.f.wrong("children", "run %s is joined by %s, want %v", fl.id, doc, fl.joined)
	}
}

// checkFamilies: at rest, a run that waits for a child is known to that child, which has not ended; and a child that has
// not ended is waited for.
func (w *world) checkFamilies() {
	for i := range w.plan.spaces {
		k := w.folds[spaceName(i)].clerk
		for _, id := range slices.Sorted(maps.Keys(k.flows)) {
			fl := k.flows[id]
			for _, c := range fl.calls { // any order: each on its own
				child := w.folds[c.space].clerk.flows[c.run]
				known := child != nil && child.state == runs.Running && (child.by != nil && child.by.call == c.name || child.joined[c.name].call == c.name)
				if !known && !fl.robbed {
					w.violate("children", "run %s of space %s waits for run %s of space %s, which does not know of it", id, k.f.space, c.run, c.space)
				}
			}
			if fl.by == nil || fl.state != runs.Running || fl.robbed {
				continue
			}
			parent := w.folds[fl.by.space].clerk.flows[fl.by.run]
			if parent == nil || !parent.robbed && !parent.waitsFor(fl.by.call) {
				w.violate("children", "run %s of space %s has not ended, and its parent %v does not wait for it", id, k.f.space, fl.by)
			}
		}
	}
}

func (fl *flow) waitsFor(name string) bool {
	for _, c := range fl.calls { // any order: whether there is one
		if c.name == name {
			return true
		}
	}
	return false
}
