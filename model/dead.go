package model

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// DeadVersion is the version of a dead letter's encoding.
const DeadVersion = 1

// DeadLetter is an event that failed or was refused, stored separately from the log that contains its
// receipt: for inspection, and for sending it again under another id.
type DeadLetter struct {
	Version int    `json:"v"`
	Space   string `json:"space"`
	Stream  string `json:"stream"`
	Event   string `json:"event"`
	// Outcome is Failed or Refused; Error is the reason.
	Outcome Outcome `json:"outcome"`
	Error   string  `json:"error"`
	// Attempts is the number of calls of the handler, if there was more than one.
	Attempts int `json:"attempts,omitzero"`
	// Payload is the payload of the event, absent if it had none; Raw is a payload that is not JSON. Lost is
	// the reason if the event had a payload that is missing.
	Payload Value  `json:"payload,omitzero"`
	Raw     []byte `json:"raw,omitzero"`
	Lost    string `json:"lost,omitzero"`
	// Lane is the event's place in the lane, 0 for a follow-up, and Commit the log sequence of the
	// commit that contains its receipt.
	Lane   uint64 `json:"lane,omitzero"`
	Commit uint64 `json:"commit"`
	// Ended is when that commit was stored.
	Ended time.Time `json:"ended,omitzero"`
	Trace
	// Seq is the letter's sequence among all dead letters, used for paging; 0 until it is stored.
	Seq uint64 `json:"-"`
}

// DeadName is the name under which a dead letter, or a note about one, is stored.
type DeadName struct{ Space, Stream, Event string }

// Check returns an error unless the names can be tokens of a subject.
func (n DeadName) Check() error {
	return (&DeadLetter{Space: n.Space, Stream: n.Stream, Event: n.Event}).Check()
}

// Name returns the name under which the letter is stored.
func (d *DeadLetter) Name() DeadName { return DeadName{d.Space, d.Stream, d.Event} }

// Note returns the name of a note of a kind about a letter.
func (n DeadName) Note(kind Outcome) DeadName {
	return DeadName{n.Space, n.Stream, NoteOf(n.Event, kind)}
}

// Letter returns the name of the letter that the note n is about; n itself if it is not the name of a note.
func (n DeadName) Letter() DeadName {
	if event, is := strings.CutSuffix(n.Event, noteSuffix[Dismissed]); is {
		return DeadName{n.Space, n.Stream, event}
	}
	if again, is := strings.CutSuffix(n.Event, noteSuffix[Redriven]); is {
		if event, is := RedriveOf(again); is {
			return DeadName{n.Space, n.Stream, event}
		}
	}
	return n
}

// The outcomes of notes, which record what was done about a letter.
const (
	// Redriven: the event was sent again. The lane forgets that after the horizon, while redriving it twice
	// must remain impossible.
	Redriven Outcome = "redriven"
	// Dismissed: an operator has dismissed the letter. Error is the reason, if one was given.
	Dismissed Outcome = "dismissed"
)

// noteSuffix is appended to an event's id to form the id of a note about it.
var noteSuffix = map[Outcome]string{Redriven: ":sent", Dismissed: ":left"}

// NoteOf returns the id under which a note about an event is stored.
func NoteOf(event string, kind Outcome) string { return event + noteSuffix[kind] }

// IsNoteID reports whether an id is the id of a note.
func IsNoteID(id string) bool {
	return strings.HasSuffix(id, noteSuffix[Redriven]) || strings.HasSuffix(id, noteSuffix[Dismissed])
}

// IsNote reports whether d is a note about a letter, not a letter.
func (d *DeadLetter) IsNote() bool { return noteSuffix[d.Outcome] != "" }

// Check returns an error unless the names of the letter can be tokens of a subject.
func (d *DeadLetter) Check() error {
	if err := CheckName("space", d.Space); err != nil {
		return err
	}
	if err := CheckName("stream", d.Stream); err != nil {
		return err
	}
	return CheckAnyEventID(d.Event)
}

// Bytes returns the payload in its original form.
func (d *DeadLetter) Bytes() []byte {
	switch {
	case d.Raw != nil:
		return d.Raw
	case d.Payload.IsAbsent():
		return nil
	}
	return d.Payload.AppendJSON(nil)
}

// SetBytes sets the payload of an event, JSON or not.
func (d *DeadLetter) SetBytes(payload []byte) {
	d.Payload, d.Raw = Value{}, nil
	if len(payload) == 0 {
		return
	}
	v, err := ParseValue(payload)
	if err != nil {
		d.Raw = payload
		return
	}
	d.Payload = v
}

// Encode returns the letter as it is stored: JSON.
func (d *DeadLetter) Encode() ([]byte, error) {
	data, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode dead letter: %w", err)
	}
	return data, nil
}

// DecodeDead is the inverse of Encode. It refuses a newer format version.
func DecodeDead(data []byte) (*DeadLetter, error) {
	var d DeadLetter
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("decode dead letter: %w", err)
	}
	if d.Version != DeadVersion {
		return nil, fmt.Errorf("decode dead letter: format version %d, this program reads %d; upgrade it", d.Version, DeadVersion)
	}
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("decode dead letter: %w", err)
	}
	return &d, nil
}
