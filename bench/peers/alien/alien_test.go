package alien

import "testing"

func TestAnEffectThatWritesRunsOthers(t *testing.T) {
	var s System
	a, b := NewSignal(&s, 1), NewSignal(&s, 0)
	Effect(&s, func() { b.Set(2 * a.Get()) })
	seen := 0
	Effect(&s, func() { seen = b.Get() })
	if seen != 2 {
		t.Fatalf("at first: %d", seen)
	}
	a.Set(5)
	if seen != 10 {
		t.Errorf("after a write: %d instead of 10", seen)
	}
}

func TestABatchThatEndsWhereItBeganRunsNothing(t *testing.T) {
	var s System
	a := NewSignal(&s, "x")
	runs := 0
	Effect(&s, func() { runs++; a.Get() })
	Batch(&s, func() { a.Set("y"); a.Set("x") })
	if runs != 1 {
		t.Errorf("%d runs instead of the first", runs)
	}
}

func TestWhatNobodyReadsIsNotComputed(t *testing.T) {
	var s System
	on, a := NewSignal(&s, true), NewSignal(&s, 1)
	runs := 0
	c := NewComputed(&s, func() int { runs++; return a.Get() })
	Effect(&s, func() {
		if on.Get() {
			c.Get()
		}
	})
	on.Set(false)
	a.Set(2)
	if runs != 1 {
		t.Errorf("%d runs; the second had no reader", runs)
	}
	if a.readers != nil {
		t.Error("a node without readers is still among the readers of others")
	}
	if got := c.Get(); got != 2 {
		t.Errorf("read again: %d", got)
	}
}

func TestADeepGraphNeedsNoStack(t *testing.T) {
	var s System
	a := NewSignal(&s, 0)
	last := NewComputed(&s, func() int { return a.Get() + 1 })
	for range 100000 {
		c := last
		c.Get() // one by one, since the first computation is recursive
		last = NewComputed(&s, func() int { return c.Get() + 1 })
	}
	seen := 0
	Effect(&s, func() { seen = last.Get() })
	a.Set(1)
	if seen != 100002 {
		t.Errorf("the end of the chain is %d", seen)
	}
}
