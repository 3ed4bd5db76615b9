// Package setaside computes up to where a partition is done with its lane, apart from a few blocked spaces
// (docs/adr/0033), for package worker/host.
package setaside

import (
	"cmp"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// readMark is the sequence up to which the lane was read at a time.
type readMark struct {
	at   time.Time
	read uint64
}

// Marks records the progress of a lane reader, so that its position a while ago is known.
type Marks []readMark

// Lagging returns the sequence up to which the lane was read a while ago, given the present one: a space that is
// not done with it holds the position back.
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

// Reach returns up to where a partition is done: with all spaces, and without those that are set aside.
// done is the sequence if no space were behind. The spaces in behind, in any order, are set aside
// if they are not done with the sequence lagging, as long as their size fits into room.
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

// Left returns the spaces of an Ahead that may have events left, with their remaining range, given the sequence
// up to which all spaces are done. Last is 0 for a space without events left.
func Left(a *model.Ahead, done uint64) (left []model.Aside) {
	for _, s := range a.Aside {
		if done >= s.Last && done > s.Done {
			continue // it has continued since
		}
		if s.Done = max(s.Done, done); s.Last <= s.Done {
			s.Last = 0
		}
		left = append(left, s)
	}
	return left
}

// Known holds, for spaces with events after the start of the lane reader, the last event that the space
// reads itself: the reader ignores these events.
type Known map[string]uint64

// Expect records the last event of a space, if it is after the start of the lane reader.
func (k *Known) Expect(s *model.Aside, from uint64) {
	if s.Last <= from {
		return
	}
	if *k == nil {
		*k = Known{}
	}
	(*k)[s.Space] = s.Last
}

// Has reports whether the space of a delivered message reads it itself.
func (k Known) Has(m *model.Message) bool {
	last, is := k[m.Space]
	if is && m.Seq >= last {
		delete(k, m.Space)
	}
	return is && m.Seq <= last
}
