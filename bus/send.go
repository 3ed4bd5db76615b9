package bus

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// lanes are the queues of events of all partitions.
type lanes struct{ *wire.Streams }

// Send stores an event unless its id is in the lane already. See port.Lanes.
//
// An event whose name cannot be a subject is refused with a *model.NameError.
// model.ErrLaneFull after an attempt in doubt does not guarantee that the event was
// not stored; sending it again is harmless either way.
func (l *lanes) Send(m model.Message, done func(model.SendResult, error)) {
	if err := wire.CheckMessage(&m); err != nil {
		go done(model.SendResult{}, fmt.Errorf("send: %w", err)) // ends when done returns
		return
	}
	if !model.IsMinted(m.ID) {
		m = m.Plain()
	}
	p := l.PartitionOf(m.Space)
	s := &sending{lanes: l, m: m, stream: l.Names.LaneStream(p), subject: l.Names.Event(p, &m), done: done}
	l.Pub.Start(wire.Task{Op: faults.OpSend, Msg: s.message(), Judge: s.ruling, Done: s.finish, Stream: s.stream, Subject: s.subject, Bound: m.Bound, Epoch: m.Epoch})
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
	h[wire.HeaderExpect] = expectNothing
	wire.SetPositive(h, wire.HeaderPosition, s.m.Position)
	wire.SetPositive(h, wire.HeaderTerm, s.m.Term)
	wire.SetPositive(h, wire.HeaderPrevTerm, s.m.PrevTerm)
	wire.SetPositive(h, wire.HeaderReplay, s.m.ReplayKey)
	wire.SetPositive(h, wire.HeaderDepth, s.m.Depth)
	if s.m.NotBefore != 0 { // an invalid time is sent as none
		h[wire.HeaderNotBefore] = []string{strconv.FormatInt(s.m.NotBefore, 10)}
	}
	if s.m.Expires != 0 {
		h[wire.HeaderExpires] = []string{strconv.FormatInt(s.m.Expires, 10)}
	}
	if s.m.Invalid != "" {
		h[wire.HeaderInvalid] = []string{s.m.Invalid}
	}
	wire.SetTrace(h, s.m.Trace)
	return &nats.Msg{Subject: s.subject, Header: h, Data: s.m.Payload}
}

// expectNothing is shared by all messages and must not be written to.
var expectNothing = []string{"0"}

func (s *sending) ruling(a wire.Answer, doubt bool) wire.Ruling {
	switch a.Outcome {
	case wire.Stored:
		return wire.Ruling{Seq: a.Seq}
	case wire.Moved:
		return isThere
	case wire.Taken:
		return wire.Ruling{Lookup: s.lookFor}
	case wire.TooLarge:
		return wire.Ruling{Err: fmt.Errorf("%s: %s: %w", s.what(), a.Reason, model.ErrTooLarge)}
	case wire.Full:
		return s.noRoom(a, doubt)
	case wire.Forbidden:
		return wire.Ruling{Err: fmt.Errorf("%s: %w (`settle permissions` prints which role may do what)", s.what(), model.ErrForbidden)}
	}
	return wire.Ruling{Again: true}
}

// isThere is the ruling on an event that is in the lane already. It has no
// sequence, by which finish distinguishes it from one that was stored.
var isThere = wire.Ruling{}

// lookFor checks whether the event that occupies the subject is really stored. If
// it is not visible yet, the next attempt decides.
func (s *sending) lookFor(ctx context.Context) wire.Ruling {
	if _, err := s.lanes.LeaderGet(ctx, s.stream, wire.GetRequest{LastFor: s.subject}); err != nil {
		return wire.Ruling{Again: true}
	}
	return isThere
}

// noRoom gives up at once, unless an earlier attempt is in doubt: then it makes a few more
// attempts, since one that finds the event is a success.
func (s *sending) noRoom(a wire.Answer, doubt bool) wire.Ruling {
	s.fullTries++
	if doubt && s.fullTries < 8 {
		return wire.Ruling{Again: true}
	}
	return wire.Ruling{Err: fmt.Errorf("%s: %s of stream %s: %w", s.what(), a.Reason, s.stream, model.ErrLaneFull)}
}

func (s *sending) finish(seq uint64, err error) {
	s.done(model.SendResult{Seq: seq, Duplicate: err == nil && seq == 0}, err)
}

func (s *sending) what() string {
	return fmt.Sprintf("send event %s to stream %s of space %s", s.m.ID, s.m.Stream, s.m.Space)
}
