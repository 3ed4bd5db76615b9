package live

import (
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
)

// A watch that joins a feed begins with what the feed has; and the feed may be behind, since its
// worker was frozen or cut off, while the watcher has seen more at another. So it is shown nothing
// before the document was read from the log as that is now, and the feed has got as far.

// admit has the watcher wait until the feed is known to be up to date. The server's lock and the
// feed's are held.
func (s *Server) admit(sub *sub) {
	sub.waits = true
	if f := sub.feed; !f.confirming {
		f.confirming = true
		s.tasks.Go(func() { s.confirm(f) }) // ends with the last that waits, with the feed, or with the server
	}
}

// confirm reads the document for all that wait, and again for those that have come meanwhile.
func (s *Server) confirm(f *feed) {
	for {
		waiting, before := f.waiting()
		if len(waiting) == 0 || f.ctx.Err() != nil {
			return
		}
		epoch := s.bus.Epoch()
		d, err := history.Read(f.ctx, s.bus, f.space, f.doc)
		if err != nil || s.bus.Epoch() != epoch {
			_ = pause.For(f.ctx, again)
			continue
		}
		least := d.Seq
		if least == 0 && before.Kind == Value { // its deletion was forgotten: the value is older than that
			least = before.Revision + 1
		}
		f.confirmed(waiting, least)
	}
}

// waiting are the watchers that wait to be admitted, and what the feed has now; if there are none,
// confirm is at its end.
func (f *feed) waiting() (list []*sub, newest Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subs { // any order: each on its own
		if s.waits {
			list = append(list, s)
		}
	}
	f.confirming = len(list) > 0
	return list, f.newest
}

// confirmed admits watchers, as soon as the feed has come to the revision that the document had after
// they came.
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
