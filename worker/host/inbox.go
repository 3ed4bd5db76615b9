package host

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/model"
)

// inbox holds the inputs that wait for a host's loop, and tracks how far the space is done with its lane.
// Only the loop takes from it; other goroutines add to it.
type inbox struct {
	wake chan struct{} // an input waits
	// room has a value when there is room again; it is nil until the inbox was first full.
	room chan struct{}

	mu sync.Mutex // guards the fields below
	pendingInputs
	// spare is the memory of the last batch of events, reused for the next.
	spare []model.Message
	// queued limits the bytes that wait for the space.
	queued queued
	lane   laneProgress
	// total counts the bytes of the events that wait for the spaces of the worker, and most limits it.
	total *atomic.Int64
	most  int64
}

// pendingInputs wait for the loop.
type pendingInputs struct {
	events []model.Message
	bytes  int // of the events
	calls  []func()
	// reads are kept separately: those whose callers have given up are dropped, however long the loop is
	// busy.
	reads []*documentRead
	// mirrored are the present values of documents of other spaces. A busy loop skips intermediate values, so
	// that nothing piles up.
	mirrored map[Ref]mirrored
	// left is the highest lane sequence that was left in the stream because the
	// inbox was full.
	left uint64
}

// laneProgress is how far a space is done with its lane.
type laneProgress struct {
	// low is the lane sequence up to which the space has nothing left to do or to save, or allDone. It is
	// written with the inbox locked.
	low atomic.Uint64
	// last is the highest lane sequence that was delivered to the space.
	last uint64
	// doneBefore is the lane sequence up to which the space was done when the host was made, or when it had
	// nothing left to do. Its own cursor may lag far behind that, if it seldom receives events.
	doneBefore uint64
	// inCore is the number of events that waited in the core, and taken the lane sequence up to which it
	// had them, at the end of the loop's last pass. It was offered the events up to offered: the others
	// were left in the stream.
	inCore         int
	taken, offered uint64
}

// laneLoad is the backlog of a space: events were read but not handled; unread reports that events wait in
// the lane for which the space has no room, and span bounds the number of events that the space is not known
// to be done with.
type laneLoad struct {
	events int
	unread bool
	span   uint64
}

// laneBacklog is the remaining work of a space: it is done with its lane up to done, and events were
// delivered up to last.
type laneBacklog struct{ done, last uint64 }

// mirrored is the value of a document of another space, valid until ctx ends. by is the context of the commit that has made it.
type mirrored struct {
	ctx   interface{ Err() error }
	value model.Value
	via   *model.Trail
	by    model.Trace
}

// allDone as the position of a space means that the space does not hold the lane position back.
const allDone = math.MaxUint64

// newInbox returns the inbox of a space that has b left to do. total and most are the bytes that wait in all of
// the worker, and their limit.
func newInbox(b laneBacklog, total *atomic.Int64, most int64) *inbox {
	in := &inbox{wake: make(chan struct{}, 1), total: total, most: most}
	in.lane.last, in.lane.doneBefore, in.lane.offered = b.last, b.done, b.last
	in.lane.low.Store(b.done)
	return in
}

// call makes the loop run f.
func (in *inbox) call(f func()) {
	in.mu.Lock()
	in.calls = append(in.calls, f)
	in.mu.Unlock()
	in.wakeLoop()
}

// wakeLoop wakes the loop.
func (in *inbox) wakeLoop() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// tryOffer puts an event into the inbox, and returns false if the inbox is full. An empty inbox always
// takes one event, or a space could stand still because of the size of other spaces' events.
func (in *inbox) tryOffer(m model.Message) bool {
	size := eventBytes(&m)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.queued.see(size)
	if in.left > 0 {
		in.left, in.lane.last = m.Seq, m.Seq // in order: after an event that was left
		return true
	}
	n, all := len(in.events), in.total.Load()
	if n >= inboxLimit || n > 0 && (in.bytes+size > inboxBytes || all+int64(size) > in.most) {
		if in.room == nil {
			in.room = make(chan struct{}, 1)
		}
		return false
	}
	in.events = append(in.events, m)
	in.bytes += size
	in.total.Add(int64(size))
	in.lane.addPending(m.Seq)
	in.wakeLoop()
	return true
}

// leave records that an event was left in the stream.
func (in *inbox) leave(seq uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.left = seq
	in.lane.addPending(seq)
	in.wakeLoop()
}

// addBacklog makes the host read its unhandled events, which will not be delivered.
func (in *inbox) addBacklog(b laneBacklog) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if b.last > 0 {
		in.left, in.lane.last = max(in.left, b.last), max(in.lane.last, b.last)
	}
	in.lane.low.Store(min(in.lane.low.Load(), b.done))
	in.wakeLoop()
}

// waitForRoom waits until the loop has taken events, but not for longer than d, nor beyond the end of over. It
// returns false if the loop has taken none.
func (in *inbox) waitForRoom(over <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-in.room:
		return true
	case <-t.C:
	case <-over:
	}
	return false
}

// read passes a read to the loop, which may be busy without end: reads whose callers have given up make room.
func (in *inbox) read(r *documentRead) {
	in.mu.Lock()
	in.reads = append(slices.DeleteFunc(in.reads, (*documentRead).over), r)
	in.mu.Unlock()
	in.wakeLoop()
}

// mirror records the value of a document of another space, unless the mirror has
// ended: a new one may have begun, and have delivered its value.
func (in *inbox) mirror(ref Ref, m mirrored) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if m.ctx.Err() != nil {
		return
	}
	if in.mirrored == nil {
		in.mirrored = map[Ref]mirrored{}
	}
	in.mirrored[ref] = m
	in.wakeLoop()
}

// take removes inputs: events only as far as the core has room. The events must be passed to recycle if whole
// reports that they were all.
func (in *inbox) take(core laneCore) (taken pendingInputs, whole bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	room, bytes := in.queued.room(core, in.events)
	taken = in.pendingInputs
	in.pendingInputs = pendingInputs{events: in.spare, bytes: taken.bytes - bytes}
	in.spare = nil
	if whole = len(taken.events) <= room; !whole {
		in.events, in.left = taken.events[room:], taken.left
		taken.events, taken.left = taken.events[:room], 0
	}
	for i := range taken.events {
		in.queued.took(eventBytes(&taken.events[i]))
	}
	if len(taken.events) > 0 {
		select {
		case in.room <- struct{}{}:
		default:
		}
	}
	return taken, whole
}

// offered records that the core was offered the taken events.
func (in *inbox) offered(taken *pendingInputs, core laneCore) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if n := len(taken.events); n > 0 {
		in.lane.offered = taken.events[n-1].Seq
	}
	in.lane.offered = max(in.lane.offered, taken.left)
	in.lane.count(core)
}

// recycle keeps the memory of a processed batch.
func (in *inbox) recycle(batch []model.Message) {
	clear(batch)
	in.mu.Lock()
	in.spare = batch[:0]
	in.mu.Unlock()
}

// releaseMemory frees the memory that is kept for the next batch.
func (in *inbox) releaseMemory() {
	in.mu.Lock()
	in.spare = nil
	in.mu.Unlock()
}

// canTake reports whether events wait for which the core has room.
func (in *inbox) canTake(core laneCore) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	n, _ := in.queued.room(core, in.events)
	return n > 0
}

// readEvent records an event that the loop has read from the stream itself, and has offered to the core.
func (in *inbox) readEvent(m *model.Message) {
	size := eventBytes(m)
	in.mu.Lock()
	in.queued.see(size)
	in.queued.took(size)
	in.mu.Unlock()
	in.total.Add(int64(size))
}

// doneBefore returns the lane sequence up to which the space was done when the host was made.
func (in *inbox) doneBefore() uint64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.lane.doneBefore
}

// sees records the size of an event that was read, for the next page.
func (in *inbox) sees(m *model.Message) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.queued.see(eventBytes(m))
}

// page returns how many events the next read of left events requests.
func (in *inbox) page() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.queued.next()
}

// done records how far the space is done with its lane, after a pass: with everything that was delivered, if
// settled, or up to a position. Events that are handled but not saved count as not done: if this worker dies, the
// next one must find the event, load the space for it and save.
func (in *inbox) done(core laneCore, settled bool, upTo uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.lane.count(core)
	in.total.Add(int64(-in.queued.trim(in.lane.inCore)))
	switch {
	case len(in.events) > 0 || in.left > 0:
	case settled:
		in.lane.low.Store(allDone)
	default:
		in.lane.low.Store(max(upTo, in.lane.doneBefore))
	}
}

// laneDone returns the position up to which the space is done with its lane, or allDone.
func (in *inbox) laneDone() uint64 { return in.lane.low.Load() }

// backlog returns the host's remaining work; done is allDone if there is none.
func (in *inbox) backlog() laneBacklog {
	in.mu.Lock()
	defer in.mu.Unlock()
	return laneBacklog{done: in.lane.low.Load(), last: in.lane.last}
}

// isEmpty reports whether no input waits for the loop, and the space has no work left.
func (in *inbox) isEmpty() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.events) == 0 && len(in.calls) == 0 && len(in.reads) == 0 && len(in.mirrored) == 0 && in.left == 0 && in.lane.low.Load() == allDone
}

// dropRefused drops the events that wait if all of them are refused, and reports whether none waits then, with those that it has dropped. behind is the lane sequence up to which
// the events that were delivered before are known to be refused.
func (in *inbox) dropRefused(refused func(*model.Message) bool, behind uint64) (dropped []model.Message, none bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.left > behind {
		return nil, false
	}
	for i := range in.events {
		if !refused(&in.events[i]) {
			return nil, false
		}
	}
	if len(in.events) > 0 || behind > 0 {
		in.total.Add(int64(-in.bytes))
		dropped, in.events, in.bytes, in.left = in.events, nil, 0, 0
		in.lane.low.Store(allDone)
	}
	return dropped, true
}

// waiting returns the number of events that wait for the loop, or in the core.
func (in *inbox) waiting() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.events) + in.lane.inCore
}

// load returns what waits for the space, false if the space is done with its lane. If more waits
// for a space than it has room for, it reads and handles one page at a time, so that at times no event
// that was read is left; and handled events count as not done until they are saved.
func (in *inbox) load() (l laneLoad, some bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	l.events = len(in.events) + in.lane.inCore
	low := in.lane.low.Load()
	if low == allDone {
		return l, l.events > 0
	}
	l.unread, l.span = in.left > 0 || in.lane.taken < in.lane.offered, in.lane.last-min(in.lane.last, low)
	return l, true
}

// unload subtracts the events that the host has not handled from the worker's total.
func (in *inbox) unload() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.total.Add(int64(-in.bytes - in.queued.trim(0)))
	in.bytes = 0
}

// addPending records that the event at seq is not done. If nothing was left to do before, everything before it
// is done. The inbox is locked.
func (l *laneProgress) addPending(seq uint64) {
	l.last = seq
	if l.low.Load() == allDone {
		l.doneBefore = seq - 1
	}
	l.low.Store(min(l.low.Load(), seq-1))
}

// count records how many events the core has. Only the loop calls it, with the inbox locked.
func (l *laneProgress) count(core laneCore) { l.inCore, l.taken = core.Waiting(), core.ReadLaneAfter() }
