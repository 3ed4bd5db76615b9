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

// supervisor starts processes again that have ended by themselves, as systemd would: one
// that is started while no server can be reached, for example, says so and exits.
type supervisor struct {
	d *deployment

	mu       sync.Mutex
	restarts int
	// crashes are ends that no process should come to.
	crashes []string
}

// restartAfter is how long a supervisor waits.
const restartAfter = 500 * time.Millisecond

// run supervises until ctx ends.
func (s *supervisor) run(ctx context.Context) {
	for pause.For(ctx, restartAfter) == nil {
		for _, c := range s.d.all() {
			if err := c.fell(); err != nil && ctx.Err() == nil {
				s.note(c, err)
				_ = c.start(false) // if somebody else has, all is well
			}
		}
	}
}

// crashed is the first crash, "" for none.
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

// exitCode is how the process has ended; -1 by a signal.
func (c *child) exitCode() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if exit, ok := c.err.(*exec.ExitError); ok { //nolint:errorlint // Wait returns it as it is
		return exit.ExitCode()
	}
	return 0
}
