package settle

import (
	"context"
	"errors"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

// Status is the state of a watch: whether the value delivered last is current.
type Status struct {
	// Connected reports whether a worker answers. While none does, nothing is computed, and changes
	// may not be delivered.
	Connected bool
	// Current reports whether the value is up to date, as known to a worker a few seconds ago at
	// most. It is false until that is known.
	Current bool
	// Why, if not "", is why the value is not current: a computation that it depends on fails
	// (reported within about two seconds) or is held back (reported after five), or no worker
	// answers.
	Why string
	// Revision is the revision of the value delivered last, 0 if none was.
	Revision uint64
}

// WatchOption configures a watch.
type WatchOption func(*watchOptions)

type watchOptions struct{ report func(Status) }

// WatchStatus makes a watch call report with its status: when it is first known, and then when it
// changes. Calls of report and of the function that delivers values do not overlap. To find the
// status, a worker checks the document every two seconds, however many clients watch it there;
// docs/clients.md has the details.
func WatchStatus(report func(Status)) WatchOption {
	return func(o *watchOptions) { o.report = report }
}

// watchStatus is a watch that reports its status. Values come from the log, with or without a
// worker; the status comes from a live query beside it, which asks for no values.
type watchStatus struct {
	report  func(Status)
	deliver func(v Value, revision uint64)
	// queued holds events of the live query until they are reported. The live query must not wait
	// for a slow callback: it would take the connection for lost.
	queued chan live.Event
	// calling is held during a callback, and guards the fields below.
	calling chan struct{}

	reported Status // without the revision
	// now is the last status reported by the live query. If current is set, the value of that
	// revision is up to date.
	now     Status
	current *uint64
	// begun is set when a value was delivered, or is known to the caller; revision is its revision, and
	// read the position up to which the log had been read for it: the deletion of a document has a revision only until
	// it is forgotten.
	begun          bool
	revision, read uint64
}

// maxQueued bounds queued when callbacks are slow; the newest events are kept.
const maxQueued = 16

func newWatchStatus(report func(Status), deliver func(v Value, revision uint64)) *watchStatus {
	return &watchStatus{report: report, deliver: deliver, queued: make(chan live.Event, maxQueued), calling: make(chan struct{}, 1)}
}

// run watches until ctx ends.
func (s *watchStatus) run(ctx context.Context, w *history.Watch) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return w.Changes(ctx, func(c history.Change) {
			s.call(ctx, func() { s.change(c) })
			s.call(ctx, s.reportChange)
		})
	})
	g.Go(func() error { return s.follow(ctx, w) })
	g.Go(func() error { return s.reportQueued(ctx) })
	return g.Wait()
}

// call runs f, which may call back, when no other callback runs; not after ctx has ended.
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

// reportQueued reports the events of the live query until ctx ends.
func (s *watchStatus) reportQueued(ctx context.Context) error {
	for {
		select {
		case e := <-s.queued:
			s.call(ctx, func() { s.take(e) })
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow runs the live query for the document's status until ctx ends. It asks for values after the
// highest possible revision, of which there are none.
func (s *watchStatus) follow(ctx context.Context, w *history.Watch) error {
	c, q := live.Client{Bus: w.Bus}, live.Watch{Space: w.Space, Document: w.Doc, From: live.At(math.MaxUint64)}
	for ctx.Err() == nil {
		err := c.Watch(ctx, q, s.enqueue)
		if ctx.Err() == nil { // no worker answered at first, or none that accepts the question
			s.enqueue(live.Event{Kind: live.Broken, Err: err})
			_ = pause.For(ctx, time.Second)
		}
	}
	return ctx.Err()
}

// enqueue queues an event for reporting; if there is no room, it drops the oldest.
func (s *watchStatus) enqueue(e live.Event) {
	switch e.Kind {
	case live.Connected, live.Broken, live.Stale, live.Current:
	default:
		return
	}
	for {
		select {
		case s.queued <- e:
			return
		default:
		}
		select {
		case <-s.queued:
		default:
		}
	}
}

// change delivers a value.
func (s *watchStatus) change(c history.Change) {
	s.deliver(c.Value, c.Revision)
	s.begun, s.revision, s.read = true, c.Revision, max(c.Revision, c.Read)
}

// take processes an event of the live query. Each event replaces the status before.
func (s *watchStatus) take(e live.Event) {
	s.now, s.current = Status{Connected: true, Why: e.Stale}, nil
	switch e.Kind {
	case live.Broken:
		s.now = Status{Why: whyBroken(e.Err)}
	case live.Current:
		s.current = &e.Revision
	}
	s.reportChange()
}

func whyBroken(err error) string {
	switch {
	case err == nil:
		return "the worker is shutting down; another one is asked"
	case errors.Is(err, model.ErrNobody):
		return "no worker answers"
	}
	return err.Error()
}

// reportChange reports the status if it has changed. The watch is current only when the value that the
// worker called current has been delivered, since values and status arrive on different ways.
func (s *watchStatus) reportChange() {
	st := s.now
	st.Current = s.current != nil && s.begun && s.read >= *s.current
	if st == s.reported {
		return
	}
	s.reported = st
	st.Revision = s.revision
	s.report(st)
}
