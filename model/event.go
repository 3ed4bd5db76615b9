package model

// Trace is a W3C trace context, and the baggage with it, as they travel in headers and inside commits.
// All fields are opaque here; the zero Trace means "not traced".
type Trace struct {
	Parent  string `json:"tp,omitzero"` // traceparent
	State   string `json:"ts,omitzero"` // tracestate
	Baggage string `json:"bg,omitzero"` // baggage
}

// Event is a request to change a space. It is immutable once it is in a lane.
type Event struct {
	Space  string
	Stream string
	// ID is unique within the space, at least during the horizon. Sending an id twice has the effect of
	// sending it once.
	ID      string
	Payload Value

	// Lane is the event's sequence in its partition's LANE stream, and so its place in the space's order. It
	// is 0 for a follow-up that a space sent to itself, which never passes through LANE (see Behind).
	Lane uint64
	// Behind is set on follow-ups only: the lane sequence after which the
	// follow-up was queued, so that a later owner rebuilds the same order.
	Behind uint64
	// Position numbers the events that one origin space has sent to this space: 1, 2, 3, ...
	// without gaps; 0 for events from outside. Receivers handle positions in order and once each,
	// which makes a repeated or reordered release harmless.
	Position uint64
	// Term is the term in which the origin sent it, and PrevTerm that of the event before it, 0 for the same
	// term (docs/adr/0035). Both are 0 without a Position, and for an event whose term is unknown.
	Term, PrevTerm uint64
	// ReplayKey is the same for an event that a space sends again because it handles the causing event again
	// after the commit was lost, and differs between all other events; 0 if unknown.
	ReplayKey uint64
	// Earlier is the receipt of the event that this one repeats under another id: the commit that had sent
	// that event was lost, and its origin has sent it again. nil for any other event.
	Earlier *Receipt
	// Depth is the event's place in a chain of events that cause each other: 0 for the first, and one more
	// than the causing event's for the others. An event that was sent for a future time starts a new chain
	// (docs/adr/0030).
	Depth uint64
	// NotBefore is the earliest time at which the event may be handled, in milliseconds since 1970
	// by the clock of the runtime that handles it; 0 for at once.
	NotBefore int64
	// Expires is the deadline after which the event is not handled, in milliseconds since 1970 by
	// the clock of the runtime that handles it; 0 for never.
	Expires int64
	// Slot is set on an event that has waited for its time (see Waiting); Timer is the name of the
	// timer if it is one.
	Slot  uint64
	Timer string
	// Invalid is the reason why the event cannot be handled at all (its payload is not JSON, for example); ""
	// for an event that can. An invalid event ends in a refused receipt.
	Invalid string
	// Trace is the trace context in which the event was created.
	Trace Trace
}

// ReadPayload sets the payload from what was stored of it; an empty one is absent. What is not JSON makes the event invalid.
func (e *Event) ReadPayload(stored []byte) {
	if len(stored) == 0 {
		return
	}
	var err error
	if e.Payload, err = ParseValue(stored); err != nil {
		e.Invalid = "the payload is not JSON: " + err.Error()
	}
}

// Origin returns the space that sent the event, or "" for one from outside.
func (e *Event) Origin() string {
	if e.Position == 0 && e.Lane != 0 {
		return ""
	}
	tx, _ := OriginOf(e.ID)
	return tx.Space
}
