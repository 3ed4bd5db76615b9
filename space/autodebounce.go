package space

import (
	"cmp"
	"time"
)

// runTimes are the statistics of one node's runs (ActionStats of seed 000). The core
// has no clock: the durations are those that the host has measured and reported.
type runTimes struct {
	runCount    uint64
	totalTime   time.Duration
	lastRunTime time.Duration // how long the last run took
}

// ran takes in that a run took so long.
func (r *runTimes) ran(took time.Duration) {
	r.runCount++
	r.totalTime += took
	r.lastRunTime = took
}

// averageTime is over all runs so far, 0 if there were none.
func (r *runTimes) averageTime() time.Duration {
	if r.runCount == 0 {
		return 0
	}
	return r.totalTime / time.Duration(r.runCount)
}

// autoDebounceSettings say when an effect is slow. Zero is the default.
type autoDebounceSettings struct {
	average time.Duration // at least this long on average; 50 ms
	runs    uint64        // over at least so many runs; 3
	delay   time.Duration // the debounce that it gets; 100 ms
}

func (s autoDebounceSettings) filled() autoDebounceSettings {
	s.average = cmp.Or(s.average, 50*time.Millisecond)
	s.runs = cmp.Or(s.runs, 3)
	s.delay = cmp.Or(s.delay, 100*time.Millisecond)
	return s
}

// autoDebounce gives a slow effect a debounce of its own accord (seed 000, row F13).
// One first run that is slow, because everything is cold, says nothing; and an effect
// that has become fast gets rid of it as its average falls.
//
// The zero value keeps statistics and never delays. That is right for a computation,
// on which others wait, and for a node that has opted out.
type autoDebounce struct {
	runTimes
	policy *autoDebounceSettings // filled in; nil never delays. All nodes of a space share it
}

// delay returns the debounce that the node should have now, 0 for none.
func (p *autoDebounce) delay() time.Duration {
	if p.policy == nil || p.runCount < p.policy.runs || p.averageTime() < p.policy.average {
		return 0
	}
	return p.policy.delay
}
