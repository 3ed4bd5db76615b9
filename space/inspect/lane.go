package inspect

import (
	"cmp"
	"slices"
	"time"

	"github.com/settlehq/settle/lanes"
	"github.com/settlehq/settle/model"
)

// Head describes the event at the head of the lane, which has not been handled yet.
type Head struct {
	Stream, Event string
	// Until is when it may be tried again after transient errors or a conflict, 0 if it need not wait for a
	// time. Attempts is the number of transient errors so far, and Reason the first line of the last one.
	Until    time.Duration
	Attempts int
	Reason   string
	// Most is the number of attempts that an event has when it fails transiently, 0 if there is no limit. Lost is how many attempts
	// have ended with their process, at most MostLost.
	Most, Lost, MostLost int
	// Docs are the documents of other spaces that it reads and that have not arrived, Needs the nodes that it
	// needs.
	Docs, Needs []string
	// Fails is when it fails if a document of another space does not arrive, 0 for never.
	Fails time.Duration
}

// Lane is what waits in a space. It must not be changed.
type Lane struct {
	lanes.Contents
	// Head describes Queue[0]; nil if nothing is queued.
	Head *Head
	// Scheduled are the events that wait for their time, including timers, in no order. Those whose time has
	// come are in the queue as well; see Later.
	Scheduled []*model.Waiting
}

func (l *Lane) head() (Head, bool) {
	if l.Head == nil {
		return Head{}, false
	}
	return *l.Head, true
}

// Later lists the events that wait for their time, including timers, in the order in which they become due.
// Events whose time has come are in the queue instead.
func (l *Lane) Later() []*model.Waiting {
	queued := map[uint64]string{}
	for _, list := range [][]*model.Event{l.Undecided, l.Queue, l.FollowUps} {
		for _, ev := range list {
			if ev.Slot != 0 {
				queued[ev.Slot] = ev.ID
			}
		}
	}
	out := slices.DeleteFunc(slices.Clone(l.Scheduled), func(w *model.Waiting) bool { return queued[w.Slot] == w.ID })
	slices.SortFunc(out, func(a, b *model.Waiting) int {
		switch {
		case a.Before(b):
			return -1
		case b.Before(a):
			return 1
		}
		return cmp.Compare(a.Slot, b.Slot)
	})
	return out
}

// Reason is why an event has not been handled, or its handling not been confirmed.
type Reason uint8

const (
	// Uncommitted: it was handled, but the log has not confirmed that yet.
	Uncommitted Reason = iota + 1
	// AtHead: it is the next one; Snapshot.Parked returns the reason.
	AtHead
	// Queued: others are before it.
	Queued
	// Behind: the space sent it to itself, and it queues behind an event that has not been read yet.
	Behind
	// BeforeItsTurn: it arrived before its predecessor from the same space.
	BeforeItsTurn
	// ForItsTime: it waits for a time.
	ForItsTime
)

func (r Reason) String() string {
	return [...]string{"unknown", "uncommitted", "at the head", "queued", "behind an event to come", "before its predecessor", "for its time"}[r]
}

// Pending is an event that has not ended, or whose end the log has not confirmed.
type Pending struct {
	Stream, ID string
	// Lane is its sequence in the lane, 0 if it did not come through the lane.
	Lane   uint64
	Reason Reason
	// Ahead is the number of events before it in the queue.
	Ahead int
	// Timer is the name of a timer, "" for other events. At is when the timer or delayed event is due, in
	// milliseconds since 1970.
	Timer string
	At    int64
}

// Pending lists all events that the space holds, and why each waits: first the undecided ones, then the queue
// in order, then the rest. An early event that is not kept in memory has no stream and id.
func (l *Lane) Pending() []Pending {
	var out []Pending
	add := func(ev *model.Event, why Reason, ahead int) {
		out = append(out, Pending{Stream: ev.Stream, ID: ev.ID, Lane: ev.Lane, Reason: why, Ahead: ahead, Timer: ev.Timer, At: ev.NotBefore})
	}
	for _, ev := range l.Undecided {
		add(ev, Uncommitted, 0)
	}
	for i, ev := range l.Queue {
		why := Queued
		if i == 0 {
			why = AtHead
		}
		add(ev, why, i)
	}
	for _, ev := range l.FollowUps {
		add(ev, Behind, len(l.Queue))
	}
	for i := range l.Early {
		if e := &l.Early[i]; e.Event != nil {
			add(e.Event, BeforeItsTurn, len(l.Queue))
		} else {
			out = append(out, Pending{Lane: e.Lane, Reason: BeforeItsTurn, Ahead: len(l.Queue)})
		}
	}
	for _, w := range l.Later() {
		out = append(out, Pending{Stream: w.Stream, ID: w.ID, Lane: w.Lane, Reason: ForItsTime, Ahead: len(l.Queue), Timer: w.Timer, At: w.NotBefore})
	}
	return out
}

// Tasks are the tasks of one action or input, as stored in the documents that hold them.
type Tasks struct {
	// Action is the name of the action, or of the input if Input is set.
	Action string
	Input  bool
	// Docs are the documents, each with the value of its tasks, by key.
	Docs []TaskDoc
	// Apart is the number of tasks that have a document each.
	Apart int
}

// TaskDoc is a document of tasks.
type TaskDoc struct {
	Doc string
	// Tasks has a field per key; space.TaskOf decodes it.
	Tasks model.Value
}
