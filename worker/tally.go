package worker

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/internal/telemetry/meters"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker/tasks"
)

// tally are what the cores of a process count for its metrics. A nil one counts nothing, and costs a branch.
type tally struct {
	pass, lateness, attempt *meters.Distribution

	changed, unchanged, incomplete, failed atomic.Uint64 // runs
	byGate, byBudget                       atomic.Uint64 // nodes that were held back
	retried, started                       atomic.Uint64 // attempts at events, and tasks
	differing                              atomic.Uint64 // runs that had another result when they were repeated
	taken, untaken                         atomic.Uint64 // offers of tasks
	notes                                  map[space.NoteKind]*atomic.Uint64
	pending, late                          atomic.Int64 // tasks, and spaces with a late one
	parked                                 parkedEvents
	hosted                                 func() (steps, bytes uint64) // nil if no deployed programs run
}

// newTally returns what counts for a meter, nil for none.
func newTally(meter metric.Meter, hosted func() (steps, bytes uint64)) (*tally, error) {
	if meter == nil {
		return nil, nil
	}
	set := meters.NewSet(meter, meters.Worker)
	m := &tally{
		pass: set.Distribution(meters.WorkerPassDuration), lateness: set.Distribution(meters.WorkerTimerLateness), attempt: set.Distribution(meters.WorkerAttemptDuration),
		hosted: hosted, notes: map[space.NoteKind]*atomic.Uint64{}, parked: parkedEvents{since: map[string]time.Time{}},
	}
	for _, n := range meters.Notes {
		m.notes[space.NoteKind(n.Kind)] = new(atomic.Uint64)
	}
	return m, set.Err()
}

// observe puts the counters and gauges.
func (m *tally) observe(put meters.Put) {
	for value, n := range map[string]*atomic.Uint64{meters.Changed: &m.changed, meters.Unchanged: &m.unchanged, meters.Incomplete: &m.incomplete, meters.Failed: &m.failed} { // any order: each is put once
		put(meters.WorkerRuns, value, int64(n.Load()))
	}
	put(meters.WorkerHeldBack, meters.ByGate, int64(m.byGate.Load()))
	put(meters.WorkerHeldBack, meters.ByBudget, int64(m.byBudget.Load()))
	put(meters.WorkerRunsDiffering, "", int64(m.differing.Load()))
	put(meters.WorkerEventsRetried, "", int64(m.retried.Load()))
	put(meters.WorkerTasksStarted, "", int64(m.started.Load()))
	put(meters.WorkerTaskOffers, meters.Taken, int64(m.taken.Load()))
	put(meters.WorkerTaskOffers, meters.Untaken, int64(m.untaken.Load()))
	put(meters.WorkerTasksPending, "", m.pending.Load())
	put(meters.WorkerTasksLate, "", m.late.Load())
	for _, n := range meters.Notes {
		put(n.Name, n.Value, int64(m.notes[space.NoteKind(n.Kind)].Load()))
	}
	steps, bytes := uint64(0), uint64(0)
	if m.hosted != nil {
		steps, bytes = m.hosted()
	}
	put(meters.WorkerHostedSteps, "", int64(steps))
	put(meters.WorkerHostedMemory, "", int64(bytes))
	n, oldest := m.parked.now()
	put(meters.WorkerEventsParked, "", int64(n))
	put(meters.WorkerEventsParkedAge, "", int64(oldest.Seconds()))
}

// ran counts a run of a computation.
func (m *tally) ran(i *space.RunInfo) {
	if m == nil {
		return
	}
	switch {
	case i.Err != nil:
		m.failed.Add(1)
	case i.Waits != "" || i.NoRoom || i.TooDeep:
		m.incomplete.Add(1)
	case i.Changed || len(i.Writes) > 0:
		m.changed.Add(1)
	default:
		m.unchanged.Add(1)
	}
}

// heldBack counts a node that did not run at its turn.
func (m *tally) heldBack(i space.SkipInfo) {
	if i.Until > 0 {
		m.byGate.Add(1)
	} else {
		m.byBudget.Add(1)
	}
}

// handled counts the end of an attempt at an event. now is the wall time.
func (m *tally) handled(i *space.HandleInfo, now func() time.Time) {
	if m == nil {
		return
	}
	if i.Receipt == nil {
		if i.Err != nil {
			m.retried.Add(1)
		}
		return
	}
	if i.Event.NotBefore > 0 {
		m.lateness.Record(telemetry.Exemplar(i.Trace), "", max(0, now().Sub(time.UnixMilli(i.Event.NotBefore))).Seconds())
	}
	for n := range i.Notes {
		if c := m.notes[i.Notes[n].Kind]; c != nil {
			c.Add(1)
		}
	}
}

// attempted measures an attempt at a task.
func (m *tally) attempted(ctx context.Context, began time.Time, how tasks.Ending) {
	if m != nil {
		m.attempt.Record(ctx, string(how), time.Since(began).Seconds())
	}
}

// parkedEvents are the spaces whose first event waits for documents, and since when.
type parkedEvents struct {
	mu    sync.Mutex
	since map[string]time.Time
}

func (p *parkedEvents) set(space string, parked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !parked {
		delete(p.since, space)
	} else if _, known := p.since[space]; !known {
		p.since[space] = time.Now()
	}
}

// now returns how many there are, and for how long the oldest has waited.
func (p *parkedEvents) now() (n int, oldest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for since := range maps.Values(p.since) { // any order: a maximum
		oldest = max(oldest, time.Since(since))
	}
	return len(p.since), oldest
}

// coreLoad is what one core adds to the gauges of its process, until it ends.
type coreLoad struct {
	to    *tally
	space string
	// parked reports that the newest attempt was parked. It belongs to the loop.
	parked bool

	mu            sync.Mutex
	over, waits   bool
	pending, late int64
}

// publish sets what the core adds. It is called after each pass.
func (l *coreLoad) publish(pending int, late bool) {
	if l.to == nil {
		return
	}
	n := int64(0)
	if late {
		n = 1
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(int64(pending), n, l.parked)
}

// add sets what the core adds. l.mu is held.
func (l *coreLoad) add(pending, late int64, parked bool) {
	if l.over {
		return
	}
	if pending != l.pending {
		l.to.pending.Add(pending - l.pending)
	}
	if late != l.late {
		l.to.late.Add(late - l.late)
	}
	if parked != l.waits {
		l.to.parked.set(l.space, parked)
	}
	l.pending, l.late, l.waits = pending, late, parked
}

// end undoes what the core has added.
func (l *coreLoad) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(0, 0, false)
	l.over = true
}
