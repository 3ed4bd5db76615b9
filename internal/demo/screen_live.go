package demo

import (
	"os"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/redraw"
)

// frameTime is how often the screen is drawn.
const frameTime = 100 * time.Millisecond

// liveScreen redraws a table in place.
type liveScreen struct {
	f      *os.File
	screen *redraw.Screen
	frame  *frame
	ends   chan struct{}
	done   sync.WaitGroup

	mu   sync.Mutex
	look func() Snapshot
}

func (s *liveScreen) Start(p Plan, look func() Snapshot) {
	s.look, s.ends = look, make(chan struct{})
	s.frame.begin(look().Total)
	_, _ = s.f.WriteString(strings.Join(p.heading(s.frame.style), "\n") + "\n\n") // an error means that the terminal is gone
	s.screen.Begin()
	s.draw()
	s.done.Go(func() { everyFrame(s.ends, s.draw) }) // ends with Stop
}

// everyFrame calls draw once a frame, until ends is closed.
func everyFrame(ends <-chan struct{}, draw func()) {
	t := time.NewTicker(frameTime)
	defer t.Stop()
	for {
		select {
		case <-ends:
			return
		case <-t.C:
			draw()
		}
	}
}

func (s *liveScreen) Note(n Note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frame.notes = append(s.frame.notes, n)
}

// Stop removes the table; the summary takes its place.
func (s *liveScreen) Stop() {
	close(s.ends)
	s.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.screen.End()
}

// draw draws a new frame over the last one.
func (s *liveScreen) draw() {
	now := s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	columns, rows := s.screen.Size()
	s.screen.Draw(s.frame.render(now, columns, rows))
}
