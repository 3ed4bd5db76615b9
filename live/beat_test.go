package live_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/live"
)

// The first message of a resumed watch is a heartbeat with the revision that the client has. With any other
// revision the client would conclude that it had missed a value.
func TestWatch_HeartbeatsOfAResumedWatchHaveItsRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.worker("a", live.Config{})
		w.send("add", 1)
		w.settled(1)
		_, rev := w.logged("n")
		ctx, cancel := context.WithTimeout(t.Context(), 3*live.Heartbeat)
		defer cancel()
		var beats []uint64
		_ = p.Watch(ctx, live.Watch{Space: "s", Document: "n", From: live.At(rev)}, func(e live.Event) error { // ends with ctx
			if e.Kind == live.Beating {
				beats = append(beats, e.Revision)
			}
			return nil
		})
		if len(beats) < 3 {
			t.Errorf("received %d heartbeats in %v", len(beats), 3*live.Heartbeat)
		}
		for _, got := range beats {
			if got != rev {
				t.Errorf("heartbeat with revision %d, want %d", got, rev)
			}
		}
		time.Sleep(time.Second)
	})
}
