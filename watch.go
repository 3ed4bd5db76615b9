package settle

import (
	"context"
	"errors"
	"iter"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

// Update is a value of a document, or of a part of one, as a client receives it.
type Update[T any] struct {
	// Value is the value. If Exists is false, it is the value of Or or the zero value.
	Value T
	// Revision is the log sequence of the commit that last changed the document, 0 if none did.
	Revision uint64
	// Exists reports whether there is a value.
	Exists bool
	// Changed reports whether the value is new to the watch; it is false if only the status is.
	Changed bool

	// Connected, Current and Why are the status of a watch WithStatus, and of a read.

	// The following are set in updates of watches with WithStatus, and by Space.GetCurrent.
	//
	// Connected reports whether a worker answers. While none does, nothing is computed, and changes
	// may not be delivered.
	Connected bool
	// Current reports whether the value is up to date, as known to a worker a few seconds ago at
	// most. It is false until that is known.
	Current bool
	// Why, if not "", is why the value is not current: a computation that it depends on fails
	// (reported within about two seconds) or is held back (reported after five), or no worker
	// answers.
	Reason string
}

// WatchOption configures a watch: From, FromLastSeen, WithStatus.
type WatchOption func(*watchOptions)

type watchOptions struct {
	from     *uint64
	status   bool
	lastSeen bool
}

// From makes a watch begin with the first value that is newer than a revision, for a caller that has the
// document as of that. Changes made in between are one update.
func From(revision uint64) WatchOption {
	return func(o *watchOptions) { o.from = &revision }
}

// FromLastSeen lets a watch begin with the value that the client has received last, if it follows the space anyway, for a watch or for a call
// whose receipt has just come. That value is not older than what any call of this client has returned, but may have changed since. Every
// later one follows, so a loop that waits for a state misses nothing, and the servers are asked for nothing.
func FromLastSeen() WatchOption {
	return func(o *watchOptions) { o.lastSeen = true }
}

// WithStatus makes a watch also report whether its value is current: the status is part of each update,
// and an update of its own when it changes. To find it, a worker checks the document every two seconds,
// however many clients watch it there; docs/clients.md has the details.
func WithStatus() WatchOption {
	return func(o *watchOptions) { o.status = true }
}

// Watch observes a document: the loop receives the confirmed value, absent if there is none, and then each
// change:
//
//	for u, err := range alice.Watch(ctx, "count") {
//
// It ends when ctx does, without an error, or with an error as its last element. While it runs, everything
// that the document is computed from is kept up to date, in all spaces. While no server is reachable
// nothing is received, and while no worker runs nothing is computed; both resume by themselves, and
// WithStatus reports that. Values are states: a loop that is slow or was disconnected receives the newest
// one, and not each one in between.
//
// Revisions increase, unless the store goes back to an earlier state, as after a power cut without fsync:
// then the loop receives the document as it is now, at a revision that may be the same or lower, and
// changes between may be left out.
func (s Space) Watch(ctx context.Context, doc string, options ...WatchOption) iter.Seq2[Update[Value], error] {
	return s.watch(ctx, doc, s.client.watcher, options)
}

// WatchStored is Watch for a document that handlers write, such as that of a run. It keeps nothing up to date, and costs the space nothing,
// which need not even be in memory. Of a derived document, it receives the changes only while something else demands it.
func (s Space) WatchStored(ctx context.Context, doc string, options ...WatchOption) iter.Seq2[Update[Value], error] {
	return s.watch(ctx, doc, func() string { return "" }, options)
}

// watch returns the loop over a document. watcher returns the name of its demand, "" for none.
func (s Space) watch(ctx context.Context, doc string, watcher func() string, options []WatchOption) iter.Seq2[Update[Value], error] {
	return func(yield func(Update[Value], error) bool) {
		if err := s.check(ctx, doc); err != nil {
			yield(Update[Value]{}, err)
			return
		}
		var o watchOptions
		for _, set := range options {
			set(&o)
		}
		w := &watch{
			document: history.Watch{Bus: s.client.bus, Space: s.name, Doc: doc, Watcher: watcher(), Logger: s.client.logger, Shared: s.client.awaits.tap, Reads: s.client.reads, LastSeen: o.lastSeen},
			by:       s.client.by,
		}
		if o.from != nil {
			w.document.From(*o.from)
			w.begun, w.read, w.last.Revision = true, *o.from, *o.from
		}
		run := w.alone
		if o.status {
			w.changes, w.events, run = make(chan history.Change), make(chan live.Event, maxEvents), w.run
		}
		if err := run(ctx, yield); err != nil {
			yield(Update[Value]{}, err)
		}
	}
}

// watch is one loop over a document. Values come from the log, with or without a worker; the status comes
// from a live query beside it, which asks for no values. The loop's goroutine owns the fields below events.
type watch struct {
	document history.Watch
	by       string              // ClientConfig.Principal
	changes  chan history.Change // nil without WithStatus
	// events are those of the live query, which must not wait for a slow loop: it would take the
	// connection for lost. It is nil without WithStatus.
	events chan live.Event

	last Update[Value] // without Changed
	// status is what the live query reported last. If current is set, the value of that revision is up
	// to date.
	status  watchState
	current *uint64
	// begun is set when a value was received, or is known to the caller, and read is the position up to
	// which the log had been read for it: the deletion of a document has a revision only until it is
	// forgotten.
	begun bool
	read  uint64
}

// watchState is the part of an Update that reports whether its value is current.
type watchState struct {
	connected, current bool
	why                string
}

// maxEvents bounds the events that wait for a slow loop; the newest ones are kept.
const maxEvents = 16

// alone yields values, without their status, until ctx ends, the loop does, or the document cannot be followed, which is its error.
func (w *watch) alone(ctx context.Context, yield func(Update[Value], error) bool) error {
	inner, stop := context.WithCancel(ctx)
	defer stop()
	ended := false
	err := w.document.Changes(inner, func(c history.Change) {
		if inner.Err() == nil && !yield(w.change(c), nil) {
			ended = true
			stop()
		}
	})
	if ended || ctx.Err() != nil {
		return nil
	}
	return err
}

// run is alone with the status, which arrives beside the values.
func (w *watch) run(ctx context.Context, yield func(Update[Value], error) bool) error {
	inner, stop := context.WithCancel(ctx)
	g, inner := errgroup.WithContext(inner)
	g.Go(func() error {
		return w.document.Changes(inner, func(c history.Change) {
			select {
			case w.changes <- c:
			case <-inner.Done():
			}
		})
	})
	g.Go(func() error { return w.follow(inner) })
	var failed error
	ended := make(chan struct{})
	go func() { // ends with inner
		failed = g.Wait()
		close(ended)
	}()
	defer func() { stop(); <-ended }()
	for {
		var u Update[Value]
		news := true
		select {
		case c := <-w.changes:
			u = w.change(c)
		case e := <-w.events:
			u, news = w.take(e)
		case <-ended: // ctx has ended, or a part has failed
			if ctx.Err() == nil {
				return failed
			}
			return nil
		}
		if ctx.Err() != nil || news && !yield(u, nil) {
			return nil
		}
	}
}

// follow runs the live query for the document's status until ctx ends. It asks for values after the
// highest possible revision, of which there are none.
func (w *watch) follow(ctx context.Context) error {
	c, q := live.Client{Bus: w.document.Bus, Principal: w.by}, live.Watch{Space: w.document.Space, Document: w.document.Doc, From: live.At(math.MaxUint64)}
	for ctx.Err() == nil {
		err := c.Watch(ctx, q, w.enqueue)
		if ctx.Err() == nil { // no worker answered at first, or none that accepts the question
			w.enqueue(live.Event{Kind: live.Broken, Err: err})
			_ = pause.For(ctx, time.Second)
		}
	}
	return ctx.Err()
}

// enqueue queues an event for the loop; if there is no room, it drops the oldest.
func (w *watch) enqueue(e live.Event) {
	switch e.Kind {
	case live.Connected, live.Broken, live.Stale, live.Current:
	default:
		return
	}
	for {
		select {
		case w.events <- e:
			return
		default:
		}
		select {
		case <-w.events:
		default:
		}
	}
}

// change returns the update for a value.
func (w *watch) change(c history.Change) Update[Value] {
	w.begun, w.read = true, max(c.Revision, c.Read)
	w.last.Value, w.last.Revision, w.last.Exists = c.Value, c.Revision, !c.Value.IsAbsent()
	w.updateStatus()
	u := w.last
	u.Changed = true
	return u
}

// take returns the update for an event of the live query, and false if the status has not changed. Each
// event replaces the status before.
func (w *watch) take(e live.Event) (u Update[Value], news bool) {
	w.status, w.current = watchState{connected: true, why: e.Stale}, nil
	switch e.Kind {
	case live.Broken:
		w.status = watchState{why: whyBroken(e.Err)}
	case live.Current:
		w.current = &e.Revision
	}
	return w.last, w.updateStatus()
}

// updateStatus updates the status of the last update, and reports whether it has changed. The value is current
// only when the value that the worker called current has been received, since values and status arrive on
// different ways.
func (w *watch) updateStatus() bool {
	s := w.status
	s.current = w.current != nil && w.begun && w.read >= *w.current
	if s == (watchState{w.last.Connected, w.last.Current, w.last.Reason}) {
		return false
	}
	w.last.Connected, w.last.Current, w.last.Reason = s.connected, s.current, s.why
	return true
}

func whyBroken(err error) string {
	switch {
	case err == nil:
		return "the worker is shutting down; another one is asked"
	case errors.Is(err, model.ErrNoResponder):
		return "no worker answers"
	}
	return err.Error()
}
