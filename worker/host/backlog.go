package host

import (
	"github.com/settlehq/settle/model"
)

// The events that wait for a space are bounded in number and in bytes: in the inbox of its host, in
// its core, and over all spaces of the worker. Events without room stay in the stream
// and are read again later; that costs a second read and no memory.
const (
	// inboxLimit and inboxBytes bound the events between the lane reader and the core.
	inboxLimit = 4096
	inboxBytes = 4 << 20
	// coreBytes bounds the events that wait in the core, in addition to the core's own limit on their number.
	coreBytes = 4 << 20
	// pageBytes bounds one read of events that were left in the stream, as far as
	// their size can be estimated.
	pageBytes = 4 << 20
	// eventOverhead is the approximate size of an event without its payload.
	eventOverhead = 256
)

// eventBytes is the approximate memory of an event.
func eventBytes(m *model.Message) int { return len(m.Payload) + eventOverhead }

// queued tracks the bytes that wait in the core of a space. The core counts events only, and
// handles them roughly in the order of arrival, so the sizes of the last events
// are kept.
type queued struct {
	sizes []int
	bytes int
	// largest is the largest event that the lane reader has seen for the space, page the number of
	// events that the next read of left events requests.
	largest, page int
}

// room returns how many of the events the core may get, and their bytes: always one if
// nothing waits there.
func (l *queued) room(core laneCore, events []model.Message) (n, bytes int) {
	most := min(core.LaneRoom(), len(events))
	for n < most {
		size := eventBytes(&events[n])
		if l.bytes+bytes+size > coreBytes && (n > 0 || core.Waiting() > 0) {
			break
		}
		n, bytes = n+1, bytes+size
	}
	return n, bytes
}

// hasRoom reports whether events that were left in the stream may be read.
func (l *queued) hasRoom(core laneCore) bool { return l.bytes < coreBytes || core.Waiting() == 0 }

func (l *queued) took(size int) {
	l.sizes, l.bytes = append(l.sizes, size), l.bytes+size
}

// trim drops all but the last n sizes, and returns the sum of the dropped ones.
func (l *queued) trim(n int) (freed int) {
	gone := max(len(l.sizes)-n, 0)
	for _, size := range l.sizes[:gone] {
		freed += size
	}
	if l.sizes = l.sizes[gone:]; len(l.sizes) == 0 {
		l.sizes = nil // frees the memory as well
	}
	l.bytes -= freed
	return freed
}

// see records the size of an event that the lane reader has seen.
func (l *queued) see(size int) { l.largest = max(l.largest, size) }

// next returns how many events to read. The first page is small, since the size of the
// events may be unknown.
func (l *queued) next() int {
	const first, growth = 8, 4
	l.page = min(max(l.page*growth, first), readPage)
	if l.largest > 0 {
		l.page = min(l.page, max(pageBytes/l.largest, 1))
	}
	return l.page
}

// laneCore is the lane of a space as its core has it.
type laneCore interface {
	LaneRoom() int
	Waiting() int
	ReadLaneAfter() uint64
}
