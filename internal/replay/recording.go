// Package replay records what happened in a space, from its log and its lane, and repeats it in a
// world of package simkit: Record makes a Recording, Lines and ParseRecording are its text, and Play
// returns in what a repetition differs.
package replay

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/model"
)

// recordingVersion is the version of the format of recordings.
const recordingVersion = 1

// Recording is what happened in one space between two revisions.
type Recording struct {
	Space string
	// Program is the program that the space ran at the end, if that is known.
	Program string
	// From is the revision after which the recording starts, 0 for the start of the space, and To
	// the one with which it ends.
	From, To uint64
	// Start and End are times of the log. Start is that of the first step, or a little earlier.
	Start, End time.Time
	// Before are documents as of From, After as of To; derived ones are left out.
	Before, After []RecordedDocument
	Steps         []RecordedStep
}

// RecordedDocument is a document with its value.
type RecordedDocument struct {
	Name  string
	Value model.Value
}

// RecordedStep is an event from outside the space that has ended, or writes without an event.
type RecordedStep struct {
	// At is when the log stored the result.
	At time.Time
	// Stream is "" for writes.
	Stream, Event string
	Payload       model.Value
	// NotBefore and Invalid are those of model.Event.
	NotBefore int64
	Invalid   string
	// Outcome, Result, Error and Code are those of its receipt; Outcome is "" for an event that still
	// waits for its time at the end.
	Outcome model.Outcome
	Result  model.Value
	Error   string
	Code    string
	Writes  []model.Write
}

// recordedLine is one line of the text of a recording. Its fields determine its kind.
type recordedLine struct {
	Recording int           `json:"recording,omitzero"`
	Space     string        `json:"space,omitzero"`
	Program   string        `json:"program,omitzero"`
	From      uint64        `json:"from,omitzero"`
	To        uint64        `json:"to,omitzero"`
	Start     time.Time     `json:"start,omitzero"`
	End       time.Time     `json:"end,omitzero"`
	Before    string        `json:"before,omitzero"`
	After     string        `json:"after,omitzero"`
	Value     model.Value   `json:"value,omitzero"`
	At        time.Time     `json:"at,omitzero"`
	Stream    string        `json:"stream,omitzero"`
	Event     string        `json:"event,omitzero"`
	Payload   model.Value   `json:"payload,omitzero"`
	NotBefore int64         `json:"not_before,omitzero"`
	Invalid   string        `json:"invalid,omitzero"`
	Outcome   model.Outcome `json:"outcome,omitzero"`
	Result    model.Value   `json:"result,omitzero"`
	Error     string        `json:"error,omitzero"`
	Code      string        `json:"code,omitzero"`
	Writes    []model.Write `json:"writes,omitzero"`
}

// Lines returns the recording as text, one JSON object per line.
func (r *Recording) Lines() ([]string, error) {
	all := []recordedLine{{Recording: recordingVersion, Space: r.Space, Program: r.Program, From: r.From, To: r.To, Start: r.Start, End: r.End}}
	for _, d := range r.Before {
		all = append(all, recordedLine{Before: d.Name, Value: d.Value})
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		all = append(all, recordedLine{
			At: s.At, Stream: s.Stream, Event: s.Event, Payload: s.Payload, NotBefore: s.NotBefore, Invalid: s.Invalid,
			Outcome: s.Outcome, Result: s.Result, Error: s.Error, Code: s.Code, Writes: s.Writes,
		})
	}
	for _, d := range r.After {
		all = append(all, recordedLine{After: d.Name, Value: d.Value})
	}
	var lines []string
	for i := range all {
		text, err := json.Marshal(&all[i], json.Deterministic(true), jsontext.EscapeForHTML(false))
		if err != nil {
			return nil, err
		}
		lines = append(lines, string(text))
	}
	return lines, nil
}

// ParseRecording parses the text of a recording.
func ParseRecording(lines []string) (*Recording, error) {
	var r *Recording
	for i, text := range lines {
		if strings.TrimSpace(text) == "" {
			continue
		}
		var l recordedLine
		err := json.Unmarshal([]byte(text), &l, json.RejectUnknownMembers(true))
		if err == nil {
			r, err = r.take(&l)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the recording: %w", i+1, err)
		}
	}
	if r == nil {
		return nil, errors.New("the recording is empty: `settle replay` makes one")
	}
	return r, nil
}

// take adds a line. The first one is the head.
func (r *Recording) take(l *recordedLine) (*Recording, error) {
	switch {
	case r == nil && l.Recording != recordingVersion:
		return nil, fmt.Errorf("a recording begins with {\"recording\":%d,...}, this is another format or not a recording", recordingVersion)
	case r == nil:
		if l.Start.IsZero() || l.End.Before(l.Start) {
			return nil, errors.New("its times are missing, or end before they begin")
		}
		r = &Recording{Space: l.Space, Program: l.Program, From: l.From, To: l.To, Start: l.Start, End: l.End}
		return r, model.CheckName("space", l.Space)
	case l.Before != "":
		r.Before = append(r.Before, RecordedDocument{l.Before, l.Value})
		return r, model.CheckName("document", l.Before)
	case l.After != "":
		r.After = append(r.After, RecordedDocument{l.After, l.Value})
		return r, model.CheckName("document", l.After)
	case l.Stream != "":
		r.Steps = append(r.Steps, RecordedStep{
			At: l.At, Stream: l.Stream, Event: l.Event, Payload: l.Payload, NotBefore: l.NotBefore, Invalid: l.Invalid,
			Outcome: l.Outcome, Result: l.Result, Error: l.Error, Code: l.Code,
		})
		return r, errors.Join(model.CheckName("stream", l.Stream), model.CheckAnyEventID(l.Event))
	case len(l.Writes) > 0:
		r.Steps = append(r.Steps, RecordedStep{At: l.At, Writes: l.Writes})
		return r, checkWrites(l.Writes)
	}
	return nil, errors.New("it is neither a document, nor an event, nor writes")
}

func checkWrites(writes []model.Write) error {
	for i := range writes {
		if err := model.CheckName("document", writes[i].Doc); err != nil {
			return err
		}
	}
	return nil
}
