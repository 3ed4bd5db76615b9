package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/lanes"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/replica"
)

// Config configures ledgers, and does not change. All of it must be set; see Limits.Fill.
type Config struct {
	// Runtime names the process that serves the space here.
	Runtime string
	// WithoutEvents leaves the events of the space to other runtimes.
	WithoutEvents bool
	Limits
	// PauseMin, doubled up to PauseMax, is the pause after conflicts, from the second on. PauseMax also bounds the
	// pause before the second attempt at an event whose first ended with the process.
	PauseMin, PauseMax time.Duration
}

// Append is a commit on its way to the log.
type Append struct {
	Expect uint64
	Commit *model.Commit
	Data   []byte // Commit, encoded
}

// Counts are what a ledger has done.
type Counts struct {
	// Handled, Failed and Refusals are events, by outcome, when that is confirmed.
	Handled, Failed, Refusals uint64
	// Attempts at handling events that were not given up, undone ones included.
	Attempts uint64
	// Refused appends.
	Refused uint64
	// Unconverged events met conflicts for longer than the window.
	Unconverged uint64
	// Conflicts, KnownReceipts and LostOrigins are handlings that a refusal has undone, by Why.
	Conflicts, KnownReceipts, LostOrigins uint64
}

// Why is why a refusal has undone a handling.
type Why uint8

const (
	// Conflict: another runtime's commit was first.
	Conflict Why = iota + 1
	// Receipt: and that has handled the same event.
	Receipt
	// Origin: the transaction that had sent the event was undone with it.
	Origin
)

// Undone is a handling that a refusal has undone. Of which kind it is turns out as the commits are
// integrated that stood in the way.
type Undone struct {
	Event receipts.Key
	Why   Why
}

// Ledger is one space as one runtime serves it: what its log has, and on top of that what this runtime has
// done and the log has not confirmed. It is not safe for concurrent use.
type Ledger struct {
	cfg  *Config
	host Host

	replica  *replica.Replica
	lane     *lanes.Lane
	registry *lineage.Registry

	at        standing
	suffix    suffix
	head      head
	conflicts *conflicts // nil: there was none
	poison    poisonGuard
	agenda    agenda
	undone    []Undone // by a refusal, until Resume

	// version is of the program that runs, logged the one that the log has of this runtime.
	version, logged string

	// termAt is the time of the term that the next entry begins, see TermAt.
	termAt uint64

	now time.Duration
	// wall is the wall time in milliseconds since 1970, 0 if it is not known; wallBack is set if it has
	// gone back.
	wall     int64
	wallBack bool
	// mayBeMarked says that there may be a mark in CancelDoc.
	mayBeMarked bool
	counts      Counts
}

// New makes a ledger out of the confirmed state of a space. It makes no transactions until TakeOver or
// Attach has been answered by Confirm.
func New(cfg *Config, host Host, r *replica.Replica) *Ledger {
	l := &Ledger{
		cfg: cfg, host: host, replica: r,
		lane: lanes.New(laneState(r), cfg.LaneLimit), registry: lineage.New(r.Space, r.Outbound),
	}
	l.mayBeMarked = r.Doc(CancelDoc).Value.Len() > 0
	l.registry.SetTerm(r.Term)
	l.host.fill(l)
	return l
}

// laneState is what the log says of the lane.
func laneState(r *replica.Replica) lanes.State {
	return lanes.State{Cursor: r.Cursor, Inbound: r.Inbound, Own: r.Own}
}

// TakeOver asks to become the owner: the next Append is a takeover or, if an entry is under way, the first
// after that was refused. A runtime that takes part already has nothing to ask for.
func (l *Ledger) TakeOver() { l.at.ask(Owner) }

// Attach asks to take part beside the owner, likewise (docs/adr/0013). Runtimes are kept
// apart by the compare-and-set on the head alone: the second is refused, integrates, and repeats the work that is
// still left.
func (l *Ledger) Attach() { l.at.ask(Attached) }

// TermAt sets the time by the server's clock, in milliseconds since 1970: the next takeover or join begins a
// term of that time (docs/adr/0035). Without it the entry begins none, and positions that are assigned again
// after the log has lost its tail cannot be distinguished from earlier ones.
func (l *Ledger) TermAt(at uint64) { l.termAt = at }

// Hold makes the ledger finish: no transaction is begun any more, and those that are made are still sealed
// and confirmed. There is no way back.
func (l *Ledger) Hold() {
	l.at.finishing = true
	l.retractAttempt()
}

// Close ends the ledger: it makes no transactions and asks for nothing.
func (l *Ledger) Close() { l.at.take(stepClose) }

// Phase is how the runtime stands towards the log, Role as what it takes part or asks to.
func (l *Ledger) Phase() Phase { return l.at.phase }

// Role is as what the runtime takes part, or asks to.
func (l *Ledger) Role() Role { return l.at.role }

// Entered reports whether the runtime takes part as the owner or attached, between a refusal and Resume
// too.
func (l *Ledger) Entered() bool { return l.at.epoch != 0 && l.at.phase != Closed }

// Closed reports whether Close was called.
func (l *Ledger) Closed() bool { return l.at.phase == Closed }

// Running reports whether transactions can be made now.
func (l *Ledger) Running() bool { return l.at.makes() }

// Begins reports whether transactions may be begun now: the ledger runs, and is not finishing.
func (l *Ledger) Begins() bool { return l.at.begins() }

// Finishing reports whether Hold was called.
func (l *Ledger) Finishing() bool { return l.at.finishing }

// Epoch is the log sequence of the entry, 0 while the runtime makes no transactions.
func (l *Ledger) Epoch() uint64 { return l.at.epoch }

// Settled reports whether everything that was done or asked for is in the log.
func (l *Ledger) Settled() bool {
	return l.at.entry == nil && !l.at.wants() && l.poison.record == nil && !l.suffix.undecided()
}

// Undecided reports whether there is a transaction that the log has not confirmed, Open whether one that is
// not under way.
func (l *Ledger) Undecided() bool { return l.suffix.undecided() }

// Open reports whether there is a transaction that is not under way to the log.
func (l *Ledger) Open() bool { return len(l.suffix.open.txs) > 0 }

// Appends is how many appends have to be confirmed until all that was done is in the log.
func (l *Ledger) Appends() int { return l.suffix.appends() }

// Full reports whether the open group should take no more events, Crowded whether it takes nothing more at
// all.
func (l *Ledger) Full() bool { return l.suffix.full(l.cfg) }

// Crowded reports whether a transaction has found no room in the open group, which takes nothing more then.
func (l *Ledger) Crowded() bool { return l.suffix.crowded }

// TakeTurn reports whether a transaction that has found no room can go first now.
func (l *Ledger) TakeTurn() bool { return l.suffix.takeTurn() }

// ReleaseMemory gives memory back that is kept to be used again. A host with many ledgers calls it for one that has
// nothing to do for now.
func (l *Ledger) ReleaseMemory() { l.suffix.release() }

// Tick makes the time known, in the host's monotonic clock. One that goes back stands still.
func (l *Ledger) Tick(now time.Duration) { l.now = max(l.now, now) }

// Clock makes the wall time known. Time may go back: an event that is in the log as handled stays so, any
// other waits until its time comes again.
func (l *Ledger) Clock(wall time.Time) {
	ms := wall.UnixMilli()
	if ms < l.wall {
		l.wallBack = true
	}
	l.wall = ms
}

// Wall is the wall time in milliseconds since 1970, 0 if it is not known.
func (l *Ledger) Wall() int64 { return l.wall }

// Runs says which version of the program runs from now on. The first commit with it names it.
func (l *Ledger) Runs(version string) { l.version = version }

// Replica is the confirmed state.
func (l *Ledger) Replica() *replica.Replica { return l.replica }

// Lane is the queue of events. A host offers to it; only the ledger takes from it.
func (l *Ledger) Lane() *lanes.Lane { return l.lane }

// Counts are the counters.
func (l *Ledger) Counts() Counts { return l.counts }

// Value is a document as the transactions leave it that are made so far: in the log, or on its way there.
func (l *Ledger) Value(doc string) model.Value {
	if v, written := l.suffix.value(doc); written {
		return v
	}
	return l.replica.Doc(doc).Value
}

// Holds reports whether an undecided transaction has written to a document.
func (l *Ledger) Holds(doc string) bool {
	_, written := l.suffix.value(doc)
	return written
}

// Append is the commit to be appended now, nil for none: the entry if one is asked for, else the open group
// unless an append is under way. It is answered by exactly one Confirm or Refuse.
func (l *Ledger) Append() *Append {
	switch {
	case l.at.phase == Asking:
		return l.enter()
	case !l.at.makes() || l.suffix.sealed != nil || len(l.suffix.open.txs) == 0 && l.poison.record == nil:
		return nil
	}
	taken := l.lane.Undecided()
	c := &model.Commit{
		Version: model.CommitVersion, Space: l.replica.Space, Runtime: l.cfg.Runtime,
		Epoch: l.at.epoch, Cursor: l.lane.Cursor(taken), Trying: l.poison.record,
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

// enter makes the commit by which the runtime enters.
func (l *Ledger) enter() *Append {
	l.at.take(stepSend)
	attached := l.at.role == Attached
	c := &model.Commit{
		Version: model.CommitVersion, Space: l.replica.Space, Runtime: l.cfg.Runtime,
		Attempt: l.replica.Seq + 1, Takeover: !attached, Join: attached,
		Term: model.NextTerm(l.termAt, l.replica.Term), Program: l.version, Cursor: l.replica.Cursor,
	}
	l.at.entry = c
	return &Append{Expect: l.replica.Seq, Commit: c, Data: model.AppendCommit(nil, c, nil)}
}

// Confirm says that the append under way is in the log at seq. It reports whether the runtime has entered
// with it.
func (l *Ledger) Confirm(seq uint64) (entered bool, err error) {
	if c := l.at.entry; c != nil {
		_, err := l.replica.Apply(seq, c)
		l.at.entered(seq)
		l.logged = c.Program
		l.suffix.restart(model.BeforeFirstTx(l.replica.Term))
		l.registry.SetTerm(l.replica.Term)
		l.beginLife()
		return true, err
	}
	x := l.suffix.sealed
	for i := range x.commit.Txs {
		if rc := x.commit.Txs[i].Receipt; rc != nil {
			l.counts.handled(rc.Outcome)
		}
	}
	l.replica.Adopt(seq, x.commit, x.after)
	if x.commit.Program != "" {
		l.logged = x.commit.Program
	}
	l.lane.Confirm(x.taken, x.commit.Cursor)
	if n := len(x.commit.Txs); n > 0 {
		l.registry.Confirm(x.commit.Txs[n-1].N)
	}
	l.suffix.confirm()
	l.agenda.undecided = l.agenda.undecided && l.suffix.undecided()
	if l.at.finishing {
		l.retractAttempt()
	}
	return false, nil
}

// Dropped are the transactions that a refusal has undone: of the commit that was under way, and of the group
// behind it. Direct are the numbers of those that the application made.
type Dropped struct {
	UnderWay, Open []model.Tx
	Direct         []uint64
}

// Refuse says that the append under way was refused: another runtime's commit is at the head. Everything
// undecided is undone, and nothing happens until the host has passed every commit behind the replica's
// sequence to Integrate and calls Resume. The host gives the documents that the dropped transactions have
// written their confirmed values back.
func (l *Ledger) Refuse() Dropped {
	l.at.take(stepRefuse)
	l.at.entry = nil
	l.poison.record = nil
	l.LetGo()
	var gone Dropped
	gone.UnderWay, gone.Open, gone.Direct = l.suffix.drop()
	l.undone = undoneBy(undoneBy(nil, gone.UnderWay), gone.Open)
	followUps := l.registry.Cancel()
	for i := range l.undone {
		if followUps[l.undone[i].Event.ID] {
			l.undone[i].Why = Origin
		}
	}
	l.lane.Rewind(func(ev *model.Event) bool { return followUps[ev.ID] })
	l.agenda.stale = l.agenda.stale || l.agenda.undecided
	l.counts.Refused++
	return gone
}

// undoneBy lists the handlings among transactions that are undone.
func undoneBy(list []Undone, txs []model.Tx) []Undone {
	for i := range txs {
		if rc := txs[i].Receipt; rc != nil {
			stream, _ := receipts.Stream(txs[i].By)
			list = append(list, Undone{receipts.Key{Stream: stream, ID: rc.Event}, Conflict})
		}
	}
	return list
}

// Integrate takes in commits that other runtimes have made, in log order; those that are known already are
// passed over. If an append is under way it has failed, and Refuse comes first. The error is model.ErrPurged
// if commits are missing between what is known and these: the space must be loaded anew.
func (l *Ledger) Integrate(entries ...model.LogEntry) error {
	before := l.replica.Seq
	for i := range entries {
		if err := l.integrate(&entries[i]); err != nil {
			return err
		}
	}
	if l.replica.Seq > before {
		st := laneState(l.replica)
		st.Waits = l.stillWaits
		l.lane.Integrate(st) // once for all: it costs what the lane holds
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
	for i := range l.undone {
		if receipts.Find(c, l.undone[i].Event) != nil {
			l.undone[i].Why = Receipt
		}
	}
	for i := range c.Txs {
		if changes(&c.Txs[i]) {
			l.agenda.stale = true
		}
	}
	l.mayBeMarked = l.mayBeMarked || slices.Contains(changed, CancelDoc)
	l.registry.Integrate(c)
	if err := l.host.Integrated(c, changed); err != nil {
		return err
	}
	if c.Takeover && l.at.overtaken() {
		l.LetGo()
		l.conflicts, l.poison = nil, poisonGuard{}
	}
	return nil
}

// Resume ends the standstill after Refuse. It returns the handlings that were undone, now that all of the
// commits are known that stood in the way.
func (l *Ledger) Resume() []Undone {
	l.at.take(stepResume)
	undone := l.undone
	l.undone = nil
	for _, u := range undone {
		l.counts.undone(u.Why)
		if ev := l.Head(); ev != nil && keyOf(ev) == u.Event && u.Why == Conflict {
			if l.conflicts == nil {
				l.conflicts = &conflicts{}
			}
			l.conflicts.pending = l.at.epoch != 0
		}
	}
	return undone
}

func (c *Counts) handled(o model.Outcome) {
	switch o {
	case model.Handled:
		c.Handled++
	case model.Failed:
		c.Failed++
	case model.Refused:
		c.Refusals++
	}
}

func (c *Counts) undone(w Why) {
	switch w {
	case Receipt:
		c.KnownReceipts++
	case Origin:
		c.LostOrigins++
	default:
		c.Conflicts++
	}
}
