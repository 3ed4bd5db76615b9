package roster

import "github.com/settlehq/settle/model"

// twin is another process under this member's id.
type twin struct {
	own   chan struct{} // see Roster.Echoed
	older model.Member  // see Roster.Older
	// other is the last announcement of a process that announced itself after that, beats the number of
	// successive ones. If two processes run, because one had hung and was replaced or because they
	// were started at the same moment, the one that was started first ends.
	other model.Member
	beats int
}

func (t *twin) receivedOwn() bool {
	select {
	case <-t.own:
		return true
	default:
		return false
	}
}

func (t *twin) receiveOwn() {
	if !t.receivedOwn() {
		close(t.own)
	}
}

func (t *twin) receive(m model.Member) {
	switch {
	case HasLeft(&m):
		if m.Life == t.older.Life {
			t.older = model.Member{}
		}
		t.beats = 0
	case !t.receivedOwn():
		t.older = m
	case m.Life != t.other.Life:
		t.other, t.beats = m, 1
	case m.Beat > t.other.Beat:
		t.other = m
		t.beats++
	}
	if m.Life == t.older.Life && !HasLeft(&m) {
		t.older = m
	}
}

// Echoed is closed when this member's own announcement has come back.
func (r *Roster) Echoed() <-chan struct{} { return r.twin.own }

// Older returns the last announcement under this member's id of a process that was started earlier; the zero
// Member if there is none, or no longer. A live one prevents this one from starting.
func (r *Roster) Older() model.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.twin.older
}

// Replaced reports whether another process runs under this member's id that was started
// after it. Both know both times, so one of them stays.
func (r *Roster) Replaced() (by model.Member, yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.twin.other
	first := r.self.Since.Before(o.Since) || r.self.Since.Equal(o.Since) && r.self.Life < o.Life
	return o, first && r.twin.beats >= twinBeats
}

// twinBeats is the number of announcements after which a process counts as staying. A process that is
// refused at its start has made one.
const twinBeats = 3
