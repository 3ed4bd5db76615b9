package port

import (
	"context"
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
)

// Session returns a bus as seen from one epoch of its store, the present one (see Bus.Epoch). After the store
// was found to have gone back, each attempt to follow, store or remove something through it ends with
// model.ErrRewound. A process that keeps what it has read in memory uses the bus through a session, and
// starts afresh with another one. Appends are refused when they are sent, and so are other requests that
// store or remove something.
func Session(b Bus) Bus { return session{b, b.Epoch()} }

type session struct {
	Bus
	epoch uint64
}

// Epoch returns the epoch of the session.
func (s session) Epoch() uint64 { return s.epoch }

// Over returns why a session is over, nil if it is not.
func Over(b Bus) error {
	if s, is := b.(session); is {
		return s.over()
	}
	return nil
}

func (s session) over() error {
	if s.Bus.Epoch() != s.epoch {
		return fmt.Errorf("what is in memory is of an earlier past: %w", model.ErrRewound)
	}
	return nil
}

// epochKey is the context key of the epoch.
type epochKey struct{}

// WithEpoch returns a context for requests that depend on what was read in an epoch of the store: a bus does
// not execute them in another one, even if the store goes back after the request was made. An epoch that the
// context has already is kept.
func WithEpoch(ctx context.Context, epoch uint64) context.Context {
	if _, has := ctx.Value(epochKey{}).(uint64); has {
		return ctx
	}
	return context.WithValue(ctx, epochKey{}, epoch)
}

// EpochOf returns the epoch of a context, or present if it has none.
func EpochOf(ctx context.Context, present uint64) uint64 {
	if epoch, has := ctx.Value(epochKey{}).(uint64); has {
		return epoch
	}
	return present
}

func (s session) Append(a model.Append, done func(seq uint64, err error)) {
	a.Epoch = s.epoch
	s.Bus.Append(a, done)
}

// Send refuses, like Append, an event that depends on an earlier epoch: in the present one another event may
// have its id and its position.
func (s session) Send(m model.Message, done func(model.SendResult, error)) {
	m.Bound, m.Epoch = true, s.epoch
	s.Bus.Send(m, done)
}

func (s session) StoreDead(ctx context.Context, d *model.DeadLetter) error {
	if err := s.over(); err != nil {
		return err
	}
	return s.Bus.StoreDead(WithEpoch(ctx, s.epoch), d)
}

func (s session) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	if err := s.over(); err != nil {
		return err
	}
	return s.Bus.FollowSpace(WithEpoch(ctx, s.epoch), space, after, deliver)
}

func (s session) FollowLog(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	if err := s.over(); err != nil {
		return err
	}
	return s.Bus.FollowLog(WithEpoch(ctx, s.epoch), partition, after, deliver)
}

func (s session) FollowReleases(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	if err := s.over(); err != nil {
		return err
	}
	return s.Bus.FollowReleases(WithEpoch(ctx, s.epoch), partition, after, deliver)
}

func (s session) FollowLane(ctx context.Context, partition int, after uint64, deliver func(model.Message)) error {
	if err := s.over(); err != nil {
		return err
	}
	return s.Bus.FollowLane(WithEpoch(ctx, s.epoch), partition, after, deliver)
}

func (s session) PurgeLog(ctx context.Context, space string, below uint64) error {
	if err := s.over(); err != nil {
		return err
	}
	return s.Bus.PurgeLog(WithEpoch(ctx, s.epoch), space, below)
}

func (s session) PurgeLane(ctx context.Context, partition int, upTo uint64, age time.Duration) (bool, error) {
	if err := s.over(); err != nil {
		return false, err
	}
	return s.Bus.PurgeLane(WithEpoch(ctx, s.epoch), partition, upTo, age)
}

func (s session) SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error {
	if err := s.over(); err != nil {
		return err
	}
	return s.Bus.SaveState(WithEpoch(ctx, s.epoch), space, docs, mark)
}

func (s session) PurgeState(ctx context.Context, space string, markers []model.StateDoc) error {
	if err := s.over(); err != nil {
		return err
	}
	return s.Bus.PurgeState(WithEpoch(ctx, s.epoch), space, markers)
}

func (s session) SavePosition(ctx context.Context, partition int, name string, seq uint64) error {
	if err := s.over(); err != nil {
		return err
	}
	return s.Bus.SavePosition(WithEpoch(ctx, s.epoch), partition, name, seq)
}

func (s session) SaveAhead(ctx context.Context, partition int, a model.Ahead) error {
	if err := s.over(); err != nil {
		return err
	}
	return s.Bus.SaveAhead(WithEpoch(ctx, s.epoch), partition, a)
}

func (s session) FillLane(ctx context.Context, partition int, upTo uint64, names []model.Message) error {
	if err := s.over(); err != nil {
		return err
	}
	return s.Bus.FillLane(WithEpoch(ctx, s.epoch), partition, upTo, names)
}

func (s session) MovePosition(ctx context.Context, partition int, name string, seq uint64) error {
	if err := s.over(); err != nil {
		return err
	}
	return s.Bus.MovePosition(WithEpoch(ctx, s.epoch), partition, name, seq)
}
