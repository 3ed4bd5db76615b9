package model

// DeadIndex are the names of all dead letters and notes, as they were at a moment: enough to tell
// about which nothing was done.
type DeadIndex map[DeadName]bool

// DeadCounts are numbers of dead letters. One that was sent again and dismissed counts as both.
type DeadCounts struct {
	Letters   int `json:"letters"`
	Open      int `json:"open"` // nothing was done about them
	Redriven  int `json:"redriven"`
	Dismissed int `json:"dismissed"`
}

// NewDeadIndex makes an index of names.
func NewDeadIndex(names []DeadName) DeadIndex {
	x := make(DeadIndex, len(names))
	for _, n := range names {
		x[n] = true
	}
	return x
}

// RedrivenNote is the name of the note that says that the event of a letter was sent again.
func (n DeadName) RedrivenNote() DeadName {
	return DeadName{n.Space, n.Stream, RedriveID(n.Event)}.Note(Redriven)
}

// Open reports whether there is such a letter and nothing was done about it.
func (x DeadIndex) Open(n DeadName) bool {
	return x[n] && !IsNoteID(n.Event) && !x[n.RedrivenNote()] && !x[n.Note(Dismissed)]
}

// Count counts the letters that are meant, by their names.
func (x DeadIndex) Count(meant func(DeadName) bool) (c DeadCounts) {
	for n := range x { // any order: they are counted
		if IsNoteID(n.Event) || !meant(n) {
			continue
		}
		c.Letters++
		if x.Open(n) {
			c.Open++
		}
		if x[n.RedrivenNote()] {
			c.Redriven++
		}
		if x[n.Note(Dismissed)] {
			c.Dismissed++
		}
	}
	return c
}
