package demo

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// frameTime is how often the screen is drawn.
const frameTime = 100 * time.Millisecond

// liveScreen redraws a table in place.
type liveScreen struct {
	f     *os.File
	frame *frame
	ends  chan struct{}
	done  sync.WaitGroup

	mu    sync.Mutex
	look  func() Snapshot
	lines int // on the screen now
}

// Terminal control sequences. A frame between syncOn and syncOff appears at once on terminals that
// support them; others ignore them.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	syncOn     = "\x1b[?2026h"
	syncOff    = "\x1b[?2026l"
	eraseLine  = "\x1b[K"
	eraseBelow = "\x1b[J"
)

func (s *liveScreen) Start(p Plan, look func() Snapshot) {
	s.look, s.ends = look, make(chan struct{})
	s.frame.begin(look().Total)
	s.write(strings.Join(p.heading(s.frame.style), "\n") + "\n\n" + hideCursor)
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
	s.write(s.home() + eraseBelow + showCursor)
	s.lines = 0
}

// draw draws a new frame over the last one. Lines are cut to the width, because a wrapped line
// would be two.
func (s *liveScreen) draw() {
	now := s.look()
	width, height, err := term.GetSize(int(s.f.Fd()))
	if err != nil || width <= 0 {
		width, height = 80, 24
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.frame.render(now, width-1, height-1)
	var b strings.Builder
	b.WriteString(syncOn + s.home())
	for _, line := range lines {
		b.WriteString(line + eraseLine + "\n")
	}
	b.WriteString(eraseBelow + syncOff)
	s.lines = len(lines)
	s.write(b.String())
}

// home moves the cursor to the first line of the frame.
func (s *liveScreen) home() string { return "\r" + strings.Repeat("\x1b[A", s.lines) }

func (s *liveScreen) write(text string) {
	_, _ = s.f.WriteString(text) // an error means that the terminal is gone
}
