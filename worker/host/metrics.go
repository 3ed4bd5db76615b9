package host

import (
	"time"

	"github.com/settlehq/settle/internal/serverclock"
	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/internal/telemetry/meters"
	"github.com/settlehq/settle/model"
)

// measures are the histograms of a worker; nil measures nothing.
type measures struct {
	commit, size, events, event, activation, takeover *meters.Distribution
}

// measure registers the metrics of the worker until it ends, if it has a meter.
func (w *Worker) measure() {
	if w.cfg.Meter == nil {
		return
	}
	set := meters.NewSet(w.cfg.Meter, meters.Worker)
	w.cfg.measures = &measures{
		commit: set.Distribution(meters.WorkerCommitDuration), size: set.Distribution(meters.WorkerCommitSize), events: set.Distribution(meters.WorkerCommitEvents),
		event: set.Distribution(meters.WorkerEventDuration), activation: set.Distribution(meters.WorkerActivationDuration), takeover: set.Distribution(meters.WorkerTakeoverDuration),
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
	if w.cfg.Observe != nil {
		w.cfg.Observe(put)
	}
	put(meters.WorkerIngressRefusals, meters.ByRule, int64(w.counters.byRule.Load()))
	put(meters.WorkerIngressRefusals, meters.ByContent, int64(w.counters.byContent.Load()))
	if b, can := w.bus.(interface{ InDoubt() uint64 }); can {
		put(meters.WorkerAppendsInDoubt, "", int64(b.InDoubt()))
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
	timers, oldest, quarantined := w.survey()
	put(meters.WorkerTimers, "", timers)
	put(meters.WorkerEventsWaitingAge, "", int64(oldest.Seconds()))
	put(meters.WorkerQuarantined, "", quarantined)
	put(meters.WorkerUnsettled, "", int64(f.UnsettledCount))
	put(meters.WorkerNodesFailing, "", int64(f.FailingNodeCount))
	put(meters.WorkerSpacesFailing, "", int64(f.FailingSpaceCount))
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

// survey returns how many events of the spaces in memory wait for a time, the age of the oldest event that has not ended, and how many spaces
// are set aside because of a commit.
func (w *Worker) survey() (timers int64, oldest time.Duration, quarantined int64) {
	w.mu.Lock()
	partitions := make([]*servedPartition, 0, len(w.partitions)+len(w.leaving))
	for _, p := range w.partitions { // any order: sums
		partitions = append(partitions, p)
	}
	for _, p := range w.leaving { // any order: sums
		partitions = append(partitions, p)
	}
	w.mu.Unlock()
	for _, p := range partitions {
		for _, h := range p.all() {
			timers += h.published.timers.Load()
			if at := h.published.oldest.Load(); at != 0 {
				oldest = max(oldest, p.clock.Now().Sub(time.UnixMilli(at)))
			}
		}
		for _, l := range p.losses.now() {
			if l.Kind == model.LossOfCommit {
				quarantined++
			}
		}
	}
	return timers, oldest, quarantined
}

// record adds a duration to a histogram. by is the context of what it is about, for the exemplar.
func record(d *meters.Distribution, took time.Duration, by model.Trace) {
	d.Record(telemetry.Exemplar(by), "", took.Seconds())
}

// gauge measures the steps of one host. Its zero value measures nothing. All fields belong to the host's loop.
type gauge struct {
	to    *measures
	began time.Time
	// stored has when the events were stored that were read and have not ended; nil if nothing is measured.
	stored *unended
	// sent is when the append in flight was sent, and bytes its size.
	sent  time.Time
	bytes int
}

// maxMeasured is how many unfinished events of one space are measured.
const maxMeasured = 1024

// newGauge returns a gauge that measures nothing, unless there are measures, or spans begin when events were stored.
func newGauge(to *measures, spans bool) gauge {
	if to == nil && !spans {
		return gauge{}
	}
	return gauge{to: to, began: time.Now(), stored: &unended{}}
}

// read records an event that was read from the lane.
func (g *gauge) read(m *model.Message) {
	if g.stored != nil && m.NotBefore == 0 {
		g.stored.add(m.Seq, m.Stored, maxMeasured)
	}
}

// storedAt returns when an event that has not ended was stored.
func (g *gauge) storedAt(lane uint64) (time.Time, bool) {
	if g.stored == nil {
		return time.Time{}, false
	}
	return g.stored.storedAt(lane)
}

// oldest returns when the oldest event that has not ended was stored, in milliseconds since 1970; 0 if there is none.
func (g *gauge) oldest() int64 {
	if g.stored == nil {
		return 0
	}
	if at, some := g.stored.oldest(); some {
		return at.UnixMilli()
	}
	return 0
}

// sends records that an append is sent.
func (g *gauge) sends(bytes int) {
	if g.to != nil {
		g.sent, g.bytes = time.Now(), bytes
	}
}

// committed reports an accepted commit, whose span is by. The time at which an event was stored is by the clock of the servers.
func (g *gauge) committed(c *model.Commit, clock *serverclock.Clock, by model.Trace) {
	if g.stored == nil {
		return
	}
	now, events := clock.Now(), 0
	for i := range c.Txs {
		rc := c.Txs[i].Receipt
		if rc == nil {
			continue
		}
		events++
		if at, known := g.stored.end(rc.Lane); known && rc.Lane != 0 && g.to != nil {
			record(g.to.event, max(0, now.Sub(at)), c.Txs[i].Trace)
		}
	}
	if g.to == nil {
		return
	}
	if c.Takeover && !g.began.IsZero() {
		record(g.to.activation, time.Since(g.began), by)
		g.began = time.Time{}
	}
	ctx := telemetry.Exemplar(by)
	g.to.commit.Record(ctx, "", time.Since(g.sent).Seconds())
	g.to.size.Record(ctx, "", float64(g.bytes))
	g.to.events.Record(ctx, "", float64(events))
}

// refused forgets what another runtime may have ended.
func (g *gauge) refused() {
	if g.stored != nil {
		g.stored.clear()
	}
}
