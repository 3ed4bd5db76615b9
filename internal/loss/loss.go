// Package loss finds what workers refuse because a stream lacks what is known of it, and has them
// go on without that, if an operator says so: exactly from what the store has.
//
//	a lane   The events that are in it are told from those that were handled by their receipts and
//	         by when the position of the lane was saved (package doubt), and it is filled up to
//	         what is known of it, so that no sequence is given out twice.
//	a log    The state of the space stays as it was saved. Empty commits are appended up to what
//	         the state reflects, and a takeover behind that. What the lost commits have sent to
//	         other spaces, and nobody has any more, is replaced by tombstones: a target would wait
//	         for it for ever, and refuses those instead, with a dead letter.
//
// A state that is lost while the log was purged cannot be gone on without: what it held of the
// positions between spaces is nowhere else. It has to be restored.
package loss

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/settlehq/settle/internal/doubt"
	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/lookup"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// Bus is what this package needs of the outside world.
type Bus = port.Bus

// Loss is something that is refused.
type Loss struct {
	model.LossError
	// Ahead are the documents that were saved by commits behind the checkpoint that are lost: they
	// reflect more than the others do.
	Ahead []string
	// Gone are, of a log, the events to other spaces that are lost with it, by target.
	Gone []Gap
	// Left is how many messages the lane holds.
	Left uint64
}

// Gap is what a target has not had of what a space has sent to it, and the log has not either.
type Gap struct {
	To        string
	Positions []uint64
}

// Events is how many events to other spaces are lost.
func (l *Loss) Events() (n int) {
	for i := range l.Gone {
		n += len(l.Gone[i].Positions)
	}
	return n
}

// ErrState says that a state cannot be gone on without.
var ErrState = errors.New("this cannot be accepted: what a state holds of the positions between spaces is nowhere else. Restore a backup of all streams, or move what is there to a new deployment: settle export, settle import")

// lookAgain is the pause between two looks at a leader that may be one no more.
const lookAgain = 2 * time.Second

// Of finds out what is refused of one space, nil if nothing is.
func Of(ctx context.Context, b Bus, space string) (l *Loss, err error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	err = insist(ctx, b, func() (bool, error) {
		l, err = lookAtSpace(ctx, b, space)
		return l != nil, err
	})
	return l, err
}

// In finds out what is refused of a partition: the lane, and spaces.
func In(ctx context.Context, b Bus, partition int) (list []*Loss, err error) {
	err = insist(ctx, b, func() (bool, error) {
		list, err = lookAtPartition(ctx, b, partition)
		return len(list) > 0, err
	})
	return list, err
}

// insist repeats a look that has found something for as long as a leader may answer from the past.
func insist(ctx context.Context, b Bus, look func() (bool, error)) error {
	for began := time.Now(); ; {
		found, err := look()
		if err != nil || !found || time.Since(began) >= b.Hindsight() {
			return err
		}
		if err := pause.For(ctx, lookAgain); err != nil {
			return err
		}
	}
}

func lookAtPartition(ctx context.Context, b Bus, partition int) (list []*Loss, err error) {
	lane, err := lookAtLane(ctx, b, partition)
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
	logged, err := b.LogSpaces(ctx, partition) // of which the state may be lost
	if err != nil {
		return nil, err
	}
	spaces = append(spaces, logged...)
	slices.Sort(spaces)
	for _, space := range slices.Compact(spaces) {
		l, err := lookAtSpace(ctx, b, space)
		if err != nil {
			return nil, err
		}
		if l != nil {
			list = append(list, l)
		}
	}
	return list, nil
}

func laneOf(b Bus, partition int) *doubt.Lane {
	return &doubt.Lane{Bus: b, Partition: partition, Margin: doubt.Margin, Again: lookAgain, Faults: faultlog.New(slog.New(slog.DiscardHandler))}
}

func lookAtLane(ctx context.Context, b Bus, partition int) (*Loss, error) {
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

func lookAtSpace(ctx context.Context, b Bus, space string) (*Loss, error) {
	s, err := read(ctx, b, space)
	if state, is := errors.AsType[*model.LossError](err); is {
		state.Partition = model.PartitionOf(space, b.Partitions())
		return &Loss{LossError: *state}, nil
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

// stored is what the store has of a space.
type stored struct {
	*replica.Replica
	state       model.SpaceState
	head, known uint64
}

func read(ctx context.Context, b Bus, space string) (s stored, err error) {
	err = lookup.OverGaps(ctx, space, func() error {
		if s.state, err = b.LoadState(ctx, space); err != nil {
			return err
		}
		if s.Replica, err = replica.Load(space, s.state); err != nil {
			return err
		}
		return lookup.Replay(ctx, b, s.Replica)
	})
	if err == nil {
		s.known = s.state.Newest()
		s.head, err = b.Head(ctx, space)
	}
	return s, err
}

// gone are the events to other spaces that are lost with the end of a log: their targets have not
// handled them, and neither the log nor the lanes of the targets have them.
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

// sent are the positions of events to other spaces that the log of a space has, by target.
func sent(ctx context.Context, b Bus, space string) (map[string]map[uint64]bool, error) {
	found := map[string]map[uint64]bool{}
	for after := uint64(0); ; {
		entries, err := b.ReadLog(ctx, space, after, readPage)
		if err != nil {
			return nil, err
		}
		for i := range entries {
			after = entries[i].Seq
			c, err := model.DecodeCommit(entries[i].Data)
			if err != nil {
				return nil, fmt.Errorf("log of space %s, sequence %d: %w", space, after, err)
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

// arrivals are the positions of an origin that a target has had: all up to one, and those that
// wait in its lane.
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
		return a, fmt.Errorf("what space %s has had of %s: %w", to, from, err)
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

// Accept has workers go on without what is lost. It can be repeated if it fails half way through.
// progress, which may be nil, is called with how far a log has come.
func (l *Loss) Accept(ctx context.Context, b Bus, progress func(at, upTo uint64)) error {
	switch l.Kind {
	case model.LossOfLane:
		return l.acceptLane(ctx, b)
	case model.LossOfState:
		return fmt.Errorf("%w. %w", &l.LossError, ErrState)
	}
	return l.acceptLog(ctx, b, progress)
}

// acceptLane fills the lane beyond what any space of the partition knows of it: their receipts may
// be lost as well.
func (l *Loss) acceptLane(ctx context.Context, b Bus) error {
	spaces, err := b.SavedSpaces(ctx, l.Partition)
	if err != nil {
		return err
	}
	var known []doubt.Evidence
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
	return laneOf(b, l.Partition).Accept(ctx, known...)
}

// evidence is up to where a space knows its lane, and since when that is saved.
func evidence(ctx context.Context, b Bus, s *replica.Replica) (doubt.Evidence, error) {
	e := doubt.Evidence{Seq: s.Cursor.Floor}
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
	e, err := evidence(ctx, b, s.Replica)
	if err == nil {
		err = laneOf(b, l.Partition).Accept(ctx, e)
	}
	if err != nil {
		return err
	}
	for _, g := range l.Gone {
		for _, p := range g.Positions {
			if err := bury(ctx, b, l, g.To, p); err != nil {
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

// bury has a target refuse an event that is lost.
func bury(ctx context.Context, b Bus, l *Loss, to string, position uint64) error {
	m := model.Message{ // without a term, its position alone counts (docs/adr/0035)
		Space: to, Stream: lostStream, ID: model.TxID{Space: l.Space, Epoch: l.Known, N: position}.Event(0), Position: position,
	}
	m = m.Tombstone(fmt.Sprintf("what space %s sent as number %d was lost with the end of its log", l.Space, position))
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
