package host

import (
	"cmp"
	"slices"
	"time"
)

// unended has when the events were stored that were read from a lane and have not ended. Events are read and end in the order of their sequences, but
// for a few, so that a list is cheaper than a map. Its zero value is empty.
type unended struct {
	list []storedEvent // sorted by sequence; those before first, and others, have ended
	// first is the index of the first that has not ended, if there is one, and open the number of those that have not.
	first, open int
}

// storedEvent is an event of a lane.
type storedEvent struct {
	seq   uint64
	at    time.Time
	ended bool
}

// add adds an event, unless there are most that have not ended.
func (u *unended) add(seq uint64, at time.Time, most int) {
	if u.open >= most {
		return
	}
	if len(u.list) == cap(u.list) && len(u.list) > u.open {
		u.list = slices.DeleteFunc(u.list, func(e storedEvent) bool { return e.ended })
		u.first = 0
	}
	if n := len(u.list); n == 0 || u.list[n-1].seq < seq {
		u.list = append(u.list, storedEvent{seq: seq, at: at})
		u.open++
		return
	}
	i, known := u.find(seq)
	if !known {
		u.list = slices.Insert(u.list, i, storedEvent{seq: seq, ended: true})
	}
	if u.list[i].ended {
		u.open++
	}
	u.list[i], u.first = storedEvent{seq: seq, at: at}, min(u.first, i)
}

// storedAt returns when an event was stored, if it has not ended.
func (u *unended) storedAt(seq uint64) (time.Time, bool) {
	i, known := u.find(seq)
	if !known || u.list[i].ended {
		return time.Time{}, false
	}
	return u.list[i].at, true
}

// end removes an event, and returns when it was stored, if it had not ended.
func (u *unended) end(seq uint64) (time.Time, bool) {
	i, known := u.find(seq)
	if !known || u.list[i].ended {
		return time.Time{}, false
	}
	u.list[i].ended = true
	if u.open--; u.open == 0 {
		at := u.list[i].at
		u.clear()
		return at, true
	}
	for u.list[u.first].ended {
		u.first++
	}
	return u.list[i].at, true
}

// oldest returns when the first event that has not ended was stored, if there is one.
func (u *unended) oldest() (time.Time, bool) {
	if u.open == 0 {
		return time.Time{}, false
	}
	return u.list[u.first].at, true
}

// clear removes all events.
func (u *unended) clear() { u.list, u.first, u.open = u.list[:0], 0, 0 }

// find returns the index of an event, or where it would be.
func (u *unended) find(seq uint64) (int, bool) {
	if u.first < len(u.list) && u.list[u.first].seq == seq { // most often
		return u.first, true
	}
	return slices.BinarySearchFunc(u.list, seq, func(e storedEvent, seq uint64) int { return cmp.Compare(e.seq, seq) })
}
