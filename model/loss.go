package model

import (
	"errors"
	"fmt"
)

// LossError reports that a stream of a partition lacks messages that other streams refer to, so that
// conflicting operations are refused until an operator accepts the loss.
type LossError struct {
	Kind      LossKind
	Partition int
	// Space is the refused space, "" if the whole partition is refused.
	Space string
	// Known is the sequence that the stream is known to have reached, Found the one at which it ends. For a
	// state, they are the commit that it should reflect and the one that it does reflect; 0 if unknown.
	Known, Found uint64
	// Reason is set for LossOfCommit: the reason why the commit Known cannot be read.
	Reason string
}

// LossKind is the kind of stream that lacks messages.
type LossKind string

// The kinds of LossError.
const (
	LossOfLane  LossKind = "lane"  // the lane ends before events that were handled
	LossOfLog   LossKind = "log"   // the log ends before commits that are covered by saved state
	LossOfState LossKind = "state" // the state was lost, and the log no longer has the commits to replace it
	// LossOfCommit: a commit of the log, or an item of the saved state, exists but cannot be read
	// (UnreadableError).
	LossOfCommit LossKind = "commit"
)

// LossOf returns the loss in an error, nil if there is none. A stored message that cannot be read sets its
// space aside like a loss.
func LossOf(err error) *LossError {
	if e, is := errors.AsType[*UnreadableError](err); is {
		return &LossError{Kind: LossOfCommit, Space: e.Space, Known: e.Seq, Reason: e.Error()}
	}
	e, _ := errors.AsType[*LossError](err)
	return e
}

// Refusal returns the text with which processes log a refusal of that kind.
func (k LossKind) Refusal() string {
	if k == LossOfCommit {
		return "set aside: a stored message cannot be read"
	}
	return "refused: the store has lost what is known of it"
}

func (e *LossError) Error() string {
	switch e.Kind {
	case LossOfLane:
		return fmt.Sprintf("the lane ends at %d, but its events were handled up to %d: the stream has lost messages (a power cut without fsync, or an old backup); new events would be skipped as duplicates. To continue without the lost messages: settle accept-loss --partition %d", e.Found, e.Known, e.Partition)
	case LossOfLog:
		return fmt.Sprintf("the log ends at %d, but is known up to %d: the stream has lost messages (a power cut without fsync, or an old backup). To continue without the lost messages: settle accept-loss %s", e.Found, e.Known, e.Space)
	case LossOfCommit:
		return e.Reason + ". The space is set aside, and nothing is lost: settle quarantine show " + e.Space
	}
	return fmt.Sprintf("space %s: no checkpoint reaches to where the log begins, so a part of what was committed is lost (a STATE bucket that was restored from an older backup than its log, or a power cut without fsync): %v", e.Space, ErrPurged)
}

// Unwrap returns ErrPurged for a state that was lost, nil otherwise.
func (e *LossError) Unwrap() error {
	if e.Kind == LossOfState {
		return ErrPurged
	}
	return nil
}
