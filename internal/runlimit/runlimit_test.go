package runlimit

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// watched makes checks, and records when code was found to be over its limit, and late.
type watched struct {
	Looks

	mu         sync.Mutex
	began      time.Time
	over, late time.Duration
	looked     int
}

func (w *watched) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	over, late := w.Look()
	w.looked++
	if so := time.Since(w.began); over && w.over == 0 {
		w.over = so
	}
	if late && w.late == 0 {
		w.late = time.Since(w.began)
		w.Rest()
	}
}

func (w *watched) begin(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began, w.over, w.late = time.Now(), 0, 0
	w.Begin(limit, w.check)
}

func (w *watched) found() (over, late time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over, w.late
}

func TestLooks_FindWhatDoesNotReturn(t *testing.T) {
	for _, limit := range []time.Duration{20 * time.Millisecond, time.Second, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := &watched{}
			w.begin(limit)
			time.Sleep(2*limit + 3*Grace)
			synctest.Wait()
			over, late := w.found()
			if slack := 2 * pace(limit); over < limit || over > limit+slack {
				t.Errorf("a limit of %s was found to be over after %s", limit, over)
			} else if late < limit+Grace || late > limit+Grace+slack {
				t.Errorf("with a limit of %s it was late after %s", limit, late)
			}
		})
	}
}

// Code that returns in time is never reported, however often it runs.
func TestLooks_BlameNothingThatReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{}
		for range 100 {
			w.begin(time.Second)
			time.Sleep(700 * time.Millisecond)
			w.mu.Lock()
			w.Return()
			w.mu.Unlock()
			if over, _ := w.found(); over > 0 {
				t.Fatalf("it was found to be over after %s", over)
			}
		}
		w.mu.Lock()
		w.timer.Stop()
		w.mu.Unlock()
	})
}

func TestLooks_WithoutALimitThereAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{}
		w.begin(0)
		time.Sleep(time.Hour)
		synctest.Wait()
		if w.looked > 0 || w.timer != nil {
			t.Errorf("it was looked at %d times", w.looked)
		}
	})
}

func TestAbandoned_AreBounded(t *testing.T) {
	var a Abandoned
	for range MaxAbandoned {
		if !a.Add() {
			t.Fatal("there is no room for one that may be given up")
		}
	}
	if a.Add() || a.Now() != MaxAbandoned {
		t.Errorf("%d were given up", a.Now())
	}
	if a.Done(); !a.Add() {
		t.Error("one has ended, and there is no room")
	}
}

// Code with a limit of an hour, or without a limit, is late one grace period after its limit was ended.
func TestLooks_AnEndedLimitLeavesTheGrace(t *testing.T) {
	for _, limit := range []time.Duration{time.Hour, -1} {
		synctest.Test(t, func(t *testing.T) {
			w := &watched{}
			w.begin(limit)
			time.Sleep(time.Minute)
			w.mu.Lock()
			w.began = time.Now()
			w.End(w.check)
			w.mu.Unlock()
			time.Sleep(3 * Grace)
			synctest.Wait()
			if _, late := w.found(); late < Grace || late > 2*Grace {
				t.Errorf("with a limit of %s it was late %s after the limit was ended", limit, late)
			}
		})
	}
}
