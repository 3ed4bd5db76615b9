package host

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/status"
)

const (
	// StuckAfter is how long a space holds the position back before it counts as stuck:
	// handled events are saved a second later, and the save may be retried.
	StuckAfter = 5 * time.Second
	// maxStuck is how many stuck spaces the figures name, the oldest. A page of all has maxStuckPage at most, and about maxStuckBytes of text.
	maxStuck, maxStuckPage, maxStuckBytes = 20, 500, 256 << 10
	// reportWithin is how long the spaces have to report their state.
	reportWithin = 300 * time.Millisecond
)

// clockTime formats a time for people, in UTC like all log lines of a worker.
func clockTime(t time.Time) string { return t.UTC().Format("15:04:05") + " UTC" }

// stalled is a space that stands still, with the available information about it.
type stalled struct {
	status.Stuck
	p    *servedPartition
	host *host // nil if it has none
	done uint64
	// report receives the report of the host's loop; its buffer has room for it.
	report chan status.Stuck
}

// noteStuck records which spaces have made no progress since the last call. p.mu is not held.
func (p *servedPartition) noteStuck(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := map[string]standstill{}
	note := func(space string, h *host, done uint64) {
		if done == allDone || done >= p.read {
			return
		}
		s, known := p.stuck.at[space]
		if h != nil && s.moves(&h.code) || !known || s.done != done {
			s.done, s.since = done, now
		}
		at[space] = s
	}
	for _, h := range p.hosts { // any order: each on its own
		note(h.space, h, h.inbox.laneDone())
	}
	for space, b := range p.asleep { // any order: each on its own
		note(space, nil, b.done)
	}
	p.stuck.at = at
	for space := range p.stuck.failures { // any order: each on its own
		if _, still := at[space]; !still {
			delete(p.stuck.failures, space)
		}
	}
}

// stuckSpaces returns the spaces of the partition that have stood still for long enough.
func (p *servedPartition) stuckSpaces(now time.Time) (out []stalled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for space, s := range p.stuck.at { // any order: sorted by the caller
		if now.Sub(s.since) < StuckAfter {
			continue
		}
		f := stalled{p: p, host: p.hosts[space], done: s.done, Stuck: status.Stuck{Space: space, Partition: p.number, Since: s.since.UTC()}}
		_, waits := p.waiting[space]
		b, asleep := p.asleep[space]
		switch failure := p.stuck.failures[space]; {
		case f.host != nil && f.host.inbox.laneDone() != s.done, f.host == nil && (!asleep || b.done != s.done):
			continue // it has continued
		case f.host != nil && s.moves(&f.host.code):
			s.since = now
			p.stuck.at[space] = s
			continue
		case failure != "":
			f.Cause, f.Reason = status.CauseFailed, "it cannot be served: "+failure
		case f.host != nil:
			f.Cause, f.Reason = status.CauseBusy, "it is being loaded, or at work, and has not said at what"
		case waits:
			f.Cause, f.Reason = status.CauseQueued, "waits to be loaded: others are loaded first"
		default:
			f.Cause, f.Reason = status.CauseLoading, "is to be loaded"
			if program, err := p.cfg.Programs(space); err != nil {
				f.Cause, f.Reason = status.CauseNoProgram, "there is no program that it is to run: "+display.FirstLine(err.Error())
			} else if program == nil {
				f.Cause, f.Reason = status.CauseNoProgram, "there is no program that it is to run"
			}
		}
		out = append(out, f)
	}
	return out
}

// stuckNow returns the spaces that hold back a saved position, those that have for longest first.
func stuckNow(partitions []*servedPartition) (all []stalled) {
	for _, p := range partitions {
		all = append(all, p.stuckSpaces(time.Now())...)
	}
	slices.SortFunc(all, func(a, b stalled) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Space, b.Space))
	})
	return all
}

// stuckOldest returns the spaces that have held back a saved position for longest, and the number
// of all.
func (w *Worker) stuckOldest(partitions []*servedPartition) (oldest []status.Stuck, count int) {
	all := stuckNow(partitions)
	return w.explain(all[:min(len(all), maxStuck)], true), len(all)
}

// stuckPage returns a page of all spaces that hold back a saved position.
func (w *Worker) stuckPage(q status.StuckQuery) status.StuckPage {
	w.mu.Lock()
	partitions := slices.Collect(maps.Values(w.partitions)) // any order: stuckNow sorts
	w.mu.Unlock()
	all := slices.DeleteFunc(stuckNow(partitions), func(s stalled) bool { return !q.Behind(&s.Stuck) })
	page, size := w.explain(all[:min(len(all), maxStuckPage)], false), 0
	for i := range page {
		if size += len(page[i].Space) + len(page[i].Stream) + len(page[i].Event) + len(page[i].Reason); size > maxStuckBytes {
			page = page[:max(i, 1)]
			break
		}
	}
	return status.StuckPage{Paged: true, Stuck: page, More: len(all) > len(page)}
}

// explain asks stuck spaces for their reasons, and looks up in the store, if so, when their events were stored.
func (w *Worker) explain(all []stalled, stored bool) []status.Stuck {
	ctx, cancel := context.WithTimeout(w.ctx, reportWithin)
	defer cancel()
	for i := range all {
		all[i].ask()
	}
	var telling sync.WaitGroup
	for i := range all {
		telling.Go(func() { // ends with ctx
			if all[i].awaitReport(ctx) && stored {
				all[i].lookUp(ctx, w.bus)
			}
		})
	}
	telling.Wait()
	out := make([]status.Stuck, len(all))
	for i := range all {
		out[i] = all[i].Stuck
	}
	return out
}

// ask requests a report from the host's loop. A loop that is in application code does
// not process the request; that code is known without it.
func (f *stalled) ask() {
	h := f.host
	if h == nil || f.Cause == status.CauseFailed {
		return
	}
	if stream, event, node, since := h.code.since(time.Now()); stream != "" || node != "" {
		f.Stream, f.Event, f.Cause = stream, event, status.CauseRunning
		f.Reason = "its handler has been running since " + clockTime(since)
		if node != "" {
			f.Reason = "node " + node + " has been running since " + clockTime(since)
		}
		return
	}
	says := make(chan status.Stuck, 1)
	f.report = says
	h.call(func() { says <- h.stuckAt() })
}

// awaitReport waits for the loop's report. It returns false if that has not come in time.
func (f *stalled) awaitReport(ctx context.Context) bool {
	if f.report == nil {
		return true
	}
	select {
	case s := <-f.report:
		f.Stream, f.Event, f.Cause, f.Reason = s.Stream, s.Event, s.Cause, s.Reason
	case <-f.host.done:
	case <-ctx.Done():
		return false
	}
	return true
}

// lookUp looks up when the event was stored, and which it is if that is not known.
func (f *stalled) lookUp(ctx context.Context, bus Bus) {
	if f.Event != "" {
		if m, is, err := bus.FindEvent(ctx, f.Space, f.Stream, f.Event); err == nil && is {
			f.Stored = m.Stored.UTC()
		}
		return
	}
	if f.host != nil && f.Cause != status.CauseFailed {
		return
	}
	if events, err := bus.ReadLane(ctx, f.Space, f.done, 1); err == nil && len(events) > 0 {
		f.Stream, f.Event, f.Stored = events[0].Stream, events[0].ID, events[0].Stored.UTC()
	}
}

// stuckAt returns the loop's report. Only the loop calls it.
func (h *host) stuckAt() status.Stuck {
	var s status.Stuck
	clock := func(at time.Duration) string { return clockTime(time.Now().Add(at - h.now())) }
	at, waits := h.core.StuckAt(clock)
	s.Stream, s.Event = at.Stream, at.Event
	switch {
	case h.appends.inFlight:
		s.Cause, s.Reason = status.CauseUncommitted, "the log has not answered its commit yet"
	case waits:
		return at
	case h.core.Waiting() > 0:
		s.Cause, s.Reason = status.CauseEarly, "it has "+strconv.Itoa(h.core.Waiting())+" events from other spaces that come behind one that is not here yet"
	case h.saver.failure != "":
		s.Cause, s.Reason = status.CauseUnsaved, "what it has done cannot be saved: "+h.saver.failure
	case h.core.Owned() && h.core.Seq() > h.saver.saved:
		s.Cause, s.Reason = status.CauseUnsaved, "what it has done is not saved yet"
	default:
		s.Cause, s.Reason = at.Cause, at.Reason
	}
	return s
}
