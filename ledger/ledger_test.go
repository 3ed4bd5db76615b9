package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/replica"
)

// alone is a ledger with a log that the test writes.
type alone struct {
	*testing.T
	l    *Ledger
	host Host
	now  time.Duration
	wall int64
	seq  uint64
	// failing are the streams whose events fail transiently; handled are the recorded events, with their
	// outcomes.
	failing map[string]bool
	handled []string
}

func newAlone(t *testing.T) *alone {
	w := &alone{T: t, wall: 1_000_000, failing: map[string]bool{}}
	w.host = Host{
		Attempt: func(ev *model.Event) *Attempt {
			a := &Attempt{Draft: Draft{Event: ev}}
			if w.failing[ev.Stream] {
				return failed(a, errors.New("not now"), true)
			}
			a.Receipt = receipts.Handled(ev, model.Value{})
			return a
		},
		Recorded: func(a *Attempt, _ uint64) {
			w.handled = append(w.handled, a.Event.ID+" "+string(a.Receipt.Outcome))
			w.l.apply(a, 0)
		},
	}
	w.l = New(&Config{
		Runtime: "r1", PauseMin: 10 * time.Millisecond, PauseMax: 80 * time.Millisecond, Limits: Limits{
			MaxCommitBytes: 64 << 10, MaxGroup: 100, MaxLater: 10, EventRetries: 100, LostAttempts: 2,
			RetryMin: 10 * time.Millisecond, RetryMax: 80 * time.Millisecond, ConflictWindow: time.Second,
		},
	}, w.host, replica.New(home))
	w.l.TakeOver()
	w.confirm(w.pass())
	return w
}

func (w *alone) offer(id, stream string, notBefore int64) {
	w.l.Lane().Offer(model.Event{Space: home, Stream: stream, ID: id, Lane: w.l.Lane().ReadAfter() + 1, NotBefore: notBefore})
}

func (w *alone) pass() *Append {
	w.l.Clock(time.UnixMilli(w.wall))
	w.l.Tick(w.now)
	if w.l.Begins() {
		w.l.BeginPass()
		for more := true; more && !w.l.Full(); {
			more = w.l.Next() == Handled
		}
	}
	return w.l.Append()
}

func (w *alone) confirm(a *Append) {
	w.Helper()
	if a == nil {
		w.Fatal("nothing is appended")
	}
	w.seq = a.Expect + 1
	if _, err := w.l.Confirm(w.seq); err != nil {
		w.Fatal(err)
	}
}

// refuse refuses the append in flight, because of an empty commit of an attached runtime.
func (w *alone) refuse(a *Append) Dropped {
	w.Helper()
	if a == nil {
		w.Fatal("nothing is appended")
	}
	w.seq++
	c := &model.Commit{
		Version: model.CommitVersion, Space: home, Runtime: "other", Attempt: w.seq, Join: true,
		Cursor: w.l.Replica().Cursor,
	}
	gone := w.l.Refuse()
	if err := w.l.Integrate(model.LogEntry{Space: home, Seq: w.seq, Prev: w.seq - 1, Data: model.AppendCommit(nil, c, nil)}); err != nil {
		w.Fatal(err)
	}
	w.l.Resume()
	return gone
}

// An event that waits for its time is cancelled, and enters the lane to end there, behind one that has to
// wait. Then the transaction with the mark is undone: the event waits for its time again.
func TestAnEventWhoseCancellationIsUndoneWaitsForItsTimeAgain(t *testing.T) {
	w := newAlone(t)
	w.offer("late", "add", w.wall+1000)
	w.confirm(w.pass())
	if n := w.l.Replica().Later.Len(); n != 1 {
		t.Fatalf("%d events wait", n)
	}
	w.failing["busy"] = true
	w.offer("first", "busy", 0)
	mark := model.Object(model.F("why", "no"), model.F("slot", int64(1)))
	d := &Draft{By: "app", Writes: []model.Write{{Doc: CancelDoc, Path: model.Path{CancelKey("add", "late")}, Value: mark}}}
	d.Direct = true
	n, err := w.l.Record(d)
	if err != nil {
		t.Fatal(err)
	}
	w.l.apply(&Attempt{Draft: *d}, n)
	if a := w.pass(); w.l.Lane().Waiting() != 2 {
		t.Fatalf("%d events are in the lane, without the cancelled one", w.l.Lane().Waiting())
	} else if gone := w.refuse(a); len(gone.Direct) != 1 || gone.Direct[0] != n {
		t.Fatalf("undone: %+v", gone)
	}
	w.failing["busy"] = false
	w.now += time.Second
	w.confirm(w.pass())
	if len(w.handled) != 1 || w.handled[0] != "first handled" {
		t.Fatalf("handled %v before the time of the other event", w.handled)
	}
	w.wall += 1000
	w.confirm(w.pass())
	if len(w.handled) != 2 || w.handled[1] != "late handled" {
		t.Fatalf("handled: %v", w.handled)
	}
}

// A refusal returns events to the lane, and the numbers of transactions are never reused.
func TestARefusalLeavesNothingButTheNumbers(t *testing.T) {
	w := newAlone(t)
	w.offer("e1", "add", 0)
	w.offer("e2", "add", 0)
	a := w.pass()
	if len(a.Commit.Txs) != 2 || !w.l.undecided() || w.l.Settled() {
		t.Fatalf("%d transactions", len(a.Commit.Txs))
	}
	gone := w.refuse(a)
	if len(gone.UnderWay) != 2 || len(gone.Open) != 0 || w.l.undecided() || w.l.Lane().Waiting() != 2 {
		t.Fatalf("undone: %+v; %d events wait", gone, w.l.Lane().Waiting())
	}
	a = w.pass()
	if len(a.Commit.Txs) != 2 || a.Commit.Txs[0].N != 3 || a.Commit.Attempt != 2 {
		t.Fatalf("the next commit: %+v", a.Commit)
	}
	w.confirm(a)
	if c := w.l.Counts(); !w.l.Settled() || !w.l.Lane().Done() || c.Refused != 1 || c.Conflicts != 2 || c.Handled != 2 {
		t.Fatalf("%+v", c)
	}
}

// Transactions made while an append is in flight share the next one, and a refusal undoes both.
func TestTransactionsShareACommitWhileOneIsUnderWay(t *testing.T) {
	w := newAlone(t)
	w.offer("e1", "add", 0)
	first := w.pass()
	for _, id := range []string{"e2", "e3"} {
		w.offer(id, "add", 0)
		if a := w.pass(); a != nil {
			t.Fatalf("a second append is requested: %+v", a)
		}
	}
	if w.l.Appends() != 2 {
		t.Errorf("%d unconfirmed appends", w.l.Appends())
	}
	w.confirm(first)
	second := w.pass()
	if len(second.Commit.Txs) != 2 || second.Expect != w.seq {
		t.Fatalf("%+v", second)
	}
	w.confirm(second)
	if len(w.handled) != 3 || !w.l.Lane().Done() {
		t.Errorf("handled: %v", w.handled)
	}
}

// A host that finishes begins nothing, and what is in flight is confirmed; one that is closed requests
// nothing.
func TestHoldLetsWorkInFlightFinish(t *testing.T) {
	w := newAlone(t)
	w.offer("e1", "add", 0)
	a := w.pass()
	w.offer("e2", "add", 0)
	if w.l.Hold(); w.pass() != nil || len(w.handled) != 1 {
		t.Fatalf("handled: %v", w.handled)
	}
	w.confirm(a)
	if w.pass() != nil || !w.l.Settled() || w.l.Due() != 0 {
		t.Error("something is begun after Hold")
	}
	w.l.Close()
	if w.l.TakeOver(); w.pass() != nil || w.l.Phase() != Closed || w.l.Entered() {
		t.Errorf("it is %s", w.l.Phase())
	}
}

// A foreign commit that is integrated over own transactions would be applied to documents that it was not
// based on.
func TestIntegrateRefusesOwnTransactionsFirst(t *testing.T) {
	for name, far := range map[string]func(w *alone){ // any order: each is independent
		"open":      func(w *alone) { _, _ = w.l.Record(&Draft{By: "app"}) },
		"in flight": func(w *alone) { w.offer("e1", "add", 0); w.pass() },
	} {
		w := newAlone(t)
		far(w)
		c := &model.Commit{Version: model.CommitVersion, Space: home, Runtime: "other", Attempt: 1, Join: true}
		entry := model.LogEntry{Space: home, Seq: w.seq + 1, Prev: w.seq, Data: model.AppendCommit(nil, c, nil)}
		if err := w.l.Integrate(entry); err == nil || w.l.Replica().Seq != w.seq {
			t.Errorf("%s: error %v, at %d", name, err, w.l.Replica().Seq)
		}
		w.l.Refuse()
		if err := w.l.Integrate(entry); err != nil || w.l.Replica().Seq != entry.Seq {
			t.Errorf("%s: after Refuse: %v", name, err)
		}
	}
}
