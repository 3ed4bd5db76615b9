package runs

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/workflow"
)

// Bounds of a run. Beyond MaxValue and maxLog it fails with a LimitError; the others only delay it.
const (
	// MaxValue is the largest size of an action's arguments, of its result, and of the result of a run, in bytes.
	MaxValue = workflow.MaxValue
	// maxChildren is the largest number of children of a run that it waits for at the same time.
	maxChildren = 256
	// maxDue is the largest number of timers that fire in one transaction.
	maxDue = 256
	// pageBytes is the size from which on a page of records is full. Adding a record copies the page's keys, so large pages are slow;
	// many small ones make a space slow to load.
	pageBytes = 8 << 10
	// minSnapshot and maxSnapshot are the least size of records between two snapshots, and the largest size of a snapshot.
	minSnapshot = 64 << 10
	maxSnapshot = 96 << 10
	// maxLog is the largest size of the records since the last snapshot; twice as much is possible while a run undoes its steps.
	maxLog = 64 << 20
)

// record is what is stored of one step of a run. It is the input of the step, and the number of tasks that were
// started with it.
type record struct {
	Now   int64 `json:"now"`
	Begin bool  `json:"begin,omitzero"` // with the arguments in the run's document
	// Deadline is how long the run may take, in milliseconds, if that is shorter than its workflow says.
	Deadline int64            `json:"deadline,omitzero"` // with Begin
	Done     *workflow.Done   `json:"done,omitzero"`
	Failed   *workflow.Failed `json:"failed,omitzero"`
	Signal   *workflow.Signal `json:"signal,omitzero"`
	Met      *workflow.Met    `json:"met,omitzero"`
	Abort    *workflow.Failed `json:"abort,omitzero"`
	Cancel   string           `json:"cancel,omitzero"`
	AtOnce   bool             `json:"at_once,omitzero"` // with Cancel
	// Due makes the timers fire whose time has come. With none of these fields, the step only starts tasks.
	Due bool `json:"due,omitzero"`
	// Resume lets the run go on from here, after later records were dropped.
	Resume  *resume `json:"resume,omitzero"`
	Started int     `json:"started,omitzero"`
}

// encode returns the text of a record. Nearly all report that a task is done, and need no reflection.
func (rec *record) encode() ([]byte, error) {
	done := rec.Done
	if done == nil || *rec != (record{Now: rec.Now, Done: done, Started: rec.Started}) {
		return json.Marshal(rec)
	}
	b := strconv.AppendInt([]byte(`{"now":`), rec.Now, 10)
	b, err := jsontext.AppendQuote(append(b, `,"done":{"work":`...), done.Work)
	if err != nil {
		return nil, err
	}
	b = strconv.AppendInt(append(b, `,"attempt":`...), int64(done.Attempt), 10)
	if done.Result != nil {
		b = append(append(b, `,"result":`...), done.Result...)
	}
	b = append(b, '}')
	if rec.Started != 0 {
		b = strconv.AppendInt(append(b, `,"started":`...), int64(rec.Started), 10)
	}
	return append(b, '}'), nil
}

// driver is a run, and what its host has to know of it beside: which tasks wait for their turn, which are
// pending, and which timers are set. It is a function of the records.
type driver struct {
	run  *workflow.Run
	args jsontext.Value
	n    int    // records
	hash string // of all of them
	now  int64

	// page and size are where the next record goes; pages before first are gone.
	page, size, first int
	// since is the size of the records after the last snapshot; at snapAt there will be another one.
	since, snapAt int

	timers  map[string]int64
	queue   []workflow.Work
	pending map[string]pending
	bytes   int // of the arguments of what is pending
	waited  int // how many children are pending
	armed   int64
	// chain are the run and those above it that wait for its end, as SPACE/RUN, from the first on, without itself.
	chain []string
	gen   int // how often the run was reset
	// bounds decide which tasks wait, and no replay: records say which did.
	bounds Bounds
}

// pending is a task that has been started, or a child.
type pending struct {
	Action  string `json:"action,omitzero"`
	Child   string `json:"child,omitzero"` // the workflow
	Attempt int    `json:"attempt"`
	Bytes   int    `json:"bytes"`
	Gen     int    `json:"gen,omitzero"` // of its key
}

// plan is what a step has the host do.
type plan struct {
	start   []workflow.Work
	cancel  map[string]pending
	outcome *workflow.Outcome
	// undoing is the error whose undo steps begin, nil if none do.
	undoing *workflow.Failure
	// cancelled is set if the step is a cancellation: if it ends the run or begins undo steps, the run is cancelled.
	cancelled bool
	// delta is how the size of the arguments of pending tasks changes, by action.
	delta map[string]int
	// bytes is the size of the arguments of what starts. more is set if there would be room for more, in another step.
	bytes int
	more  bool
	// timer is set if the timer of the run has to be set to a time, or cancelled if that is 0.
	timer *int64
}

func newDriver(p *workflow.Program, args jsontext.Value) *driver {
	return &driver{run: workflow.New(p), args: args, hash: firstHash(p.Version, args), snapAt: minSnapshot, timers: map[string]int64{}, pending: map[string]pending{}}
}

// firstHash returns the hash of a run without records.
func firstHash(version string, args jsontext.Value) string { return chain(version, args) }

// chain returns a hash of what a hash stands for, and a text behind it.
func chain(hash string, text []byte) string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, hash) // never fails
	_, _ = h.Write(text)
	var sum [8]byte
	return hex.EncodeToString(h.Sum(sum[:0]))
}

func sizeOf(w *workflow.Work) int { return len(w.Args) + len(w.Named) + len(w.ID) + 100 }

// apply makes a step. room decides whether a space has room for another task, given how the step has changed the
// size of those of the same action; without it, as many tasks are started as the record says.
func (d *driver) apply(rec *record, room func(w *workflow.Work, delta int) bool) (p plan, err error) {
	d.now = max(d.now, rec.Now)
	p.cancel, p.delta = map[string]pending{}, map[string]int{}
	for _, in := range d.inputs(rec, &p) {
		if err := d.step(in, &p); err != nil {
			return p, err
		}
	}
	p.cancelled = rec.Cancel != ""
	if p.outcome != nil {
		d.queue, d.timers = nil, map[string]int64{}
	}
	children := 0 // what those that are started in this step need in its commit
	for n := 0; len(d.queue) > 0; n++ {
		next := &d.queue[0]
		if room == nil && n == rec.Started || room != nil && d.waits(next, children, &p, room) {
			break
		}
		children += d.costOf(next)
		d.begin(&p)
	}
	if room == nil && rec.Started != len(p.start) {
		return p, fmt.Errorf("it started %d tasks, and there were %d", rec.Started, len(p.start))
	}
	rec.Started = len(p.start)
	if first := d.next(); first != d.armed {
		d.armed, p.timer = first, &first
	}
	return p, nil
}

// full reports whether a task has to wait for others of its run.
func (d *driver) full(w *workflow.Work) bool {
	return len(d.pending) >= d.bounds.Tasks || len(d.pending) > 0 && d.bytes+sizeOf(w) > d.bounds.TaskBytes || w.Child != "" && d.waited >= maxChildren
}

// waits reports whether a call has to wait for others, of its run, of its space, or of this step.
func (d *driver) waits(w *workflow.Work, children int, p *plan, room func(w *workflow.Work, delta int) bool) bool {
	if d.full(w) || w.Child == "" && !room(w, p.delta[w.Action]) {
		return true
	}
	p.more = len(p.start) >= d.bounds.Starts || len(p.start) > 0 && p.bytes+sizeOf(w) > d.bounds.StartBytes
	return p.more || w.Child != "" && children > 0 && children+d.costOf(w) > maxChildBytes
}

// stuck reports whether tasks wait for those of other runs, and no task of this one is pending, whose end would start them. A
// child may take any time.
func (d *driver) stuck() bool {
	if len(d.queue) == 0 || d.queue[0].Child != "" || d.full(&d.queue[0]) {
		return false
	}
	for _, p := range d.pending { // any order: whether there is one
		if p.Child == "" {
			return false
		}
	}
	return true
}

// begin starts the first task of the queue.
func (d *driver) begin(p *plan) {
	w := d.queue[0]
	d.queue = d.queue[1:]
	size := sizeOf(&w)
	d.pending[w.ID] = pending{Action: w.Action, Child: w.Child, Attempt: w.Attempt, Bytes: size, Gen: d.gen}
	d.bytes += size
	p.bytes += size
	if w.Child == "" {
		p.delta[w.Action] += size
	} else {
		d.waited++
		if w.Timeout > 0 {
			d.timers[childTimer+w.ID] = d.now + w.Timeout
		}
	}
	p.start = append(p.start, w)
}

// end removes a task that is no longer pending.
func (d *driver) end(id string, p *plan) (was pending, is bool) {
	if was, is = d.pending[id]; is {
		delete(d.pending, id)
		d.bytes -= was.Bytes
		if was.Child == "" {
			p.delta[was.Action] -= was.Bytes
		} else {
			d.waited--
			delete(d.timers, childTimer+id)
		}
	}
	return was, is
}

// ended removes a task whose attempt has ended.
func (d *driver) ended(id string, attempt int, p *plan) {
	if d.pending[id].Attempt == attempt {
		d.end(id, p)
	}
}

// inputs returns the inputs of a record. A timer that has fired is not set any more.
func (d *driver) inputs(rec *record, p *plan) []workflow.Input {
	in := workflow.Input{Now: d.now, Done: rec.Done, Failed: rec.Failed, Signal: rec.Signal, Met: rec.Met, Abort: rec.Abort, Cancel: rec.Cancel, AtOnce: rec.AtOnce}
	switch {
	case rec.Resume != nil:
		return d.resume(rec)
	case rec.Begin:
		in.Begin, in.Deadline = d.args, rec.Deadline
	case rec.Due:
		d.armed = 0
		var list []workflow.Input
		for _, id := range d.due() {
			delete(d.timers, id)
			if work, is := strings.CutPrefix(id, childTimer); is {
				list = append(list, d.childTimedOut(work, p))
				continue
			}
			list = append(list, workflow.Input{Now: d.now, Timer: id})
		}
		return list
	case rec.Done != nil:
		d.ended(rec.Done.Work, rec.Done.Attempt, p)
	case rec.Failed != nil:
		d.ended(rec.Failed.Work, rec.Failed.Attempt, p)
	case rec.Signal == nil && rec.Met == nil && rec.Abort == nil && rec.Cancel == "":
		return nil
	}
	return []workflow.Input{in}
}

// due returns the timers whose time has come, in the order of their times.
func (d *driver) due() []string {
	var list []string
	for id, at := range d.timers {
		if at <= d.now {
			list = append(list, id)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(d.timers[a], d.timers[b]), cmp.Compare(a, b)) })
	return list[:min(len(list), maxDue)]
}

// next returns the time of the first timer, 0 if none is set.
func (d *driver) next() (first int64) {
	for _, at := range d.timers { // any order: only the minimum is kept
		if first == 0 || at < first {
			first = at
		}
	}
	return first
}

// step makes a step of the run, and further ones for calls that are too large.
func (d *driver) step(in workflow.Input, p *plan) error {
	e, err := d.run.Step(in)
	if err != nil {
		return err
	}
	for _, id := range e.Cancel {
		if was, is := d.end(id, p); is {
			p.cancel[id] = was
		}
	}
	if len(e.Cancel) > 0 {
		gone := map[string]bool{}
		for _, id := range e.Cancel {
			gone[id] = true
		}
		d.queue = slices.DeleteFunc(d.queue, func(w workflow.Work) bool { return gone[w.ID] })
	}
	for _, t := range e.Timers {
		d.timers[t.ID] = t.At
	}
	for _, id := range e.Drop {
		delete(d.timers, id)
	}
	if e.Undoing != nil {
		p.undoing = e.Undoing
	}
	if e.Outcome != nil {
		p.outcome = e.Outcome
		return nil
	}
	for i := range e.Start {
		w := e.Start[i]
		if why := d.refused(&w); why != nil {
			if err := d.step(workflow.Input{Now: d.now, Failed: why}, p); err != nil {
				return err
			}
			continue
		}
		d.queue = append(d.queue, w)
	}
	return nil
}

// refused returns why a call cannot be made, nil if it can.
func (d *driver) refused(w *workflow.Work) *workflow.Failed {
	if size := sizeOf(w); size > MaxValue {
		return &workflow.Failed{Work: w.ID, Attempt: w.Attempt, Type: workflow.LimitError, Message: fmt.Sprintf("the arguments of %s have %d bytes; at most %d are possible: pass a reference to what is large", w.Action+w.Child, size, MaxValue)}
	}
	if w.Child != "" {
		return d.refusedChild(w)
	}
	return nil
}

// wrote counts a record that has been written, or read.
func (d *driver) wrote(text []byte) {
	d.hash = chain(d.hash, text)
	d.n++
	d.size += len(text)
	d.since += len(text)
	if d.size >= pageBytes {
		d.nextPage()
	}
}

// nextPage begins another page.
func (d *driver) nextPage() { d.page, d.size = d.page+1, 0 }

// snapshot is the stored form of a driver.
type snapshot struct {
	N       int                `json:"n"`
	Hash    string             `json:"hash"`
	Now     int64              `json:"now"`
	Page    int                `json:"page"`
	SnapAt  int                `json:"snap_at"`
	Timers  map[string]int64   `json:"timers,omitzero"`
	Queue   []workflow.Work    `json:"queue,omitzero"`
	Pending map[string]pending `json:"pending,omitzero"`
	Armed   int64              `json:"armed,omitzero"`
	Gen     int                `json:"gen,omitzero"`
	Run     jsontext.Value     `json:"run"`
}

// snapshot returns the state of the driver, nil if it is not time for that or not possible. The records before
// it are not needed any more.
func (d *driver) snapshot() []byte {
	if d.since < d.snapAt {
		return nil
	}
	run, err := d.run.Snapshot()
	if err != nil { // such as a lambda in a variable: the records remain
		d.snapAt = 2 * d.since
		return nil
	}
	s := snapshot{N: d.n, Hash: d.hash, Now: d.now, Page: d.page + 1, Timers: d.timers, Queue: d.queue, Pending: d.pending, Armed: d.armed, Gen: d.gen, Run: run}
	s.SnapAt = max(minSnapshot, len(run))
	data, err := json.Marshal(&s, json.Deterministic(true))
	if err != nil || len(data) > maxSnapshot {
		d.snapAt = 2 * d.since
		return nil
	}
	d.nextPage()
	d.since, d.snapAt = 0, s.SnapAt
	return data
}

// restore is the inverse of snapshot.
func restore(p *workflow.Program, args jsontext.Value, data []byte) (*driver, error) {
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	run, err := workflow.Load(p, s.Run)
	if err != nil {
		return nil, err
	}
	d := newDriver(p, args)
	d.run, d.n, d.hash, d.now, d.page, d.first, d.snapAt, d.queue, d.armed, d.gen = run, s.N, s.Hash, s.Now, s.Page, s.Page, s.SnapAt, s.Queue, s.Armed, s.Gen
	maps.Copy(d.timers, s.Timers)
	maps.Copy(d.pending, s.Pending)
	for _, was := range s.Pending { // any order: a sum
		d.bytes += was.Bytes
		if was.Child != "" {
			d.waited++
		}
	}
	return d, nil
}

// restoreHead returns the number of records before a snapshot.
func restoreHead(text string) (int, error) {
	var s snapshot
	err := json.Unmarshal([]byte(text), &s)
	return s.N, err
}
