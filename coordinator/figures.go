package coordinator

import (
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// Figures is what a coordinator answers at its endpoint. Earlier versions answer nothing.
type Figures struct {
	// Denied is the last permissions violation of the coordinator's NATS user within the last ten
	// minutes, if there was one.
	Denied string `json:"denied,omitzero"`
	// Rewinds are the streams that have gone back to an earlier state since the coordinator was
	// started, each with the last time that it noticed it, the newest first, 20 at most; RewindCount
	// is how many did.
	Rewinds     []model.Rewind `json:"rewinds,omitzero"`
	RewindCount int            `json:"rewind_count,omitzero"`
}

const (
	// deniedFor is for how long a permissions violation is reported.
	deniedFor = 10 * time.Minute
	// maxRewinds is how many streams that have gone back are named.
	maxRewinds = 20
)

// Figures returns what the coordinator has noticed, as far as its bus knows it.
func (c *Coordinator) Figures() (f Figures) {
	if knows, can := c.bus.(interface{ LastDenial() (time.Time, string) }); can {
		if at, why := knows.LastDenial(); time.Since(at) < deniedFor {
			f.Denied = why
		}
	}
	if knows, can := c.bus.(interface{ Rewinds() []model.Rewind }); can {
		all := knows.Rewinds()
		slices.Reverse(all)
		f.Rewinds, f.RewindCount = all[:min(len(all), maxRewinds)], len(all)
	}
	return f
}
