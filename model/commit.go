package model

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// CommitVersion is the version of the encoding below, RangedCommitVersion that of a commit whose cursor is
// stored in the longer form. Readers refuse unknown versions.
const (
	CommitVersion       = 1
	RangedCommitVersion = 2
)

// Commit is the message that a runtime appends to a space's log. It is atomic because it is one message.
//
// It is JSON, so that `nats stream view` shows it; docs/adr/0002 has the measurements behind that decision.
type Commit struct {
	Version int    `json:"v"`
	Space   string `json:"sp"`
	// Runtime is the id of the process that made the commit; Epoch is the log sequence of the takeover or
	// join under which it did (0 in a takeover or join, whose own sequence becomes the epoch); Attempt counts
	// the runtime's appends in that epoch.
	Runtime string `json:"rt"`
	Epoch   uint64 `json:"ep,omitzero"`
	Attempt uint64 `json:"at,omitzero"`
	// Takeover is set if Runtime owns the space from this commit on.
	Takeover bool `json:"own,omitzero"`
	// Join is set if Runtime takes part from this commit on, beside the owner: it does not end the
	// owner's epoch, and no takeover ends its own.
	Join bool `json:"join,omitzero"`
	// Term is the term of the space in which the commit was made (docs/adr/0035); a takeover or join has the
	// one that begins with it. It is omitted from commits that send nothing to other spaces.
	Term uint64 `json:"trm,omitzero"`
	// Program is the version of the program that Runtime runs from this commit of its epoch on: it is in the
	// first commit of each epoch. "" means that of the previous commit.
	Program string `json:"pg,omitzero"`
	// Trying records that an attempt at an event follows, or that it returned.
	Trying *Trying `json:"try,omitzero"`
	// Txs are the transactions in the order in which they took effect.
	Txs []Tx `json:"tx,omitzero"`
	// Cursor is the lane position of the space once this commit is in the log.
	Cursor Cursor `json:"cur"`
}

// Trying counts the attempts at an event that may have ended with their process. It is logged before each
// attempt at an event that may crash the process.
type Trying struct {
	// By is Tx.By of the handling, Event its event.
	By    string `json:"by"`
	Event string `json:"ev"`
	// Tries is the number of attempts, including the one that follows.
	Tries int `json:"n,omitzero"`
	// Back records that the attempt returned without a result, so that it does not count in Tries.
	Back bool `json:"back,omitzero"`
}

// ID identifies the commit among those of its runtime's incarnation. Two incarnations with the same name may
// use the same id: see Append.ID.
func (c *Commit) ID() string {
	return fmt.Sprintf("%s/%d/%d", c.Runtime, c.Epoch, c.Attempt)
}

// IsInert reports whether the commit is nothing to coordinators: it sends nothing to other spaces, and ends no event in a way that its
// origin gets a notice of, or that becomes a dead letter.
func (c *Commit) IsInert() bool {
	for i := range c.Txs {
		tx := &c.Txs[i]
		if rc := tx.Receipt; rc != nil && (rc.Outcome.Notifies() || rc.Outcome.Lost()) {
			return false
		}
		for j := range tx.Sends {
			if tx.Sends[j].To != c.Space {
				return false
			}
		}
	}
	return true
}

// Tx is one transaction: the run of a handler (Receipt is set), of a node, or a write by the
// application that hosts the space.
type Tx struct {
	N uint64 `json:"n"` // see TxID
	// By is "handle STREAM", "compute NODE", "effect NODE" or a name chosen by the application.
	By string `json:"by"`
	// Causes are the addresses whose changes made a computation run.
	Causes []string `json:"why,omitzero"`
	// Reads is the read set of a computation, if this run changed it.
	Reads []string `json:"rd,omitzero"`
	// Group is the change group: nodes of that group ignore the writes.
	Group string `json:"grp,omitzero"`
	// Via is the trail of a run that follows from documents of other spaces, nil if it does not.
	Via     *Trail   `json:"via,omitzero"`
	Writes  []Write  `json:"w,omitzero"`
	Receipt *Receipt `json:"rc,omitzero"`
	// Later is a lane event that arrived before its time: its lane entry is done, and it waits in
	// the space (see Waiting).
	Later *Waiting `json:"ltr,omitzero"`
	// Cancels names waiting events that will not be handled.
	Cancels []Cancel `json:"cnl,omitzero"`
	Sends   []Send   `json:"snd,omitzero"`
	Trace
}

// Receipt records how an event ended: its Outcome, the Result if it was handled, the Error if not, or both with a
// Code if it was rejected. It is part of the commit that contains the handling's writes, so it exists if and only if the handling took
// effect. settle.Request.Result decodes the result into a Go value.
type Receipt struct {
	// Event is the id of the event. Its space and stream are known from where the receipt was read.
	Event string `json:"ev"`
	// Lane is its sequence in the lane, 0 if the space sent it to itself.
	Lane uint64 `json:"ln,omitzero"`
	Pos  uint64 `json:"pos,omitzero"` // Event.Position
	// Term and ReplayKey are those of an event that another space has sent.
	Term      uint64  `json:"trm,omitzero"`
	ReplayKey uint64  `json:"rk,omitzero"`
	Outcome   Outcome `json:"o"`
	// Result is what the handler returned, absent if it has no result or the event was not handled. For a rejected
	// event it is the data of the rejection.
	Result Value `json:"r,omitzero"`
	// Error is why the event was not handled.
	Error string `json:"err,omitzero"`
	// Code is that of the rejection of a rejected event.
	Code string `json:"cd,omitzero"`
	// Attempts is how often the handler was called, if more than once; calls that were undone by
	// another runtime's commit or had to wait for a document do not count.
	Attempts int `json:"n,omitzero"`
	// Slot is that of an event that has waited for its time, see Waiting.
	Slot uint64 `json:"sl,omitzero"`
	// Depth is Event.Depth if the sender gets a notice: the notice about it is the next event of the chain.
	Depth uint64 `json:"dp,omitzero"`
	// Returned is the payload of such an event, for the notice: absent if it is larger than MaxReturned, or has no room.
	Returned Value `json:"rtn,omitzero"`
}

// Outcome is how an event ended: one of Handled, Failed, Refused, Cancelled, Expired and Rejected. "" stands for an
// event that has not ended.
type Outcome string

const (
	// Handled: the handler returned without an error, and its writes are in the log.
	Handled Outcome = "handled"
	// Failed: the last attempt of the handler ended in an error or a panic. Nothing that it wrote is
	// kept; the receipt carries the error.
	Failed Outcome = "failed"
	// Refused: no handler ran: the program does not know the stream, or the payload is not JSON.
	Refused Outcome = "refused"
	// Cancelled: settle.Client.Cancel or `settle cancel` cancelled the event before it was handled.
	Cancelled Outcome = "cancelled"
	// Expired: the deadline of the event passed before it was handled. See settle.Outgoing.Expires and
	// space.ExpiresAt.
	Expired Outcome = "expired"
	// Rejected: the handler declined the event by returning settle.Reject. Nothing that it wrote is kept, and nothing
	// has to be repaired; the receipt carries code, message and data.
	Rejected Outcome = "rejected"
)

// Outcomes are all of them.
var Outcomes = [...]Outcome{Handled, Failed, Refused, Cancelled, Expired, Rejected}

// Notifies reports whether the space that sent an event gets a notice of such an end: the event ended without a call of its
// handler, or the handler has declined it.
func (o Outcome) Notifies() bool {
	return o == Refused || o == Cancelled || o == Expired || o == Rejected
}

// Lost reports whether an event ended in a way that is probably unintended: it becomes a dead letter.
func (o Outcome) Lost() bool { return o == Failed || o == Refused }

// Send is an event that a transaction emitted. It is stored in the origin's commit; a send to
// another space is released into that space's lane by a coordinator once the commit is in the log,
// a send to the same space is queued locally.
type Send struct {
	ID      string `json:"id"`
	To      string `json:"to"`
	Stream  string `json:"st"`
	Payload Value  `json:"p,omitzero"`
	// Position is Event.Position for a cross-space send, 0 within the space.
	Position uint64 `json:"pos,omitzero"`
	// Term is Event.Term; it is stored in the commit. PrevTerm is Event.PrevTerm.
	Term     uint64 `json:"-"`
	PrevTerm uint64 `json:"ptm,omitzero"`
	// ReplayKey is Event.ReplayKey.
	ReplayKey uint64 `json:"rk,omitzero"`
	// Behind is Event.Behind for a send within the space.
	Behind uint64 `json:"bh,omitzero"`
	// Depth is Event.Depth.
	Depth uint64 `json:"dp,omitzero"`
	// NotBefore is Event.NotBefore.
	NotBefore int64 `json:"nb,omitzero"`
	// Expires is Event.Expires.
	Expires int64 `json:"ex,omitzero"`
	// Slot is the slot in which a send within the space waits for its time (see Waiting), 0 for one that is
	// queued at once. Timer is the name of the timer, if it is one.
	Slot  uint64 `json:"sl,omitzero"`
	Timer string `json:"tm,omitzero"`
	Trace
}

// Event returns the send as its receiver sees it.
func (s *Send) Event() Event {
	return Event{
		Space: s.To, Stream: s.Stream, ID: s.ID, Payload: s.Payload,
		Position: s.Position, Term: s.Term, PrevTerm: s.PrevTerm, ReplayKey: s.ReplayKey, Behind: s.Behind, Depth: s.Depth, NotBefore: s.NotBefore, Expires: s.Expires, Trace: s.Trace,
	}
}

// DecodeCommit is the inverse of AppendCommit. It refuses a commit of a newer format version.
func DecodeCommit(data []byte) (*Commit, error) {
	c := quickCommit(data)
	if c == nil {
		c = &Commit{}
		if err := json.Unmarshal(data, c); err != nil {
			return nil, fmt.Errorf("decode commit: %w", err)
		}
	}
	switch c.Version {
	case CommitVersion:
	case RangedCommitVersion:
		c.Version = CommitVersion // implied by the form of the cursor
	default:
		what := "decode commit"
		if c.Space != "" {
			what += " of space " + c.Space
		}
		return nil, fmt.Errorf("%s: format version %d, this program reads %d and %d; upgrade it", what, c.Version, CommitVersion, RangedCommitVersion)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("decode commit: %w", err)
	}
	c.stampSends()
	return c, nil
}

// stampSends sets the term of the commit on sends to other spaces.
func (c *Commit) stampSends() {
	if c.Term == 0 {
		return
	}
	for i := range c.Txs {
		for j := range c.Txs[i].Sends {
			if s := &c.Txs[i].Sends[j]; s.To != c.Space {
				s.Term = c.Term
			}
		}
	}
}
