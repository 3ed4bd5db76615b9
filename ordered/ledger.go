package ordered

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

// ledger is one key: what is in its log, and on top of that what this server has done and the
// log has not confirmed. It does no I/O and has no clock; a key's goroutine owns it.
//
//	log | sealed (being appended) | open |
//	    ^ rep                     ^      ^ what handlers see
type ledger struct {
	cfg   *Config
	key   string
	limit int // bytes that a commit may have

	rep  *replica.Replica
	lane *lanes.Lane
	reg  *lineage.Registry

	epoch   uint64 // of our takeover, 0 while the key is not ours
	termAt  uint64 // the server's time, for the term that a takeover begins (docs/adr/0035)
	lastTx  uint64
	attempt uint64

	open, sealed group
	// under is the commit that is being appended, nil for none, and taken how many events of
	// the lane it decides.
	under *model.Commit
	taken int
	// crowded says that what comes next needs a commit of its own.
	crowded bool

	head    head
	careful bool
	mark    *model.Trying // to go into the next commit
	overran *overrun      // what an earlier host of the key was given up for
	code    *running
}

// group is a run of transactions, encoded too, and the documents as they stand after it.
type group struct {
	txs   []model.Tx
	data  []byte
	after map[string]model.Value
}

// head is what is known of the event that is next: how often its handler has returned a
// Transient error, and when it may be tried again.
type head struct {
	of    receipts.Key
	tries int
	until time.Duration
}

// frameBytes is what a commit needs around its transactions.
const frameBytes = 4 << 10

func newLedger(cfg *Config, rep *replica.Replica, maxPayload int) *ledger {
	l := &ledger{
		cfg: cfg, key: rep.Space, limit: maxPayload/2 - frameBytes, rep: rep,
		lane: lanes.New(laneState(rep), 0), reg: lineage.New(rep.Space, rep.Outbound),
	}
	l.reg.SetTerm(rep.Term)
	return l
}

func laneState(r *replica.Replica) lanes.State {
	return lanes.State{Cursor: r.Cursor, Inbound: r.Inbound, Own: r.Own}
}

// value is a document as the next handler is to see it.
func (l *ledger) value(doc string) model.Value {
	if v, ok := l.open.after[doc]; ok {
		return v
	}
	if v, ok := l.sealed.after[doc]; ok {
		return v
	}
	return l.rep.Doc(doc).Value
}

// owned reports whether the key was taken over, and by nobody else since.
func (l *ledger) owned() bool { return l.epoch != 0 }

// settled reports whether the log has everything that was done.
func (l *ledger) settled() bool { return l.under == nil && len(l.open.txs) == 0 && l.mark == nil }

// next handles the event at the head of the lane, and reports whether it did: there may be
// none, it may have to wait before it is tried again, or the log has to answer first.
func (l *ledger) next(now time.Duration) bool {
	ev := l.lane.Peek()
	if ev == nil || !l.owned() || l.full() {
		return false
	}
	if k := keyOf(ev); l.head.of != k {
		l.head = head{of: k}
	}
	if l.head.until > now {
		return false
	}
	if rc, wait := l.care(ev); rc != nil || wait {
		return rc != nil && l.record(ev, &Tx{}, rc)
	}
	tx := &Tx{l: l, event: ev}
	rc, err := l.run(tx, ev)
	if isTransient(err) && l.head.tries+1 < l.cfg.Attempts {
		l.putOff(now)
		l.comeBack(ev)
		return false
	}
	rc.Attempts = l.attempts(ev)
	return l.record(ev, tx, rc)
}

// run calls the handler and says how the event ended.
func (l *ledger) run(tx *Tx, ev *model.Event) (*model.Receipt, error) {
	if ev.Earlier != nil {
		return receipts.Repeated(ev), nil
	}
	if ev.Invalid != "" {
		return receipts.Refused(ev, ev.Invalid), nil
	}
	if ev.Expires > 0 {
		return receipts.Expired(ev), nil
	}
	h := l.cfg.Handlers[ev.Stream]
	switch {
	case h == nil && ev.Stream == model.Undelivered:
		return receipts.Handled(ev, model.Value{}), nil
	case h == nil:
		return receipts.Refused(ev, "there is no handler for stream "+ev.Stream), nil
	}
	l.code.begins(ev, l.noted(ev))
	result, err := call(h, tx, ev)
	if late := l.code.returned(); late != nil {
		err = late
	}
	if err == nil {
		err = tx.err
	}
	v, bad := model.Of(result)
	if err == nil && bad != nil {
		err = fmt.Errorf("result: %w", bad)
	}
	if err != nil {
		tx.drop()
		return receipts.Failed(ev, err), err
	}
	return receipts.Handled(ev, v), nil
}

func call(h Handler, tx *Tx, ev *model.Event) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("handler of %s panicked: %v", ev.Stream, p)
		}
	}()
	handed := *ev // the handler may do with it what it likes
	return h(tx, &handed)
}

func keyOf(ev *model.Event) receipts.Key { return receipts.Key{Stream: ev.Stream, ID: ev.ID} }

// putOff has the head wait before it is tried again: RetryMin, doubled up to RetryMax.
func (l *ledger) putOff(now time.Duration) {
	wait := min(l.cfg.RetryMin<<min(l.head.tries, 20), l.cfg.RetryMax)
	l.head.tries++
	l.head.until = now + wait
}

// record makes the end of an event a transaction of the open group. It reports false if that
// has no room: the event is then handled again, in the next one.
func (l *ledger) record(ev *model.Event, tx *Tx, rc *model.Receipt) bool {
	l.lastTx++
	rec := model.Tx{N: l.lastTx, By: receipts.By(ev.Stream), Writes: tx.writes, Receipt: rc, Sends: l.launch(ev, tx.sends), Trace: ev.Trace}
	data := model.AppendTx(l.open.data, &rec)
	switch {
	case len(data)-len(l.open.data) > l.limit:
		l.reg.Revoke(rec.N)
		why := fmt.Errorf("what the handler did takes %d bytes, a commit %d: write smaller documents, or split the work over several events", len(data)-len(l.open.data), l.limit)
		return l.record(ev, &Tx{}, receipts.Failed(ev, why))
	case len(data) > l.limit:
		l.reg.Revoke(rec.N)
		l.crowded = true
		return false
	}
	l.open.txs, l.open.data = append(l.open.txs, rec), data
	if l.open.after == nil {
		l.open.after = map[string]model.Value{}
	}
	for doc, v := range tx.after {
		l.open.after[doc] = v
	}
	l.lane.Take()
	for i := range rec.Sends {
		if rec.Sends[i].To == l.key {
			l.lane.Follow(rec.Sends[i].Event())
		}
	}
	return true
}

// launch completes the sends of the transaction that is being recorded.
func (l *ledger) launch(ev *model.Event, sends []model.Send) []model.Send {
	for i := range sends {
		sends[i].Trace = ev.Trace
		if sends[i].To == l.key {
			sends[i].Behind = l.lane.Seen()
		}
	}
	l.reg.Launch(model.TxID{Space: l.key, Epoch: l.epoch, N: l.lastTx}, ev, sends)
	return sends
}

func (l *ledger) full() bool {
	return l.crowded || len(l.open.txs) >= maxGroup || len(l.open.data) > l.limit/2
}

// append is the commit to be appended now, and what it expects of the log; nil while one is
// under way, and if there is nothing to say. One that takes the key over comes before all.
func (l *ledger) append(runtime string) (c *model.Commit, data []byte) {
	switch {
	case l.under != nil:
		return nil, nil
	case !l.owned():
		c = &model.Commit{Takeover: true, Term: model.NextTerm(l.termAt, l.rep.Term), Attempt: l.rep.Seq + 1, Cursor: l.rep.Cursor}
	case l.settled():
		return nil, nil
	default:
		l.attempt++
		l.taken = l.lane.Undecided()
		c = &model.Commit{Epoch: l.epoch, Attempt: l.attempt, Cursor: l.lane.Cursor(l.taken), Trying: l.mark, Txs: l.open.txs}
		if slices.ContainsFunc(c.Txs, l.sendsAway) {
			c.Term = l.reg.Term()
		}
		l.sealed, l.open, l.mark, l.crowded = l.open, group{}, nil, false
	}
	c.Version, c.Space, c.Runtime = model.CommitVersion, l.key, runtime
	l.under = c
	return c, model.AppendCommit(nil, c, l.sealed.data)
}

func (l *ledger) sendsAway(tx model.Tx) bool {
	return slices.ContainsFunc(tx.Sends, func(s model.Send) bool { return s.To != l.key })
}

// confirm takes in that the log has the commit that was under way, as number seq.
func (l *ledger) confirm(seq uint64) {
	c := l.under
	l.rep.Adopt(seq, c, l.sealed.after)
	l.under, l.sealed = nil, group{}
	if c.Trying != nil && l.overran != nil && l.overran.event == c.Trying.Event {
		l.overran.noted = true
	}
	if c.Takeover {
		l.epoch, l.lastTx, l.attempt = seq, model.BeforeFirstTx(l.rep.Term), 0
		l.reg.SetTerm(l.rep.Term)
		l.careful = l.rep.Barren > 0 || l.rep.Trying != nil
		return
	}
	l.lane.Confirm(l.taken, c.Cursor)
	if n := len(c.Txs); n > 0 {
		l.reg.Confirm(c.Txs[n-1].N)
		l.careful = false
	}
}

// refuse drops everything that the log has not confirmed: it has moved on. What others have
// appended is to be integrated then, and after that resume.
func (l *ledger) refuse() {
	gone := l.reg.Cancel()
	l.lane.Rewind(func(ev *model.Event) bool { return gone[ev.ID] })
	l.open, l.sealed, l.under, l.mark, l.crowded, l.head = group{}, group{}, nil, nil, false, head{}
}

// integrate takes in a commit of another. Its takeover ends ours.
func (l *ledger) integrate(seq uint64, c *model.Commit) error {
	if _, err := l.rep.Apply(seq, c); err != nil {
		return err
	}
	l.reg.Integrate(c)
	if c.Takeover {
		l.epoch = 0
	}
	return nil
}

// resume goes on from the log as it was integrated.
func (l *ledger) resume() { l.lane.Integrate(laneState(l.rep)) }
