package port

import (
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// Noticed is what the bus of a process knows about incidents: figures that workers and coordinators report.
type Noticed struct {
	// Denied is the last permissions violation of the process's NATS user within the last ten
	// minutes, "" if there was none.
	Denied string
	// Rewinds are the streams that have gone back to an earlier state since the process started, each with
	// the time of the latest detection, newest first, at most 20; RewindCount is the total number.
	Rewinds     []model.Rewind
	RewindCount int
	// PassedOver are the messages that the process has passed over because they cannot be read, by stream, at most 20.
	PassedOver []model.PassedOver
}

const (
	// deniedFor is how long a permissions violation is reported.
	deniedFor = 10 * time.Minute
	// maxRewinds bounds the streams that are listed.
	maxRewinds = 20
)

// NoticedBy returns what a bus has noticed; the zero Noticed for a bus that keeps no such record, such as the
// one in memory.
func NoticedBy(bus any) (n Noticed) {
	if knows, can := bus.(interface{ LastDenial() (time.Time, string) }); can {
		if at, why := knows.LastDenial(); time.Since(at) < deniedFor {
			n.Denied = why
		}
	}
	if knows, can := bus.(interface{ Rewinds() []model.Rewind }); can {
		all := knows.Rewinds()
		slices.Reverse(all)
		n.Rewinds, n.RewindCount = all[:min(len(all), maxRewinds)], len(all)
	}
	if knows, can := bus.(interface{ PassedOver() []model.PassedOver }); can {
		all := knows.PassedOver()
		n.PassedOver = all[:min(len(all), maxRewinds)]
	}
	return n
}

// PassRecordOver notes at a bus that keeps such notes that a record cannot be read.
func PassRecordOver(bus any, r *model.Record, reason string) {
	if notes, can := bus.(interface {
		PassRecordOver(r *model.Record, reason string)
	}); can {
		notes.PassRecordOver(r, reason)
	}
}
