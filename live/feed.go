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

// feed is one document that somebody watches: one reading of the log and one lease,
// however many there are.
type feed struct {
	space, doc string
	ctx        context.Context
	cancel     context.CancelFunc

	mu     sync.Mutex
	back   bool   // the store has gone back while this process has known it
	newest Event  // the zero Event as long as nothing is known
	read   uint64 // up to where the log was read for that, see history.Change
	subs   map[*sub]bool
	// confirming says that the document is being read for watchers that wait to be admitted.
	confirming bool
	// standing is what was last said of how the document stands, the zero Event as long as
	// nobody has.
	standing Event
	doubt    doubt
	// looked is when it was last asked how it stands, asked whether there is no answer yet.
	looked time.Time
	asked  bool
}

// sub is one that watches. It holds one value at most, and one word of how the document stands:
// one that is slow gets the newest.
type sub struct {
	feed *feed
	news chan struct{} // there is something to take

	// What follows is the feed's, under its lock.
	next, standing Event  // the zero Event if there is none
	last           uint64 // revision of the last value that was wanted
	print          string // of the value that the watcher came with, "" if it is not known or has been followed by another
	begun          bool   // and whether there was one
	rewound        bool   // the store has gone back, of which the watcher is to be told first
	waits          bool   // nothing is shown before the feed is known to be up to date, see admit
	least          uint64 // the revision that the document had then
}

// begin follows the document until its context ends, whatever fails.
func (s *Server) begin(ctx context.Context, f *feed) {
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
			_ = pause.For(ctx, again)
		}
	}
}

// textOf is the text of a document, nil if there is none.
func textOf(v model.Value) []byte {
	if v.IsAbsent() {
		return nil
	}
	return v.AppendJSON(nil)
}

// again is how long to wait before something is tried again that has failed.
const again = 200 * time.Millisecond

// take passes a change on to all watchers. The changes of a history.Watch are each newer than the one
// before, unless the store has gone back.
func (f *feed) take(c history.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Rewound {
		f.newest, f.read = Event{}, 0
		for s := range f.subs { // any order: each on its own
			s.beginAnew()
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
	for s := range f.subs { // any order: each on its own
		s.compare(f)
		s.offer(e)
	}
}

// beginAnew has the watcher told that what it knows was of a store that has gone back since.
// The feed's lock is held.
func (s *sub) beginAnew() {
	s.rewound = s.rewound || s.begun
	s.next, s.last, s.print, s.begun = Event{}, 0, "", false
}

// compare finds a watcher that knows more than the log has: it was told before the store went
// back, by this worker or another. So was one that knows a revision of the document between the one
// that the value has and the end of what was read. The feed's lock is held.
func (s *sub) compare(f *feed) {
	passed := f.newest.Kind == Value && f.newest.Revision < s.last && s.last <= f.read
	if s.wantsValues() && (passed || f.back && s.isAhead()) {
		s.beginAnew()
	}
}

// wantsValues is false of a watcher with the highest revision that there can be: it wants to know
// how the document stands, and nothing else.
func (s *sub) wantsValues() bool { return s.begun && s.last < math.MaxUint64 }

// isAhead reports whether the watcher knows a revision behind all that the feed has read.
func (s *sub) isAhead() bool { return s.last > max(s.feed.read, s.feed.newest.Revision) }

// differs reports whether the watcher knows another value of the revision that the feed has: one of the two is lost.
func (s *sub) differs() bool {
	newest := &s.feed.newest
	return s.print != "" && newest.Kind != "" && newest.Revision == s.last && newest.Print != s.print
}

// recheck has a watcher that is ahead of its feed, or knows another value, compared with the leader: what it knows may have
// been lost before this process began. As long as a leader may answer from the past, it is asked
// again; since is when that began, now if it has not.
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
		return // it is asked again
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if d.Seq == f.newest.Revision {
		f.read = max(f.read, d.Read)
	}
	switch {
	case sub.differs():
		if d.Seq == sub.last && printOf(textOf(d.Value)) == f.newest.Print {
			sub.beginAnew()
		}
	case !sub.isAhead():
		sub.compare(f)
	case d.Read < sub.last && time.Since(since) >= s.bus.Hindsight():
		sub.beginAnew()
	}
	sub.offer(f.newest)
}

// offer puts a value where the watcher finds it, if it is news. The feed's lock is held.
func (s *sub) offer(e Event) {
	if e.Kind == Deleted && e.Revision == 0 && s.last > 0 {
		e.Revision = s.feed.read // it was deleted since, and that is forgotten
	}
	if s.waits || e.Revision < s.least {
		return // it is behind what the log had when the watcher came
	}
	if e.Kind == "" || e.Revision <= s.last && s.begun {
		return
	}
	if !s.begun {
		defer s.hear(s.feed.standing)
	}
	s.next, s.last, s.print, s.begun = e, e.Revision, "", true
	s.rouse()
}

// hear puts where the watcher finds it how the document stands. The feed's lock is held.
func (s *sub) hear(e Event) {
	if e.Kind != "" && !s.waits && s.feed.newest.Revision >= s.least {
		s.standing = e
		s.rouse()
	}
}

func (s *sub) rouse() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// take is what there is after news: a value, then how the document stands, or one of them.
func (s *sub) take() (news []Event) {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.standing.Revision = s.feed.newest.Revision
	if s.rewound {
		news = append(news, Event{Kind: Rewound})
	}
	for _, e := range []Event{s.next, s.standing} {
		if e.Kind != "" {
			news = append(news, e)
		}
	}
	s.next, s.standing, s.rewound = Event{}, Event{}, false
	return news
}

// Watches says how many watches are served now, and what most of them are of.
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

// join begins to watch.
func (s *Server) join(q *Watch) (*sub, error) {
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
		s.tasks.Go(func() { s.begin(ctx, f) }) // ends when nobody watches, or with the server
	}
	sub := &sub{feed: f, news: make(chan struct{}, 1), last: q.From.Revision, print: q.From.Print, begun: !q.From.IsZero()}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subs[sub] = true
	if f.newest.Kind != "" {
		sub.compare(f)
	}
	if !first && !sub.begun {
		s.admit(sub)
	}
	sub.offer(f.newest)
	sub.hear(f.standing)
	return sub, nil
}

// leave ends a watch, and with the last one the demand.
func (s *Server) leave(sub *sub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching--
	f := sub.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, sub)
	if len(f.subs) == 0 {
		f.cancel()
		delete(s.feeds, place{f.space, f.doc})
	}
}
