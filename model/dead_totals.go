package model

import (
	"maps"
	"slices"
	"time"
)

// maxDeadTotals bounds the streams, and the spaces, for which DeadTotals keeps counts.
const maxDeadTotals = 500

// DeadTotals counts the messages of the store of dead letters, both letters and notes, from the first one up
// to a sequence. Messages are never changed and are only appended, so later counts are these plus those of
// the messages after Seq.
type DeadTotals struct {
	// Seq is the sequence of the last counted message, and Stored the time when it was stored: if a message
	// of that sequence has another time, the totals are those of another store.
	Seq    uint64    `json:"seq"`
	Stored time.Time `json:"stored"`
	// Begun is when the count began at the first message, by the clock of the counting process.
	Begun time.Time `json:"begun"`
	// Messages is the number of counted messages, of any kind. If the store has another number of messages up
	// to Seq, some were removed, and all must be counted again.
	Messages uint64     `json:"messages"`
	All      DeadCounts `json:"all"`
	// Streams and Spaces are the counts of each. ManyStreams and ManySpaces are set if there were more than
	// 500; their counts are not kept then.
	Streams     map[string]DeadCounts `json:"streams,omitempty"`
	Spaces      map[string]DeadCounts `json:"spaces,omitempty"`
	ManyStreams bool                  `json:"many_streams,omitempty"`
	ManySpaces  bool                  `json:"many_spaces,omitempty"`
}

// Clone returns a copy that shares nothing with t.
func (t *DeadTotals) Clone() *DeadTotals {
	c := *t
	c.Streams, c.Spaces = maps.Clone(t.Streams), maps.Clone(t.Spaces)
	return &c
}

// Of returns the counts of a space and a stream, "" for any; false if they are not kept.
func (t *DeadTotals) Of(space, stream string) (DeadCounts, bool) {
	switch {
	case space == "" && stream == "":
		return t.All, true
	case space == "" && !t.ManyStreams:
		return t.Streams[stream], true
	case stream == "" && !t.ManySpaces:
		return t.Spaces[space], true
	}
	return DeadCounts{}, false
}

// DeadTouched returns the names of the letters whose counts change when messages with the given names,
// letters or notes, are added, and the names of those letters together with all notes about them: Add needs
// to know which of them exist.
func DeadTouched(names []DeadName) (letters, all []DeadName) {
	x := make(DeadIndex, len(names))
	for _, n := range names {
		letter := n.Letter()
		if x[letter] {
			continue
		}
		x[letter] = true
		letters = append(letters, letter)
		all = append(all, letter, letter.RedrivenNote(), letter.Note(Dismissed))
	}
	return letters, all
}

// Add counts further messages, given their names. before contains those of the names returned by DeadTouched
// that were counted already.
func (t *DeadTotals) Add(names []DeadName, before DeadIndex) {
	letters, all := DeadTouched(names)
	after := NewDeadIndex(names)
	for _, n := range all {
		if before[n] {
			after[n] = true
		}
	}
	for _, n := range letters {
		was, is := before.of(n), after.of(n)
		t.All.change(was, is)
		t.Streams, t.ManyStreams = changed(t.Streams, t.ManyStreams, n.Stream, was, is)
		t.Spaces, t.ManySpaces = changed(t.Spaces, t.ManySpaces, n.Space, was, is)
	}
}

// changed applies a change to the counts of one key, and drops all counts if there are too many.
func changed(of map[string]DeadCounts, many bool, key string, was, is DeadCounts) (map[string]DeadCounts, bool) {
	if many || was == is {
		return of, many
	}
	c, there := of[key]
	if !there && len(of) == maxDeadTotals {
		return nil, true
	}
	if of == nil {
		of = map[string]DeadCounts{}
	}
	c.change(was, is)
	of[key] = c
	return of, false
}

func (c *DeadCounts) change(was, is DeadCounts) {
	c.Letters += is.Letters - was.Letters
	c.Open += is.Open - was.Open
	c.Redriven += is.Redriven - was.Redriven
	c.Dismissed += is.Dismissed - was.Dismissed
}

// MostOpen returns the stream with the most open letters, the first by name in case of a tie, and their
// number; "" if there is none, or if the counts of streams are not kept.
func (t *DeadTotals) MostOpen() (stream string, n int) {
	for _, of := range slices.Sorted(maps.Keys(t.Streams)) {
		if c := t.Streams[of]; c.Open > n {
			stream, n = of, c.Open
		}
	}
	return stream, n
}
