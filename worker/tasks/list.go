package tasks

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// List holds the tasks of one space that are performed here. It belongs to the loop of the host that serves the
// space.
type List struct {
	host    Host
	core    Core
	program *space.Program
	actions []*performing
	// own are the tasks that have a document of their own, by its name, whether they are performed here or not.
	own   map[string]*ownTask
	order int
	ends  ends
}

// ownTask is a task that has a document of its own.
type ownTask struct {
	action string
	space.Task
}

// Host is the host that serves the space, with the functions that its tasks need.
type Host struct {
	// Deployment is the prefix of the deployment.
	Deployment, Space string
	// Ctx ends, with all attempts, when the space is not served any more.
	Ctx context.Context
	// Slots limit the attempts of the process.
	Slots *Slots
	// Limits admit tasks within the limits of a fleet.
	Limits *Limits
	// Offers hand the tasks of external actions to performers; nil if that is not possible here.
	Offers *Offers
	// Now returns the time by the clock of the loop.
	Now func() time.Duration
	// Wall returns the wall time.
	Wall func() time.Time
	// Go runs a function beside the loop, Call makes the loop run one.
	Go, Call func(func())
	// Send stores an event in a lane.
	Send func(model.Message) error
	// Report reports a transient error to the operator.
	Report func(what string, err error)
	Logger *slog.Logger
	// Warn reports a possibly recurring problem to the operator: what it is, and which task it concerns.
	Warn func(what, of string, about ...any)
	// Attempts observes the attempts at tasks, nil if nothing does. It is called by the loop, and its result beside it: with the context
	// of the attempt, which it may add to, and it returns what to call with how the attempt has ended, and its error.
	Attempts func(action, key string, attempt int) func(context.Context) (context.Context, func(Ending, error))
	// Ended is called by the loop when an attempt has ended, unless it was cut off, and when a task has ended without one; nil if nothing wants to know.
	Ended func(End)
	// Offered is called for each offer to performers that one has taken, or none; nil if nothing counts them.
	Offered func(taken bool)
}

// Core has the documents of a space and its program.
type Core interface {
	Program() *space.Program
	// Transact makes a transaction without an event. It is undone if its number is among those that Undone receives.
	Transact(by string, f func(tx *space.Tx) error) (uint64, error)
	// Confirmed returns a document as the log has it, and the revision of that value.
	Confirmed(doc string) (v model.Value, revision uint64)
	// TaskDocs returns the documents of single tasks whose confirmed value has changed since the last call; at first, all
	// that exist.
	TaskDocs() []string
}

// New returns the list of a space whose tasks are not known yet.
func New(host Host) *List {
	return &List{host: host, own: map[string]*ownTask{}, ends: ends{made: map[uint64]*task{}}}
}

// performing is an action whose tasks are performed here.
type performing struct {
	spec *space.ActionSpec
	how  space.Performer
	// remote is set if performers elsewhere get the tasks; it is how, too.
	remote *remote
	// closed is the time before which none is offered to them.
	closed time.Duration
	// doc is the document with the pending tasks, as of revision seen.
	doc     model.Value
	seen    uint64
	pending map[string]*task
	queue   queue
	// held are the tasks that wait for a limit of the fleet, by limit.
	held map[string]*held
	underWay,
	limit int
}

// task is a pending task.
type task struct {
	space.Task
	action string
	// at is when to check it again, order decides between several of the same priority.
	at    time.Duration
	order int
	// cancel ends the running attempt, nil if there is none.
	cancel context.CancelFunc
	// ended is the outcome, nil if there is none yet, told how often it was reported.
	ended   *space.Completion
	reports int
	// tx is the number of the transaction that reports the outcome, 0 if none does, and size the size of its event.
	tx   uint64
	size int
	// stored receives whether the log has the outcome; nil if nothing waits for that.
	stored chan bool
	// places are the positions in the piles of the queue, counted from 1; 0 where it is not.
	places [kinds]int
	// limit is the limit of the fleet that the task waits for; "" for none.
	limit string
	// apart reports that the task has a document of its own.
	apart bool
	// gone reports that the task is not pending any more.
	gone bool
}

// reportAgain is the delay after which the outcome of a task that is still pending is reported again, doubled
// each time: the event may have been refused by a program that did not have the action.
const reportAgain = 30 * time.Second

// Look processes the log's records of tasks.
func (l *List) Look(core Core) {
	l.core = core
	if p := core.Program(); p != l.program {
		l.change(p)
	}
	for _, a := range l.actions {
		doc, seq := core.Confirmed(a.spec.Pending())
		if seq != a.seen {
			l.lookAt(a, doc)
			a.seen = seq
		}
	}
	l.lookAtOwn(core.TaskDocs())
}

// lookAtOwn processes the changes of tasks that have documents of their own.
func (l *List) lookAtOwn(docs []string) {
	var begun []*ownTask
	for _, doc := range docs {
		v, _ := l.core.Confirmed(doc)
		action, t, is := space.TaskIn(doc, v)
		was := l.own[doc]
		if was != nil && (!is || t.N != was.N || t.State != space.TaskPending) {
			delete(l.own, doc)
			if a := l.action(was.action); a != nil {
				if !is || t.N == was.N {
					l.endedOtherwise(a, was.Key, &t, is)
				}
				l.lookAtTask(a, &was.Task, false)
			}
		}
		if !is || t.State != space.TaskPending {
			continue
		}
		own := &ownTask{action, t}
		l.own[doc] = own
		begun = append(begun, own)
	}
	l.beginOwn(begun)
}

// endedOtherwise reports that a task is not pending any more although no attempt here has ended it: its deadline has passed, for example. is is the task
// now, if it is still stored.
func (l *List) endedOtherwise(a *performing, key string, is *space.Task, stored bool) {
	t := a.pending[key]
	if t == nil || t.ended != nil || l.host.Ended == nil {
		return
	}
	t.ended = &space.Completion{}
	end := End{Action: t.action, Key: key, How: Done, Attempts: t.Attempts, Handled: a.spec.Done != nil, Discarded: a.spec.Discard}
	if stored && is.State == space.TaskFailed {
		end.How, end.Error = Failed, is.Err
	}
	l.host.Ended(end)
}

// beginOwn adds tasks that have documents of their own, in the order in which they were started.
func (l *List) beginOwn(list []*ownTask) {
	slices.SortFunc(list, func(a, b *ownTask) int { return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Key, b.Key)) })
	for _, own := range list {
		if a := l.action(own.action); a != nil {
			l.lookAtTask(a, &own.Task, true)
			if t := a.pending[own.Key]; t != nil {
				t.apart = true
			}
		}
	}
}

// action returns an action that is performed here, nil for others.
func (l *List) action(name string) *performing {
	for _, a := range l.actions {
		if a.spec.Name == name && !a.spec.Input {
			return a
		}
	}
	return nil
}

// change records that the space runs another program. Running attempts continue; actions that the
// program does not have are dropped.
func (l *List) change(p *space.Program) {
	old := l.actions
	l.program, l.actions = p, nil
	for _, spec := range p.Actions() {
		how, far := l.performer(spec)
		if how == nil {
			continue // others watch the document
		}
		a := newPerforming()
		if i := slices.IndexFunc(old, func(a *performing) bool { return a.spec.Name == spec.Name && a.spec.Input == spec.Input }); i >= 0 {
			a = old[i]
			old = slices.Delete(old, i, i+1)
		}
		l.letGo(a)
		a.spec, a.how, a.remote, a.limit = spec, how, far, how.Concurrency()
		l.actions = append(l.actions, a)
	}
	for _, a := range old {
		l.letGo(a)
		for _, t := range a.pending { // any order: all of them
			l.drop(t)
		}
	}
	l.beginOwn(slices.Collect(maps.Values(l.own))) // those of new actions; it sorts them
}

// performer returns how the tasks of an action are performed from here, nil if they are not.
func (l *List) performer(spec *space.ActionSpec) (space.Performer, *remote) {
	switch {
	case spec.Performer != nil:
		return spec.Performer, nil
	case spec.Remote == nil || l.host.Offers == nil:
		return nil, nil
	}
	r := l.host.Offers.remote(spec.Remote)
	return r, r
}

// lookAt compares the pending tasks with the previous ones.
func (l *List) lookAt(a *performing, doc model.Value) {
	changed := model.Diff("", a.spec.Entries(a.doc), a.spec.Entries(doc))
	a.doc = doc
	entries := a.spec.Entries(doc)
	for i := range changed {
		if len(changed[i].Path) == 0 { // there were none before, or there are none any more
			for key, t := range a.pending { // any order: each on its own
				if !t.apart {
					l.lookAtEntry(a, key, entries.Get(key))
				}
			}
			for key, entry := range entries.All() {
				l.lookAtEntry(a, key, entry)
			}
			return
		}
		key := changed[i].Path[0]
		l.lookAtEntry(a, key, entries.Get(key))
	}
}

// lookAtEntry processes an entry of the document of an action.
func (l *List) lookAtEntry(a *performing, key string, entry model.Value) {
	is, pending := a.spec.PendingTask(key, entry)
	if t := a.pending[key]; t != nil && !pending && !a.spec.Input {
		now := space.TaskOf(key, entry)
		l.endedOtherwise(a, key, &now, now.N == t.N)
	}
	l.lookAtTask(a, &is, pending)
}

func (l *List) lookAtTask(a *performing, is *space.Task, pending bool) {
	key := is.Key
	t := a.pending[key]
	if t != nil && (!pending || is.N != t.N) {
		delete(a.pending, key)
		l.unhold(a, t)
		a.queue.remove(t)
		l.drop(t)
		t = nil
	}
	if t != nil {
		t.Until = is.Until // an operator may have cancelled its deadline
	}
	if t != nil || !pending {
		return
	}
	l.order++
	t = &task{Task: *is, action: a.spec.Name, order: l.order}
	t.Attempts = l.attemptsAt(a, is)
	a.pending[key] = t
	a.queue.push(t)
}

// attemptsAt returns how many attempts at a task have failed, according to the log.
func (l *List) attemptsAt(a *performing, t *space.Task) int {
	if !a.spec.Input {
		return t.Attempts
	}
	doc, _ := l.core.Confirmed(a.spec.Name)
	if known := space.TaskOf(t.Key, doc.At(space.PathOfTask(t.Key))); known.N == t.N {
		return known.Attempts
	}
	return 0
}

// drop ends the running attempt at a task that is not pending any more.
func (l *List) drop(t *task) {
	l.ends.forget(t)
	t.gone = true
	if t.stored != nil {
		t.stored <- true // it has room
		t.stored = nil
	}
	if t.cancel != nil {
		t.cancel()
	}
}

// Pending reports whether any task is to be performed here.
func (l *List) Pending() bool {
	return slices.ContainsFunc(l.actions, func(a *performing) bool { return len(a.pending) > 0 })
}

// Perform starts the tasks that are due.
func (l *List) Perform() {
	now := l.host.Now()
	for _, a := range l.actions {
		for a.underWay < a.limit && a.closed <= now {
			t := a.queue.first(now)
			if t == nil {
				break
			}
			if !l.admits(a, t, now) {
				continue
			}
			a.queue.begin(t)
			a.underWay++
			l.begin(a, t)
		}
	}
}

// admits reports whether the next task can begin. Otherwise it, or the whole action, waits.
func (l *List) admits(a *performing, t *task, now time.Duration) bool {
	if t.ended != nil {
		return true
	}
	if t.Until > 0 && t.Until <= l.host.Wall().UnixMilli() { // a timer of the space is about to end it, perhaps after a long time without an owner
		a.queue.postpone(t, now+time.Second)
		return false
	}
	if limit := limitOf(a.spec, &t.Task); limit != "" && !l.within(a, t, limit, now) {
		return false
	}
	wait := time.Duration(0)
	if a.remote != nil {
		wait = a.remote.admit(l, t)
	}
	if wait == 0 {
		return true
	}
	if t.limit != "" {
		l.host.Limits.ended(t.limit, &a.spec.Fleet, false)
		t.limit = ""
	}
	if a.remote.terms.QueueBy == "" {
		a.closed = now + wait
	} else { // tasks for other performers need not wait
		a.queue.postpone(t, now+wait)
	}
	return false
}

// over reports that the space is not served any more.
func (l *List) over() bool { return l.host.Ctx.Err() != nil }

// open lets tasks begin that wait at a gate. If there are none, another list has its turn.
func (l *List) open(id gateID) {
	for _, a := range l.actions {
		if a.spec.Name == id.action && a.remote != nil && a.underWay < a.limit && a.queue.first(l.host.Now()) != nil {
			a.closed = 0
			return
		}
	}
	if l.host.Offers != nil {
		l.host.Offers.gates.pass(l, id)
	}
}

// Next returns when to check the next task, 0 if none waits for a time.
func (l *List) Next() (at time.Duration) {
	for _, a := range l.actions {
		if due, is := a.queue.next(); is && a.underWay < a.limit {
			if first := max(due, a.closed, 1); at == 0 || first < at {
				at = first
			}
		}
	}
	return at
}

// begin makes an attempt at a task, or reports its outcome again.
func (l *List) begin(a *performing, t *task) {
	ctx, cancel := context.WithCancel(l.host.Ctx)
	t.cancel = cancel
	limit, terms := t.limit, a.spec.Fleet
	t.limit = ""
	told, how, far, handled := t.reports, a.how, a.remote, a.spec.Discard // as of now: another program may have another function
	begins := l.observed(t)
	do := func() result { return l.attempt(ctx, how, t, handled, begins) }
	switch {
	case t.ended != nil:
		do = func() result { return result{completion: t.ended} }
	case far != nil:
		waiting := len(a.pending)
		do = func() result { return l.offerTask(ctx, far, t, waiting, begins) }
	}
	over := func(r *result) {
		cancel()
		a.underWay--
		a.closed = 0
		t.cancel = nil
		l.attempted(a, t, r)
	}
	l.host.Go(func() { // ends with ctx at the latest, if Do does
		r := do()
		if limit != "" {
			l.host.Limits.ended(limit, &terms, !r.untaken)
		}
		if r.completion != nil {
			if l.commit(t, &r, over) {
				return
			}
			r.completion = l.report(ctx, t.action, &r, told)
		}
		if r.stored != nil {
			r.stored(r.completion != nil)
		}
		l.host.Call(func() { over(&r) })
	})
}

// attempted processes the outcome of an attempt.
func (l *List) attempted(a *performing, t *task, r *result) {
	c := r.completion
	if !r.progress.IsAbsent() {
		t.Progress = r.progress
	}
	if c != nil && t.ended == nil && l.host.Ended != nil {
		l.host.Ended(endOf(a, t, c))
	}
	switch {
	case t.gone:
		return
	case r.untaken:
		t.at = l.host.Now() // for the next offer, when there may be one
	case c == nil: // the space is handed over
		t.at = l.host.Now() + a.how.Pause(1)
	case c.Attempt > 0:
		t.Attempts = c.Attempt
		t.at = l.host.Now() + a.how.Pause(c.Attempt)
	default:
		t.ended = c
		t.at = l.host.Now() + reportAgain<<min(t.reports, 10)
		t.reports++
	}
	a.queue.push(t)
}
