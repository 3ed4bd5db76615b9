package space

import (
	"cmp"
	"time"
)

// runTimes has the statistics of one node's runs. The core has no clock: the host measures the durations and
// reports them.
type runTimes struct {
	runCount    uint64
	totalTime   time.Duration
	lastRunTime time.Duration // duration of the last run
}

// ran records the duration of a run.
func (r *runTimes) ran(took time.Duration) {
	r.runCount++
	r.totalTime += took
	r.lastRunTime = took
}

// averageTime returns the average of all runs so far, 0 if there were none.
func (r *runTimes) averageTime() time.Duration {
	if r.runCount == 0 {
		return 0
	}
	return r.totalTime / time.Duration(r.runCount)
}

// autoDebounceSettings define a slow effect. Zero fields have defaults.
type autoDebounceSettings struct {
	average time.Duration // at least this long on average; 50 ms
	runs    uint64        // over at least this many runs; 3
	delay   time.Duration // the debounce that it gets; 100 ms
}

func (s autoDebounceSettings) filled() autoDebounceSettings {
	s.average = cmp.Or(s.average, 50*time.Millisecond)
	s.runs = cmp.Or(s.runs, 3)
	s.delay = cmp.Or(s.delay, 100*time.Millisecond)
	return s
}

// autoDebounce gives a slow effect a debounce automatically. A single slow first run does not count, since
// everything was cold; and an effect that becomes fast loses its debounce as the average falls.
//
// The zero value keeps statistics and never delays. That is right for a computation, which others wait for, and
// for a node that has opted out.
type autoDebounce struct {
	runTimes
	policy *autoDebounceSettings // nil never delays. All nodes of a space share it
}

// delay returns the debounce that the node should have now, 0 for none.
func (p *autoDebounce) delay() time.Duration {
	if p.policy == nil || p.runCount < p.policy.runs || p.averageTime() < p.policy.average {
		return 0
	}
	return p.policy.delay
}
