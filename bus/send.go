package bus

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// lanes are the queues of events of all partitions.
type lanes struct{ *streams }

// Send stores an event unless its id is in the lane already. See port.Lanes.
//
// An event whose name cannot be a subject is refused with a *model.NameError.
// model.ErrLaneFull after an attempt in doubt does not guarantee that the event was
// not stored; sending it again is harmless either way.
func (l *lanes) Send(m model.Message, done func(model.SendResult, error)) {
	if err := checkMessage(&m); err != nil {
		go done(model.SendResult{}, fmt.Errorf("send: %w", err)) // ends when done returns
		return
	}
	p := l.partitionOf(m.Space)
	s := &sending{lanes: l, m: m, stream: l.names.laneStream(p), subject: l.names.event(p, &m), done: done}
	l.pub.start(task{op: OpSend, msg: s.message(), judge: s.judge, done: s.finish, stream: s.stream, subject: s.subject, bound: m.Bound, epoch: m.Epoch})
}

// sending judges the answers to one send.
//
// The lane's configuration alone makes every event id create-only. The expected
// sequence of 0 repeats the condition for the sake of the answer: on R3 the
// configuration also refuses an event whose duplicate is still on its way to the
// replicas and may be lost, while the expectation is compared with the
// quorum's state.
type sending struct {
	lanes           *lanes
	m               model.Message
	stream, subject string
	fullTries       int
	done            func(model.SendResult, error)
}

func (s *sending) message() *nats.Msg {
	h := make(nats.Header, 4)
	h[headerExpect] = expectNothing
	setPositive(h, headerPosition, s.m.Position)
	setPositive(h, headerTerm, s.m.Term)
	setPositive(h, headerPrevTerm, s.m.PrevTerm)
	setPositive(h, headerReplay, s.m.ReplayKey)
	setPositive(h, headerDepth, s.m.Depth)
	if s.m.NotBefore != 0 { // an invalid time is sent as none
		h[headerNotBefore] = []string{strconv.FormatInt(s.m.NotBefore, 10)}
	}
	if s.m.Expires != 0 {
		h[headerExpires] = []string{strconv.FormatInt(s.m.Expires, 10)}
	}
	if s.m.Invalid != "" {
		h[headerInvalid] = []string{s.m.Invalid}
	}
	setTrace(h, s.m.Trace)
	return &nats.Msg{Subject: s.subject, Header: h, Data: s.m.Payload}
}

// expectNothing is shared by all messages and must not be written to.
var expectNothing = []string{"0"}

func (s *sending) judge(a answer, doubt bool) ruling {
	switch a.outcome {
	case stored:
		return ruling{seq: a.seq}
	case moved:
		return isThere
	case taken:
		return ruling{lookup: s.lookFor}
	case tooLarge:
		return ruling{err: fmt.Errorf("%s: %s: %w", s.what(), a.why, model.ErrTooLarge)}
	case full:
		return s.noRoom(a, doubt)
	case forbidden:
		return ruling{err: fmt.Errorf("%s: %w (`settle permissions` prints which role may do what)", s.what(), model.ErrForbidden)}
	}
	return ruling{again: true}
}

// isThere is the ruling on an event that is in the lane already. It has no
// sequence, by which finish distinguishes it from one that was stored.
var isThere = ruling{}

// lookFor checks whether the event that occupies the subject is really stored. If
// it is not visible yet, the next attempt decides.
func (s *sending) lookFor(ctx context.Context) ruling {
	if _, err := s.lanes.leaderGet(ctx, s.stream, getRequest{LastFor: s.subject}); err != nil {
		return ruling{again: true}
	}
	return isThere
}

// noRoom gives up at once, unless an earlier attempt is in doubt: then it makes a few more
// attempts, since one that finds the event is a success.
func (s *sending) noRoom(a answer, doubt bool) ruling {
	s.fullTries++
	if doubt && s.fullTries < 8 {
		return ruling{again: true}
	}
	return ruling{err: fmt.Errorf("%s: %s of stream %s: %w", s.what(), a.why, s.stream, model.ErrLaneFull)}
}

func (s *sending) finish(seq uint64, err error) {
	s.done(model.SendResult{Seq: seq, Duplicate: err == nil && seq == 0}, err)
}

func (s *sending) what() string {
	return fmt.Sprintf("send event %s to stream %s of space %s", s.m.ID, s.m.Stream, s.m.Space)
}
