package coordinator_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// counter is a bus that counts dead letters, and records how often.
type counter struct {
	port.Bus
	times atomic.Int64
	err   error
}

func (c *counter) CountDead(context.Context, string, string) (model.DeadCounts, error) {
	return model.DeadCounts{}, nil
}

func (c *counter) KeepDeadTotals(context.Context) error {
	c.times.Add(1)
	return c.err
}

// A coordinator maintains the totals of the dead letters as long as it runs, even if another one was quicker,
// and logs once that its user lacks the permission.
func TestCountLetters(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		times int64
		said  int
	}{
		"kept":            {nil, 13, 0},
		"by another":      {model.ErrOutdated, 13, 0},
		"it may not":      {model.ErrForbidden, 1, 1},
		"it did not work": {context.DeadlineExceeded, 13, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				b := &counter{Bus: w.Connect("c"), err: c.err}
				co := w.CoordinatorOn(b, coordinator.Config{})
				time.Sleep(time.Minute + time.Second)
				co.Stop()
				if n := b.times.Load(); n != c.times {
					t.Errorf("the letters were counted %d times in a minute, want %d", n, c.times)
				}
				if n := w.Log.Count("may not store them"); n != c.said {
					t.Errorf("the missing permission was logged %d times: %s", n, w.Log)
				}
			})
		})
	}
}
