package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"math"
	"sync"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/status"
)

// feed follows one watched document, with one reader of the log and one lease for all of its watchers.
type feed struct {
	space, doc string
	ctx        context.Context
	cancel     context.CancelFunc

	mu     sync.Mutex
	back   bool   // the store has gone back while this process ran
	newest Event  // the zero Event if no value is known
	read   uint64 // the log position up to which newest was read, see history.Change
	subs   map[*sub]bool
	// confirming is true while the document is being read for watchers that wait to be admitted.
	confirming bool
	// status is the last Stale or Current, the zero Event before the first.
	status  Event
	problem problem
	// polled is the time of the last status query; polling is true while it is unanswered.
	polled  time.Time
	polling bool
}

// sub is one watcher. It holds at most one value and one status, the newest of each, so a slow watcher skips
// values.
type sub struct {
	feed *feed
	news chan struct{} // something can be taken
	// uncounted reports that the watch is no longer part of the limit. The server's lock guards it.
	uncounted bool

	// The feed's lock guards the fields below.
	next, status Event  // the zero Event if there is none
	last         uint64 // revision of the last value that was offered
	print        string // of the value that the watcher began with; "" if unknown, or once a newer value was offered
	begun        bool   // the watcher began with a known value
	rewound      bool   // the store has gone back; Rewound is delivered first
	waits        bool   // no value is delivered until the feed is known to be up to date, see admit
	least        uint64 // the document's revision when the watcher joined
}

// follow keeps the feed's newest value up to date until ctx ends. It retries after errors.
func (s *Server) follow(ctx context.Context, f *feed) {
	w := history.Watch{
		Bus: s.bus, Space: f.space, Doc: f.doc, Logger: s.log,
		Watcher: s.host.ID() + "-live-" + rand.Text()[:12],
	}
	take := func(c history.Change) {
		f.mu.Lock()
		f.back = s.bus.Epoch() > 0
		f.mu.Unlock()
		f.take(c)
	}
	for ctx.Err() == nil {
		if err := w.Changes(ctx, take); ctx.Err() == nil {
			s.log.Warn("watch a document; trying again", "space", f.space, "document", f.doc, "error", err)
			_ = pause.For(ctx, retryDelay)
		}
	}
}

// textOf returns the JSON text of a document, nil if there is none.
func textOf(v model.Value) []byte {
	if v.IsAbsent() {
		return nil
	}
	return v.AppendJSON(nil)
}

// retryDelay is the pause after a failed attempt.
const retryDelay = 200 * time.Millisecond

// take passes a change to all watchers. Each change of a history.Watch is newer than the one before, unless
// the store has gone back.
func (f *feed) take(c history.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Rewound {
		f.newest, f.read = Event{}, 0
		for s := range f.subs { // any order: watchers are independent
			s.reset()
			s.least = 0
		}
	}
	f.read = c.Read
	e := Event{Kind: Deleted, Revision: c.Revision, Previous: c.Previous}
	if !c.Value.IsAbsent() {
		e.Kind, e.Data = Value, c.Value.AppendJSON(nil)
	}
	e.Print = printOf(e.Data)
	f.newest = e
	for s := range f.subs { // any order: watchers are independent
		s.detectRewind(f)
		s.offer(e)
	}
}

// reset makes the watcher receive Rewound and forgets its revision, after the store has gone back. The feed's
// lock is held.
func (s *sub) reset() {
	s.rewound = s.rewound || s.begun
	s.next, s.last, s.print, s.begun = Event{}, 0, "", false
}

// detectRewind resets a watcher that has a revision which the log no longer has: one past the end of a store
// that has gone back, or one between the document's newest revision and the end of what was read. The feed's
// lock is held.
func (s *sub) detectRewind(f *feed) {
	passed := f.newest.Kind == Value && f.newest.Revision < s.last && s.last <= f.read
	if s.wantsValues() && (passed || f.back && s.isAhead()) {
		s.reset()
	}
}

// wantsValues is false for a watcher that began at the highest possible revision: it wants the document's
// status and no values.
func (s *sub) wantsValues() bool { return s.begun && s.last < math.MaxUint64 }

// isAhead reports whether the watcher has a revision past everything that the feed has read.
func (s *sub) isAhead() bool { return s.last > max(s.feed.read, s.feed.newest.Revision) }

// differs reports whether the watcher and the feed have different values with one revision, so that one of
// them is lost.
func (s *sub) differs() bool {
	newest := &s.feed.newest
	return s.print != "" && newest.Kind != "" && newest.Revision == s.last && newest.Print != s.print
}

// recheck reads the document from the log for a watcher that is ahead of its feed, or that has another value
// with the same revision. It resets the watcher if its value was lost before this process began. While the
// answering server may still be behind, counted from since, it leaves a watcher that is ahead alone.
func (s *Server) recheck(ctx context.Context, sub *sub, since time.Time) {
	f := sub.feed
	f.mu.Lock()
	due := f.newest.Kind != "" && sub.wantsValues() && (sub.isAhead() || sub.differs())
	f.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, Heartbeat)
	defer cancel()
	d, err := history.Read(ctx, s.bus, f.space, f.doc)
	if err != nil {
		return // the next heartbeat retries
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if d.Seq == f.newest.Revision {
		f.read = max(f.read, d.Read)
	}
	switch {
	case sub.differs():
		if d.Seq == sub.last && printOf(textOf(d.Value)) == f.newest.Print {
			sub.reset()
		}
	case !sub.isAhead():
		sub.detectRewind(f)
	case d.Read < sub.last && time.Since(since) >= s.bus.StaleWindow():
		sub.reset()
	}
	sub.offer(f.newest)
}

// offer stores a new value for the watcher to take. The feed's lock is held.
func (s *sub) offer(e Event) {
	if e.Kind == Deleted && e.Revision == 0 && s.last > 0 {
		e.Revision = s.feed.read // deleted since, and the log no longer has the deletion
	}
	if s.waits || e.Revision < s.least {
		return // older than the document was when the watcher joined
	}
	if e.Kind == "" || e.Revision <= s.last && s.begun {
		return
	}
	if !s.begun {
		defer s.offerStatus(s.feed.status)
	}
	s.next, s.last, s.print, s.begun = e, e.Revision, "", true
	s.wake()
}

// offerStatus stores a status for the watcher to take. The feed's lock is held.
func (s *sub) offerStatus(e Event) {
	if e.Kind != "" && !s.waits && s.feed.newest.Revision >= s.least {
		s.status = e
		s.wake()
	}
}

func (s *sub) wake() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// take returns and removes what is stored for the watcher: a value, then a status.
func (s *sub) take() (news []Event) {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.status.Revision = s.feed.newest.Revision
	if s.rewound {
		news = append(news, Event{Kind: Rewound})
	}
	for _, e := range []Event{s.next, s.status} {
		if e.Kind != "" {
			news = append(news, e)
		}
	}
	s.next, s.status, s.rewound = Event{}, Event{}, false
	return news
}

// Watches returns how many watches are served now, and the document with the most.
func (s *Server) Watches() status.Watches {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := status.Watches{Open: s.watching, Limit: s.cfg.MaxWatches, Refused: s.refused}
	for at, f := range s.feeds { // any order: the most, and of several the first by name
		f.mu.Lock()
		n := len(f.subs)
		f.mu.Unlock()
		if n > w.Most || n == w.Most && n > 0 && cmp.Or(cmp.Compare(at.space, w.Space), cmp.Compare(at.doc, w.Document)) < 0 {
			w.Most, w.Space, w.Document = n, at.space, at.doc
		}
	}
	return w
}

// subscribe adds a watcher to the feed of its document.
func (s *Server) subscribe(q *Watch) (*sub, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errLeaving
	}
	if s.watching >= s.cfg.MaxWatches {
		s.refused++
		return nil, busy("live queries", s.watching)
	}
	s.watching++
	k := place{q.Space, q.Document}
	f := s.feeds[k]
	first := f == nil
	if first {
		ctx, cancel := context.WithCancel(s.ctx)
		f = &feed{space: q.Space, doc: q.Document, ctx: ctx, cancel: cancel, subs: map[*sub]bool{}}
		s.feeds[k] = f
		s.tasks.Go(func() { s.follow(ctx, f) }) // ends with the last watcher, or with the server
	}
	sub := &sub{feed: f, news: make(chan struct{}, 1), last: q.From.Revision, print: q.From.Print, begun: !q.From.IsZero()}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subs[sub] = true
	if f.newest.Kind != "" {
		sub.detectRewind(f)
	}
	if !first && !sub.begun {
		s.admit(sub)
	}
	sub.offer(f.newest)
	sub.offerStatus(f.status)
	return sub, nil
}

// uncount ends the part of a watch in the limit. s.mu is held.
func (s *Server) uncount(sub *sub) {
	if !sub.uncounted {
		sub.uncounted = true
		s.watching--
	}
}

// unsubscribe ends a watch. The last one ends the feed, and the demand.
func (s *Server) unsubscribe(sub *sub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uncount(sub)
	f := sub.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, sub)
	if len(f.subs) == 0 {
		f.cancel()
		delete(s.feeds, place{f.space, f.doc})
	}
}
