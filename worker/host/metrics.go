package host

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/settlehq/settle/internal/serverclock"
	"github.com/settlehq/settle/internal/telemetry/meters"
	"github.com/settlehq/settle/model"
)

// measures are the histograms of a worker; nil measures nothing.
type measures struct {
	commit, size, events, event, activation, takeover metric.Float64Histogram
}

// measure registers the metrics of the worker until it ends, if it has a meter.
func (w *Worker) measure() {
	if w.cfg.Meter == nil {
		return
	}
	set := meters.NewSet(w.cfg.Meter, meters.Worker)
	w.cfg.measures = &measures{
		commit: set.Histogram(meters.WorkerCommitDuration), size: set.Histogram(meters.WorkerCommitSize), events: set.Histogram(meters.WorkerCommitEvents),
		event: set.Histogram(meters.WorkerEventDuration), activation: set.Histogram(meters.WorkerActivationDuration), takeover: set.Histogram(meters.WorkerTakeoverDuration),
	}
	stop := set.Observe(w.observe)
	if err := set.Err(); err != nil {
		w.cfg.Logger.Error("register metrics", "worker", w.cfg.ID, "error", err)
	}
	w.tasks.Go(func() { // ends with w.ctx
		<-w.ctx.Done()
		stop()
	})
}

// observe reads the counters and gauges.
func (w *Worker) observe(put meters.Put) {
	f, c, held := w.Figures(), w.Counts(), w.Held()
	for i, o := range model.Outcomes {
		put(meters.WorkerEvents, string(o), int64(c.Ended[i]))
	}
	put(meters.WorkerCommits, "", int64(c.Commits))
	put(meters.WorkerAppendsRefused, "", int64(c.Refused))
	put(meters.WorkerActivations, "", int64(c.Activations))
	put(meters.WorkerEvictions, "", int64(c.Evictions))
	if w.cfg.Runs != nil {
		put(meters.WorkerRuns, "", int64(w.cfg.Runs()))
	}
	put(meters.WorkerSpaces, "loaded", int64(f.Awake-f.Loading))
	put(meters.WorkerSpaces, "loading", int64(f.Loading))
	put(meters.WorkerSpaces, "queued", int64(f.Queued))
	partitions, waiting := map[string]int{"serving": 0, "leaving": 0, "waiting": 0}, 0
	for i := range f.Partitions {
		partitions[f.Partitions[i].State]++
		waiting += f.Partitions[i].Events
	}
	for state, n := range partitions { // any order: each is observed once
		put(meters.WorkerPartitions, state, int64(n))
	}
	put(meters.WorkerEventsWaiting, "", int64(waiting))
	put(meters.WorkerBacklog, "", f.Backlog)
	put(meters.WorkerSpacesStuck, "", int64(f.StuckCount))
	put(meters.WorkerSpacesLate, "", int64(f.LateCount))
	put(meters.WorkerLosses, "", int64(f.LossCount))
	put(meters.WorkerRewinds, "", int64(f.RewindCount))
	put(meters.WorkerWatches, "", int64(f.Watches.Open))
	put(meters.WorkerWatchesRefused, "", int64(f.Watches.Refused))
	put(meters.WorkerLeases, "", int64(held.Leases))
	put(meters.WorkerCodeAbandoned, "", int64(f.Abandoned))
	put(meters.WorkerUnrunnable, "", int64(len(f.Unrunnable)))
}

// record adds a duration to a histogram.
func record(h metric.Float64Histogram, took time.Duration) {
	h.Record(context.Background(), took.Seconds())
}

// gauge measures the steps of one host. Its zero value measures nothing. All fields belong to the host's loop.
type gauge struct {
	to    *measures
	began time.Time
	// stored has, per lane sequence, when the events were stored that were read and have not ended.
	stored map[uint64]time.Time
	// sent is when the append in flight was sent, and bytes its size.
	sent  time.Time
	bytes int
}

// maxMeasured is how many unfinished events of one space are measured.
const maxMeasured = 1024

func newGauge(to *measures) gauge {
	if to == nil {
		return gauge{}
	}
	return gauge{to: to, began: time.Now(), stored: map[uint64]time.Time{}}
}

// read records an event that was read from the lane.
func (g *gauge) read(m *model.Message) {
	if g.to != nil && m.NotBefore == 0 && len(g.stored) < maxMeasured {
		g.stored[m.Seq] = m.Stored
	}
}

// sends records that an append is sent.
func (g *gauge) sends(bytes int) {
	if g.to != nil {
		g.sent, g.bytes = time.Now(), bytes
	}
}

// committed reports an accepted commit. The time at which an event was stored is by the clock of the servers.
func (g *gauge) committed(c *model.Commit, clock *serverclock.Clock) {
	if g.to == nil {
		return
	}
	now := clock.Now()
	if c.Takeover && !g.began.IsZero() {
		record(g.to.activation, time.Since(g.began))
		g.began = time.Time{}
	}
	events := 0
	for i := range c.Txs {
		rc := c.Txs[i].Receipt
		if rc == nil {
			continue
		}
		events++
		if at, known := g.stored[rc.Lane]; known && rc.Lane != 0 {
			delete(g.stored, rc.Lane)
			record(g.to.event, max(0, now.Sub(at)))
		}
	}
	record(g.to.commit, time.Since(g.sent))
	g.to.size.Record(context.Background(), float64(g.bytes))
	g.to.events.Record(context.Background(), float64(events))
}

// refused forgets what another runtime may have ended.
func (g *gauge) refused() { clear(g.stored) }
