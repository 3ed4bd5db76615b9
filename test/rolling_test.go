package test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/worker"
)

// Every worker is cleanly restarted, one after the other, twice. Calls, reads at the head and watches
// take a little longer during that time; none gets an error, or a value older than the previous one.
func TestRollingRestart_RequestsWaitAndDoNotFail(t *testing.T) {
	t.Parallel()
	d := deploy(t, settle.Config{Programs: settle.Always(relay()), Workers: -1, Bus: bus.Config{Partitions: 4}})
	ids := []string{"r1", "r2", "r3"}
	f := &rolled{t: t, d: d, workers: map[string]rolledWorker{}}
	for _, id := range ids {
		f.start(id)
	}
	ctx, enough := context.WithCancel(testContext(t))
	defer enough()
	var asking sync.WaitGroup
	var answers atomic.Int64
	for _, space := range []string{"a", "b", "c", "d"} {
		asking.Go(func() { keepCalling(ctx, t, d.Client(), space, &answers) }) // ends with ctx
		asking.Go(func() { keepGetting(ctx, t, d.Client(), space, &answers) }) // likewise
		asking.Go(func() { keepWatching(ctx, t, d.Client(), space) })          // likewise
	}
	for range 2 {
		for _, id := range ids {
			f.stop(id)
			f.start(id)
			before := answers.Load()
			until(t, func() bool { return answers.Load() > before+16 })
		}
	}
	enough()
	asking.Wait()
	for _, id := range ids {
		f.stop(id)
	}
}

// rolled is a fleet whose workers are restarted one at a time.
type rolled struct {
	t       *testing.T
	d       *deployment
	workers map[string]rolledWorker
	// programs returns the programs that a worker runs; nil for relay.
	programs func(id string) settle.Programs
}

type rolledWorker struct {
	bus    *bus.Bus
	worker *worker.Worker
}

func (f *rolled) start(id string) {
	f.t.Helper()
	b := connect(f.t, f.d)
	programs := settle.Always(relay())
	if f.programs != nil {
		programs = f.programs(id)
	}
	w, err := settle.StartWorker(testContext(f.t), b, settle.WorkerConfig{
		ID: id, Programs: programs, Options: worker.Options{Heartbeat: f.d.cfg.Heartbeat, MemberTTL: f.d.cfg.MemberTTL, Checkpoint: f.d.cfg.Checkpoint},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.workers[id] = rolledWorker{b, w}
}

func (f *rolled) stop(id string) {
	f.t.Helper()
	w := f.workers[id]
	stop(f.t, w.worker.Stop)
	w.bus.Close()
	delete(f.workers, id)
}

// keepCalling sends events and waits for the receipt of each: each is counted once.
func keepCalling(ctx context.Context, t *testing.T, c *settle.Client, space string, answers *atomic.Int64) {
	for n := int64(1); ctx.Err() == nil; n++ {
		rc, err := c.Call(ctx, flight(int(n), space, space+"-target"))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil || rc.Result.String() != fmt.Sprint(n):
			t.Errorf("call %d of %s: %+v, %v", n, space, rc, err)
			return
		}
		answers.Add(1)
	}
}

// keepGetting reads a derived document, which is computed for each read.
func keepGetting(ctx context.Context, t *testing.T, c *settle.Client, space string, answers *atomic.Int64) {
	for last := uint64(0); ctx.Err() == nil; {
		now, err := c.Space(space).GetCurrent(ctx, "total")
		switch {
		case ctx.Err() != nil:
			return
		case err != nil || !now.Current || now.Revision < last:
			t.Errorf("total of %s after revision %d: %+v, %v", space, last, now, err)
			return
		}
		last = now.Revision
		answers.Add(1)
	}
}

func keepWatching(ctx context.Context, t *testing.T, c *settle.Client, space string) {
	last := uint64(0)
	for u, err := range c.Space(space).Watch(ctx, "departed") {
		if err != nil {
			t.Errorf("the watch of %s ended: %v", space, err)
			return
		}
		if u.Revision < last {
			t.Errorf("%s at revision %d is seen after %d", space, u.Revision, last)
		}
		last = u.Revision
	}
}
