package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// story is what happened, in order. Its hash is what two runs of one seed are compared
// by; the minutes are for people, and are only taken on demand.
type story struct {
	begin time.Time

	mu      sync.Mutex
	verbose bool
	minutes strings.Builder
	// lines are those of the instant noted, which order means nothing to either.
	lines []string
	noted time.Duration
	hash  uint64
	// within one instant order means nothing: at is that instant, acc sums it up.
	at    time.Duration
	acc   uint64
	steps int
}

func newStory(verbose bool) *story { return &story{begin: time.Now(), verbose: verbose} }

func (s *story) now() time.Duration { return time.Since(s.begin) }

// tell adds to the story something that parts name, of strings and numbers.
func (s *story) tell(parts ...any) {
	at := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if at != s.at {
		s.hash = mix(s.hash^s.acc) + uint64(at)
		s.at, s.acc = at, 0
	}
	s.acc += keyed(1, parts...).s
	s.steps++
}

// sum returns the hash of everything so far.
func (s *story) sum() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return mix(s.hash ^ s.acc)
}

// note writes a line into the minutes.
func (s *story) note(who, format string, args ...any) {
	if !s.verbose {
		return
	}
	at := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if at != s.noted {
		s.flush()
		s.noted = at
	}
	s.lines = append(s.lines, fmt.Sprintf("%13v  %-12s %s\n", at, who, fmt.Sprintf(format, args...)))
}

// flush ends an instant. s.mu is held.
func (s *story) flush() {
	slices.Sort(s.lines)
	for _, l := range s.lines {
		s.minutes.WriteString(l)
	}
	s.lines = s.lines[:0]
}

// text returns the minutes.
func (s *story) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	return s.minutes.String()
}
