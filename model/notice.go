package model

import "strings"

// Undelivered is the stream of failure notices: what a space is sent when an event of
// its own did not come to a handler. Nobody else may send to it. A program handles it
// like any other stream; where it does not, a notice ends as handled and does nothing.
const Undelivered = "undelivered"

// Notice tells the space that sent an event that no handler ever ran for it, and why.
type Notice struct {
	// Event is the id of the send, To and Stream say where it went.
	Event, To, Stream string
	Reason            string
	// Depth is that of the event.
	Depth uint64
}

// Message is the notice on its way to the origin, with the payload
// {event, to, stream, reason}. Its id follows from that of the send, so telling twice is
// harmless, and no client can choose it. It has no position: it comes from no transaction.
// So nobody is sent a notice about a notice.
func (n *Notice) Message(origin string, t Trace) Message {
	p := appendText([]byte(`{"event":`), n.Event)
	p = appendText(append(p, `,"to":`...), n.To)
	p = appendText(append(p, `,"stream":`...), n.Stream)
	p = appendText(append(p, `,"reason":`...), n.Reason)
	return Message{Space: origin, Stream: Undelivered, ID: NoticeID(n.Event), Payload: append(p, '}'), Depth: n.Depth + 1, Trace: t}
}

// NoticeID is the id of the notice about an event.
func NoticeID(event string) string { return event + ":" + Undelivered }

// CheckSendStream reports whether a program or a client may send to a stream: its name
// is valid, and it is not one that Settle keeps for itself.
func CheckSendStream(stream string) error {
	if stream == Undelivered {
		return &NameError{"stream", stream, "is kept for notices about events that could not be delivered; use another name"}
	}
	return CheckName("stream", stream)
}

// MaxReasonLen bounds, in bytes, the text of a tombstone, which travels in a header, and
// why a dead letter was dismissed.
const MaxReasonLen = 500

// Tombstone is what stands in a lane for an event that could not be delivered: it has
// the id and the position of the event, so that those that follow need not wait, and
// why instead of the payload. The target refuses it.
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
	t := Message{Space: m.Space, Stream: m.Stream, ID: m.ID, Position: m.Position, Depth: m.Depth, Trace: m.Trace, Invalid: why}
	if CheckName("stream", t.Stream) != nil {
		t.Stream = Undelivered // it stood in the way itself
	}
	return t
}
