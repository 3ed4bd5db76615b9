package coordinator

import (
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Figures is what a coordinator answers at its endpoint. Earlier versions answer nothing.
type Figures struct {
	// Denied is the last permissions violation of the coordinator's NATS user within the last ten minutes, or
	// "".
	Denied string `json:"denied,omitzero"`
	// Rewinds are the streams that have gone back to an earlier state since the coordinator started, each
	// with the time of its last detection, the newest first, at most 20; RewindCount is the number of all.
	Rewinds     []model.Rewind `json:"rewinds,omitzero"`
	RewindCount int            `json:"rewind_count,omitzero"`
	// PassedOver are the messages that the coordinator has passed over because they cannot be read, by stream, at most 20.
	PassedOver []model.PassedOver `json:"passed_over,omitzero"`
}

// Figures returns what the coordinator's bus has noticed.
func (c *Coordinator) Figures() Figures { return Figures(port.NoticedBy(c.bus)) }
