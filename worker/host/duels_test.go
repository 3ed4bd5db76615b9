package host

import (
	"testing"
	"time"
)

// Two owners that take a space from each other leave it to each other for longer and longer, until one of them has
// handled an event.
func TestDuels_LivesGrowUntilAnEventIsHandled(t *testing.T) {
	t.Parallel()
	const heartbeat = 100 * time.Millisecond
	ds := duels{}
	end := func(deposed, handled bool) time.Duration {
		h := newTestHost(t, 0)
		h.deposed.Store(deposed)
		h.handled.Store(handled)
		return ds.ended(h, heartbeat)
	}
	for n, want := range []time.Duration{0, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000} {
		if got := end(true, false); got != want*time.Millisecond {
			t.Errorf("after %d lives without an event, the space rests for %v, not %v", n+1, got, want*time.Millisecond)
		}
	}
	if got := end(true, true); got != 0 {
		t.Errorf("after an event was handled, the space rests for %v", got)
	}
	if got := end(true, false); got != 0 {
		t.Errorf("the count goes on after an event was handled: %v", got)
	}
	end(false, false) // an eviction
	if len(ds) != 0 {
		t.Errorf("spaces are remembered that nothing fights for: %v", ds)
	}
}

// Nothing loads a space that rests, not even an event.
func TestDuels_ASpaceThatRestsIsNotLoaded(t *testing.T) {
	t.Parallel()
	fs := failings{}
	now := time.Now()
	fs.rests("s", now, 0)
	if len(fs) != 0 {
		t.Errorf("a space rests for nothing: %v", fs)
	}
	fs.rests("s", now, time.Second)
	if left := fs.left("s", now.Add(300*time.Millisecond)); left != 700*time.Millisecond {
		t.Errorf("it rests for another %v", left)
	}
}
