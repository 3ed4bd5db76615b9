package inspect

import (
	"cmp"
	"slices"
	"time"

	"github.com/settlehq/settle/lanes"
	"github.com/settlehq/settle/model"
)

// Head is what is known of the event at the head of the lane, which has not been handled yet.
type Head struct {
	Stream, Event string
	// Until is when it may be tried again, after errors that may pass or a conflict, and 0 if
	// it need not wait for a time. Attempts is how many such errors there were.
	Until    time.Duration
	Attempts int
	// Most is how many attempts an event has that fails in a way that may pass. Lost is how
	// many attempts have ended with their process, of MostLost at most.
	Most, Lost, MostLost int
	// Docs are the documents of other spaces that it reads and that are not here, Needs the
	// nodes that it needs.
	Docs, Needs []string
	// Fails is when it fails if a document of another space does not come, 0 for never.
	Fails time.Duration
}

// Lane is what waits in a space. It is not to be changed.
type Lane struct {
	lanes.Contents
	// Head is what is known of Queue[0]; nil if nothing is queued.
	Head *Head
	// Scheduled are the events that wait for their time, timers among them, in no order. Those whose time has come are in the
	// queue as well; see Later.
	Scheduled []*model.Waiting
}

func (l *Lane) head() (Head, bool) {
	if l.Head == nil {
		return Head{}, false
	}
	return *l.Head, true
}

// Later lists the events that wait for their time, timers among them, in the order in which they come due. One whose
// time has come is in the queue.
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

// Reason is why an event has not been handled, or its handling not confirmed.
type Reason uint8

const (
	// Uncommitted: it was handled, and the log has not confirmed that yet.
	Uncommitted Reason = iota + 1
	// AtHead: it is the next one; Snapshot.Parked has the reason.
	AtHead
	// Queued: others are before it.
	Queued
	// Behind: it was sent by the space to itself, and comes behind an event that has not been read yet.
	Behind
	// BeforeItsTurn: it has come before its predecessor from the same space.
	BeforeItsTurn
	// ForItsTime: it waits for a time.
	ForItsTime
)

func (r Reason) String() string {
	return [...]string{"unknown", "uncommitted", "at the head", "queued", "behind an event to come", "before its predecessor", "for its time"}[r]
}

// Pending is an event that has not ended, or of which the log has not confirmed that it has.
type Pending struct {
	Stream, ID string
	// Lane is its sequence in the lane, 0 if it did not come through it.
	Lane   uint64
	Reason Reason
	// Ahead is how many events of the queue are before it.
	Ahead int
	// Timer is the name of a timer, and At its time or that of another event that waits for one, in milliseconds since 1970.
	Timer string
	At    int64
}

// Pending lists all events that the space holds, and why each waits: those that are undecided, the queue in order, then the
// rest. An early event that is not kept in memory has no stream and id.
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

// Tasks are the tasks of one action or input, as the documents have them that hold them.
type Tasks struct {
	// Action names the action, or the input if Input.
	Action string
	Input  bool
	// Docs are the documents, each with the value of its tasks, by key.
	Docs []TaskDoc
}

// TaskDoc is a document of tasks.
type TaskDoc struct {
	Doc string
	// Tasks has a field for each key; space.TaskOf reads what is there.
	Tasks model.Value
}
