// Package setaside finds out how far a partition is done with its lane but for a few spaces that stand
// still (docs/adr/0033), for the workers and for the servers of package ordered.
package setaside

import (
	"cmp"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// readMark is up to where the lane was read at a time.
type readMark struct {
	at   time.Time
	read uint64
}

// Marks are as many as are needed to tell up to where a lane was read a while ago.
type Marks []readMark

// Lagging is up to where the lane was read a while ago, given up to where it is read now: a space that is
// not done with that holds the position back.
func (m *Marks) Lagging(now time.Time, while time.Duration, read uint64) uint64 {
	*m = append(*m, readMark{now, read})
	for len(*m) > 1 && now.Sub((*m)[1].at) >= while {
		*m = (*m)[1:]
	}
	if now.Sub((*m)[0].at) < while {
		return 0
	}
	return (*m)[0].read
}

// Reach finds out how far a partition is done: all of it, and it without the spaces that are set aside.
// Done is how far it would be if none were behind; behind are those that are, in any order, and are set aside
// if they are not done with the sequence lagging, as far as room has their bytes.
func Reach(done uint64, behind []model.Aside, lagging uint64, room int) (all uint64, ahead model.Ahead) {
	slices.SortFunc(behind, func(a, b model.Aside) int { return cmp.Or(cmp.Compare(a.Done, b.Done), cmp.Compare(a.Space, b.Space)) })
	ahead.UpTo = done
	for i, s := range behind { // the first holds the position back most
		done = min(done, s.Done)
		room -= model.AsideBytes(s.Space)
		if s.Done >= lagging || i >= model.MaxAside || room < 0 {
			ahead.UpTo = min(ahead.UpTo, s.Done)
			break
		}
		ahead.Aside = append(ahead.Aside, s)
	}
	return done, ahead
}

// Left are the spaces of an Ahead that may have something left, each with what that is by now, given up to
// where all spaces are done. Last is 0 for one that has none of its events left.
func Left(a *model.Ahead, done uint64) (left []model.Aside) {
	for _, s := range a.Aside {
		if done >= s.Last && done > s.Done {
			continue // it has gone on since
		}
		if s.Done = max(s.Done, done); s.Last <= s.Done {
			s.Last = 0
		}
		left = append(left, s)
	}
	return left
}

// Known are the last events, of those spaces that have any behind where the lane is read from, that they
// read for themselves: delivered again, they say nothing.
type Known map[string]uint64

// Expect notes the last event of a space, if it is behind where the lane is read from.
func (k *Known) Expect(s *model.Aside, from uint64) {
	if s.Last <= from {
		return
	}
	if *k == nil {
		*k = Known{}
	}
	(*k)[s.Space] = s.Last
}

// Has reports whether a message that is delivered is one that its space reads for itself.
func (k Known) Has(m *model.Message) bool {
	last, is := k[m.Space]
	if is && m.Seq >= last {
		delete(k, m.Space)
	}
	return is && m.Seq <= last
}
