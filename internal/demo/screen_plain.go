package demo

import (
	"fmt"
	"io"
	"sync"

	"github.com/settlehq/settle/internal/display"
)

// plainScreen writes a few lines, for a log or a pipe.
type plainScreen struct {
	w    io.Writer
	look func() Snapshot
	ends chan struct{}
	done sync.WaitGroup

	mu       sync.Mutex
	quarters int // reported quarters of the run
	phase    Phase
}

func (s *plainScreen) Start(p Plan, look func() Snapshot) {
	s.look, s.ends, s.phase = look, make(chan struct{}), Starting
	s.print("%s", p.title())
	s.done.Go(func() { everyFrame(s.ends, func() { s.progress(s.look()) }) }) // ends with Stop
}

// progress reports every quarter, and every phase after that.
func (s *plainScreen) progress(now Snapshot) {
	quarters := 4 * now.Handled / max(now.Total, 1)
	s.mu.Lock()
	further, next := quarters > s.quarters, now.Phase != s.phase
	s.quarters, s.phase = quarters, now.Phase
	s.mu.Unlock()
	if further {
		s.print("%3d %%  %s of %s departures and arrivals handled after %.1f s", 25*quarters, display.Grouped(now.Handled), display.Grouped(now.Total), now.Elapsed.Seconds())
	}
	if next && (now.Phase == Saving || now.Phase == Verifying) {
		s.print("       %s", now.Phase.sentence())
	}
}

func (s *plainScreen) Note(n Note) { s.print("%3.0f %%  %s", 100*n.Share, n.text()) }

func (s *plainScreen) Stop() {
	close(s.ends)
	s.done.Wait()
	s.progress(s.look())
	s.print("")
}

func (s *plainScreen) print(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.w, format+"\n", args...) // an error means that the log is closed
}
