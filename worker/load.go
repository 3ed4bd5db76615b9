package worker

import (
	"cmp"
	"time"
)

// Load is a space with many waiting events.
type Load struct {
	Space     string `json:"space"`
	Partition int    `json:"partition"`
	// Events were read and are not handled; more may wait in the lane, even if Events
	// is 0.
	Events int `json:"events"`

	// unread reports that events wait in the lane for which the space has no room. span bounds the number of
	// events that the space is not known to be done with.
	unread bool
	span   uint64
}

// Late is a space whose timers, jobs or delayed events are due and not handled.
type Late struct {
	Space     string `json:"space"`
	Partition int    `json:"partition"`
	// Waiting events of the space wait for their time, or are late; Since is when the first of them
	// was due, by the worker's clock.
	Waiting int       `json:"waiting"`
	Since   time.Time `json:"since"`
}

// Missed are times of a job that were passed over: they are replaced by one event, which was due At,
// or skipped, according to the job's CatchUp.
type Missed struct {
	Space string    `json:"space"`
	Cron  string    `json:"cron"`
	Times int       `json:"times"`
	At    time.Time `json:"at"`
}

// Watches are the live queries that a worker serves.
type Watches struct {
	// Open is the number of open ones, of at most Limit; Refused found no room.
	Open    int    `json:"open"`
	Limit   int    `json:"limit"`
	Refused uint64 `json:"refused,omitzero"`
	// Space and Document name the document with most watches, and Most is their number.
	Space    string `json:"space,omitzero"`
	Document string `json:"document,omitzero"`
	Most     int    `json:"most,omitzero"`
}

// compareLoads orders spaces by the number of waiting events, largest first.
func compareLoads(a, b Load) int {
	switch {
	case a.unread && !b.unread:
		return -1
	case b.unread && !a.unread:
		return 1
	case a.unread && a.span != b.span:
		return cmp.Compare(b.span, a.span)
	}
	return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(b.span, a.span), cmp.Compare(a.Space, b.Space))
}
