package port

import "github.com/settlehq/settle/model"

// Performers passes work to processes that perform actions and know nothing else of a deployment (docs/performers.md). It is
// not part of Bus: a worker on a bus without it leaves external tasks to those that watch them.
type Performers interface {
	// Offer sends work to one of the performers of an action, or of one of its queues if that is not "". request makes the message,
	// given the subject that takes the answers and the one on which a performer is notified that it can stop. Both are new, and cannot be guessed.
	// The answers are delivered, from any goroutine and without waiting for it, until end is called, which with stop notifies the performer. An answer that comes later is refused. The error is model.ErrTooLarge or model.ErrStopped.
	Offer(action, queue string, request func(answer, cancel string) []byte, deliver func(model.Answer)) (end func(stop bool), err error)
}
