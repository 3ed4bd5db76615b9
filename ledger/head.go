package ledger

import (
	"strings"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// head is what is known of the event at the head of the lane. The host knows what else it waits for besides a
// time (see Host.Lacks).
type head struct {
	cfg   *Config
	clock *clock

	of receipts.Key // zero if nothing is known
	// failures counts the attempts that ended in a transient error, and notBefore is the time before which
	// the next one may not be made.
	failures  int
	notBefore time.Duration
	// endless is set if the last failure has another attempt however many there were.
	endless bool
	// reason is the last transient error, see reasonOf.
	reason string
	// conflicts outlives a refusal, unlike the other fields; nil if there were none.
	conflicts *conflicts
}

// conflicts describes an event whose attempts are undone by the commits of other runtimes.
type conflicts struct {
	event receipts.Key
	n     int
	since time.Duration
	// reported is set once the end of the window has been reported.
	reported bool
	// pending is set when a refusal has undone an attempt at the head of the lane. The time of the next
	// attempt is set when the present time is known.
	pending bool
}

func keyOf(ev *model.Event) receipts.Key { return receipts.Key{Stream: ev.Stream, ID: ev.ID} }

// knows reports whether there was an attempt at ev, or a pause before the first one.
func (h *head) knows(ev *model.Event) bool { return h.of == keyOf(ev) }

// forget discards everything but conflicts.
func (h *head) forget() {
	h.of, h.failures, h.notBefore, h.endless, h.reason = receipts.Key{}, 0, 0, false, ""
}

// pauses reports whether the next attempt has to wait for a time.
func (h *head) pauses() bool { return h.notBefore > h.clock.now }

// pause makes ev wait before the next attempt.
func (h *head) pause(ev *model.Event, wait time.Duration) {
	h.of, h.notBefore = keyOf(ev), h.clock.now+wait
}

// parks records that an attempt at ev was abandoned because documents are missing.
func (h *head) parks(ev *model.Event) { h.of = keyOf(ev) }

// failed records an attempt at ev that ended in a transient error.
func (h *head) failed(ev *model.Event, a *Attempt) {
	h.failures++
	h.endless, h.reason = a.Endless, reasonOf(a.Err)
	h.pause(ev, Doubled(h.cfg.RetryMin, h.cfg.RetryMax, h.failures))
}

// maxReason bounds the text of a transient error that is kept, in bytes.
const maxReason = 200

// reasonOf returns the first line of an error, cut to maxReason.
func reasonOf(err error) string {
	text, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	if len(text) > maxReason {
		text = text[:maxReason] + "…"
	}
	return strings.ToValidUTF8(text, "")
}

// conflicted records that a refusal has undone an attempt at the head of the lane.
func (h *head) conflicted() {
	if h.conflicts == nil {
		h.conflicts = &conflicts{}
	}
	h.conflicts.pending = true
}

// pauseAfterConflict sets the time of the next attempt at ev, the head of the lane, if a refusal has undone
// one: at once after the first, then after growing delays. Conflicts never use up the budget of retries. It
// returns the number of conflicts if they are to be reported now, else 0.
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
