package ledger

import "github.com/settlehq/settle/model"

// Draft is a transaction before it is recorded.
type Draft struct {
	// Event is what it handles or ends, nil if it answers none, and By says whose it is then.
	Event  *model.Event
	By     string
	Writes []model.Write
	Sends  []model.Send
	// Cancels are the timers that are cancelled.
	Cancels []string
	// Direct has the number of the transaction listed in Dropped.Direct should it be undone: the application
	// that made it waits for it.
	Direct bool
	Group  string
	Trace  model.Trace
	// Context is the host's own.
	Context any
}

// Attempt is one try at handling an event, or its end without one.
type Attempt struct {
	Draft
	Receipt *model.Receipt
	// Err is the error that the event ends in, nil if it is handled, or none is to blame. MayPass says that
	// another attempt may not end in it.
	Err     error
	MayPass bool
	// Waits says that the attempt has met something that is not there yet: it has had no result.
	Waits bool
}

// Postponement is why nothing is kept of an attempt for now.
type Postponement uint8

const (
	// Parked: it waits for what it lacked.
	Parked Postponement = iota
	// PutOff: it is made again after an error that may pass.
	PutOff
	// Crowded: the open group has no room for it.
	Crowded
)

// waitsIn reports whether anything that the transaction sends is to wait in the space that sends it.
func (d *Draft) waitsIn(space string) bool {
	for i := range d.Sends {
		if waitsIn(space, &d.Sends[i]) {
			return true
		}
	}
	return false
}

// waitsIn reports whether a send is to wait in the space that sends it.
func waitsIn(space string, s *model.Send) bool { return s.To == space && s.NotBefore != 0 }
