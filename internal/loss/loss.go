// Package loss finds streams that workers refuse because they lack known data, and lets an operator
// accept the loss (`settle accept-loss`), so that workers continue with what the store still has.
//
//	a lane   Receipts, and the time at which the lane position was saved (package truncation), decide
//	         which of its events are handled. The lane is filled up to the known sequence, so that
//	         no sequence is assigned twice.
//	a log    The state of the space stays as it was saved. Empty commits are appended up to the
//	         sequence that the state reflects, and a takeover after them. Events that the lost commits
//	         have sent to other spaces, and that no stream has, are replaced by tombstones: the target
//	         would wait for such an event forever, and refuses it instead, with a dead letter.
//
// A state that is lost after the log was purged cannot be accepted: the positions between spaces
// that it contained are stored nowhere else. It has to be restored.
package loss

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/truncation"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// Bus is the bus that this package uses.
type Bus = port.Bus

// Loss is one stream, or one space, that is refused.
type Loss struct {
	model.LossError
	// Ahead are the documents that were saved by lost commits after the checkpoint, and so are
	// newer than the others.
	Ahead []string
	// Gone are the events to other spaces that are lost with a log, by target.
	Gone []Gap
	// Left is the number of messages in the lane.
	Left uint64
}

// Gap names the events to one target that neither the target has handled nor the log contains.
type Gap struct {
	To        string
	Positions []uint64
}

// Events returns the number of lost events to other spaces.
func (l *Loss) Events() (n int) {
	for i := range l.Gone {
		n += len(l.Gone[i].Positions)
	}
	return n
}

// ErrState is returned for a lost state, which cannot be accepted.
var ErrState = errors.New("this cannot be accepted: the positions between spaces that a state contains are stored nowhere else. Restore a backup of all streams, or move the remaining data to a new deployment: settle export, settle import")

// mostLost bounds how far a stream may be behind what is known of it. Positions and sequences come from stored items, and
// repairs take a step for each: one that was forged would keep them busy without end.
const mostLost = 1 << 24

// checkSpan returns an error for a stream that would have lost more than can be.
func checkSpan(what string, found, known uint64) error {
	if known > found && known-found > mostLost {
		return fmt.Errorf("%s: %d are known, and %d are there: a store does not lose %d messages, so a stored position is wrong. Restore a backup of all streams, or move the remaining data to a new deployment: settle export, settle import",
			what, known, found, known-found)
	}
	return nil
}

// retryDelay is the delay before a loss is confirmed by a second read: a deposed leader may have answered.
const retryDelay = 2 * time.Second

// InSpace returns the loss of one space, nil if there is none.
func InSpace(ctx context.Context, b Bus, space string) (l *Loss, err error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	err = confirm(ctx, b, func() (bool, error) {
		l, err = ofSpace(ctx, b, space)
		return l != nil, err
	})
	return l, err
}

// InPartition returns the losses of a partition: of its lane, and of its spaces.
func InPartition(ctx context.Context, b Bus, partition int) (list []*Loss, err error) {
	err = confirm(ctx, b, func() (bool, error) {
		list, err = ofPartition(ctx, b, partition)
		return len(list) > 0, err
	})
	return list, err
}

// confirm repeats a read that has found a loss for as long as a deposed leader may answer from the past.
func confirm(ctx context.Context, b Bus, read func() (bool, error)) error {
	for began := time.Now(); ; {
		found, err := read()
		if err != nil || !found || time.Since(began) >= b.StaleWindow() {
			return err
		}
		if err := pause.For(ctx, retryDelay); err != nil {
			return err
		}
	}
}

func ofPartition(ctx context.Context, b Bus, partition int) (list []*Loss, err error) {
	lane, err := ofLane(ctx, b, partition)
	if err != nil {
		return nil, err
	}
	if lane != nil {
		list = append(list, lane)
	}
	spaces, err := b.SavedSpaces(ctx, partition)
	if err != nil {
		return nil, err
	}
	logged, err := b.LogSpaces(ctx, partition) // the state of such a space may be lost
	if err != nil {
		return nil, err
	}
	spaces = append(spaces, logged...)
	slices.Sort(spaces)
	for _, space := range slices.Compact(spaces) {
		l, err := ofSpace(ctx, b, space)
		if err != nil {
			return nil, err
		}
		if l != nil {
			list = append(list, l)
		}
	}
	return list, nil
}

func laneOf(b Bus, partition int) *truncation.Lane {
	return &truncation.Lane{Bus: b, Partition: partition, Margin: truncation.Margin, Retry: retryDelay, Faults: faultlog.New(slog.New(slog.DiscardHandler))}
}

func ofLane(ctx context.Context, b Bus, partition int) (*Loss, error) {
	lost, err := laneOf(b, partition).Lost(ctx)
	if err != nil || lost == nil {
		return nil, err
	}
	l := &Loss{LossError: *lost}
	if lost.Found > 0 {
		old, err := b.LaneBefore(ctx, partition, time.Time{})
		if err != nil {
			return nil, err
		}
		l.Left = lost.Found - old
	}
	return l, nil
}

func ofSpace(ctx context.Context, b Bus, space string) (*Loss, error) {
	s, err := read(ctx, b, space)
	if state, is := errors.AsType[*model.LossError](err); is {
		state.Partition = model.PartitionOf(space, b.Partitions())
		return &Loss{LossError: *state}, nil
	}
	if e, is := errors.AsType[*model.UnreadableError](err); is {
		return &Loss{LossError: model.LossError{Kind: model.LossOfCommit, Partition: model.PartitionOf(space, b.Partitions()), Space: space, Known: e.Seq, Reason: e.Error()}}, nil
	}
	if err != nil || s.head >= s.known {
		return nil, err
	}
	l := &Loss{LossError: model.LossError{
		Kind: model.LossOfLog, Partition: model.PartitionOf(space, b.Partitions()), Space: space, Known: s.known, Found: s.head,
	}}
	for i := range s.state.Docs {
		if d := &s.state.Docs[i]; d.Seq > max(s.state.Mark.Seq, s.head) {
			l.Ahead = append(l.Ahead, d.Doc)
		}
	}
	l.Gone, err = gone(ctx, b, s)
	return l, err
}

// stored is the stored data of a space.
type stored struct {
	*replica.Replica
	state       model.SpaceState
	head, known uint64
}

// Stored returns what the streams have of a space, and the head of its log.
func Stored(ctx context.Context, b Bus, space string) (*replica.Replica, uint64, error) {
	s, err := read(ctx, b, space)
	return s.Replica, s.head, err
}

// AppendTo appends a commit behind the head of its space, and returns its sequence.
func AppendTo(ctx context.Context, b Bus, head uint64, c *model.Commit) (uint64, error) {
	return appendTo(ctx, b, head, c, rand.Text())
}

func read(ctx context.Context, b Bus, space string) (s stored, err error) {
	err = history.OverGaps(ctx, space, func() error {
		if s.state, err = b.LoadState(ctx, space); err != nil {
			return err
		}
		if s.Replica, err = replica.Load(space, s.state); err != nil {
			return err
		}
		return history.Replay(ctx, b, s.Replica)
	})
	if err == nil {
		s.known = s.state.Newest()
		s.head, err = b.Head(ctx, space)
	}
	return s, err
}

// gone returns the events to other spaces that are lost with the tail of a log: their targets have not
// handled them, and neither the log nor the lanes of the targets contain them.
func gone(ctx context.Context, b Bus, s stored) (list []Gap, err error) {
	logged, err := sent(ctx, b, s.Space)
	if err != nil {
		return nil, err
	}
	var targets []string
	for to := range s.Outbound { // any order: sorted below
		targets = append(targets, to)
	}
	slices.Sort(targets)
	for _, to := range targets {
		g := Gap{To: to}
		has, err := arrived(ctx, b, s.Space, to)
		if err == nil {
			err = checkSpan(fmt.Sprintf("events from space %s to %s", s.Space, to), has.upTo, s.Outbound[to].Position)
		}
		if err != nil {
			return nil, err
		}
		for p := has.upTo + 1; p <= s.Outbound[to].Position; p++ {
			if !logged[to][p] && !has.waiting[p] {
				g.Positions = append(g.Positions, p)
			}
		}
		if len(g.Positions) > 0 {
			list = append(list, g)
		}
	}
	return list, nil
}

const readPage = 512

// sent returns the positions of the events to other spaces in the log of a space, by target.
func sent(ctx context.Context, b Bus, space string) (map[string]map[uint64]bool, error) {
	found := map[string]map[uint64]bool{}
	for after := uint64(0); ; {
		entries, err := b.ReadLog(ctx, space, after, readPage)
		if err != nil {
			return nil, err
		}
		for i := range entries {
			after = entries[i].Seq
			c, err := entries[i].Commit()
			if err != nil {
				return nil, err
			}
			for j := range c.Txs {
				for _, e := range c.Txs[j].Sends {
					if found[e.To] == nil {
						found[e.To] = map[uint64]bool{}
					}
					found[e.To][e.Position] = true
				}
			}
		}
		if len(entries) < readPage {
			return found, nil
		}
	}
}

// arrivals are the positions of an origin that have reached a target: all up to upTo are handled, and
// the waiting ones are in its lane.
type arrivals struct {
	upTo    uint64
	waiting map[uint64]bool
}

func arrived(ctx context.Context, b Bus, from, to string) (a arrivals, err error) {
	if model.CheckName("space", to) != nil {
		return a, nil // there can be no such space
	}
	s, err := read(ctx, b, to)
	if err != nil {
		return a, fmt.Errorf("events in space %s from %s: %w", to, from, err)
	}
	a.upTo, a.waiting = s.Inbound[from].Position, map[uint64]bool{}
	for after := s.LaneDone(); ; {
		events, err := b.ReadLane(ctx, to, after, readPage)
		if err != nil {
			return a, err
		}
		for i := range events {
			after = events[i].Seq
			if tx, minted := model.OriginOf(events[i].ID); minted && tx.Space == from {
				a.waiting[events[i].Position] = true
			}
		}
		if len(events) < readPage {
			return a, nil
		}
	}
}

// Accept repairs the stream so that workers continue without the lost data. It can be repeated after a
// failure. progress, which may be nil, is called with the sequence that a log has reached.
func (l *Loss) Accept(ctx context.Context, b Bus, progress func(at, upTo uint64)) error {
	switch l.Kind {
	case model.LossOfLane:
		return l.acceptLane(ctx, b)
	case model.LossOfState:
		return fmt.Errorf("%w. %w", &l.LossError, ErrState)
	case model.LossOfCommit:
		return fmt.Errorf("this is no loss that can be accepted: %w", &l.LossError)
	}
	return l.acceptLog(ctx, b, progress)
}

// acceptLane fills the lane beyond every sequence that a space of the partition knows: receipts may be
// lost as well.
func (l *Loss) acceptLane(ctx context.Context, b Bus) error {
	spaces, err := b.SavedSpaces(ctx, l.Partition)
	if err != nil {
		return err
	}
	var known []truncation.Evidence
	for _, space := range spaces {
		st, err := b.LoadState(ctx, space)
		if err != nil {
			return err
		}
		s, err := replica.Load(space, st)
		if err != nil {
			return err
		}
		e, err := evidence(ctx, b, s)
		if err != nil {
			return err
		}
		known = append(known, e)
	}
	for i := range known {
		if err := checkSpan(fmt.Sprintf("the lane of partition %d", l.Partition), l.Found, known[i].Seq); err != nil {
			return err
		}
	}
	return laneOf(b, l.Partition).Accept(ctx, known...)
}

// evidence returns the lane sequence that a space knows, and when that was saved.
func evidence(ctx context.Context, b Bus, s *replica.Replica) (truncation.Evidence, error) {
	e := truncation.Evidence{Seq: s.Cursor.Floor}
	if n := len(s.Cursor.Held); n > 0 {
		e.Seq = max(e.Seq, s.Cursor.Held[n-1])
	}
	_, stored, err := b.LoadMark(ctx, s.Space)
	e.Stored = stored
	return e, err
}

// lostStream is the stream of the tombstones.
const lostStream = "lost"

func (l *Loss) acceptLog(ctx context.Context, b Bus, progress func(at, upTo uint64)) error {
	s, err := read(ctx, b, l.Space)
	if err != nil || s.head >= s.known {
		return err
	}
	if err := checkSpan("the log of space "+l.Space, s.head, s.known); err != nil {
		return err
	}
	e, err := evidence(ctx, b, s.Replica)
	if err == nil {
		err = laneOf(b, l.Partition).Accept(ctx, e)
	}
	if err != nil {
		return err
	}
	for _, g := range l.Gone {
		for _, p := range g.Positions {
			if err := sendTombstone(ctx, b, l, g.To, p); err != nil {
				return err
			}
		}
	}
	c := &model.Commit{Version: model.CommitVersion, Space: l.Space, Runtime: "accept-loss", Epoch: s.Epoch, Cursor: s.Cursor}
	nonce := rand.Text()
	for at := s.head; ; {
		c.Attempt++
		if c.Takeover = at >= s.known; c.Takeover {
			c.Epoch = 0
		}
		if at, err = appendTo(ctx, b, at, c, nonce); err != nil {
			return err
		}
		if c.Takeover {
			return nil
		}
		if progress != nil {
			progress(min(at, s.known), s.known)
		}
	}
}

// sendTombstone makes a target refuse a lost event.
func sendTombstone(ctx context.Context, b Bus, l *Loss, to string, position uint64) error {
	m := model.Message{ // without a term, so only its position counts (docs/adr/0035)
		Space: to, Stream: lostStream, ID: model.TxID{Space: l.Space, Epoch: l.Known, N: position}.Event(0), Position: position,
	}
	m = m.Tombstone(fmt.Sprintf("event number %[2]d from space %[1]s was lost with the tail of its log", l.Space, position))
	done := make(chan error, 1)
	b.Send(m, func(_ model.SendResult, err error) { done <- err })
	if err := await(ctx, done); err != nil {
		return fmt.Errorf("replace event %d to space %s: %w", position, to, err)
	}
	return nil
}

func appendTo(ctx context.Context, b Bus, head uint64, c *model.Commit, nonce string) (uint64, error) {
	seq, done := make(chan uint64, 1), make(chan error, 1)
	b.Append(model.Append{
		Space: c.Space, ID: c.ID() + "/" + nonce, Expect: head, Data: model.AppendCommit(nil, c, nil), Epoch: b.Epoch(),
	}, func(at uint64, err error) { seq <- at; done <- err })
	if err := await(ctx, done); err != nil {
		return 0, fmt.Errorf("append to the log of space %s: %w", c.Space, err)
	}
	return <-seq, nil
}

func await(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
