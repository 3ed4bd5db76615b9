package ledger

import "github.com/settlehq/settle/model"

// Draft is a transaction before it is recorded.
type Draft struct {
	// Event is the event that the transaction handles or ends. If it is nil, By names the author.
	Event  *model.Event
	By     string
	Writes []model.Write
	Sends  []model.Send
	// Cancels are the names of timers to cancel.
	Cancels []string
	// Direct is set on a transaction of the application that hosts the space: if it is undone, its number is
	// in Dropped.Direct.
	Direct bool
	Group  string
	Trace  model.Trace
}

// Attempt is one attempt at handling an event, or its end without one.
type Attempt struct {
	Draft
	Receipt *model.Receipt
	// Err is the error that the event ends in, nil if it is handled, cancelled or refused. MayPass is set if
	// another attempt may succeed, and Endless if there is one however many have failed.
	Err     error
	MayPass bool
	Endless bool
	// Waits is set if the attempt has no result, because documents that it needs are missing or not up to
	// date.
	Waits bool
}

// Postponement is the reason why an attempt is discarded for now.
type Postponement uint8

const (
	// Parked means that the event waits for documents that the attempt needed.
	Parked Postponement = iota
	// PutOff means that another attempt follows a transient error.
	PutOff
	// NoRoom means that the open group has no room for the result.
	NoRoom
)

// waitsIn reports whether any send of the transaction is to wait in the sending space.
func (d *Draft) waitsIn(space string) bool {
	for i := range d.Sends {
		if waitsIn(space, &d.Sends[i]) {
			return true
		}
	}
	return false
}

// waitsIn reports whether a send is to wait in the sending space.
func waitsIn(space string, s *model.Send) bool { return s.To == space && s.NotBefore != 0 }
