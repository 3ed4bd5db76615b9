package main

import (
	"fmt"
	"runtime"
	"time"
)

// result is what a shape came to on an engine, per update.
type result struct {
	ns     float64
	runs   float64
	allocs float64
	bytes  float64
}

// warm is how many iterations come before what is measured.
const warm = 2

// measure runs a shape on a new engine for about the given time. It has a goroutine of
// its own, because an engine may keep its state by goroutine.
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
	began := time.Now()
	for i := range warm {
		iterate(i)
	}
	n := 1
	if each := time.Since(began) / warm; each < about {
		n = int(about / max(each, 20*time.Nanosecond))
	}
	return timed(w, s, n, func() {
		for i := range n {
			iterate(warm + i)
		}
	})
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
	began := time.Now()
	work()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	updates := float64(n * s.updates)
	return result{
		ns:     float64(took.Nanoseconds()) / updates,
		runs:   float64(w.runs-runs) / updates,
		allocs: float64(after.Mallocs-before.Mallocs) / updates,
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / updates,
	}, w.wrong
}

// better merges the measurements of two rounds: noise only ever adds.
func (r result) better(o result) result {
	if r.ns == 0 {
		return o
	}
	r.ns = min(r.ns, o.ns)
	r.allocs = min(r.allocs, o.allocs)
	r.bytes = min(r.bytes, o.bytes)
	return r
}
