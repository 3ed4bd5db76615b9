package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
)

// maxWake is the number of runs that are woken when a task of another run has ended.
const maxWake = 4

// cache is the variable of a space with the runs that were active lately. What it has is compared with the
// documents before it is used, so a transaction that is undone makes entries useless and not wrong.
type cache struct {
	entries map[string]*entry
	order   []string // the ones used lately behind
}

// entry is a run after its last step, and that step.
type entry struct {
	set  *Set
	d    *driver
	last step
}

// step is a step and what it started from.
type step struct {
	at   head
	text string // of the record
	load model.Value
	plan plan
	page int // of the record
	snap []byte
	// ended is what is noted of the step of the workflow that has ended, if one has.
	ended space.Note
	// drop are the pages that are not kept, from the first to before the second.
	drop [2]int
}

// maxCached bounds the runs of a space that are kept in memory while it is loaded.
const maxCached = 64

func (c *cache) put(id string, e *entry) {
	if c.entries == nil {
		c.entries = map[string]*entry{}
	}
	c.drop(id)
	c.entries[id] = e
	if c.order = append(c.order, id); len(c.order) > maxCached {
		delete(c.entries, c.order[0])
		c.order = c.order[1:]
	}
}

func (c *cache) drop(id string) {
	if c.entries[id] == nil {
		return
	}
	delete(c.entries, id)
	for i, o := range c.order {
		if o == id {
			c.order = append(c.order[:i], c.order[i+1:]...)
			return
		}
	}
}

// host makes the steps of the runs of a space, in a transaction.
type host struct {
	set   *Set
	tx    *space.Tx
	cache *cache
}

func (s *Set) host(tx *space.Tx) *host { return &host{set: s, tx: tx, cache: space.Local[cache](tx)} }

func (h *host) now() int64 { return h.tx.Now().UnixMilli() }

// state returns the state of a run, "" if there is none.
func (h *host) state(id string) State {
	text, _ := h.tx.Peek(Index, id, "state").AsString()
	return State(text)
}

// step makes a step of a run that has not ended.
func (h *host) step(id string, rec *record) error { return h.stepIf(id, rec, nil) }

// stepIf is step, unless a condition of the run does not hold.
func (h *host) stepIf(id string, rec *record, holds func(d *driver) bool) error {
	doc := h.tx.Peek(Doc(id))
	at, err := headOf(doc)
	if err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	rec.Now = h.now()
	e, again, err := h.entry(id, doc, at, rec)
	if err == nil && !again {
		if holds != nil && !holds(e.d) {
			return nil
		}
		if err = h.advance(e, at, rec); err != nil {
			h.cache.drop(id)
		}
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	h.write(id, e, at)
	return h.tx.Err()
}

func headOf(doc model.Value) (head, error) {
	text, _ := doc.Get("head").AsString()
	return parseHead(text)
}

// entry returns the run as the documents have it. again reports that it has made this very step already, in a
// transaction that was undone or is made a second time.
func (h *host) entry(id string, doc model.Value, at head, rec *record) (e *entry, again bool, err error) {
	if e = h.cache.entries[id]; e != nil && e.set == h.set {
		if e.d.n == at.n && e.d.hash == at.hash {
			return e, false, nil
		}
		if e.last.at == at && e.last.text == textOf(rec, e.last.plan) && model.Equal(e.last.load, h.tx.Peek(load)) {
			return e, true, nil
		}
	}
	name, _ := doc.Get("workflow").AsString()
	version, _ := doc.Get("version").AsString()
	p, err := h.set.program(h.tx, name, version)
	if err != nil {
		return nil, false, err
	}
	d, err := replay(p, id, doc, at, func(name string) model.Value { return h.tx.Peek(name) })
	if err != nil {
		return nil, false, err
	}
	e = &entry{set: h.set, d: d}
	h.cache.put(id, e)
	return e, false, nil
}

// textOf returns the text that a record has with the tasks that a plan starts.
func textOf(rec *record, p plan) string {
	own := *rec
	own.Started = len(p.start)
	text, _ := own.encode() // advance reports an error
	return string(text)
}

// advance makes a step of a run in memory. A run whose records have become too many fails in place of it.
func (h *host) advance(e *entry, at head, rec *record) (err error) {
	d := e.d
	d.bounds = h.set.bounds
	if rec.Resume == nil && (d.since > maxLog && d.run.Undoing() == nil || d.since > 2*maxLog) {
		*rec = record{Now: rec.Now, Abort: &workflow.Failed{Type: workflow.LimitError, Message: fmt.Sprintf("its steps since the last snapshot have %d bytes; its state is larger than %d bytes, so that it cannot be stored: keep what is large elsewhere, and references to it in variables", d.since, maxSnapshot)}}
	}
	last := step{at: at, load: h.tx.Peek(load)}
	last.ended = endOf(rec, d.pending)
	used := last.load.Get("bytes")
	last.plan, err = d.apply(rec, func(w *workflow.Work, delta int) bool {
		n, _ := used.Get(w.Action).AsInt()
		now, most := int(n)+delta, h.set.bounds.SpaceBytes
		if h.set.shared[w.Action] {
			most = min(most, maxSharedLoad)
		}
		return now <= 0 || now+sizeOf(w) <= most
	})
	if err != nil {
		return err
	}
	text, err := rec.encode()
	if err != nil {
		return err
	}
	last.text, last.page = string(text), d.page
	d.wrote(text)
	if last.plan.outcome == nil {
		if last.snap = d.snapshot(); last.snap != nil {
			d.keepPages(&last)
		}
	}
	e.last = last
	return nil
}

// write writes the last step of a run into the documents, and requests what it plans.
func (h *host) write(id string, e *entry, at head) {
	last, tx := &e.last, h.tx
	if last.ended.Kind != "" {
		tx.Note(last.ended.Kind, last.ended.Name)
	}
	tx.Set(Doc(id), head{e.d.n, e.d.hash}.String(), "head")
	if last.drop[1] <= last.page {
		tx.Set(pageDoc(id, last.page), last.text, strconv.Itoa(at.n))
	}
	if last.snap != nil {
		tx.Set(snapshotDoc(id), string(last.snap))
	}
	if from, _ := tx.Peek(Doc(id), inPages, inFrom).AsInt(); int(from) < last.drop[1] {
		h.dropPages(id, last.drop[0], last.drop[1])
		tx.Set(Doc(id), last.drop[1], inPages, inFrom)
	}
	h.cancelTasks(id, last.plan.cancel)
	options := []space.TaskOption{space.Replace()}
	if priority := priorityOf(tx.Peek(Doc(id))); priority != 0 {
		options = append(options, space.Priority(priority))
	}
	for i := range last.plan.start {
		w := &last.plan.start[i]
		if w.Child != "" {
			tx.Note(NoteStepStarted, w.Child)
			continue
		}
		tx.Note(NoteStepStarted, w.Action)
		in, err := taskInput(id, w)
		if err != nil {
			tx.Fail(err)
			return
		}
		tx.StartTask(w.Action, taskKey(tx.Space(), id, w.ID, e.d.gen), in, options...)
	}
	if last.plan.more {
		h.goOn(id, stepMore)
	}
	h.writeChildren(id, &last.plan)
	h.writeConditions(id, e)
	h.writeLoad(id, e)
	h.writeWaits(id, e)
	switch at := last.plan.timer; {
	case at == nil:
	case *at == 0:
		tx.CancelTimer(timerOf(id))
	default:
		when := min(*at, h.now()+maxTimer)
		tx.SetTimer(timerOf(id), StreamTimer, time.UnixMilli(when), model.Object(model.F("run", id)))
	}
	if last.plan.undoing != nil {
		tx.Set(Doc(id), failureValue(last.plan.undoing), "undoing")
		if last.plan.cancelled {
			tx.Set(Doc(id), true, "undoing", "cancelled")
		}
	}
	if last.plan.outcome != nil {
		tx.Set(Doc(id), e.d.run.Marks(), "nodes")
		h.finish(id, &last.plan)
		h.keepSteps(id, e)
		name, _ := tx.Peek(Doc(id), "workflow").AsString()
		h.retain(name, id)
	}
}

// maxTimer is how far a timer of a space may be set ahead; after it, a run sets another one.
const maxTimer = 3650 * 24 * 60 * 60 * 1000

// writeLoad writes what the tasks of the run need now, and whether it waits for the tasks of others.
func (h *host) writeLoad(id string, e *entry) {
	for action, delta := range e.last.plan.delta { // any order: each on its own
		if delta == 0 {
			continue
		}
		was, _ := e.last.load.Get("bytes").Get(action).AsInt()
		if now := was + int64(delta); now > 0 {
			h.tx.Set(load, now, "bytes", action)
		} else {
			h.tx.Delete(load, "bytes", action)
		}
	}
	waits := !e.last.load.Get("waiting").Get(id).IsAbsent()
	switch stuck := e.d.stuck(); {
	case stuck && !waits:
		h.tx.Set(load, true, "waiting", id)
	case !stuck && waits:
		h.tx.Delete(load, "waiting", id)
	}
}

// wake has runs try again whose tasks have waited for those of other runs, first those of the highest priority.
func (h *host) wake() error {
	waiting := h.tx.Peek(load).Get("waiting").Keys()
	h.byPriority(waiting)
	for _, id := range waiting[:min(len(waiting), maxWake)] {
		if h.state(id) != Running {
			h.tx.Delete(load, "waiting", id)
			continue
		}
		if err := h.step(id, &record{}); err != nil {
			return err
		}
	}
	return nil
}

// finish writes how a run has ended.
func (h *host) finish(id string, p *plan) {
	state, tx, o := Done, h.tx, p.outcome
	if o.Error != nil {
		state = Failed
		undoing := tx.Peek(Doc(id), "undoing")
		if cancelled, _ := undoing.Get("cancelled").AsBool(); cancelled || undoing.IsAbsent() && p.cancelled {
			state = Cancelled
		}
		tx.Set(Doc(id), failureValue(o.Error), "error")
		h.warn(id, state, o.Error)
	} else if v, err := model.ParseValue(o.Result); err != nil {
		tx.Fail(err)
	} else {
		tx.Set(Doc(id), v, "result")
	}
	name, _ := tx.Peek(Doc(id), "workflow").AsString()
	tx.Note(noteOf(state), name)
	tx.Set(Doc(id), string(state), "state")
	tx.Set(Doc(id), h.now(), "ended")
	if !tx.Peek(Doc(id), "undoing").IsAbsent() {
		tx.Delete(Doc(id), "undoing")
	}
	tx.Set(Index, string(state), id, "state")
	tx.Set(Index, h.now(), id, "ended")
	h.endScheduled(id, state)
	h.report(id)
}

// maxWarned is the largest size of the message of an error in a log line, in bytes.
const maxWarned = 300

// warn writes a line for the operator about a run that has failed, or whose undo steps have. A run that was cancelled has ended
// as it was to.
func (h *host) warn(id string, state State, f *workflow.Failure) {
	undone := f.Undone
	if state != Failed && (undone == nil || undone.Failed == 0) {
		return
	}
	why := f.Name + ": " + f.Message
	if len(why) > maxWarned {
		why = strings.ToValidUTF8(why[:maxWarned], "") + "..."
	}
	name, _ := h.tx.Peek(Doc(id), "workflow").AsString()
	args := []any{"run", id, "workflow", name, "error", why}
	if undone != nil {
		args = append(args, "undone", undone.Steps, "not_undone", undone.Failed+undone.Skipped)
	}
	h.tx.Warn("run "+string(state), args...)
}

// maxMessage is the largest size of a message in the document of a run, in bytes.
const maxMessage = 112 << 10

// failureValue returns an error as the document of a run has it: without a detail that is no JSON, or too large.
func failureValue(f *workflow.Failure) model.Value {
	message := f.Message
	if len(message) > maxMessage {
		message = message[:maxMessage] + "..."
	}
	fields := []model.Field{model.F("type", strings.ToValidUTF8(f.Name, "")), model.F("message", strings.ToValidUTF8(message, ""))}
	if len(f.Ancestors) > 0 {
		fields = append(fields, model.F("ancestors", array(f.Ancestors)))
	}
	if f.Detail != nil {
		if text, err := workflow.ToJSON(f.Detail); err == nil && len(text) <= MaxValue {
			if v, err := model.ParseValue(text); err == nil {
				fields = append(fields, model.F("detail", v))
			}
		}
	}
	if f.Undone != nil {
		if text, err := json.Marshal(f.Undone); err == nil {
			if v, err := model.ParseValue(text); err == nil {
				fields = append(fields, model.F("undone", v))
			}
		}
	}
	return model.Object(fields...)
}

// What a run tells itself on StreamTimer, to do in another transaction what does not fit into one.
const (
	stepMore = "more" // start the calls that wait
	stepDrop = "drop" // remove the tasks that are not needed any more
)

// maxDrops is the number of tasks that are removed in one transaction.
const maxDrops = 1000

// goOn has another transaction go on with a run.
func (h *host) goOn(id, what string) {
	h.send(h.tx.Space(), StreamTimer, model.Object(model.F("run", id), model.F("step", what)))
}

// cancelTasks removes tasks that are no longer needed. If there are many, other transactions remove the rest; until then, an
// end of one has no effect.
func (h *host) cancelTasks(id string, tasks map[string]pending) {
	if len(tasks) == 0 {
		return
	}
	n := 0
	for _, work := range slices.Sorted(maps.Keys(tasks)) {
		was := tasks[work]
		if was.Child != "" {
			continue // see writeChildren
		}
		if n++; n > maxDrops {
			h.goOn(id, stepDrop)
			return
		}
		h.tx.DropTask(was.Action, taskKey(h.tx.Space(), id, work, was.Gen))
	}
}

// dropTasks removes the tasks of a run that it does not wait for.
func (h *host) dropTasks(id string) error {
	var d *driver
	if h.state(id) == Running {
		doc := h.tx.Peek(Doc(id))
		at, err := headOf(doc)
		if err != nil {
			return fmt.Errorf("run %s: %w", id, err)
		}
		if d, err = h.current(id, doc, at); err != nil {
			return err
		}
	}
	n := 0
	for _, action := range h.set.Actions() {
		for _, t := range h.tx.Tasks(action) {
			if run, _ := t.In.Get("run").AsString(); run != id || d != nil && d.waitsFor(h.tx.Space(), id, &t) {
				continue
			}
			if n++; n > maxDrops {
				h.goOn(id, stepDrop)
				return nil
			}
			h.tx.DropTask(action, t.Key)
		}
	}
	return nil
}

// waitsFor reports whether a task is one that the run has started and not cancelled.
func (d *driver) waitsFor(in, id string, t *space.Task) bool {
	work, _ := t.In.Get("work").AsString()
	attempt, _ := t.In.Get("attempt").AsInt()
	was, is := d.pending[work]
	return is && was.Attempt == int(attempt) && t.Key == taskKey(in, id, work, was.Gen)
}

// taskKey returns the key of a task: unique over all spaces, and the same for each attempt. What is performed after
// a reset of the run has another one, since its former result was dropped.
func taskKey(in, id, work string, gen int) string {
	prefix := in + "/" + id + "/"
	if gen > 0 {
		prefix += "g" + strconv.Itoa(gen) + "/"
	}
	if key := prefix + work; len(key) <= space.MaxTaskKey {
		return key
	}
	sum := sha256.Sum256([]byte(work))
	return prefix + "#" + hex.EncodeToString(sum[:16])
}

// taskInput returns the input of a task.
func taskInput(id string, w *workflow.Work) (model.Value, error) {
	args, err := model.ParseValue(w.Args)
	if err != nil {
		return model.Value{}, err
	}
	named, err := model.ParseValue(w.Named)
	if err != nil {
		return model.Value{}, err
	}
	fields := append(make([]model.Field, 0, 6), // in their order, which saves sorting them
		model.F("args", args), model.F("attempt", w.Attempt), model.F("kwargs", named), model.F("run", id))
	if w.Timeout > 0 {
		fields = append(fields, model.F("timeout", w.Timeout))
	}
	return model.Object(append(fields, model.F("work", w.ID))...), nil
}
