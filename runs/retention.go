package runs

import (
	"fmt"
	"time"
)

// Retention bounds how many runs of a workflow stay in a space after their end, and how long. Those that ended first
// go when another run of the workflow starts or ends.
type Retention struct {
	// Runs is the number of runs that stay, 0 for as many as the space keeps.
	Runs int
	// For is how long they stay, 0 for as long as the space keeps them.
	For time.Duration
}

// maxRetention is the longest time of a Retention.
const maxRetention = 10 * 366 * 24 * time.Hour

func (r Retention) check() error {
	switch {
	case r.Runs < 0 || r.Runs > maxEnded:
		return fmt.Errorf("%d runs cannot be kept; at most %d are", r.Runs, maxEnded)
	case r.For < 0 || r.For > maxRetention:
		return fmt.Errorf("runs cannot be kept for %v; at most for %v", r.For, maxRetention)
	}
	return nil
}

// Keep sets the retention of the runs of a workflow.
func (s *Set) Keep(workflow string, r Retention) error {
	d := s.byName[workflow]
	if d == nil {
		return fmt.Errorf("there is no workflow %q of which runs could be kept", workflow)
	}
	if err := r.check(); err != nil {
		return fmt.Errorf("workflow %s: %w", workflow, err)
	}
	d.retention = r
	return nil
}

// retain removes runs of a workflow that have ended, by its retention. The run that has just ended stays.
func (h *host) retain(workflow, just string) {
	d := h.set.byName[workflow]
	if d == nil || d.retention == (Retention{}) {
		return
	}
	var list []endedRun
	for _, e := range h.ended() {
		if name, _ := h.tx.Peek(Index, e.id, "workflow").AsString(); name == workflow && e.id != just {
			list = append(list, e)
		}
	}
	excess, oldest := 0, h.now()-d.retention.For.Milliseconds()
	if n := d.retention.Runs; n > 0 {
		excess = len(list) - n
		if just != "" {
			excess++
		}
	}
	for i, e := range list[:min(len(list), maxRemoved)] {
		if i < excess || d.retention.For > 0 && e.at < oldest {
			h.remove(e.id)
		}
	}
}
