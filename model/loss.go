package model

import "fmt"

// LossError says that a stream of a partition lacks messages that others know of, so that what
// contradicts it is refused until an operator accepts the loss.
type LossError struct {
	Kind      LossKind
	Partition int
	// Space is the one that is refused, "" if the whole partition is.
	Space string
	// Known is the sequence up to which the stream is known to have reached, Found where it ends.
	// Of a state, they are the commit that it has to reflect, and the one that it reflects; 0 if
	// that is not known.
	Known, Found uint64
}

// LossKind is what lacks messages.
type LossKind string

// Kinds of LossError.
const (
	LossOfLane  LossKind = "lane"  // it ends before what was handled of it
	LossOfLog   LossKind = "log"   // it ends before what is saved of it
	LossOfState LossKind = "state" // it was lost, and the log no longer has what would replace it
)

func (e *LossError) Error() string {
	switch e.Kind {
	case LossOfLane:
		return fmt.Sprintf("the lane ends at %d, but its events were handled up to %d: the stream has lost messages (a power cut without fsync, or an old backup); what is sent to it now would be taken for old. To go on without them: settle accept-loss --partition %d", e.Found, e.Known, e.Partition)
	case LossOfLog:
		return fmt.Sprintf("the log ends at %d, but is known up to %d: the stream has lost messages (a power cut without fsync, or an old backup). To go on without them: settle accept-loss %s", e.Found, e.Known, e.Space)
	}
	return fmt.Sprintf("space %s: no checkpoint reaches to where the log begins, so a part of what was committed is lost (a STATE bucket that was restored from an older backup than its log, or a power cut without fsync): %v", e.Space, ErrPurged)
}

// Unwrap is ErrPurged for a state that was lost, nil otherwise.
func (e *LossError) Unwrap() error {
	if e.Kind == LossOfState {
		return ErrPurged
	}
	return nil
}
