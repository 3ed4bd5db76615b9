package worker_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// linesAnHour is how many lines a fault that lasts an hour may write.
const linesAnHour = 9

// wantFewLines checks that the lines of the last hour are few, and that at least faultsAtLeast of them report
// repeated faults.
func (w *world) wantFewLines(before, faultsAtLeast int) {
	w.Helper()
	written, met := worldtest.Faults(w.Log.Lines("")[before:])
	often := 0
	for of, n := range written { // any order: each on its own
		if met[of] >= 100 {
			often++
		}
		if n > linesAnHour {
			w.Errorf("%d lines: %s", n, of)
		}
	}
	if often < faultsAtLeast {
		w.Errorf("%d faults are reported as repeated: %v", often, met)
	}
}

// During an outage of an hour, loops of all kinds retry many thousand times. Each logs the fault at first,
// then at growing intervals with a count of what it has left out. After the outage, all events are handled.
func TestFaults_AnHourWithoutAStoreWritesFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		var outages []*membus.Outage
		outage := func(b *membus.Bus) worker.Bus {
			o := membus.NewOutage(b)
			outages = append(outages, o)
			return o
		}
		p := w.process(worker.Config{ID: "w1"}, outage)
		w.CoordinatorOn(outage(w.Connect("coordinator")), coordinator.Config{ID: "c1"})
		for s := range 6 {
			w.Send(fmt.Sprint("s", s), "add", "e1")
		}
		for s := range 6 {
			w.EventuallyEnded(fmt.Sprint("s", s), 1)
		}
		before := len(w.Log.Lines(""))
		for _, o := range outages {
			o.Begin()
		}
		for s := range 6 {
			w.Send(fmt.Sprint("s", s), "add", "e2")
		}
		w.Pass(time.Hour)
		w.wantFewLines(before, 20)
		for _, o := range outages {
			o.Over()
		}
		for s := range 6 {
			w.EventuallyEnded(fmt.Sprint("s", s), 2)
		}
		p.Shutdown()
	})
}

// refusing is a bus whose log fails appends.
type refusing struct {
	*membus.Bus
	on atomic.Bool
}

func (b *refusing) Append(a model.Append, done func(seq uint64, err error)) {
	if b.on.Load() {
		go done(0, errStore) // ends when done returns
		return
	}
	b.Bus.Append(a, done)
}

// The same holds for a space that ends again and again because none of its commits can be appended.
func TestFaults_AnHourOfFailedAppendsWritesFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		bus := &refusing{}
		bus.on.Store(true)
		p := w.process(worker.Config{ID: "w1"}, func(b *membus.Bus) worker.Bus {
			bus.Bus = b
			return bus
		})
		w.Send("s", "add", "e1")
		w.Pass(time.Hour)
		w.wantFewLines(0, 1)
		bus.on.Store(false)
		w.EventuallyEnded("s", 1)
		p.Shutdown()
	})
}
