package worker_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
)

// To load a dormant space for an event and to evict it again costs exactly these store requests, in this
// order. Half of them come after the receipt.
func TestEviction_RequestsPerActivation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.idler("w1")
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		w.eventuallyEmpty(w1)
		var mu sync.Mutex
		var asked []string
		w1.Bus.Inject(func(op membus.Op) membus.Fate {
			mu.Lock()
			defer mu.Unlock()
			if op.Space == "s" {
				asked = append(asked, op.Label)
			}
			return membus.Deliver
		})
		w.Send("s", "add", "e2")
		w.Pass(10 * time.Second)
		w.eventuallyEmpty(w1)
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"load", "read-log", "append", "append", "save", "save"}; !slices.Equal(asked, want) {
			t.Errorf("the requests were %v, want %v", asked, want)
		}
	})
}
