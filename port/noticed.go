package port

import (
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// Noticed is what the bus of a process knows of incidents: figures that workers and coordinators report.
type Noticed struct {
	// Denied is the last permissions violation of the process's NATS user within the last ten
	// minutes, "" if there was none.
	Denied string
	// Rewinds are the streams that have gone back to an earlier state since the process was started, each with
	// the last time of detection, the newest first, 20 at most; RewindCount is the number of all.
	Rewinds     []model.Rewind
	RewindCount int
}

const (
	// deniedFor is how long a permissions violation is reported.
	deniedFor = 10 * time.Minute
	// maxRewinds is how many streams that have gone back are named.
	maxRewinds = 20
)

// NoticedBy returns what a bus has noticed; nothing of a bus that keeps no such record, as the one in memory.
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
	return n
}
