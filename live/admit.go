package live

import (
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
)

// A new watcher of an existing feed starts with the feed's value. The feed may be behind, because its worker
// was frozen or cut off, and the watcher may already have seen a newer value at another worker. So the
// watcher receives nothing until the document has been read from the head of the log and the feed has reached
// that revision.

// admit holds the watcher back until the feed is known to be up to date. The locks of the server and of the
// feed are held.
func (s *Server) admit(sub *sub) {
	sub.waits = true
	if f := sub.feed; !f.confirming {
		f.confirming = true
		s.tasks.Go(func() { s.confirm(f) }) // ends with the last waiting watcher, with the feed, or with the server
	}
}

// confirm reads the document for all waiting watchers, and reads it again for those that have joined since.
func (s *Server) confirm(f *feed) {
	for {
		waiting, before := f.waiting()
		if len(waiting) == 0 || f.ctx.Err() != nil {
			return
		}
		epoch := s.bus.Epoch()
		d, err := history.Read(f.ctx, s.bus, f.space, f.doc)
		if err != nil || s.bus.Epoch() != epoch {
			_ = pause.For(f.ctx, retryDelay)
			continue
		}
		least := d.Seq
		if least == 0 && before.Kind == Value { // the log no longer has the deletion: the value is older than it
			least = before.Revision + 1
		}
		f.confirmed(waiting, least)
	}
}

// waiting returns the watchers that wait to be admitted and the feed's newest event. With no watcher left,
// confirm ends.
func (f *feed) waiting() (list []*sub, newest Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subs { // any order: watchers are independent
		if s.waits {
			list = append(list, s)
		}
	}
	f.confirming = len(list) > 0
	return list, f.newest
}

// confirmed admits watchers, which then receive values from revision least on.
func (f *feed) confirmed(waiting []*sub, least uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range waiting {
		if s.waits {
			s.waits, s.least = false, least
			s.offer(f.newest)
		}
	}
}
