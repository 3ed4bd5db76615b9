package model

// Trace is a W3C trace context as it travels in headers and inside commits.
// Both fields are opaque here; the zero Trace means "not traced".
type Trace struct {
	Parent string `json:"tp,omitzero"` // traceparent
	State  string `json:"ts,omitzero"` // tracestate
}

// Event is a request to change a space. Nothing in it changes once it is in a
// lane.
type Event struct {
	Space  string
	Stream string
	// ID is unique within the space, for ever within the horizon. Sending an id
	// twice has the effect of sending it once.
	ID      string
	Payload Value

	// Lane is the event's sequence in its partition's LANE stream, and so its
	// place in the space's order. It is 0 for a follow-up that a space sent to
	// itself: those never pass through LANE (see Behind).
	Lane uint64
	// Behind is set on follow-ups only: the lane sequence behind which the
	// follow-up was queued, so that a later owner rebuilds the same order.
	Behind uint64
	// Position numbers the events that one origin space has sent to this space:
	// 1, 2, 3, ... without gaps. 0 for events that come from outside. Receivers
	// handle positions in order and once each, which is what makes a repeated or
	// reordered release harmless.
	Position uint64
	// Depth is the event's place in a chain of events that cause each other: 0 for the first,
	// one more than that of the event whose handling has sent it for any other. One that was
	// sent for a time to come begins a chain of its own (docs/adr/0030).
	Depth uint64
	// NotBefore is when the event may be handled at the earliest, in milliseconds since
	// 1970 by the clock of whoever handles it; 0 for at once.
	NotBefore int64
	// Expires is after when the event is not handled any more, in milliseconds since 1970 by
	// the clock of the worker that handles it; 0 for never.
	Expires int64
	// Slot is set on an event that has waited for its time (see Waiting), Timer if it is
	// a timer: its name.
	Slot  uint64
	Timer string
	// Invalid says why the event cannot be handled at all (its payload is not
	// JSON, say); "" for an event that can. An invalid event ends in a refused
	// receipt.
	Invalid string
	// Trace is the context of whoever created the event.
	Trace Trace
}

// Origin is the space that sent the event, or "" for one from outside.
func (e *Event) Origin() string {
	if e.Position == 0 && e.Lane != 0 {
		return ""
	}
	tx, _ := OriginOf(e.ID)
	return tx.Space
}
