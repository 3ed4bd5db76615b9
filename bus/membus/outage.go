package membus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
)

// ErrOutage is the error of every call during an outage.
var ErrOutage = errors.New("the store is out of order")

// Outage is a client whose store fails from time to time: during an outage every call fails at once and has
// no effect, and subscriptions end. The liveness of other members does not depend on a store. It is for tests
// of how errors are handled and logged.
type Outage struct {
	*Bus

	mu   sync.Mutex
	down context.Context // ends with the next outage
	end  context.CancelFunc
}

// NewOutage returns an Outage around a client, with a store that works.
func NewOutage(b *Bus) *Outage {
	o := &Outage{Bus: b}
	o.Over()
	return o
}

// Begin starts an outage.
func (o *Outage) Begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end()
}

// Over ends the outage.
func (o *Outage) Over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down, o.end = context.WithCancel(context.Background())
}

func (o *Outage) lasts() context.Context {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.down
}

func (o *Outage) isDown() bool { return o.lasts().Err() != nil }

func (o *Outage) err() error {
	if o.isDown() {
		return ErrOutage
	}
	return nil
}

// follow runs f until the next outage.
func (o *Outage) follow(ctx context.Context, f func(ctx context.Context) error) error {
	down := o.lasts()
	if down.Err() != nil {
		return ErrOutage
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(down, cancel)()
	if err := f(ctx); down.Err() == nil {
		return err
	}
	return ErrOutage
}

// askOutage calls f, or fails during an outage.
func askOutage[A any](o *Outage, f func() (A, error)) (A, error) {
	if o.isDown() {
		var none A
		return none, ErrOutage
	}
	return f()
}

// The methods below implement port.Bus.

// Append fails during an outage.
func (o *Outage) Append(a model.Append, done func(seq uint64, err error)) {
	if err := o.err(); err != nil {
		go done(0, err) // ends when done returns
		return
	}
	o.Bus.Append(a, done)
}

// Send fails during an outage.
func (o *Outage) Send(m model.Message, done func(model.SendResult, error)) {
	if err := o.err(); err != nil {
		go done(model.SendResult{}, err) // ends when done returns
		return
	}
	o.Bus.Send(m, done)
}

// Head fails during an outage.
func (o *Outage) Head(ctx context.Context, space string) (uint64, error) {
	return askOutage(o, func() (uint64, error) { return o.Bus.Head(ctx, space) })
}

// ReadLog fails during an outage.
func (o *Outage) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	return askOutage(o, func() ([]model.LogEntry, error) { return o.Bus.ReadLog(ctx, space, after, limit) })
}

// FollowSpace ends with an outage.
func (o *Outage) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	return o.follow(ctx, func(ctx context.Context) error { return o.Bus.FollowSpace(ctx, space, after, deliver) })
}

// FollowLog ends with an outage.
func (o *Outage) FollowLog(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	return o.follow(ctx, func(ctx context.Context) error { return o.Bus.FollowLog(ctx, partition, after, deliver) })
}

// FollowReleases ends with an outage.
func (o *Outage) FollowReleases(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	return o.follow(ctx, func(ctx context.Context) error { return o.Bus.FollowReleases(ctx, partition, after, deliver) })
}

// LogState fails during an outage.
func (o *Outage) LogState(ctx context.Context, partition int, age time.Duration) (model.LogState, error) {
	return askOutage(o, func() (model.LogState, error) { return o.Bus.LogState(ctx, partition, age) })
}

// LogTail fails during an outage.
func (o *Outage) LogTail(ctx context.Context, partition, n int) ([]model.LogEntry, error) {
	return askOutage(o, func() ([]model.LogEntry, error) { return o.Bus.LogTail(ctx, partition, n) })
}

// LogSpaces fails during an outage.
func (o *Outage) LogSpaces(ctx context.Context, partition int) ([]string, error) {
	return askOutage(o, func() ([]string, error) { return o.Bus.LogSpaces(ctx, partition) })
}

// PurgeLog fails during an outage.
func (o *Outage) PurgeLog(ctx context.Context, space string, below uint64) error {
	if err := o.err(); err != nil {
		return err
	}
	return o.Bus.PurgeLog(ctx, space, below)
}

// FollowLane ends with an outage.
func (o *Outage) FollowLane(ctx context.Context, partition int, after uint64, deliver func(model.Message)) error {
	return o.follow(ctx, func(ctx context.Context) error { return o.Bus.FollowLane(ctx, partition, after, deliver) })
}

// ReadLane fails during an outage.
func (o *Outage) ReadLane(ctx context.Context, space string, after uint64, limit int) ([]model.Message, error) {
	return askOutage(o, func() ([]model.Message, error) { return o.Bus.ReadLane(ctx, space, after, limit) })
}

// CountLane fails during an outage.
func (o *Outage) CountLane(ctx context.Context, space string, after, upTo uint64) (int, error) {
	return askOutage(o, func() (int, error) { return o.Bus.CountLane(ctx, space, after, upTo) })
}

// PurgeLane fails during an outage.
func (o *Outage) PurgeLane(ctx context.Context, partition int, upTo uint64, age time.Duration) (bool, error) {
	return askOutage(o, func() (bool, error) { return o.Bus.PurgeLane(ctx, partition, upTo, age) })
}

// LaneEnd fails during an outage.
func (o *Outage) LaneEnd(ctx context.Context, partition int) (uint64, error) {
	return askOutage(o, func() (uint64, error) { return o.Bus.LaneEnd(ctx, partition) })
}

// LoadState fails during an outage.
func (o *Outage) LoadState(ctx context.Context, space string) (model.SpaceState, error) {
	return askOutage(o, func() (model.SpaceState, error) { return o.Bus.LoadState(ctx, space) })
}

// LoadPart fails during an outage.
func (o *Outage) LoadPart(ctx context.Context, space, key string) (model.SpaceState, error) {
	return askOutage(o, func() (model.SpaceState, error) { return o.Bus.LoadPart(ctx, space, key) })
}

// SaveState fails during an outage.
func (o *Outage) SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error {
	if err := o.err(); err != nil {
		return err
	}
	return o.Bus.SaveState(ctx, space, docs, mark)
}

// LoadItem fails during an outage.
func (o *Outage) LoadItem(ctx context.Context, space, key string) (model.StateDoc, error) {
	return askOutage(o, func() (model.StateDoc, error) { return o.Bus.LoadItem(ctx, space, key) })
}

// DueSpaces fails during an outage.
func (o *Outage) DueSpaces(ctx context.Context, partition int) ([]model.Due, error) {
	return askOutage(o, func() ([]model.Due, error) { return o.Bus.DueSpaces(ctx, partition) })
}

// PurgeState fails during an outage.
func (o *Outage) PurgeState(ctx context.Context, space string, markers []model.StateDoc) error {
	if err := o.err(); err != nil {
		return err
	}
	return o.Bus.PurgeState(ctx, space, markers)
}

// LoadPosition fails during an outage.
func (o *Outage) LoadPosition(ctx context.Context, partition int, name string) (uint64, error) {
	return askOutage(o, func() (uint64, error) { return o.Bus.LoadPosition(ctx, partition, name) })
}

// SavePosition fails during an outage.
func (o *Outage) SavePosition(ctx context.Context, partition int, name string, seq uint64) error {
	if err := o.err(); err != nil {
		return err
	}
	return o.Bus.SavePosition(ctx, partition, name, seq)
}

// PositionStored fails during an outage.
func (o *Outage) PositionStored(ctx context.Context, partition int, name string) (time.Time, error) {
	return askOutage(o, func() (time.Time, error) { return o.Bus.PositionStored(ctx, partition, name) })
}

// LoadAhead fails during an outage.
func (o *Outage) LoadAhead(ctx context.Context, partition int) (model.Ahead, error) {
	return askOutage(o, func() (model.Ahead, error) { return o.Bus.LoadAhead(ctx, partition) })
}

// SaveAhead fails during an outage.
func (o *Outage) SaveAhead(ctx context.Context, partition int, a model.Ahead) error {
	if err := o.err(); err != nil {
		return err
	}
	return o.Bus.SaveAhead(ctx, partition, a)
}

// MovePosition fails during an outage.
func (o *Outage) MovePosition(ctx context.Context, partition int, name string, seq uint64) error {
	if err := o.err(); err != nil {
		return err
	}
	return o.Bus.MovePosition(ctx, partition, name, seq)
}

// Observe fails during an outage.
func (o *Outage) Observe(l model.Lease) error {
	if err := o.err(); err != nil {
		return err
	}
	return o.Bus.Observe(l)
}

// FollowLeases ends with an outage.
func (o *Outage) FollowLeases(ctx context.Context, partition int, deliver func(model.Lease)) error {
	return o.follow(ctx, func(ctx context.Context) error { return o.Bus.FollowLeases(ctx, partition, deliver) })
}

// CallRoll fails during an outage.
func (o *Outage) CallRoll(partition int) error {
	if err := o.err(); err != nil {
		return err
	}
	return o.Bus.CallRoll(partition)
}

// FollowRollCalls ends with an outage.
func (o *Outage) FollowRollCalls(ctx context.Context, deliver func(partition int)) error {
	return o.follow(ctx, func(ctx context.Context) error { return o.Bus.FollowRollCalls(ctx, deliver) })
}

// Announce fails during an outage.
func (o *Outage) Announce(ctx context.Context, m model.Member) error {
	if err := o.err(); err != nil {
		return err
	}
	return o.Bus.Announce(ctx, m)
}

// FollowMembers ends with an outage.
func (o *Outage) FollowMembers(ctx context.Context, deliver func(model.Member), ready func()) error {
	return o.follow(ctx, func(ctx context.Context) error { return o.Bus.FollowMembers(ctx, deliver, ready) })
}

// StoreDead fails during an outage.
func (o *Outage) StoreDead(ctx context.Context, d *model.DeadLetter) error {
	if err := o.err(); err != nil {
		return err
	}
	return o.Bus.StoreDead(ctx, d)
}

// Serve fails during an outage.
func (o *Outage) Serve(ctx context.Context, s model.Service) error {
	if err := o.err(); err != nil {
		return err
	}
	return o.Bus.Serve(ctx, s)
}
