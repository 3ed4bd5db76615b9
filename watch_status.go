package settle

import (
	"context"
	"errors"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/lookup"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// Status is how a watch stands: whether what was delivered last may be shown as what is.
type Status struct {
	// Connected says that a worker answers. While none does, nothing is computed, and nothing may
	// be delivered.
	Connected bool
	// Current says that the value is what it should be, as far as a worker knew not more than
	// some seconds ago. It is false until that is known.
	Current bool
	// Why, if not "", says why it is not: what it is computed from fails (told within two seconds
	// or so), is held back (when that has lasted for five), or nobody answers.
	Why string
	// Revision is that of the value that was delivered last, 0 if none was.
	Revision uint64
}

// WatchOption is a wish of one who watches.
type WatchOption func(*watchOptions)

type watchOptions struct{ tell func(Status) }

// WatchStatus has a watch tell how it stands: when that is first known, and then when it changes.
// It and what delivers values are called one at a time. A worker looks at the document every two
// seconds for it, however many clients watch it there; docs/clients.md says what it finds.
func WatchStatus(tell func(Status)) WatchOption {
	return func(o *watchOptions) { o.tell = tell }
}

// watchStatus is a watch that tells how it stands. Values come from the log, whether or not there
// is a worker; how they stand comes from a live query beside it, which wants no values.
type watchStatus struct {
	tell    func(Status)
	deliver func(lookup.Change)
	// heard is what a worker says, or that none does, until it is told. Who hears never waits for
	// who is told: the live query would take itself for cut off.
	heard chan live.Event
	// calling is held by whoever calls back, and with it what follows.
	calling chan struct{}

	told Status // but for the revision
	// now is what a worker says, or that none does. If current is set, it says that the value of
	// that revision is what it should be.
	now     Status
	current *uint64
	// begun says that something was delivered, revision which, and read up to where the log had
	// been read for it: that a document was deleted has a revision only until it is forgotten.
	begun          bool
	revision, read uint64
}

// maxHeard bounds what is kept for one that is slow: only the last of it counts in the end.
const maxHeard = 16

func newWatchStatus(tell func(Status), deliver func(lookup.Change)) *watchStatus {
	return &watchStatus{tell: tell, deliver: deliver, heard: make(chan live.Event, maxHeard), calling: make(chan struct{}, 1)}
}

// run watches until ctx ends.
func (s *watchStatus) run(ctx context.Context, w worker.Watch) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return w.Changes(ctx, func(c lookup.Change) {
			s.call(ctx, func() { s.change(c) })
			s.call(ctx, s.tellNews)
		})
	})
	g.Go(func() error { return s.follow(ctx, w) })
	g.Go(func() error { return s.tellHeard(ctx) })
	return g.Wait()
}

// call calls f, which may call back, when nobody else does. Nobody is called after ctx.
func (s *watchStatus) call(ctx context.Context, f func()) {
	select {
	case s.calling <- struct{}{}:
		defer func() { <-s.calling }()
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		f()
	}
}

// tellHeard tells of what is heard until ctx ends.
func (s *watchStatus) tellHeard(ctx context.Context) error {
	for {
		select {
		case e := <-s.heard:
			s.call(ctx, func() { s.take(e) })
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow listens to how the document stands until ctx ends. No value is newer than the revision
// that it asks from.
func (s *watchStatus) follow(ctx context.Context, w worker.Watch) error {
	c, q := live.Client{Bus: w.Bus}, live.Watch{Space: w.Space, Document: w.Doc, From: math.MaxUint64}
	for ctx.Err() == nil {
		err := c.Watch(ctx, q, s.hear)
		if ctx.Err() == nil { // nobody was there from the first, or nobody who takes the question
			s.hear(live.Event{Kind: live.Broken, Err: err})
			_ = pause.For(ctx, time.Second)
		}
	}
	return ctx.Err()
}

// hear keeps what is to be told, and the newest if there is no room.
func (s *watchStatus) hear(e live.Event) {
	switch e.Kind {
	case live.Connected, live.Broken, live.Stale, live.Current:
	default:
		return
	}
	for {
		select {
		case s.heard <- e:
			return
		default:
		}
		select {
		case <-s.heard:
		default:
		}
	}
}

// change delivers a value.
func (s *watchStatus) change(c lookup.Change) {
	s.deliver(c)
	s.begun, s.revision, s.read = true, c.Revision, max(c.Revision, c.Read)
}

// take takes in what a worker says, or that none does. Each stands by itself.
func (s *watchStatus) take(e live.Event) {
	s.now, s.current = Status{Connected: true, Why: e.Stale}, nil
	switch e.Kind {
	case live.Broken:
		s.now = Status{Why: whyBroken(e.Err)}
	case live.Current:
		s.current = &e.Revision
	}
	s.tellNews()
}

func whyBroken(err error) string {
	switch {
	case err == nil:
		return "the worker leaves; another one is asked"
	case errors.Is(err, model.ErrNobody):
		return "no worker answers"
	}
	return err.Error()
}

// tellNews tells how the watch stands, if that has changed. It is current when the value of which
// that was said has been delivered: it may have another way to come than the word of it.
func (s *watchStatus) tellNews() {
	st := s.now
	st.Current = s.current != nil && s.begun && s.read >= *s.current
	if st == s.told {
		return
	}
	s.told = st
	st.Revision = s.revision
	s.tell(st)
}
