package space

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func debouncedAfter(tooks ...time.Duration) *autoDebounce {
	policy := autoDebounceSettings{}.filled()
	p := &autoDebounce{policy: &policy}
	for _, took := range tooks {
		p.ran(took)
	}
	return p
}

func TestF13_ASlowEffectIsDebouncedAutomatically(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		tooks []time.Duration
		want  time.Duration
	}{
		{"no run", nil, 0},
		{"one very slow run", []time.Duration{time.Hour}, 0},
		{"two slow runs are too few", []time.Duration{80 * ms, 80 * ms}, 0},
		{"three runs of exactly 50 ms", []time.Duration{50 * ms, 50 * ms, 50 * ms}, 100 * ms},
		{"a nanosecond less", []time.Duration{50 * ms, 50 * ms, 50*ms - 1}, 0},
		{"fast", []time.Duration{ms, 2 * ms, 3 * ms, 4 * ms}, 0},
		{"one slow run among fast ones, slow on average", []time.Duration{0, 0, 150 * ms}, 100 * ms},
		{"one slow run among fast ones, fast on average", []time.Duration{0, 149 * ms, 0}, 0},
		{"the last of many counts as much as the first", []time.Duration{100 * ms, 100 * ms, 100 * ms, 0, 0, 0}, 100 * ms},
	} {
		if got := debouncedAfter(c.tooks...).delay(); got != c.want {
			t.Errorf("%s: delay %v, want %v", c.name, got, c.want)
		}
	}
}

func TestF13_AnEffectThatBecomesFastIsNoLongerDebounced(t *testing.T) {
	p := debouncedAfter(60*time.Millisecond, 60*time.Millisecond, 60*time.Millisecond)
	if p.delay() == 0 {
		t.Fatal("no delay after three slow runs")
	}
	p.ran(0)
	if got := p.delay(); got != 0 {
		t.Errorf("delay %v at an average of %v", got, p.averageTime())
	}
}

// A computation, and a node that has opted out, have no policy.
func TestF13_WithoutAPolicyNothingIsDelayedAndStatisticsAreKept(t *testing.T) {
	var p autoDebounce
	for range 5 {
		p.ran(time.Second)
	}
	if got := p.delay(); got != 0 {
		t.Errorf("delay %v, want none", got)
	}
	if p.runCount != 5 || p.totalTime != 5*time.Second {
		t.Errorf("%d runs of %v in all, want 5 of 5s", p.runCount, p.totalTime)
	}
}

func TestF13_TheLimitsAreSettings(t *testing.T) {
	policy := autoDebounceSettings{average: time.Second, runs: 1, delay: time.Minute}.filled()
	p := autoDebounce{policy: &policy}
	p.ran(time.Second)
	if got := p.delay(); got != time.Minute {
		t.Errorf("delay %v, want 1m", got)
	}
}

func TestRunTimesStartAtNothing(t *testing.T) {
	var r runTimes
	if r.averageTime() != 0 || r.runCount != 0 || r.totalTime != 0 || r.lastRunTime != 0 {
		t.Errorf("%+v, average %v before any run", r, r.averageTime())
	}
}

func TestRunTimesAgreeWithTheListOfAllRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var runs []time.Duration
		var total time.Duration
		p := debouncedAfter()
		for range rapid.IntRange(1, 20).Draw(t, "runs") {
			took := time.Duration(rapid.IntRange(0, 100).Draw(t, "ms")) * time.Millisecond
			runs, total = append(runs, took), total+took
			p.ran(took)
			n := time.Duration(len(runs))
			if p.runCount != uint64(n) || p.totalTime != total || p.lastRunTime != took || p.averageTime() != total/n {
				t.Fatalf("after %v: %+v, average %v", runs, p.runTimes, p.averageTime())
			}
			if slow := n >= 3 && total >= n*50*time.Millisecond; slow != (p.delay() > 0) {
				t.Fatalf("after %v: delay %v", runs, p.delay())
			}
		}
	})
}
