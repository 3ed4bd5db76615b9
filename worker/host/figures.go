package host

import (
	"cmp"
	"slices"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/status"
)

// Figures returns the worker's current figures.
func (w *Worker) Figures() status.Figures {
	c, s := w.Counts(), w.Stats()
	f := status.Figures{
		Commits: c.Commits, Receipts: c.Receipts, Failed: c.Failed, Refused: c.Refused,
		Awake: s.Awake, Loading: s.Loading, Queued: s.Waiting, Backlog: w.counters.backlog.Load(),
	}
	f.Abandoned = s.Abandoned
	f.Describe(w.roster.Self(), w.bus, w.cfg.Now())
	w.mu.Lock()
	serving, leaving := make([]*servedPartition, 0, len(w.partitions)), make([]*servedPartition, 0, len(w.leaving))
	for _, p := range w.partitions { // any order: sorted below
		serving = append(serving, p)
	}
	for _, p := range w.leaving { // any order: sorted below
		leaving = append(leaving, p)
	}
	w.mu.Unlock()
	for _, p := range serving {
		f.Partitions = append(f.Partitions, p.figures("serving"))
	}
	for _, p := range leaving {
		f.Partitions = append(f.Partitions, p.figures("leaving"))
	}
	for p, since := range w.roster.Wanted() { // any order: sorted below
		f.Partitions = append(f.Partitions, status.Partition{Partition: p, State: "waiting", Since: since.UTC()})
	}
	f.Stuck, f.StuckCount = w.stuckOldest(serving)
	f.Losses, f.LossCount = lossesNow(serving)
	f.Busiest, f.Late, f.LateCount = loadOf(slices.Concat(serving, leaving), w.cfg.Now())
	f.Missed = w.counters.missed.newest()
	f.Disallowed, f.DisallowedCount = w.counters.disallowed.read()
	f.Denials, f.DenialCount = w.counters.denials()
	f.Next, f.Limit = w.residency.nextFew(), w.residency.limit
	w.sidecars.fill(&f)
	slices.SortFunc(f.Partitions, func(a, b status.Partition) int { return cmp.Compare(a.Partition, b.Partition) })
	return f
}

func (p *servedPartition) figures(state string) status.Partition {
	s := p.stats()
	f := status.Partition{
		Partition: p.number, State: state, Since: p.tenure.began.UTC(), Took: p.tenure.took,
		Awake: s.Awake, Events: s.Events, Read: s.Read, Saved: s.Saved,
	}
	p.mu.Lock()
	if p.aside.upTo > f.Saved {
		f.Saved, f.Aside = p.aside.upTo, p.aside.spaces
	}
	p.mu.Unlock()
	for _, h := range p.all() {
		if h.inbox.laneDone() != allDone {
			f.Unsaved++
		}
	}
	return f
}

// offerFigures offers the figures as soon as possible.
func (w *Worker) offerFigures() {
	w.tasks.Go(func() { // ends when the endpoint is offered, or with w.ctx
		status.Offer(w.ctx, w.bus, w.cfg.ID, status.Source{Figures: w.Figures, Stuck: w.stuckPage}, func(err error) {
			w.cfg.faults.Warn("offer the worker's figures", "", "worker", w.cfg.ID, "error", err)
			_ = pause.For(w.ctx, w.cfg.MemberTTL)
		})
	})
}

// lossesNow returns the first losses of all partitions, and the number of all.
func lossesNow(partitions []*servedPartition) (first []status.Loss, count int) {
	for _, p := range partitions {
		first = append(first, p.losses.now()...)
	}
	slices.SortFunc(first, func(a, b status.Loss) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Space, b.Space))
	})
	return first[:min(len(first), maxStuck)], len(first)
}

// loadOf returns the spaces with most waiting events, and those with late events, the
// oldest first, with the number of all late spaces.
func loadOf(partitions []*servedPartition, now time.Time) (busiest []status.Load, late []status.Late, lateCount int) {
	var loads []load
	for _, p := range partitions {
		for _, h := range p.all() {
			if l, some := h.inbox.load(); some {
				loads = append(loads, load{status.Load{Space: h.space, Partition: p.number, Events: l.events}, l.unread, l.span})
			}
			if due := h.published.due.Load(); due > atOnce && due <= now.Add(-lateAfter).UnixMilli() {
				late = append(late, status.Late{Space: h.space, Partition: p.number, Waiting: int(h.published.timers.Load()), Since: time.UnixMilli(due).UTC()})
			}
		}
	}
	slices.SortFunc(loads, compareLoads)
	for _, l := range loads[:min(len(loads), maxLoads)] {
		busiest = append(busiest, l.Load)
	}
	slices.SortFunc(late, func(a, b status.Late) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Space, b.Space)) })
	return busiest, late[:min(len(late), maxLoads)], len(late)
}
