package bus

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// logs are the commit logs of all spaces.
type logs struct {
	*wire.Streams
	// mayCommit: the server has confirmed that this user may append to a log, or does not report it.
	mayCommit atomic.Bool
	// inDoubt counts the appends of which the log was asked whether it has them.
	inDoubt atomic.Uint64
}

// InDoubt returns how many appends were in doubt, because their acknowledgement was lost, so that the log had to be asked whether it has them.
func (l *logs) InDoubt() uint64 { return l.inDoubt.Load() }

// Append appends a commit if the head of its space is still at a.Expect.
// See port.Log.
func (l *logs) Append(a model.Append, done func(seq uint64, err error)) {
	if err := model.CheckName("space", a.Space); err != nil {
		go done(0, fmt.Errorf("append: %w", err)) // ends when done returns
		return
	}
	p := l.PartitionOf(a.Space)
	j := appending{logs: l, a: a, stream: l.Names.LogStream(p), subject: l.Names.Log(p, a.Space)}
	l.Pub.Start(wire.Task{
		Op: faults.OpAppend, Msg: j.message(), Judge: j.ruling, Done: done,
		Stream: j.stream, Subject: j.subject, Bound: true, Epoch: a.Epoch,
	})
}

// appending judges the answers to one append.
type appending struct {
	logs            *logs
	a               model.Append
	stream, subject string
	// past is when the server first named a head from before a.Expect.
	past time.Time
}

var nothingToRelease = []string{wire.NothingToRelease}

func (j *appending) message() *nats.Msg {
	h := make(nats.Header, 5)
	wire.SetNumber(h, wire.HeaderExpect, j.a.Expect)
	h[wire.HeaderCommit] = []string{j.a.ID}
	if j.a.Inert {
		h[wire.HeaderRelease] = nothingToRelease
	}
	wire.SetTrace(h, j.a.Trace)
	return &nats.Msg{Subject: j.subject, Header: h, Data: j.a.Data}
}

func (j *appending) ruling(a wire.Answer, doubt bool) wire.Ruling {
	switch {
	case a.Outcome == wire.Stored:
		return wire.Ruling{Seq: a.Seq}
	case a.Outcome == wire.TooLarge:
		return wire.Ruling{Err: fmt.Errorf("append %s of space %s: %s: %w", j.a.ID, j.a.Space, a.Reason, model.ErrTooLarge)}
	case a.Outcome != wire.Moved:
		return wire.Ruling{Again: true}
	case a.Seq < j.a.Expect:
		return j.answerFromThePast(a)
	case doubt:
		j.logs.inDoubt.Add(1)
		return wire.Ruling{Lookup: j.findCommit}
	}
	return j.refused(a.Reason)
}

func (j *appending) refused(why string) wire.Ruling {
	return wire.Ruling{Err: fmt.Errorf("append %s of space %s after %d: %s: %w", j.a.ID, j.a.Space, j.a.Expect, why, model.ErrRefused)}
}

// answerFromThePast handles a head that is older than the one that the caller has seen
// in the log. In a cluster a deposed leader may report it, and it decides nothing. If
// leaders keep reporting it, or there is only one server, the log does end there, and
// its readers handle the loss.
func (j *appending) answerFromThePast(a wire.Answer) wire.Ruling {
	now := time.Now()
	if j.past.IsZero() {
		j.past = now
	}
	if j.logs.Clustered.Load() && now.Sub(j.past) < j.logs.Timing.PastLimit {
		return wire.Ruling{Again: true}
	}
	return wire.Ruling{Lookup: j.whetherBack}
}

// whetherBack decides a refusal by a log that ends before the entries that the caller has seen in it.
func (j *appending) whetherBack(ctx context.Context) wire.Ruling {
	j.logs.Compare(ctx, j.stream)
	if j.a.Epoch != j.logs.Now() {
		return wire.Ruling{Err: wire.ErrOtherEpoch}
	}
	return j.refused("the log ends before what was expected")
}

// findCommit decides a refusal that came after an attempt in doubt: the commit
// that follows a.Expect is either this one or another runtime's.
func (j *appending) findCommit(ctx context.Context) wire.Ruling {
	next, err := j.logs.LeaderGet(ctx, j.stream, wire.GetRequest{Seq: j.a.Expect + 1, NextFor: j.subject})
	switch {
	case err != nil: // errNoMessage, too: that answer came from a deposed leader
		return wire.Ruling{Again: true}
	case wire.Header(next.Header, wire.HeaderCommit) == j.a.ID:
		return wire.Ruling{Seq: next.Seq}
	case wire.Number(next.Header, wire.HeaderExpect) > j.a.Expect:
		return j.refused(fmt.Sprintf("the commits from %d to %d have been purged, so whose they were is not known", j.a.Expect+1, next.Seq-1))
	}
	return j.refused(fmt.Sprintf("commit %s follows there", wire.Header(next.Header, wire.HeaderCommit)))
}
