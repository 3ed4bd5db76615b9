package test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/raced"
)

// messages returns how many messages each stream of the deployment has, but for what the workers say of themselves.
func (d *deployment) messages(ctx context.Context, t *testing.T) map[string]uint64 {
	t.Helper()
	out := map[string]uint64{}
	streams := d.Bus().JetStream().ListStreams(ctx)
	for s := range streams.Info() {
		if s.Config.Name != "KV_SETTLE_WORKERS" {
			out[s.Config.Name] = s.State.Msgs
		}
	}
	if err := streams.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Three thousand reads and a thousand watches of names that do not exist leave no message in any stream.
func TestUnborn_ReadsAndWatchesLeaveNoMessage(t *testing.T) {
	d := deploy(t, settle.Config{Programs: settle.Always(relay())})
	ctx := testContext(t)
	before := d.messages(ctx, t)
	gets, asking := errgroup.WithContext(ctx)
	gets.SetLimit(50)
	for i := range raced.Fewer(3000, 5) {
		gets.Go(func() error { // ends with the answer
			v, err := d.Client().Space(fmt.Sprint("read-", i)).GetCurrent(asking, "total")
			if err == nil && v.Value.String() != "0" {
				err = fmt.Errorf("space read-%d: total is %s, want 0, which follows from nothing", i, v.Value)
			}
			return err
		})
	}
	if err := gets.Wait(); err != nil {
		t.Fatal(err)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var watches, first sync.WaitGroup
	n := raced.Fewer(1000, 5)
	first.Add(n)
	for i := range n {
		watches.Go(func() { // ends with watching
			begun := sync.OnceFunc(first.Done)
			defer begun()
			for _, err := range d.Client().Space(fmt.Sprint("watched-", i)).Watch(watching, "total") {
				if err != nil {
					t.Error(err)
				}
				begun()
			}
		})
	}
	first.Wait()
	if after := d.messages(ctx, t); !maps.Equal(before, after) {
		t.Errorf("messages of the streams before %v and after %v", before, after)
	}
	stop()
	watches.Wait()
	if after := d.messages(ctx, t); !maps.Equal(before, after) {
		t.Errorf("messages of the streams before %v and at the end %v", before, after)
	}
}
