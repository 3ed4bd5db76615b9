package space

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// DocumentError says that a document of another space, which an event needs, was not here for as
// long as an event waits for one (Config.DocumentWait).
type DocumentError struct {
	Document string // @space/document
	Waited   time.Duration
}

func (e *DocumentError) Error() string {
	return fmt.Sprintf("document %s has not been here for %s, and the event needs it; see that its space can be read, and redrive the event", e.Document, e.Waited)
}

// bounded reports whether the head waits for documents of other spaces for a time only. What a
// runtime that is attached cannot read, the owner may.
func (s *Space) bounded() bool { return s.cfg.DocumentWait > 0 && !s.joins }

// noteAwaited notes since when the head waits for a document of another space, if it does.
func (s *Space) noteAwaited() {
	h := &s.head
	if !s.bounded() || h.awaits != nil && !h.awaits.loaded {
		return
	}
	h.awaits, h.since = s.lacked(), s.now
}

// overdue is the error that the head fails with because it has waited for too long, nil if it has
// not.
func (s *Space) overdue() error {
	s.noteAwaited()
	if at := s.failsAt(); at == 0 || s.now < at {
		return nil
	}
	h := &s.head
	if d := s.lacked(); d != h.awaits { // what needed it does not any more
		h.awaits, h.since = d, s.now
		return nil
	}
	return &DocumentError{Document: h.awaits.key.String(), Waited: s.cfg.DocumentWait}
}

// failsAt is when the head fails if the document that it waits for does not come, 0 for never.
func (s *Space) failsAt() time.Duration {
	if h := &s.head; s.bounded() && h.awaits != nil && !h.awaits.loaded {
		return h.since + s.cfg.DocumentWait
	}
	return 0
}

// lacked is a document of another space that is not here and that the head needs, or something that
// it needs does; nil if there is none.
func (s *Space) lacked() *doc {
	for _, d := range s.head.docs {
		if !d.loaded {
			return d
		}
	}
	if s.graph.pending == 0 {
		return nil
	}
	seen := map[*node]bool{}
	for work := append([]*node{}, s.head.nodes...); len(work) > 0; work = work[1:] {
		n := work[0]
		if seen[n] || n.removed {
			continue
		}
		seen[n] = true
		for _, d := range n.deps {
			switch {
			case !d.indexed:
			case !d.doc.loaded:
				return d.doc
			default:
				d.eachWriter(true, func(w *surface) { work = append(work, w.node) })
			}
		}
	}
	return nil
}

// giveUpWaiting ends the head, which has waited for too long.
func (s *Space) giveUpWaiting(ev *model.Event, err error, first bool) progress {
	tx := s.begin(nil)
	tx.event = ev
	s.report(ErrorInfo{Stream: ev.Stream, Event: ev.ID, Err: err, Rejection: ByError, Attempt: s.head.attempts + 1})
	return s.endEvent(tx, ev, receipts.Failed(ev, err), err, first, ev.Trace)
}
