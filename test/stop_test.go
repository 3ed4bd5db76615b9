package test

import (
	"errors"
	"sync"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
)

// Workers that are added while the deployment is stopped are stopped with it, or do not
// start: none is left behind.
func TestStop_LeavesNoWorkerBehindThatIsAddedMeanwhile(t *testing.T) {
	t.Parallel()
	for range 3 {
		d := deploy(t, settle.Config{Programs: settle.Always(relay())})
		ctx := testContext(t)
		var adding sync.WaitGroup
		for range 4 {
			adding.Go(func() {
				if _, err := d.AddWorker(ctx); err != nil && !errors.Is(err, model.ErrStopped) {
					t.Errorf("add worker: %v, want ErrEnding", err)
				}
			})
		}
		if err := d.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
		adding.Wait()
		if left := d.Workers(); len(left) > 0 {
			t.Errorf("workers %v are left behind", left)
		}
		if _, err := d.AddWorker(ctx); !errors.Is(err, model.ErrStopped) {
			t.Errorf("add worker after the end: %v, want ErrEnding", err)
		}
	}
}
