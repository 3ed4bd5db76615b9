package space

import (
	"cmp"
	"time"
)

// runTimes has the run statistics of one node. The core has no clock: the host measures and reports
// durations.
type runTimes struct {
	runCount    uint64
	totalTime   time.Duration
	lastRunTime time.Duration
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

// autoDebounceSettings define which effects are slow. Zero fields have defaults.
type autoDebounceSettings struct {
	average time.Duration // minimum average run time; default 50 ms
	runs    uint64        // minimum number of runs; default 3
	delay   time.Duration // the debounce that a slow effect gets; default 100 ms
}

func (s autoDebounceSettings) filled() autoDebounceSettings {
	s.average = cmp.Or(s.average, 50*time.Millisecond)
	s.runs = cmp.Or(s.runs, 3)
	s.delay = cmp.Or(s.delay, 100*time.Millisecond)
	return s
}

// autoDebounce debounces slow effects automatically. A single slow first run does not count, because caches
// were cold; and an effect that becomes fast loses its debounce as the average falls.
//
// The zero value keeps statistics and never delays. Computations, which others wait for, and nodes that have
// opted out use it.
type autoDebounce struct {
	runTimes
	policy *autoDebounceSettings // shared by all nodes of a space; nil disables the debounce
}

// delay returns the debounce in force, 0 for none.
func (p *autoDebounce) delay() time.Duration {
	if p.policy == nil || p.runCount < p.policy.runs || p.averageTime() < p.policy.average {
		return 0
	}
	return p.policy.delay
}
