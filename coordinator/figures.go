package coordinator

import (
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
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

// Figures returns what the coordinator has noticed, as far as its bus knows it.
func (c *Coordinator) Figures() Figures { return Figures(port.NoticedBy(c.bus)) }
