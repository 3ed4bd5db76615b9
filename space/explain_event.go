package space

import (
	"fmt"
	"strings"
	"time"
)

// Parked says why the event at the head of the lane has not been handled yet.
type Parked struct {
	Stream, Event string
	// Until is when it may be tried again, after errors that may pass or a conflict, and 0 if
	// it need not wait for a time. Attempts is how many such errors there were.
	Until    time.Duration
	Attempts int
	// Docs are the documents of other spaces that it reads and that are not here, Behind
	// the nodes that it needs and that are not up to date.
	Docs   []string
	Behind []Explanation
}

// Parked says why the event at the head of the lane has not been handled; false if there
// is no event. What it needs is known when an attempt has met it.
func (s *Space) Parked() (Parked, bool) {
	ev := s.peek()
	if ev == nil {
		return Parked{}, false
	}
	p := Parked{Stream: ev.Stream, Event: ev.ID}
	if s.head.of != keyOf(ev) {
		return p, true
	}
	p.Attempts = s.head.attempts
	if s.head.notBefore > s.now {
		p.Until = s.head.notBefore
	}
	for _, d := range s.head.docs {
		if !d.loaded {
			p.Docs = append(p.Docs, d.key.String())
		}
	}
	for _, n := range s.head.nodes {
		e := s.explain(n)
		if up := laggard(n); up != nil {
			behind := s.explain(up)
			e.Behind = &behind
		}
		if n.status != Clean || e.Behind != nil {
			p.Behind = append(p.Behind, e)
		}
	}
	return p, true
}

// String tells it in sentences, one to a line.
func (p Parked) String() string {
	lines := []string{"event " + p.Event + " on " + p.Stream}
	if p.Until > 0 {
		after := "a conflict"
		if p.Attempts > 0 {
			after = count(uint64(p.Attempts), "error")
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
		lines = append(lines, "waits for "+late.Node+", which is "+late.Status.String()+": "+late.standing())
	}
	if len(lines) == 1 {
		return lines[0] + " waits for its turn"
	}
	return strings.Join(lines, "\n  ")
}
