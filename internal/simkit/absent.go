package simkit

import (
	"slices"
	"time"
)

// A space that begins to read a document of another space which is not there sees no absence before that space has computed it: the document
// may be a derived one that nothing has observed so far. As in a deployment, it waits for
//
//	the value          and is passed that
//	a home at rest     which does not derive it, or cannot, and is passed the absence
//	holding            if a gate holds the value back for longer
//
// Spaces that wait for each other in a circle wait for as long in a deployment. Here nothing else can happen, and the first one goes on at once.

// holding is how long an absence is held back.
const holding = 5 * time.Second

// absence is the absence of a document that a reader was not passed yet.
type absence struct {
	reader *Space
	doc    string
	until  time.Time
}

// settleAbsences passes on the absences of documents that are up to date, at the end of a step of their space.
func (s *Space) settleAbsences() {
	if len(s.absences) > 0 && s.core.Unconfirmed() == 0 {
		s.passAbsences(func(a absence) bool { return !s.core.Freshness(a.doc).Pending })
	}
}

// passAbsences passes on those absences for which is returns true, and reports whether there were any.
func (s *Space) passAbsences(is func(absence) bool) (some bool) {
	dropped := s.dropAbsences(is)
	for _, a := range dropped {
		m := s.mirrors[a.doc]
		m.readers = append(m.readers, a.reader)
		v, _ := s.core.Confirmed(a.doc)
		a.reader.core.Mirror(s.name, a.doc, v)
		s.w.touch(a.reader)
	}
	return len(dropped) > 0
}

// dropAbsences removes those absences for which is returns true, and returns them.
func (s *Space) dropAbsences(is func(absence) bool) (dropped []absence) {
	s.absences = slices.DeleteFunc(s.absences, func(a absence) bool {
		yes := is(a)
		if yes {
			dropped = append(dropped, a)
		}
		return yes
	})
	s.w.absences -= len(dropped)
	return dropped
}

// holds reports whether the absence of a document is held back.
func (s *Space) holds(doc string) bool {
	return slices.ContainsFunc(s.absences, func(a absence) bool { return a.doc == doc })
}

// passAbsence passes an absence on in a world that is at rest: one whose time is over, or that waits for no time. It returns false if there is none.
func (w *World) passAbsence() bool {
	if w.absences == 0 {
		return false
	}
	waits := w.waitForTimes()
	for _, s := range w.order {
		if i := slices.IndexFunc(s.absences, func(a absence) bool { return !a.until.After(w.now) || !waits[s] }); i >= 0 {
			first := s.absences[i]
			return s.passAbsences(func(a absence) bool { return a == first })
		}
	}
	return false
}

// waitForTimes returns the spaces in which a gate holds back what others read, and those that wait for them in turn.
func (w *World) waitForTimes() map[*Space]bool {
	waits := map[*Space]bool{}
	for _, s := range w.order {
		waits[s] = slices.ContainsFunc(s.absences, func(a absence) bool { return s.core.Freshness(a.doc).Until > 0 })
	}
	for more := true; more; {
		more = false
		for _, s := range w.order {
			for _, a := range s.absences {
				if waits[s] && !waits[a.reader] {
					waits[a.reader], more = true, true
				}
			}
		}
	}
	return waits
}
