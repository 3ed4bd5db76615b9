package lanes

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// Contents are the events of a lane at one time. Neither the lane nor readers change them.
type Contents struct {
	// Undecided events were taken, but no commit that handles them is confirmed; Queue has the waiting
	// events, in order.
	Undecided, Queue []*model.Event
	// FollowUps were sent by the space to itself, and queue behind an event that has not been read yet.
	FollowUps []*model.Event
	// Early are events that arrived before their predecessor, in lane order.
	Early []Early
	// Unread reports that further events must be read from the stream.
	Unread bool
}

// Early is an event that arrived before its predecessor. Event is nil if it is not kept in memory.
type Early struct {
	Lane     uint64
	Origin   string
	Position uint64
	Event    *model.Event
}

// Contents copies the order of the events but not the events: it costs a few words per event.
func (l *Lane) Contents() Contents {
	c := Contents{
		Undecided: slices.Clone(l.entries[:l.next]), Queue: slices.Clone(l.entries[l.next:]),
		Unread: len(l.reclaim) > 0 || l.refused > l.seen,
	}
	for _, ev := range l.own {
		c.FollowUps = append(c.FollowUps, &ev)
	}
	for _, e := range l.held.all() {
		c.Early = append(c.Early, Early{Lane: e.lane, Origin: e.origin, Position: e.pos, Event: e.ev})
	}
	return c
}
