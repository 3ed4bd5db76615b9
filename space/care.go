package space

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// A handler may kill its process: it takes all the memory, or calls os.Exit. The next owner
// would handle the same event and die of it, and so on, if nobody remembered how often that
// was (DESIGN 5.3, docs/adr/0016). So a runtime that follows on a life without a receipt, or
// on an attempt that never came back, is careful:
//
//	before an attempt at the head of the lane, the log gets a mark, with how many there were
//	one event goes into each commit, so that others do not go down with it
//	after Config.LostAttempts of them the event fails
//
// until it has handled as many events as a commit may hold, or all that there were. An
// attempt that comes back without a result (it has to wait, or is to be tried again) is
// taken back in the log: only death counts. Who is not careful does none of this, nor does
// a runtime that is attached: it would take another for dead that is only slow. If its
// process ends at an event, it is the owner who finds out.
//
// A handler that does not return ends the life of its space, and not that of the process (see
// Guard). The next one, which is told of it, is careful too, and the attempt counts.
type care struct {
	// left is how many events are to be handled with care, as far as they are there; begun
	// says that there was one.
	left  int
	begun bool
	// mark is to go into the next commit.
	mark *model.Trying
	// overran is the last attempt that did not return, of an earlier life.
	overran *Overrun
}

// takeCare begins a life.
func (s *Space) takeCare() {
	s.care = care{overran: s.care.overran}
	lives := &s.replica.Lives
	if s.cfg.LostAttempts > 0 && !s.joins && (lives.Barren > 0 || lives.Trying != nil || s.care.overran != nil) {
		s.care.left = s.cfg.MaxGroup
	}
}

// careWaits reports whether the log is to answer before the next event can be handled: the
// mark of an event goes into the commit that decides the one before it.
func (s *Space) careWaits() bool {
	return s.care.left > 0 && (s.care.mark != nil || s.suffix.sealed != nil)
}

// handleWithCare is handle for the head of the lane while the runtime is careful.
func (s *Space) handleWithCare(ev *model.Event, first bool) progress {
	if s.careWaits() {
		return blocked
	}
	t := s.tried(ev)
	if t == nil || t.Back || s.replica.TriedBy != s.epoch {
		return s.markOrGiveUp(ev, t, first)
	}
	p := s.handle(ev, first)
	switch {
	case p != handled:
		s.comeBack()
	default:
		s.care.begun = true
		if s.care.left--; s.lane.Waiting() == 0 {
			s.care.left = 0
		}
	}
	return p
}

// tried is the mark of ev in the log, nil if there is none.
func (s *Space) tried(ev *model.Event) *model.Trying {
	if t := s.replica.Trying; t != nil && t.Event == ev.ID && t.By == receipts.By(ev.Stream) {
		return t
	}
	return nil
}

// markOrGiveUp has the next attempt at ev marked, or ends it if there were enough.
func (s *Space) markOrGiveUp(ev *model.Event, t *model.Trying, first bool) progress {
	tries := 0
	if t != nil {
		tries = t.Tries
	}
	if s.overranAt(ev.ID, ev.Stream) != nil && (t == nil || t.Back && s.replica.TriedBy != s.epoch) {
		tries++ // that attempt had no mark
	}
	if tries >= s.cfg.LostAttempts {
		return s.giveUp(ev, tries, first)
	}
	if tries > 0 && s.separate(ev, tries) {
		return blocked
	}
	s.care.mark = &model.Trying{By: receipts.By(ev.Stream), Event: ev.ID, Tries: tries + 1}
	return blocked
}

// separate has the head wait for a moment of its own, once in a life, before it is tried
// again: a second at most, then four, and so on. A process that dies takes other spaces with
// it, whose events were being tried at that time and are not to blame; and runtimes that
// take a space from each other, or share it, may find the mark of one that is alive and
// about to commit. It reports whether it is to wait now.
func (s *Space) separate(ev *model.Event, tries int) bool {
	if s.head.of == keyOf(ev) || s.replica.TriedBy == s.epoch {
		return false
	}
	wait := s.cfg.RetryMax / 256 * time.Duration(jitter(s.cfg.Space, ev.ID, tries)) << (2 * min(tries-1, 4))
	s.head.of, s.head.notBefore = keyOf(ev), s.now+wait
	return wait > 0
}

// comeBack takes the attempt back that the log has a mark of, if it has had no result, and
// one that has not begun.
func (s *Space) comeBack() {
	s.care.mark = nil
	t := s.replica.Trying
	if s.care.left == 0 || t == nil || t.Back || s.replica.TriedBy != s.epoch || s.lane.Undecided() > 0 {
		return
	}
	s.care.mark = &model.Trying{By: t.By, Event: t.Event, Tries: t.Tries - 1, Back: true}
}

// LostError says that a handler did not come back from any of its attempts: each ended with
// the process, or was given up.
type LostError struct {
	Event    string
	Attempts int
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the handler never came back: the process ended, or it was given up, in each of %d attempts", e.Attempts)
}

// giveUp ends an event whose handler is not called any more.
func (s *Space) giveUp(ev *model.Event, tries int, first bool) progress {
	var err error = &LostError{Event: ev.ID, Attempts: tries}
	if o := s.overranAt(ev.ID, ev.Stream); o != nil {
		err = &LimitError{Stream: ev.Stream, Event: ev.ID, Limit: o.Limit, Attempts: tries}
	}
	tx := s.begin(nil)
	tx.event = ev
	s.report(ErrorInfo{Stream: ev.Stream, Event: ev.ID, Err: err, Rejection: ByError, Attempt: tries})
	return s.endEvent(tx, ev, receipts.Failed(ev, err), err, first, ev.Trace)
}

// attempts is how often the handler of ev was tried, this time included.
func (s *Space) attempts(ev *model.Event) int {
	n := 1
	if s.head.of == keyOf(ev) {
		n += s.head.attempts
	}
	if t := s.tried(ev); t != nil && t.Tries > 0 {
		n += t.Tries - 1
	}
	return n
}
