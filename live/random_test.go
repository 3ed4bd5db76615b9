package live_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/live"
)

// Workers and connections fail at random. Watches never go back (seen checks that) and end with the value in
// the log, and no get returns an older revision than the one before.
func TestLive_NeverGoesBackAndConverges(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { disturb(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

// disturb sends events while workers start, leave and crash, and connections break.
func disturb(t *testing.T, r *rand.Rand) {
	w := newWorld(t)
	workers := []*process{w.worker("w0", live.Config{}), w.worker("w00", live.Config{})}
	watches := []*seen{w.follow("double", 0), w.follow("n", 0), w.follow("double", 0)}
	var got uint64
	for i := range 40 {
		switch k := r.IntN(len(workers)); r.IntN(8) {
		case 0:
			workers = append(workers, w.worker("w"+strconv.Itoa(i+1), live.Config{}))
		case 1:
			if len(workers) > 1 {
				workers[k].Crash()
				workers = append(workers[:k], workers[k+1:]...)
			}
		case 2:
			if len(workers) > 1 {
				workers[k].Shutdown()
				workers = append(workers[:k], workers[k+1:]...)
			}
		case 3:
			workers[k].Bus.Disconnect()
			w.Pass(time.Duration(r.IntN(3000)) * time.Millisecond)
			workers[k].Bus.Reconnect()
		case 4:
			w.Client.Disconnect()
			w.Pass(time.Duration(r.IntN(3000)) * time.Millisecond)
			w.Client.Reconnect()
		case 5:
			a := w.get("double")
			if a.Revision < got {
				t.Errorf("a get returned revision %d after %d", a.Revision, got)
			}
			got = a.Revision
		default:
			w.send("add", 1+r.IntN(3))
		}
		w.Pass(time.Duration(r.IntN(400)) * time.Millisecond)
	}
	w.settled(w.sent)
	for i, want := range []int{2 * w.sent, w.sent, 2 * w.sent} {
		w.Eventually("the last value is delivered", func() bool { return watches[i].last() == strconv.Itoa(want) })
		s := watches[i].of(live.Value)
		if _, rev := w.logged([]string{"double", "n", "double"}[i]); s[len(s)-1].Revision != rev {
			t.Errorf("the last revision is %d, the log has %d", s[len(s)-1].Revision, rev)
		}
	}
	// Nothing runs without watchers.
	for _, s := range watches {
		_ = s.stop()
	}
	w.Pass(time.Minute)
	n := w.ran()
	w.send("add", 1)
	w.settled(w.sent)
	w.Pass(time.Minute)
	if w.ran() != n {
		t.Errorf("it ran %d times after the last watch", w.ran()-n)
	}
}
