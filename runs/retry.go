package runs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
)

// resume is the input of a step with which a run goes on after some of its steps were dropped.
type resume struct {
	// From is the number of steps that the run had.
	From int `json:"from"`
	// Reset tells a reset from a retry. Gen is the generation of the keys of what is performed from now on.
	Reset bool `json:"reset,omitzero"`
	Gen   int  `json:"gen,omitzero"`
	// Again are the works that are tried again, and the waits that begin anew.
	Again []string `json:"again,omitzero"`
}

// retry handles {"run": ID, "latest": BOOL}.
func (s *Set) retry(tx *space.Tx, ev *model.Event) (model.Value, error) {
	h := s.host(tx)
	id, state, err := h.existing(ev)
	switch {
	case err != nil:
		return model.Value{}, err
	case state != Failed && state != Cancelled:
		return model.Value{}, refuse(NotEnded, "run %s is %s: only a run that has failed, or was cancelled, can be tried again", id, state)
	}
	at, err := headOf(tx.Peek(Doc(id)))
	if err != nil {
		return model.Value{}, fmt.Errorf("run %s: %w", id, err)
	}
	return h.rewind(ev, id, at, at.n-1, &resume{From: at.n})
}

// reset handles {"run": ID, "step": N, "latest": BOOL}.
func (s *Set) reset(tx *space.Tx, ev *model.Event) (model.Value, error) {
	h := s.host(tx)
	id, state, err := h.existing(ev)
	if err != nil {
		return model.Value{}, err
	}
	at, err := headOf(tx.Peek(Doc(id)))
	if err != nil {
		return model.Value{}, fmt.Errorf("run %s: %w", id, err)
	}
	last := at.n
	if state != Running {
		last-- // with the last step it would end again
	}
	to, is := ev.Payload.Get("step").AsInt()
	if !is || to < 1 || to > int64(last) {
		return model.Value{}, refuse(Invalid, `run %s has steps from 1 to %d to which it can be reset, and the step is %.50s: {"run": ID, "step": N}`, id, last, stepText(ev.Payload.Get("step")))
	}
	return h.rewind(ev, id, at, int(to), &resume{From: at.n, Reset: true})
}

// existing returns the run that a payload names.
func (h *host) existing(ev *model.Event) (id string, state State, err error) {
	id, _ = ev.Payload.Get("run").AsString()
	if state = h.state(id); state == "" {
		return id, state, refuse(NoRun, "space %s has no run %.100q", h.tx.Space(), id)
	}
	return id, state, nil
}

// rewind drops the steps of a run after some of them, and lets it go on from there.
func (h *host) rewind(ev *model.Event, id string, at head, to int, in *resume) (model.Value, error) {
	doc := h.tx.Peek(Doc(id))
	running := h.state(id) == Running
	if !running && doc.Get(inPages).IsAbsent() {
		return model.Value{}, refuse(NotKept, "the steps of run %s are not kept any more; start another run", id)
	}
	l := &log{id: id, doc: doc, read: func(name string) model.Value { return h.tx.Peek(name) }}
	begun := undid(doc)
	version, d, err := h.fitting(ev, l, to)
	if err == nil && !begun {
		begun, err = h.broken(l, at)
	}
	switch {
	case begun:
		return model.Value{}, refuse(Undone, "undo steps of run %s have been executed, or are being executed: what it has done before them does not hold any more; start another run", id)
	case err != nil:
		return model.Value{}, err
	}
	if undone, err := h.undoneAfter(l, to, at.n); err != nil {
		return model.Value{}, fmt.Errorf("run %s: %w", id, err)
	} else if undone {
		return model.Value{}, refuse(Undone, "run %s has executed undo steps of a call after step %d, or executes them there: what the call had done does not hold any more; reset the run to a later step, or start another one", id, to)
	}
	rec := &record{Now: h.now(), Resume: in}
	if !in.Reset {
		if err := again(l, d, rec, version); err != nil {
			return model.Value{}, err
		}
	}
	last, err := h.stop(l, at, running)
	if err != nil {
		return model.Value{}, err
	}
	cause := causeOf(ev)
	if cause.IsAbsent() { // such as of an event that was redriven
		cause = model.String(ev.ID)
	}
	h.tx.Set(Doc(id), cause, "cause") // so that children are started anew
	h.dropRecords(l, d, last)
	if was, _ := doc.Get("version").AsString(); was != version && !h.tx.Peek(snapshotDoc(id)).IsAbsent() {
		h.tx.Delete(snapshotDoc(id)) // of the other version
	}
	h.dropConditions(id)
	in.Gen = h.reopen(l, version, running, in.Reset)
	e, from := &entry{set: h.set, d: d}, head{d.n, d.hash}
	h.cache.drop(id)
	if err := h.advance(e, from, rec); err != nil {
		return model.Value{}, fmt.Errorf("run %s: %w", id, err)
	}
	h.cache.put(id, e)
	h.write(id, e, from)
	if err := h.wake(); err != nil {
		return model.Value{}, err
	}
	return model.Object(model.F("run", id), model.F("steps", to)), h.tx.Err()
}

// undid reports whether undo steps of a run have been executed, or are being executed.
func undid(doc model.Value) bool {
	undone := doc.Get("error").Get("undone")
	steps, _ := undone.Get("steps").AsInt()
	failed, _ := undone.Get("failed").AsInt()
	return !doc.Get("undoing").IsAbsent() || steps+failed > 0
}

// undoneAfter reports whether a run has executed undo steps after a number of its steps, or executes some there.
func (h *host) undoneAfter(l *log, to, n int) (bool, error) {
	name, _ := l.doc.Get("workflow").AsString()
	version, _ := l.doc.Get("version").AsString()
	p, err := h.set.program(h.tx, name, version)
	if err != nil || !p.Graph.Undoes() {
		return false, err
	}
	d, err := l.after(p, to)
	if err != nil {
		return false, err
	}
	for id := range d.pending { // any order: one is enough
		if workflow.OfUndoStep(id) {
			return true, nil
		}
	}
	for d.n < n {
		rec, text, err := l.next(d)
		if err != nil {
			return false, err
		}
		did, err := d.apply(&rec, nil)
		if err != nil {
			return false, fmt.Errorf("record %d: %w", d.n, err)
		}
		if slices.ContainsFunc(did.start, func(w workflow.Work) bool { return workflow.OfUndoStep(w.ID) }) {
			return true, nil
		}
		d.wrote(text)
	}
	return false, nil
}

// broken reports whether a run was ended at once during its undo steps: the one that was under way may have had an effect.
func (h *host) broken(l *log, at head) (bool, error) {
	if skipped, _ := l.doc.Get("error").Get("undone").Get("skipped").AsInt(); skipped == 0 {
		return false, nil
	}
	name, _ := l.doc.Get("workflow").AsString()
	version, _ := l.doc.Get("version").AsString()
	p, err := h.set.program(h.tx, name, version)
	if err != nil {
		return false, err
	}
	d, err := l.after(p, at.n-1)
	if err != nil {
		return false, fmt.Errorf("run %s: %w", l.id, err)
	}
	return d.run.Undoing() != nil, nil
}

// fitting returns the run after its first steps, in its own version, or in that of the program if the payload
// requests it.
func (h *host) fitting(ev *model.Event, l *log, to int) (version string, d *driver, err error) {
	name, _ := l.doc.Get("workflow").AsString()
	version, _ = l.doc.Get("version").AsString()
	own, err := h.set.program(h.tx, name, version)
	if err != nil {
		return version, nil, refuse(NoWorkflow, "run %s: %s", l.id, err)
	}
	latest, _ := ev.Payload.Get("latest").AsBool()
	switch def := h.set.byName[name]; {
	case !latest || def != nil && def.Version == version:
		d, err = l.after(own, to)
	case def == nil:
		return version, nil, refuse(NoWorkflow, "%s", h.set.lacks(name))
	default:
		version = def.Version
		d, err = l.refit(own, def.program, to)
	}
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		return version, nil, err
	case errors.Is(err, errGone):
		return version, nil, refuse(NotKept, "run %s: %s, so that the run cannot be rebuilt after %d steps; a later step may do, or another run", l.id, err, to)
	case err != nil:
		return version, nil, fmt.Errorf("run %s: %w", l.id, err)
	}
	return version, d, nil
}

// refit returns the run after its first steps in another version of its workflow. It is refused unless every step
// had the same effects in both.
func (l *log) refit(own, other *workflow.Program, to int) (*driver, error) {
	if l.oldest() > 0 {
		return nil, fmt.Errorf("record 0 %w", errGone)
	}
	args := jsontext.Value(l.doc.Get("args").String())
	was, d := newDriver(own, args), newDriver(other, args)
	was.chain = chainOf(l.doc)
	d.chain = was.chain
	for d.n < to {
		rec, text, err := l.next(d)
		if err != nil {
			return nil, err
		}
		before, err := was.apply(&rec, nil)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", d.n, err)
		}
		if after, err := d.apply(&rec, nil); err != nil || !sameEffects(&before, &after) || !sameState(was, d) {
			return nil, refuse(Misfit, "step %d of run %s would not be the same in version %s of its workflow: what it waits for differs; let it go on in version %s, or reset it to an earlier step", d.n+1, l.id, other.Version, own.Version)
		}
		d.wrote(text)
	}
	return d, nil
}

func sameEffects(a, b *plan) bool {
	return (a.outcome == nil) == (b.outcome == nil) && slices.EqualFunc(a.start, b.start, func(a, b workflow.Work) bool {
		return a.ID == b.ID && a.Attempt == b.Attempt && a.Action == b.Action && a.Child == b.Child && string(a.Args) == string(b.Args) && string(a.Named) == string(b.Named)
	})
}

func sameState(a, b *driver) bool {
	return maps.Equal(a.timers, b.timers) && slices.EqualFunc(a.run.Open(), b.run.Open(), func(a, b workflow.Open) bool {
		return a.ID == b.ID && a.Action == b.Action && a.Attempt == b.Attempt && a.Signal == b.Signal
	})
}

// again decides what a retry tries again: what the last step, with which the run ended, reported the end of.
func again(l *log, d *driver, rec *record, version string) error {
	last, _, err := l.next(d)
	if err != nil {
		return refuse(NotKept, "run %s: %s", l.id, err)
	}
	was, _ := l.doc.Get("version").AsString()
	switch {
	case last.Begin && version == was:
		return refuse(Invalid, "run %s failed before its first action, and would do so again: start a run with other arguments, or try it with the latest version of the program", l.id)
	case last.Begin:
		rec.Begin, rec.Deadline = true, last.Deadline
	case last.Resume != nil:
		rec.Resume.Again, rec.Begin, rec.Deadline = last.Resume.Again, last.Begin, last.Deadline
	case last.Done != nil:
		rec.Resume.Again = []string{last.Done.Work}
	case last.Failed != nil:
		rec.Resume.Again = []string{last.Failed.Work}
	case last.Met != nil:
		rec.Resume.Again = []string{last.Met.Wait}
	case last.Due:
		for id, at := range d.timers { // any order: sorted below
			if at <= last.Now && strings.HasPrefix(id, "wait ") {
				rec.Resume.Again = append(rec.Resume.Again, id)
			}
		}
		slices.Sort(rec.Resume.Again)
	}
	return nil
}

// current returns the run as it is now.
func (h *host) current(id string, doc model.Value, at head) (*driver, error) {
	if e := h.cache.entries[id]; e != nil && e.set == h.set && e.d.n == at.n && e.d.hash == at.hash {
		return e.d, nil
	}
	name, _ := doc.Get("workflow").AsString()
	version, _ := doc.Get("version").AsString()
	p, err := h.set.program(h.tx, name, version)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	d, err := replay(p, id, doc, at, func(name string) model.Value { return h.tx.Peek(name) })
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	return d, nil
}

// stop removes the tasks of a run, cancels its children, and returns its last page. A run that has ended has neither.
func (h *host) stop(l *log, at head, running bool) (page int, err error) {
	if !running {
		to, _ := l.doc.Get(inPages).Get(inTo).AsInt()
		return int(to) - 1, nil
	}
	d, err := h.current(l.id, l.doc, at)
	if err != nil {
		return 0, err
	}
	freed, gone := map[string]int{}, map[string]pending{}
	for _, work := range slices.Sorted(maps.Keys(d.pending)) {
		was := d.pending[work]
		if was.Child != "" {
			h.cancelChild(l.id, h.callOf(l.id, work, was.Attempt))
			continue
		}
		gone[work] = was
		freed[was.Action] += was.Bytes
	}
	h.cancelTasks(l.id, gone)
	for action, n := range freed { // any order: each on its own
		h.addLoad(action, -n)
	}
	return d.page, nil
}

// addLoad changes what the pending tasks of an action need.
func (h *host) addLoad(action string, by int) {
	was, _ := h.tx.Peek(load, "bytes", action).AsInt()
	if now := int(was) + by; now > 0 {
		h.tx.Set(load, now, "bytes", action)
	} else if was != 0 {
		h.tx.Delete(load, "bytes", action)
	}
}

// dropRecords removes the records after those of a driver, up to a page, and a snapshot that has them.
func (h *host) dropRecords(l *log, d *driver, page int) {
	first := d.page
	if d.size > 0 {
		first++
	}
	for page := d.page - 1; page < first; page++ { // the page before may go on if an earlier version has stored it, see log.text
		doc := pageDoc(l.id, page)
		for n := d.n; !h.tx.Peek(doc, strconv.Itoa(n)).IsAbsent(); n++ {
			h.tx.Delete(doc, strconv.Itoa(n))
		}
	}
	h.dropPages(l.id, first, page+1)
	if text, is := h.tx.Peek(snapshotDoc(l.id)).AsString(); is {
		if s, err := restoreHead(text); err != nil || s > d.n {
			h.tx.Delete(snapshotDoc(l.id))
		}
	}
}

// reopen makes a run that has ended one that goes on, and returns the generation of its keys.
func (h *host) reopen(l *log, version string, running, reset bool) (gen int) {
	name, _ := l.doc.Get("workflow").AsString()
	if h.tx.Peek(graphDoc(version)).IsAbsent() {
		h.tx.Set(graphDoc(version), h.set.byName[name].text)
	}
	h.tx.Set(Doc(l.id), version, "version")
	resets, _ := l.doc.Get("resets").AsInt()
	if reset {
		resets++
		h.tx.Set(Doc(l.id), resets, "resets")
	}
	if running {
		return int(resets)
	}
	if size, is := h.tx.Peek(Index, l.id, "bytes").AsInt(); is {
		h.addKept(-int(size))
		h.tx.Delete(Index, l.id, "bytes")
	}
	h.tx.Delete(Index, l.id, "ended")
	h.tx.Set(Index, string(Running), l.id, "state")
	for _, name := range []string{"result", "error", "ended"} {
		if !l.doc.Get(name).IsAbsent() {
			h.tx.Delete(Doc(l.id), name)
		}
	}
	h.tx.Set(Doc(l.id), string(Running), "state")
	if !l.doc.Get("schedule").IsAbsent() {
		h.resumeScheduled(l.id)
	}
	return int(resets)
}

// extend sets the deadline anew if it has passed.
func (d *driver) extend() {
	if at, is := d.timers[workflow.DeadlineTimer]; is && at <= d.now {
		d.timers[workflow.DeadlineTimer] = d.now + d.run.Deadline()
	}
}

// resume starts again what a run waits for, or tries it again.
func (d *driver) resume(rec *record) []workflow.Input {
	d.gen = rec.Resume.Gen
	d.armed = -1 // the timer of the space is that of other steps
	var list []workflow.Work
	for _, id := range slices.Sorted(maps.Keys(d.pending)) {
		if w, is := d.run.Work(id); is && !slices.Contains(rec.Resume.Again, id) {
			list = append(list, w)
		}
	}
	d.queue = append(list, d.queue...)
	d.pending, d.bytes, d.waited = map[string]pending{}, 0, 0
	d.extend()
	var in []workflow.Input
	if rec.Begin {
		in = append(in, workflow.Input{Now: d.now, Begin: d.args, Deadline: rec.Deadline})
	}
	for _, id := range rec.Resume.Again {
		in = append(in, workflow.Input{Now: d.now, Again: id})
	}
	return in
}

// stepText returns the step of a payload for a message. Clients leave out 0.
func stepText(step model.Value) string {
	if step.IsAbsent() {
		return "0, or missing"
	}
	return step.String()
}
