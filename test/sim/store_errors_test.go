package sim

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// With the fault "errors", every call that may return an error sometimes does: before anything was done, after
// all of it was, or with a part of it done. Follows end with an error, at once or after a while. Appends and
// sends have definite answers and are left out.

// errStore is the error that they return.
var errStore = errors.New("the store is out of order")

// failure is the fate of one call.
type failure int

const (
	works   failure = iota
	refuses         // nothing is done
	loses           // it is done, and an error is returned all the same
	breaks          // a part of it is done
)

// shaky is the bus of one process over such a store.
type shaky struct {
	*membus.Bus
	w *world
	p *process

	mu    sync.Mutex
	asked map[callKey]called
}

type callKey struct{ label, space, key string }

type called struct {
	n    int
	last time.Duration
}

// busOf returns the bus that a process has.
func (w *world) busOf(p *process) port.Bus {
	if !w.plan.has("errors") {
		return p.bus
	}
	return &shaky{Bus: p.bus, w: w, p: p, asked: map[callKey]called{}}
}

// draw returns the random source for the fate of a call. Equal calls in one instant share one, as their order
// is not determined.
func (s *shaky) draw(label, space, key string) *chance {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, now := callKey{label, space, key}, s.w.story.now()
	c := s.asked[k]
	if c.n == 0 || c.last != now {
		c = called{c.n + 1, now}
		s.asked[k] = c
	}
	return keyed(s.w.plan.seed, "store error", s.p.name, label, space, key, c.n)
}

// fate decides about a call, and waits for as long as an error takes to come.
func (s *shaky) fate(ctx context.Context, label, space, key string) failure {
	c := s.draw(label, space, key)
	how := works
	if c.permille(s.w.plan.wild) {
		how = oneOf(c, refuses, refuses, loses, breaks)
	}
	takes := c.between(time.Microsecond, 2*s.w.plan.wire)
	if how == works || s.w.isHealed() {
		return works
	}
	s.w.count("store errors: " + label)
	s.w.story.tell(s.p.name, "store error", label, space, key, int(how))
	s.w.story.note(s.p.name, "!! %s %s %s fails (%d)", label, space, key, int(how))
	s.w.pass(ctx, takes)
	return how
}

func (w *world) isHealed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.healed
}

// call makes a call that returns a value.
func call[T any](ctx context.Context, s *shaky, label, space, key string, f func() (T, error)) (T, error) {
	var none T
	switch s.fate(ctx, label, space, key) {
	case works:
		return f()
	case refuses:
	default:
		_, _ = f() // whatever the result, the caller gets an error
	}
	return none, errStore
}

// change makes a call that returns an error only.
func (s *shaky) change(ctx context.Context, label, space, key string, f func() error) error {
	_, err := call(ctx, s, label, space, key, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// follow follows until that ends, or until the fault ends it.
func (s *shaky) follow(ctx context.Context, label, space, key string, f func(context.Context) error) error {
	c := s.draw(label, space, key)
	fails, at, after := c.below(4) == 0, c.below(3), c.between(time.Microsecond, 3*time.Second)
	if !fails || s.w.isHealed() {
		return f(ctx)
	}
	if at == 0 {
		after = min(after, s.w.plan.wire)
	}
	bound, end := context.WithCancelCause(ctx)
	defer end(nil)
	t := time.AfterFunc(after, func() {
		if !s.w.isHealed() {
			s.w.count("store errors: " + label)
			s.w.story.note(s.p.name, "!! %s %s %s ends", label, space, key)
			end(errStore)
		}
	})
	defer t.Stop()
	err := f(bound)
	if ctx.Err() == nil && context.Cause(bound) != nil && errors.Is(context.Cause(bound), errStore) {
		return errStore
	}
	return err
}

func number(n int) string { return strconv.Itoa(n) }

func (s *shaky) Head(ctx context.Context, space string) (uint64, error) {
	return call(ctx, s, "head", space, "", func() (uint64, error) { return s.Bus.Head(ctx, space) })
}

func (s *shaky) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	return call(ctx, s, "read-log", space, "", func() ([]model.LogEntry, error) { return s.Bus.ReadLog(ctx, space, after, limit) })
}

func (s *shaky) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	return s.follow(ctx, "follow-space", space, "", func(ctx context.Context) error { return s.Bus.FollowSpace(ctx, space, after, deliver) })
}

func (s *shaky) FollowReleases(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	return s.follow(ctx, "follow-log", "", number(partition), func(ctx context.Context) error {
		return s.Bus.FollowReleases(ctx, partition, after, deliver)
	})
}

func (s *shaky) FollowLog(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	return s.follow(ctx, "follow-log", "", number(partition), func(ctx context.Context) error { return s.Bus.FollowLog(ctx, partition, after, deliver) })
}

func (s *shaky) LogState(ctx context.Context, partition int, age time.Duration) (model.LogState, error) {
	return call(ctx, s, "log-state", "", number(partition), func() (model.LogState, error) { return s.Bus.LogState(ctx, partition, age) })
}

func (s *shaky) LogTail(ctx context.Context, partition, n int) ([]model.LogEntry, error) {
	return call(ctx, s, "log-tail", "", number(partition), func() ([]model.LogEntry, error) { return s.Bus.LogTail(ctx, partition, n) })
}

func (s *shaky) LogSpaces(ctx context.Context, partition int) ([]string, error) {
	return call(ctx, s, "log-spaces", "", number(partition), func() ([]string, error) { return s.Bus.LogSpaces(ctx, partition) })
}

func (s *shaky) PurgeLog(ctx context.Context, space string, below uint64) error {
	return s.change(ctx, "purge-log", space, "", func() error { return s.Bus.PurgeLog(ctx, space, below) })
}

func (s *shaky) FollowLane(ctx context.Context, partition int, after uint64, deliver func(model.Message)) error {
	return s.follow(ctx, "follow-lane", "", number(partition), func(ctx context.Context) error { return s.Bus.FollowLane(ctx, partition, after, deliver) })
}

func (s *shaky) ReadLane(ctx context.Context, space string, after uint64, limit int) ([]model.Message, error) {
	return call(ctx, s, "read-lane", space, "", func() ([]model.Message, error) { return s.Bus.ReadLane(ctx, space, after, limit) })
}

// FindEvent is separate because it returns two values.
func (s *shaky) FindEvent(ctx context.Context, space, stream, id string) (m model.Message, there bool, err error) {
	m, err = call(ctx, s, "find-event", space, stream+"."+id, func() (m model.Message, err error) {
		m, there, err = s.Bus.FindEvent(ctx, space, stream, id)
		return m, err
	})
	return m, there && err == nil, err
}

func (s *shaky) FindEvents(ctx context.Context, space, id string) ([]model.Message, error) {
	return call(ctx, s, "find-events", space, id, func() ([]model.Message, error) { return s.Bus.FindEvents(ctx, space, id) })
}

func (s *shaky) PurgeLane(ctx context.Context, partition int, upTo uint64, age time.Duration) (bool, error) {
	return call(ctx, s, "purge-lane", "", number(partition), func() (bool, error) { return s.Bus.PurgeLane(ctx, partition, upTo, age) })
}

func (s *shaky) LaneEnd(ctx context.Context, partition int) (uint64, error) {
	return call(ctx, s, "lane-end", "", number(partition), func() (uint64, error) { return s.Bus.LaneEnd(ctx, partition) })
}

func (s *shaky) LaneEvent(ctx context.Context, partition int, seq uint64) (m model.Message, there bool, err error) {
	m, err = call(ctx, s, "lane-event", "", number(partition), func() (m model.Message, err error) {
		m, there, err = s.Bus.LaneEvent(ctx, partition, seq)
		return m, err
	})
	return m, there && err == nil, err
}

func (s *shaky) LaneBefore(ctx context.Context, partition int, at time.Time) (uint64, error) {
	return call(ctx, s, "lane-before", "", number(partition), func() (uint64, error) { return s.Bus.LaneBefore(ctx, partition, at) })
}

func (s *shaky) LoadState(ctx context.Context, space string) (model.SpaceState, error) {
	return call(ctx, s, "load", space, "", func() (model.SpaceState, error) { return s.Bus.LoadState(ctx, space) })
}

func (s *shaky) LoadPart(ctx context.Context, space, key string) (model.SpaceState, error) {
	return call(ctx, s, "load-part", space, key, func() (model.SpaceState, error) { return s.Bus.LoadPart(ctx, space, key) })
}

func (s *shaky) LoadMark(ctx context.Context, space string) (mark model.StateDoc, stored time.Time, err error) {
	mark, err = call(ctx, s, "load-mark", space, "", func() (m model.StateDoc, err error) {
		m, stored, err = s.Bus.LoadMark(ctx, space)
		return m, err
	})
	if err != nil {
		stored = time.Time{}
	}
	return mark, stored, err
}

// SaveState may save some of the documents, or all of them and not the mark.
func (s *shaky) SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error {
	switch s.fate(ctx, "save", space, "") {
	case works:
		return s.Bus.SaveState(ctx, space, docs, mark)
	case loses:
		_ = s.Bus.SaveState(ctx, space, slices.Clone(docs), clone(mark)) // as in call
	case breaks:
		half := s.draw("half", space, "").below(len(docs) + 1)
		_ = s.Bus.SaveState(ctx, space, slices.Clone(docs[:half]), nil) // as in call
	case refuses:
	}
	return errStore
}

func clone(d *model.StateDoc) *model.StateDoc {
	if d == nil {
		return nil
	}
	c := *d
	return &c
}

func (s *shaky) LoadItem(ctx context.Context, space, key string) (model.StateDoc, error) {
	return call(ctx, s, "load-item", space, key, func() (model.StateDoc, error) { return s.Bus.LoadItem(ctx, space, key) })
}

func (s *shaky) DueSpaces(ctx context.Context, partition int) ([]model.Due, error) {
	return call(ctx, s, "due", "", number(partition), func() ([]model.Due, error) { return s.Bus.DueSpaces(ctx, partition) })
}

func (s *shaky) PurgeState(ctx context.Context, space string, markers []model.StateDoc) error {
	switch s.fate(ctx, "purge-state", space, "") {
	case works:
		return s.Bus.PurgeState(ctx, space, markers)
	case loses:
		_ = s.Bus.PurgeState(ctx, space, markers) // as in call
	case breaks:
		_ = s.Bus.PurgeState(ctx, space, markers[:len(markers)/2]) // as in call
	case refuses:
	}
	return errStore
}

func (s *shaky) LoadPosition(ctx context.Context, partition int, name string) (uint64, error) {
	return call(ctx, s, "load-position", "", name+number(partition), func() (uint64, error) { return s.Bus.LoadPosition(ctx, partition, name) })
}

func (s *shaky) SavePosition(ctx context.Context, partition int, name string, seq uint64) error {
	return s.change(ctx, "save-position", "", name+number(partition), func() error { return s.Bus.SavePosition(ctx, partition, name, seq) })
}

func (s *shaky) Observe(l model.Lease) error {
	return s.change(s.p.ctx, "observe", l.Space, l.Doc, func() error { return s.Bus.Observe(l) })
}

func (s *shaky) FollowLeases(ctx context.Context, partition int, deliver func(model.Lease)) error {
	return s.follow(ctx, "follow-leases", "", number(partition), func(ctx context.Context) error { return s.Bus.FollowLeases(ctx, partition, deliver) })
}

func (s *shaky) CallRoll(partition int) error {
	return s.change(s.p.ctx, "call-roll", "", number(partition), func() error { return s.Bus.CallRoll(partition) })
}

func (s *shaky) FollowRollCalls(ctx context.Context, deliver func(partition int)) error {
	return s.follow(ctx, "follow-rolls", "", "", func(ctx context.Context) error { return s.Bus.FollowRollCalls(ctx, deliver) })
}

func (s *shaky) Announce(ctx context.Context, m model.Member) error {
	return s.change(ctx, "announce", "", "", func() error { return s.Bus.Announce(ctx, m) })
}

func (s *shaky) FollowMembers(ctx context.Context, deliver func(model.Member), ready func()) error {
	return s.follow(ctx, "follow-members", "", "", func(ctx context.Context) error { return s.Bus.FollowMembers(ctx, deliver, ready) })
}

func (s *shaky) Ping(ctx context.Context, id string) (bool, error) {
	return call(ctx, s, "ping", "", id, func() (bool, error) { return s.Bus.Ping(ctx, id) })
}

func (s *shaky) StoreDead(ctx context.Context, d *model.DeadLetter) error {
	return s.change(ctx, "bury", d.Space, d.Event, func() error { return s.Bus.StoreDead(ctx, d) })
}

func (s *shaky) ReadDead(ctx context.Context, space string, after uint64, limit int) ([]model.DeadLetter, error) {
	return call(ctx, s, "read-dead", space, "", func() ([]model.DeadLetter, error) { return s.Bus.ReadDead(ctx, space, after, limit) })
}

func (s *shaky) FindDead(ctx context.Context, space, id string) ([]model.DeadLetter, error) {
	return call(ctx, s, "find-dead", space, id, func() ([]model.DeadLetter, error) { return s.Bus.FindDead(ctx, space, id) })
}

func (s *shaky) ListDead(ctx context.Context, space string) ([]model.DeadName, error) {
	return call(ctx, s, "list-dead", space, "", func() ([]model.DeadName, error) { return s.Bus.ListDead(ctx, space) })
}

func (s *shaky) GetDead(ctx context.Context, names []model.DeadName) ([]model.DeadLetter, error) {
	return call(ctx, s, "get-dead", "", "", func() ([]model.DeadLetter, error) { return s.Bus.GetDead(ctx, names) })
}

func (s *shaky) Serve(ctx context.Context, service model.Service) error {
	if s.fate(ctx, "serve", "", service.Name) != works {
		return errStore
	}
	return s.Bus.Serve(ctx, service)
}

// The calls that follow were added after the others, and return errors in the newest plans only.

func newestCall[T any](ctx context.Context, s *shaky, label, key string, f func() (T, error)) (T, error) {
	if !s.w.plan.isNewest() {
		return f()
	}
	return call(ctx, s, label, "", key, f)
}

func (s *shaky) newestChange(ctx context.Context, label, key string, f func() error) error {
	_, err := newestCall(ctx, s, label, key, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

func (s *shaky) LoadAhead(ctx context.Context, partition int) (model.Ahead, error) {
	return newestCall(ctx, s, "load-ahead", number(partition), func() (model.Ahead, error) { return s.Bus.LoadAhead(ctx, partition) })
}

func (s *shaky) SaveAhead(ctx context.Context, partition int, a model.Ahead) error {
	return s.newestChange(ctx, "save-ahead", number(partition), func() error { return s.Bus.SaveAhead(ctx, partition, a) })
}

func (s *shaky) PositionStored(ctx context.Context, partition int, name string) (time.Time, error) {
	return newestCall(ctx, s, "position-stored", name+number(partition), func() (time.Time, error) { return s.Bus.PositionStored(ctx, partition, name) })
}

func (s *shaky) MovePosition(ctx context.Context, partition int, name string, seq uint64) error {
	return s.newestChange(ctx, "move-position", name+number(partition), func() error { return s.Bus.MovePosition(ctx, partition, name, seq) })
}

func (s *shaky) AnswerPings(ctx context.Context, id string) error {
	return s.newestChange(ctx, "answer-pings", id, func() error { return s.Bus.AnswerPings(ctx, id) })
}

func (s *shaky) Ask(ctx context.Context, endpoint string, request []byte) ([]byte, error) {
	return newestCall(ctx, s, "ask", endpoint, func() ([]byte, error) { return s.Bus.Ask(ctx, endpoint, request) })
}
