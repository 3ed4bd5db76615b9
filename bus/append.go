package bus

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// logs are the commit logs of all spaces.
type logs struct {
	*streams
	// mayCommit: the server has confirmed that this user may append to a log, or does not report it.
	mayCommit atomic.Bool
}

// Append appends a commit if the head of its space is still at a.Expect.
// See port.Log.
func (l *logs) Append(a model.Append, done func(seq uint64, err error)) {
	if err := model.CheckName("space", a.Space); err != nil {
		go done(0, fmt.Errorf("append: %w", err)) // ends when done returns
		return
	}
	p := l.partitionOf(a.Space)
	j := appending{logs: l, a: a, stream: l.names.logStream(p), subject: l.names.log(p, a.Space)}
	l.pub.start(task{
		op: OpAppend, msg: j.message(), judge: j.judge, done: done,
		stream: j.stream, subject: j.subject, bound: true, epoch: a.Epoch,
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

func (j *appending) message() *nats.Msg {
	h := make(nats.Header, 4)
	setNumber(h, headerExpect, j.a.Expect)
	h[headerCommit] = []string{j.a.ID}
	setTrace(h, j.a.Trace)
	return &nats.Msg{Subject: j.subject, Header: h, Data: j.a.Data}
}

func (j *appending) judge(a answer, doubt bool) ruling {
	switch {
	case a.outcome == stored:
		return ruling{seq: a.seq}
	case a.outcome == tooLarge:
		return ruling{err: fmt.Errorf("append %s of space %s: %s: %w", j.a.ID, j.a.Space, a.why, model.ErrTooLarge)}
	case a.outcome != moved:
		return ruling{again: true}
	case a.seq < j.a.Expect:
		return j.answerFromThePast(a)
	case doubt:
		return ruling{lookup: j.whoseCommit}
	}
	return j.refused(a.why)
}

func (j *appending) refused(why string) ruling {
	return ruling{err: fmt.Errorf("append %s of space %s behind %d: %s: %w", j.a.ID, j.a.Space, j.a.Expect, why, model.ErrRefused)}
}

// pastLimit is how long a head from before a.Expect is attributed to a leader that
// does not know of its successor yet. Elections take 4 to 9 s.
const pastLimit = 30 * time.Second

// answerFromThePast handles a head that is older than the one that the caller has seen
// in the log. In a cluster a deposed leader may report it, and it decides nothing. If
// leaders keep reporting it, or there is only one server, the log does end there, and
// its readers handle the loss.
func (j *appending) answerFromThePast(a answer) ruling {
	now := time.Now()
	if j.past.IsZero() {
		j.past = now
	}
	if j.logs.clustered.Load() && now.Sub(j.past) < j.logs.timing.pastLimit {
		return ruling{again: true}
	}
	return ruling{lookup: j.whetherBack}
}

// whetherBack decides a refusal by a log that ends before the entries that the caller has seen in it.
func (j *appending) whetherBack(ctx context.Context) ruling {
	j.logs.compare(ctx, j.stream)
	if j.a.Epoch != j.logs.Epoch() {
		return ruling{err: errOtherEpoch}
	}
	return j.refused("the log ends before what was expected")
}

// whoseCommit decides a refusal that came after an attempt in doubt: the commit
// that follows a.Expect is either this one or another runtime's.
func (j *appending) whoseCommit(ctx context.Context) ruling {
	next, err := j.logs.leaderGet(ctx, j.stream, getRequest{Seq: j.a.Expect + 1, NextFor: j.subject})
	switch {
	case err != nil: // errNoMessage, too: that answer came from a deposed leader
		return ruling{again: true}
	case header(next.Header, headerCommit) == j.a.ID:
		return ruling{seq: next.Seq}
	case number(next.Header, headerExpect) > j.a.Expect:
		return j.refused(fmt.Sprintf("the commits from %d to %d have been purged, so whose they were is not known", j.a.Expect+1, next.Seq-1))
	}
	return j.refused(fmt.Sprintf("commit %s stands there", header(next.Header, headerCommit)))
}
