package worker

import "github.com/settlehq/settle/model"

// twin is another process under this worker's id.
type twin struct {
	own chan struct{} // closed when this worker's own announcement has come back
	// older is the last announcement of a process that came before that. One that lives
	// keeps this worker from starting.
	older model.Member
	// other is the last announcement of one that spoke after that, beats how many in a
	// row there were. If two run, because one had hung and was replaced or because they
	// came at the same moment, the one that was started first ends.
	other model.Member
	beats int
}

func (t *twin) heardOwn() bool {
	select {
	case <-t.own:
		return true
	default:
		return false
	}
}

func (t *twin) hearOwn() {
	if !t.heardOwn() {
		close(t.own)
	}
}

func (t *twin) hear(m model.Member) {
	switch {
	case m.Left:
		if m.Life == t.older.Life {
			t.older = model.Member{}
		}
		t.beats = 0
	case !t.heardOwn():
		t.older = m
	case m.Life != t.other.Life:
		t.other, t.beats = m, 1
	case m.Beat > t.other.Beat:
		t.other = m
		t.beats++
	}
	if m.Life == t.older.Life && !m.Left {
		t.older = m
	}
}

// twins returns what is known of others under this worker's id.
func (r *roster) twins() twin {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.twin
}

// replaced reports whether another process runs under this worker's id that was started
// after it. Both know both times, so one of them stays.
func (r *roster) replaced() (by model.Member, yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.twin.other
	first := r.self.Since.Before(o.Since) || r.self.Since.Equal(o.Since) && r.self.Life < o.Life
	return o, first && r.twin.beats >= twinBeats
}

// twinBeats is how many announcements one makes that stays. One that is refused at its
// start has made one.
const twinBeats = 3
