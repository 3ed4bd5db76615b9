package ledger

import (
	"time"

	"github.com/settlehq/settle/lanes"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/replica"
)

// A handler may kill its process: it uses all memory, or calls os.Exit. The next owner would handle the same
// event and end in the same way, and so on, if the log did not record the number of attempts (docs/adr/0016).
// So an owner whose predecessor left no receipt, or an attempt without a result, is careful:
//
//	before an attempt at the head of the lane, the log gets a record with the number of attempts
//	one event goes into each commit, so that others are not lost with it
//	after Config.LostAttempts of them the event fails
//
// until it has handled as many events as a commit may hold, or all events in the lane. An attempt that
// returns without a result (it has to wait, or will be retried) is retracted in the log: only the end of a
// process counts. An attached runtime does none of this: it would mistake a slow runtime for a dead one.
//
// A handler that does not return ends the ledger of its space, but not the process. The next ledger, which is
// notified by Overran, is careful, too, and the attempt counts.

// poisonGuard prevents an event whose handler ends its process from ending one process after another.
type poisonGuard struct {
	cfg       *Config
	at        *phaseState
	confirmed *replica.Replica
	lane      *lanes.Lane

	// left is the number of events that are still to be handled with attempt records.
	left int
	// record is the attempt record that goes into the next commit.
	record *model.Trying
	// overran is the last attempt in an earlier incarnation that did not return; counted reports that the log
	// has a record of it.
	overran *receipts.Key
	counted bool
	// returned is the last event of which this runtime recorded an attempt in an earlier life, while the log's
	// record counts that attempt: it has returned, as the runtime is alive.
	returned *model.Trying
}

// recorded reports whether the log has a record of the attempt at an event that is being made now.
func (g *poisonGuard) recorded(stream, event string) bool {
	t := g.tried(stream, event)
	return t != nil && !t.Back && g.ofThisLife()
}

// beginLife decides whether the runtime, which has just entered, is careful.
func (g *poisonGuard) beginLife() {
	lives := &g.confirmed.Lives
	g.left, g.record = 0, nil
	if g.cfg.LostAttempts > 0 && g.at.role == Owner && (lives.WithoutReceipt > 0 || lives.Trying != nil || g.overran != nil) {
		g.left = g.cfg.MaxGroup
	}
}

// endLife resets the guard when the runtime is deposed by the takeover that was just integrated.
func (g *poisonGuard) endLife(epoch uint64) {
	g.left, g.record, g.overran, g.counted = 0, nil, nil, false
	if g.confirmed.TriedBy == epoch {
		g.returned = g.confirmed.Trying
	}
}

// recording reports whether attempts are recorded now.
func (g *poisonGuard) recording() bool { return g.left > 0 }

// tried returns the log's record of attempts at an event, nil if there is none.
func (g *poisonGuard) tried(stream, event string) *model.Trying {
	if t := g.confirmed.Trying; t != nil && t.Event == event && t.By == receipts.By(stream) {
		return t
	}
	return nil
}

// ofThisLife reports whether this runtime has made the last attempt record, since it entered.
func (g *poisonGuard) ofThisLife() bool { return g.confirmed.TriedBy == g.at.epoch }

// lost returns the number of attempts at an event that ended without a result, and whether the last of them
// did not return.
func (g *poisonGuard) lost(ev *model.Event) (n int, overran bool) {
	t := g.tried(ev.Stream, ev.ID)
	if t != nil {
		n = t.Tries - g.ownReturned(t)
	}
	overran = g.overran != nil && *g.overran == keyOf(ev)
	if overran && !g.counted && (t == nil || t.Back && !g.ofThisLife()) {
		n++ // the attempt that did not return had no record
	}
	return n, overran
}

// ownReturned returns how many of the attempts that a record counts are of this runtime, in an earlier life: an
// owner that is alive may be deposed between the record of an attempt and the receipt.
func (g *poisonGuard) ownReturned(t *model.Trying) int {
	if own := g.returned; own != nil && !own.Back && own.Event == t.Event && own.By == t.By && !g.ofThisLife() {
		return 1
	}
	return 0
}

// recordAttempt makes the next commit record that an attempt at ev is about to be made, after n lost ones.
func (g *poisonGuard) recordAttempt(ev *model.Event, n int) {
	g.record = &model.Trying{By: receipts.By(ev.Stream), Event: ev.ID, Tries: n + 1}
}

// stagger returns how long an event waits before the next attempt, after n lost ones: at most a second, then
// four, and so on. A process that ends takes other spaces with it, whose events were being handled at that
// time and are not to blame; and runtimes that take a space from each other, or share it, may find the record
// of a runtime that is alive and about to commit.
func (g *poisonGuard) stagger(ev *model.Event, n int) time.Duration {
	return g.cfg.PauseMax / 256 * time.Duration(jitter(g.confirmed.Space, ev.ID, n)) << (2 * min(n-1, 4))
}

// retract removes the log's record of an attempt that had no result, and a pending record of an attempt that
// has not begun.
func (g *poisonGuard) retract() {
	g.record = nil
	t := g.confirmed.Trying
	if !g.recording() || t == nil || t.Back || !g.ofThisLife() || g.lane.Undecided() > 0 {
		return
	}
	g.record = &model.Trying{By: t.By, Event: t.Event, Tries: t.Tries - 1, Back: true}
}

// handled records that an event was handled while the runtime is careful.
func (g *poisonGuard) handled() {
	if g.left--; g.lane.Waiting() == 0 {
		g.left = 0
	}
}
