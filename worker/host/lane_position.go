package host

import (
	"time"

	"github.com/settlehq/settle/internal/misroute"
	"github.com/settlehq/settle/internal/setaside"
	"github.com/settlehq/settle/internal/truncation"
	"github.com/settlehq/settle/model"
)

// lanePosition is how far the partition has come in its lane. It is guarded by the lock of the partition, except
// credit, strays and compared.
type lanePosition struct {
	// credit belongs to the lane reader.
	credit credit
	// misrouted forwards events in the lane that belong to other partitions.
	misrouted *misroute.Forwarder
	// read is the lane sequence up to which events were passed to hosts, saved the
	// position that was saved last.
	read  uint64
	saved uint64
	aside aheadPosition
	// doubt is the range of the lane that is in doubt. compared is closed when the range is known,
	// or when laneErr holds the reason why it is not: no space is served before.
	doubt      *truncation.Range
	laneErr    error
	compared   chan struct{}
	isCompared func()
}

// A partition saves two positions of its lane (docs/adr/0033). Up to the first, all spaces are
// done; the lane is purged up to it, and workers of earlier versions know only that one. A space that
// stands still holds it back. The second, the Ahead, does not wait for
// such spaces: it lists them as set aside, each with its position and with the last of its events that
// was read. The next owner reads the lane from the Ahead on. A space that is set aside reads its
// unhandled events by itself, like any space that had no host.
//
// Both positions are facts about the log: they stay true regardless of which worker saves them, and when.

// aheadPosition is the state of a partition's second position. It is guarded by the partition's lock.
type aheadPosition struct {
	// upTo is the position of the Ahead that was loaded or saved last, spaces the number of spaces
	// that it sets aside.
	upTo   uint64
	spaces int
	known  setaside.Known
	marks  setaside.Marks
}

// reach is the position up to which the partition is done with its lane: with all spaces, and without
// the spaces that it sets aside.
type reach struct {
	done  uint64
	ahead model.Ahead
}

// lanePurge holds the time of the next check.
type lanePurge struct{ next time.Time }

// positionLane names the saved position up to which a partition's lane has been
// handled completely: where the next owner starts to read.
const positionLane = truncation.PositionLane
