//go:build unix

package main

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/pause"
)

// supervisor restarts processes that have ended unexpectedly, as systemd would: a process that is
// started while no server can be reached, for example, reports that and exits.
type supervisor struct {
	d *deployment

	mu       sync.Mutex
	restarts int
	// crashes are unexpected ends of processes.
	crashes []string
}

// restartAfter is the delay before a restart.
const restartAfter = 500 * time.Millisecond

// run supervises until ctx ends.
func (s *supervisor) run(ctx context.Context) {
	for pause.For(ctx, restartAfter) == nil {
		for _, c := range s.d.all() {
			if err := c.fell(); err != nil && ctx.Err() == nil {
				s.note(c, err)
				_ = c.start(false) // an error means that it was started meanwhile
			}
		}
	}
}

// crashed returns the first crash, "" for none.
func (s *supervisor) crashed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.crashes) == 0 {
		return ""
	}
	return s.crashes[0]
}

func (s *supervisor) note(c *child, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarts++
	if code := c.exitCode(); code != 1 {
		s.crashes = append(s.crashes, fmt.Sprintf("%v (exit code %d)", err, code))
	}
}

// exitCode returns how the process has ended; -1 by a signal.
func (c *child) exitCode() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if exit, ok := c.err.(*exec.ExitError); ok { //nolint:errorlint // Wait returns it as it is
		return exit.ExitCode()
	}
	return 0
}
