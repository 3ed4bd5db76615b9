package ledger

import (
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// head is what is known of the event at the head of the lane. What it waits for besides a time, the host
// knows (see Host.Lacks).
type head struct {
	cfg   *Config
	clock *clock

	of receipts.Key // zero: nothing is known
	// failures counts the attempts that ended in an error that may pass, and notBefore is when the next may
	// be made.
	failures  int
	notBefore time.Duration
	// conflicts outlive a refusal, and everything else that is known of the head; nil: there was none.
	conflicts *conflicts
}

// conflicts is how an event fares whose attempts the commits of other runtimes undo.
type conflicts struct {
	event receipts.Key
	n     int
	since time.Duration
	// reported is set once the window has ended, which is reported once.
	reported bool
	// pending is set when a refusal has undone an attempt at the head of the lane. When the next may be
	// made is decided when the time is known.
	pending bool
}

func keyOf(ev *model.Event) receipts.Key { return receipts.Key{Stream: ev.Stream, ID: ev.ID} }

// knows reports whether there was an attempt at ev, or a pause before the first one.
func (h *head) knows(ev *model.Event) bool { return h.of == keyOf(ev) }

// forget forgets what is known, but for conflicts.
func (h *head) forget() { h.of, h.failures, h.notBefore = receipts.Key{}, 0, 0 }

// pauses reports whether the next attempt has to wait for a time.
func (h *head) pauses() bool { return h.notBefore > h.clock.now }

// pause has ev wait before the next attempt.
func (h *head) pause(ev *model.Event, wait time.Duration) {
	h.of, h.notBefore = keyOf(ev), h.clock.now+wait
}

// parks takes in that an attempt at ev was given up because documents are missing.
func (h *head) parks(ev *model.Event) { h.of = keyOf(ev) }

// failed takes in an attempt at ev that has ended in an error that may pass.
func (h *head) failed(ev *model.Event) {
	h.failures++
	h.pause(ev, Doubled(h.cfg.RetryMin, h.cfg.RetryMax, h.failures))
}

// conflicted takes in that a refusal has undone an attempt at the head of the lane.
func (h *head) conflicted() {
	if h.conflicts == nil {
		h.conflicts = &conflicts{}
	}
	h.conflicts.pending = true
}

// pauseAfterConflict sets when the next attempt at ev, the head of the lane, may be made, if a refusal has
// undone one: at once after the first, then after growing delays. Conflicts never use up the budget of
// retries. It returns the number of conflicts once that is to be reported, else 0.
func (h *head) pauseAfterConflict(ev *model.Event) (report int) {
	c := h.conflicts
	if c == nil || !c.pending {
		return 0
	}
	c.pending = false
	if ev == nil {
		return 0
	}
	if c.event != keyOf(ev) {
		*c = conflicts{event: keyOf(ev), since: h.clock.now}
	}
	c.n++
	var wait time.Duration
	if c.n > 1 {
		wait = h.cfg.ConflictPause(ev.ID, c.n)
	}
	if h.clock.now-c.since >= h.cfg.ConflictWindow {
		wait = h.cfg.PauseMax
		if !c.reported {
			c.reported, report = true, c.n
		}
	}
	h.pause(ev, wait)
	return report
}
