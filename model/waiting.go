package model

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
)

// Waiting is an event that waits in its space for its time: it was sent with a time, or is a timer
// (docs/adr/0018). It is part of the state of the space, and no longer in the lane.
type Waiting struct {
	ID      string `json:"id"`
	Stream  string `json:"st"`
	Payload Value  `json:"p,omitzero"`
	// NotBefore is the earliest time at which it may be handled, in milliseconds since 1970.
	NotBefore int64 `json:"nb"`
	// Expires is Event.Expires.
	Expires int64 `json:"ex,omitzero"`
	// Slot distinguishes it from all other waiting events of the space. Numbers are reused, so the
	// saved state of a space is bounded by the number of events that wait at a time.
	Slot uint64 `json:"sl"`
	// Timer is the name of the timer, "" for an event that is not a timer.
	Timer string `json:"tm,omitzero"`
	// Lane and Position are those of the event, if it came through the lane.
	Lane     uint64 `json:"ln,omitzero"`
	Position uint64 `json:"pos,omitzero"`
	// Term is Event.Term if the event came through the lane, and ReplayKey is Event.ReplayKey.
	Term      uint64 `json:"trm,omitzero"`
	ReplayKey uint64 `json:"rk,omitzero"`
	// Depth is Event.Depth: nonzero only for an event whose time had already passed when it was sent.
	Depth uint64 `json:"dp,omitzero"`
	// Seq is the log sequence of the commit in which it began to wait, and Nth its index in that commit: of
	// two events with the same time, the one that has waited longer is first. Seq is 0 inside a commit.
	Seq uint64 `json:"sq,omitzero"`
	Nth int    `json:"i,omitzero"`
	Trace
}

// Cancel names an event that waited.
type Cancel struct {
	ID   string `json:"id"`
	Slot uint64 `json:"sl"`
}

// MaxDelay bounds how long an event may wait: a time further ahead is probably a mistake in the unit.
const MaxDelay = 10 * 366 * 24 * time.Hour

// CheckNotBefore returns an error unless an event may wait from now until a time.
func CheckNotBefore(at, now time.Time) error {
	if at.Sub(now) <= MaxDelay {
		return nil
	}
	return fmt.Errorf("it is to wait until %s: more than ten years are not accepted; the unit may be wrong", at.UTC().Format(time.RFC3339))
}

// NotBefore converts a time to Event.NotBefore: milliseconds since 1970, rounded up, because nothing is
// handled before its time. A time before 1970 becomes a time that has passed.
func NotBefore(at time.Time) int64 {
	ms := at.UnixMilli()
	if at.After(time.UnixMilli(ms)) {
		ms++
	}
	return max(ms, 1)
}

// Waits returns the form in which a send waits in its space.
func (s *Send) Waits() Waiting {
	return Waiting{
		ID: s.ID, Stream: s.Stream, Payload: s.Payload, NotBefore: s.NotBefore, Expires: s.Expires,
		Slot: s.Slot, Timer: s.Timer, ReplayKey: s.ReplayKey, Depth: s.Depth, Trace: s.Trace,
	}
}

// Event returns the event that is handled when the time has come. It has no lane sequence.
func (w *Waiting) Event(space string) Event {
	return Event{
		Space: space, Stream: w.Stream, ID: w.ID, Payload: w.Payload, Position: w.Position, Term: w.Term, ReplayKey: w.ReplayKey,
		Depth: w.Depth, NotBefore: w.NotBefore, Expires: w.Expires, Slot: w.Slot, Timer: w.Timer, Trace: w.Trace,
	}
}

// Before orders waiting events: by time, then by how long they have waited.
func (w *Waiting) Before(o *Waiting) bool {
	switch {
	case w.NotBefore != o.NotBefore:
		return w.NotBefore < o.NotBefore
	case w.Seq != o.Seq:
		return w.Seq < o.Seq
	}
	return w.Nth < o.Nth
}

// Encode returns the event as it is saved: JSON, with the same bytes for the same event.
func (w *Waiting) Encode() ([]byte, error) {
	data, err := json.Marshal(w, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode waiting event %s: %w", w.ID, err)
	}
	return data, nil
}

// DecodeWaiting is the inverse of Encode.
func DecodeWaiting(data []byte) (*Waiting, error) {
	var w Waiting
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("decode waiting event: %w", err)
	}
	var b bounds
	if w.check(&b); b.err != nil {
		return nil, fmt.Errorf("decode waiting event: %w", b.err)
	}
	return &w, nil
}
