package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// story records the events of a run, in order. Two runs of a seed are compared by its hash; the minutes
// are for people, and are recorded only on demand.
type story struct {
	begin time.Time

	mu      sync.Mutex
	verbose bool
	minutes strings.Builder
	// lines are the minutes of the instant noted, whose order has no meaning either.
	lines []string
	noted time.Duration
	hash  uint64
	// The order within an instant has no meaning: at is the current instant, acc its sum.
	at    time.Duration
	acc   uint64
	steps int
}

func newStory(verbose bool) *story { return &story{begin: time.Now(), verbose: verbose} }

func (s *story) now() time.Duration { return time.Since(s.begin) }

// tell adds an entry to the story; its parts are strings and numbers.
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
