package inspect

import (
	"fmt"
	"strings"
	"time"
)

// Parked describes why the event at the head of the lane has not been handled yet.
type Parked struct {
	Head
	// Behind are the nodes that it needs and that are not up to date.
	Behind []Explanation
}

// Parked explains why the event at the head of the lane has not been handled; false if there is no event.
// What the event needs is known only once an attempt has met it.
func (s *Snapshot) Parked() (Parked, bool) {
	h, ok := s.Lane().head()
	p := Parked{Head: h}
	for _, id := range h.Needs {
		if e, there := s.Explain(id); there && (e.Status != Clean || e.Behind != nil) {
			p.Behind = append(p.Behind, e)
		}
	}
	return p, ok
}

// Causes why the event at the head of a lane waits, for use by programs.
const (
	CauseRetry       = "retry"        // it is retried at a time
	CauseLost        = "lost attempt" // an attempt ended with its process, or was given up
	CauseDocument    = "document"     // a document of another space has not arrived
	CauseGate        = "gate"         // a gate holds a computation until a time
	CauseComputation = "computation"  // a computation is not up to date
	CauseTurn        = "turn"         // nothing in particular
)

// Cause returns why the event waits, as one word and as a sentence; clock formats a time of the core's clock.
func (p Parked) Cause(clock func(time.Duration) string) (cause, why string) {
	switch {
	case p.Until > 0 && p.Attempts > 0 && p.Most == 0:
		return CauseRetry, fmt.Sprintf("%s; tried again without a limit, the next time at %s", p.Reason, clock(p.Until))
	case p.Until > 0 && p.Attempts > 0:
		return CauseRetry, fmt.Sprintf("an error that may pass has ended %d of at most %d attempts, the next is at %s: %s", p.Attempts, p.Most, clock(p.Until), p.Reason)
	case p.Lost > 0:
		return CauseLost, fmt.Sprintf("attempt %d of %d: its process has ended in the ones before, or they were given up", p.Lost, p.MostLost)
	case p.Until > 0:
		return CauseRetry, "tried again at " + clock(p.Until) + ", after a conflict"
	case len(p.Docs) > 0:
		return CauseDocument, "waits for document " + strings.Join(p.Docs, " and ") + ", which is not here" + p.fails(clock)
	}
	for i := range p.Behind {
		late := &p.Behind[i]
		if late.Status == Clean {
			late = late.Behind
		}
		switch late.RunState {
		case Gated:
			return CauseGate, "waits for " + late.ID + ", which is gated (" + late.Gate + ") until " + clock(late.Until)
		case Waiting:
			return CauseDocument, "waits for " + late.ID + ", which waits for document " + late.Waits + p.fails(clock)
		default:
			return CauseComputation, "waits for " + late.ID + ": " + late.describeRunState()
		}
	}
	return CauseTurn, "is to be handled"
}

// fails describes when the event fails if what it waits for does not arrive.
func (p Parked) fails(clock func(time.Duration) string) string {
	if p.Fails == 0 {
		return ""
	}
	return "; the event fails at " + clock(p.Fails)
}

// String describes the event in sentences, one per line.
func (p Parked) String() string {
	lines := []string{"event " + p.Event + " on " + p.Stream}
	if p.Until > 0 {
		after := "a conflict"
		if p.Attempts > 0 {
			after = count(uint64(p.Attempts), "error") + ": " + p.Reason
		}
		lines = append(lines, fmt.Sprintf("is tried again at %s, after %s", p.Until, after))
	}
	for _, d := range p.Docs {
		lines = append(lines, "waits for "+d+", which is not here")
	}
	for _, e := range p.Behind {
		late := &e
		if e.Status == Clean {
			late = e.Behind
		}
		lines = append(lines, "waits for "+late.ID+", which is "+late.Status+": "+late.describeRunState())
	}
	if len(lines) == 1 {
		return lines[0] + " waits for its turn"
	}
	return strings.Join(lines, "\n  ")
}
