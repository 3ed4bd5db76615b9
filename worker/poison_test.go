package worker_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// poisonous is a program whose handler of poison kills the process that runs it.
func poisonous(t *testing.T, alive chan *process) *space.Program {
	t.Helper()
	p := book(t)
	err := p.Handle("poison", func(*space.Tx, *model.Event) (model.Value, error) {
		(<-alive).Crash()         // which may still be starting
		return model.Value{}, nil // the result is lost
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A supervisor restarts the process every time. The event that kills it fails after a few attempts, with
// their number in its receipt; events around it, and those of another space in the same process, are handled.
func TestPoison_AHandlerThatKillsItsProcessFailsAfterAFewAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		alive := make(chan *process, 1)
		died := 0
		start := func() {
			alive <- w.process(worker.Config{ID: "w1", Programs: worldtest.Always(poisonous(t, alive))}, nil)
		}
		w.Send("s", "add", "e1")
		w.Send("s", "poison", "bad")
		w.Send("s", "add", "e2")
		for i := range 5 {
			w.Send("other", "add", fmt.Sprintf("o%d", i+1))
		}
		start()
		for range 2000 {
			w.Pass(50 * time.Millisecond)
			if len(w.Receipts("s")) == 3 && len(w.Receipts("other")) == 5 {
				break
			}
			if len(alive) == 0 {
				died++
				start()
			}
		}
		var got []string
		for _, rc := range w.Receipts("s") {
			got = append(got, fmt.Sprint(rc.Event, " ", rc.Outcome, " ", rc.Attempts))
		}
		if want := []string{"e1 handled 0", "bad failed 3", "e2 handled 0"}; !slices.Equal(got, want) {
			t.Errorf("receipts %v, want %v", got, want)
		}
		if died < 3 || died > 6 {
			t.Errorf("the process died %d times", died)
		}
		w.wantHandled("other", "o1", "o2", "o3", "o4", "o5")
	})
}
