package model

// DeadIndex is the set of names of all dead letters and notes at one moment, which is enough to determine the
// open letters.
type DeadIndex map[DeadName]bool

// DeadCounts counts dead letters. A letter that was both redriven and dismissed counts as both.
type DeadCounts struct {
	Letters   int `json:"letters"`
	Open      int `json:"open"` // neither redriven nor dismissed
	Redriven  int `json:"redriven"`
	Dismissed int `json:"dismissed"`
}

// NewDeadIndex returns an index of the names.
func NewDeadIndex(names []DeadName) DeadIndex {
	x := make(DeadIndex, len(names))
	for _, n := range names {
		x[n] = true
	}
	return x
}

// RedrivenNote returns the name of the note that records that the event of a letter was redriven.
func (n DeadName) RedrivenNote() DeadName {
	return DeadName{n.Space, n.Stream, RedriveID(n.Event)}.Note(Redriven)
}

// Open reports whether the letter exists and was neither redriven nor dismissed.
func (x DeadIndex) Open(n DeadName) bool {
	return x[n] && !IsNoteID(n.Event) && !x[n.RedrivenNote()] && !x[n.Note(Dismissed)]
}

// Count counts the letters whose names are accepted by meant.
func (x DeadIndex) Count(meant func(DeadName) bool) (c DeadCounts) {
	for n := range x { // any order: only counted
		if meant(n) {
			c.change(DeadCounts{}, x.of(n))
		}
	}
	return c
}

// of returns the counts of one letter, each 0 or 1. They are 0 for a note, and for a letter that does not
// exist.
func (x DeadIndex) of(n DeadName) (c DeadCounts) {
	if !x[n] || IsNoteID(n.Event) {
		return c
	}
	c.Letters = 1
	if x[n.RedrivenNote()] {
		c.Redriven = 1
	}
	if x[n.Note(Dismissed)] {
		c.Dismissed = 1
	}
	if c.Redriven+c.Dismissed == 0 {
		c.Open = 1
	}
	return c
}
