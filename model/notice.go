package model

import "strings"

// Undelivered is the stream of failure notices: a space gets one when an event that it sent ended without a call of
// a handler, or was rejected by it (see Outcome.Notifies). Only coordinators may send to it. A program may handle it like
// any other stream; without a handler, a notice ends as handled and has no effect.
const Undelivered = "undelivered"

// MaxReturned is the size in bytes, as JSON, of the largest payload that a notice returns to the sender.
const MaxReturned = 8 << 10

// Notice reports to the space that sent an event that it was not handled, and why. It is the payload of stream Undelivered:
//
//	var undelivered = settle.NewStream[model.Notice](model.Undelivered)
type Notice struct {
	// Event is the id of the send; To and Stream are its target.
	Event  string `json:"event"`
	To     string `json:"to"`
	Stream string `json:"stream"`
	// Outcome is how the event ended, as in its receipt: Refused, Rejected, Cancelled or Expired. An event with a name of a space that cannot exist has
	// no receipt, and is Refused as well. Outcome.Lost reports whether the end is of a kind that leaves a dead letter. It is empty in a notice that a
	// coordinator of an earlier version has stored.
	Outcome Outcome `json:"outcome,omitzero"`
	Reason  string  `json:"reason"`
	// Code and Data are those of the rejection, if the event was rejected.
	Code string `json:"code,omitzero"`
	Data Value  `json:"data,omitzero"`
	// Payload is that of the event, so that a sender knows what it was about. It is absent if the event had none, if it is larger than MaxReturned, if
	// no commit has room for it beside Data, and if the event could not be released at all (see Tombstone).
	Payload Value `json:"payload,omitzero"`
	// Depth is that of the event.
	Depth uint64 `json:"-"`
}

// Message returns the notice as it is sent to the origin. Its id follows from that of the send, so sending it twice is harmless, and no client can choose it. It has no
// position, because it comes from no transaction; hence there are no notices about notices.
func (n *Notice) Message(origin string, t Trace) Message {
	p := appendText([]byte(`{"event":`), n.Event)
	p = appendText(append(p, `,"to":`...), n.To)
	p = appendText(append(p, `,"stream":`...), n.Stream)
	if n.Outcome != "" {
		p = appendText(append(p, `,"outcome":`...), string(n.Outcome))
	}
	p = appendText(append(p, `,"reason":`...), n.Reason)
	if n.Code != "" {
		p = appendText(append(p, `,"code":`...), n.Code)
		if !n.Data.IsAbsent() {
			p = n.Data.AppendJSON(append(p, `,"data":`...))
		}
	}
	if !n.Payload.IsAbsent() {
		p = n.Payload.AppendJSON(append(p, `,"payload":`...))
	}
	return Message{Space: origin, Stream: Undelivered, ID: NoticeID(n.Event), Payload: append(p, '}'), Depth: n.Depth + 1, Trace: t}
}

// NoticeID returns the id of the notice about an event.
func NoticeID(event string) string { return event + ":" + Undelivered }

// CheckSendStream returns an error unless programs and clients may send to a stream: its name must be valid
// and not reserved.
func CheckSendStream(stream string) error {
	if stream == Undelivered {
		return &NameError{"stream", stream, "is kept for notices about events that could not be delivered; use another name"}
	}
	return CheckName("stream", stream)
}

// MaxReasonLen bounds, in bytes, the text of a tombstone, which travels in a header, and the reason
// for dismissing a dead letter.
const MaxReasonLen = 500

// Tombstone returns the message that takes the place of an event that could not be delivered: it has the id
// and the position of the event, so that later events need not wait, and a reason instead of the payload. The
// target refuses it.
func (m *Message) Tombstone(why string) Message {
	why = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' ' // a header is one line of ASCII
		}
		return r
	}, why)
	if len(why) > MaxReasonLen {
		why = why[:MaxReasonLen]
	}
	t := Message{
		Space: m.Space, Stream: m.Stream, ID: m.ID, Position: m.Position, Term: m.Term, PrevTerm: m.PrevTerm, ReplayKey: m.ReplayKey,
		Depth: m.Depth, Trace: m.Trace, Invalid: why,
	}
	if CheckName("stream", t.Stream) != nil {
		t.Stream = Undelivered // the stream name itself was the problem
	}
	return t
}
