package main

import (
	"fmt"
	"math"
	"runtime"
	"time"
)

// result is the cost of an update of a shape on an engine.
type result struct {
	ns     float64
	runs   float64
	allocs float64
	bytes  float64
}

// clock returns the wall time, or the CPU time of this process (flag -cpu).
var clock = wallTime

var start = time.Now()

func wallTime() time.Duration { return time.Since(start) }

// measure runs a shape on a new engine for about the given time, in a goroutine of its own, because an engine
// may keep its state by goroutine.
func measure(c *contender, s *shape, about time.Duration) (result, error) {
	type outcome struct {
		result
		err error
	}
	done := make(chan outcome)
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				o.err = fmt.Errorf("panic: %v", p)
			}
			done <- o
		}()
		if s.once {
			o.result, o.err = once(c, s)
		} else {
			o.result, o.err = many(c, s, about)
		}
	}()
	o := <-done
	return o.result, o.err
}

func many(c *contender, s *shape, about time.Duration) (result, error) {
	w := &world{engine: c.make()}
	defer w.close()
	iterate := s.build(w)
	next := 0
	run := func(n int) time.Duration {
		began := time.Now()
		for range n {
			iterate(next)
			next++
		}
		return time.Since(began)
	}
	// The first iteration is not representative. Then as many follow as clock and caches need for a stable
	// figure.
	n, took := 1, run(1)
	for took < about/10 {
		n *= 4
		took = run(n)
	}
	n = max(1, int(float64(n)*float64(about)/float64(max(took, 1))))
	return timed(w, s, n, func() { run(n) })
}

func once(c *contender, s *shape) (result, error) {
	w := &world{engine: c.make()}
	defer w.close()
	iterate := s.build(w)
	return timed(w, s, 1, func() { iterate(0) })
}

func timed(w *world, s *shape, n int, work func()) (result, error) {
	var before, after runtime.MemStats
	runs := w.runs
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := clock()
	work()
	took := clock() - began
	runtime.ReadMemStats(&after)
	updates := float64(n * s.updates)
	return result{
		ns:     float64(took.Nanoseconds()) / updates,
		runs:   float64(w.runs-runs) / updates,
		allocs: float64(after.Mallocs-before.Mallocs) / updates,
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / updates,
	}, w.wrong
}

// better merges the measurements of two rounds: noise only adds. Run counts are the same each time, or one of
// them violates the contract.
func (r result) better(o result, expected float64) result {
	if r.ns == 0 {
		return o
	}
	if math.Abs(o.runs-expected) > math.Abs(r.runs-expected) {
		r.runs = o.runs
	}
	r.ns = min(r.ns, o.ns)
	r.allocs = min(r.allocs, o.allocs)
	r.bytes = min(r.bytes, o.bytes)
	return r
}
