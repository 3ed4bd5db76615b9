package ledger

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle/lanes"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/replica"
)

// Append is a commit on its way to the log.
type Append struct {
	Expect uint64
	Commit *model.Commit
	Data   []byte // Commit, encoded
}

// Ledger is one space as one runtime serves it: the content of its log, and on top of that what this runtime
// has done and the log has not confirmed. It is not safe for concurrent use.
//
// Each of its parts owns its state and knows at most those before it; the Ledger decides the order in which
// they take part in an operation.
type Ledger struct {
	cfg  *Config
	host Host

	replica  *replica.Replica
	lane     *lanes.Lane
	registry *lineage.Registry

	clock
	phaseState
	suffix
	marks marks
	agenda
	head   head
	poison poisonGuard
	outcomes

	// version is that of the running program, logged the one that the log has for this runtime.
	version, logged string
}

// New makes a ledger from the confirmed state of a space. It makes no transactions until Confirm has answered
// TakeOver or Attach.
func New(cfg *Config, host Host, r *replica.Replica) *Ledger {
	l := &Ledger{
		cfg: cfg, host: host, replica: r,
		lane: lanes.New(laneState(r), cfg.LaneLimit), registry: lineage.New(r.Space, r.Outbound),
	}
	l.suffix = suffix{cfg: cfg, confirmed: r}
	l.marks = marks{docs: &l.suffix, maybe: r.Doc(CancelDoc).Value.Len() > 0}
	l.agenda = agenda{cfg: cfg, clock: &l.clock, confirmed: r, lane: l.lane}
	l.head = head{cfg: cfg, clock: &l.clock}
	l.poison = poisonGuard{cfg: cfg, at: &l.phaseState, confirmed: r, lane: l.lane}
	l.registry.SetTerm(r.Term)
	l.host.fill(l.unhandled, l.apply)
	return l
}

// laneState returns the confirmed state of the lane.
func laneState(r *replica.Replica) lanes.State {
	return lanes.State{Cursor: r.Cursor, Inbound: r.Inbound, Own: r.Own}
}

// unhandled implements Host.Unhandled for a host without it.
func (l *Ledger) unhandled(ev *model.Event, rc *model.Receipt) *Attempt {
	a := &Attempt{Draft: Draft{Event: ev, Trace: ev.Trace}, Receipt: rc}
	if !l.marks.of(ev.Stream, ev.ID).IsAbsent() {
		a.Writes = []model.Write{{Doc: CancelDoc, Path: model.Path{CancelKey(ev.Stream, ev.ID)}, Delete: true}}
	}
	return a
}

// apply implements Host.Recorded for a host without it.
func (l *Ledger) apply(a *Attempt, _ uint64) {
	for i := range a.Writes {
		w := &a.Writes[i]
		if v, err := w.Apply(l.Value(w.Doc)); err == nil { // the attempt has applied them before
			l.Note(w.Doc, v)
		}
	}
}

// Replica returns the confirmed state.
func (l *Ledger) Replica() *replica.Replica { return l.replica }

// Lane returns the queue of events. A host offers events to it; only the ledger takes them.
func (l *Ledger) Lane() *lanes.Lane { return l.lane }

// Runs sets the version of the program that runs from now on. The first commit with it names it. What is
// known of the head of the lane is discarded, because another handler may need other documents.
func (l *Ledger) Runs(version string) {
	l.version = version
	l.resetHead()
}

// Overran records that the handler of an event did not return in an earlier incarnation of the space in this
// process, and whether the log had a record of that attempt (AttemptRecorded). It is called before the
// runtime enters.
func (l *Ledger) Overran(stream, event string, recorded bool) {
	l.poison.overran, l.poison.counted = &receipts.Key{Stream: stream, ID: event}, recorded
}

// AttemptRecorded reports whether the log has a record of the attempt at an event that is being made now.
func (l *Ledger) AttemptRecorded(stream, event string) bool { return l.poison.recorded(stream, event) }

// Hold makes the ledger finish: it begins no further transactions, and those that exist are still sealed and
// confirmed. It cannot be reversed.
func (l *Ledger) Hold() {
	l.phaseState.finishing = true
	l.poison.retract()
}

// Settled reports whether everything that was done or requested is in the log.
func (l *Ledger) Settled() bool {
	return l.phaseState.entry == nil && !l.phaseState.wants() && l.poison.record == nil && !l.suffix.undecided()
}

// Note records the value of a document after the transactions made so far.
func (l *Ledger) Note(doc string, v model.Value) {
	l.suffix.note(doc, v)
	l.marks.changed(doc)
}

// Append returns the commit to append now, nil if there is none: the entry if one is requested, else the open
// group unless an append is in flight. It must be answered by exactly one Confirm or Refuse.
func (l *Ledger) Append() *Append {
	switch {
	case l.phaseState.phase == Asking:
		c := l.phaseState.enter(l.cfg.Runtime, l.version, l.replica)
		return &Append{Expect: l.replica.Seq, Commit: c, Data: model.AppendCommit(nil, c, nil)}
	case !l.Running() || l.suffix.sealed != nil || !l.Open() && l.poison.record == nil:
		return nil
	}
	taken := l.lane.Undecided()
	c := &model.Commit{
		Version: model.CommitVersion, Space: l.replica.Space, Runtime: l.cfg.Runtime,
		Epoch: l.phaseState.epoch, Cursor: l.lane.Cursor(taken), Trying: l.poison.record,
	}
	if l.version != l.logged {
		c.Program = l.version
	}
	l.poison.record = nil
	if slices.ContainsFunc(l.suffix.open.txs, l.sendsAway) {
		c.Term = l.registry.Term()
	}
	data := l.suffix.open.data
	l.suffix.seal(c, taken)
	return &Append{Expect: l.replica.Seq, Commit: c, Data: model.AppendCommit(nil, c, data)}
}

// sendsAway reports whether a transaction sends anything to another space.
func (l *Ledger) sendsAway(tx model.Tx) bool {
	return slices.ContainsFunc(tx.Sends, func(m model.Send) bool { return m.To != l.replica.Space })
}

// Confirm records that the append in flight is in the log at seq. It reports whether the runtime has entered
// with it.
func (l *Ledger) Confirm(seq uint64) (entered bool, err error) {
	if c := l.phaseState.entry; c != nil {
		_, err := l.replica.Apply(seq, c)
		l.phaseState.entered(seq)
		l.logged = c.Program
		l.suffix.restart(model.BeforeFirstTx(l.replica.Term))
		l.registry.SetTerm(l.replica.Term)
		l.poison.beginLife()
		return true, err
	}
	x := l.suffix.sealed
	l.outcomes.confirmed(x.commit.Txs)
	l.replica.Adopt(seq, x.commit, x.after)
	if x.commit.Program != "" {
		l.logged = x.commit.Program
	}
	l.lane.Confirm(x.taken, x.commit.Cursor)
	if n := len(x.commit.Txs); n > 0 {
		l.registry.Confirm(x.commit.Txs[n-1].N)
	}
	l.suffix.confirm()
	l.agenda.unsure = l.agenda.unsure && l.suffix.undecided()
	if l.phaseState.finishing {
		l.poison.retract()
	}
	return false, nil
}

// Refuse records that the append in flight was refused: another runtime's commit is at the head. Everything
// undecided is undone, and the ledger stands still until the host has passed every commit after the replica's
// sequence to Integrate and calls Resume. The host restores the confirmed values of the documents that the
// dropped transactions wrote.
func (l *Ledger) Refuse() Dropped {
	l.phaseState.refused()
	l.poison.record = nil
	l.resetHead()
	gone := l.suffix.drop()
	followUps := l.registry.Cancel()
	l.outcomes.refused(&gone, followUps)
	l.lane.Rewind(func(ev *model.Event) bool { return followUps[ev.ID] })
	l.agenda.refused()
	return gone
}

// Integrate applies commits that other runtimes have made, in log order; known ones are skipped. If an append
// is in flight, it has failed, and Refuse must be called first. The error is model.ErrPurged if commits are
// missing before these: the space must then be loaded anew.
func (l *Ledger) Integrate(entries ...model.LogEntry) error {
	before := l.replica.Seq
	for i := range entries {
		if err := l.integrate(&entries[i]); err != nil {
			return err
		}
	}
	if l.replica.Seq > before {
		st := laneState(l.replica)
		st.Waits = l.agenda.stillWaits
		l.lane.Integrate(st) // once for all commits: the cost is proportional to the lane
		l.recheckHead()
	}
	return nil
}

func (l *Ledger) integrate(e *model.LogEntry) error {
	if e.Seq <= l.replica.Seq {
		return nil
	}
	if l.suffix.undecided() {
		return fmt.Errorf("space %s, log sequence %d: own transactions are undecided, which must be refused before a foreign commit is integrated", l.replica.Space, e.Seq)
	}
	if err := e.Follows(l.replica.Seq); err != nil {
		return err
	}
	c, err := e.Commit()
	if err == nil {
		err = l.replica.Accepts(e, c)
	}
	if err != nil {
		return err
	}
	changed, err := l.replica.Apply(e.Seq, c)
	if err != nil {
		return e.Unreadable(err)
	}
	l.outcomes.integrated(c)
	l.agenda.integrated(c)
	l.marks.maybe = l.marks.maybe || slices.Contains(changed, CancelDoc)
	l.registry.Integrate(c)
	if err := l.host.Integrated(c, changed); err != nil {
		return err
	}
	if epoch := l.phaseState.epoch; c.Takeover && l.phaseState.overtaken() {
		l.resetHead()
		l.head.conflicts = nil
		l.poison.endLife(epoch)
	}
	return nil
}

// Resume ends the standstill after Refuse. It returns the handlings that were undone, now that all
// conflicting commits are known.
func (l *Ledger) Resume() []Undone {
	l.phaseState.take(stepResume)
	undone := l.outcomes.takeUndone()
	for _, u := range undone {
		if ev := l.Head(); ev != nil && keyOf(ev) == u.Event && u.Cause == Conflict && l.Entered() {
			l.head.conflicted()
		}
	}
	return undone
}
