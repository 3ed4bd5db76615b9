package worker

import (
	"cmp"
	"slices"

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
	serving, leaving := make([]*partition, 0, len(w.partitions)), make([]*partition, 0, len(w.leaving))
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
	f.Stuck, f.StuckCount = w.stuckNow(serving)
	f.Losses, f.LossCount = lossesNow(serving)
	f.Busiest, f.Late, f.LateCount = loadOf(slices.Concat(serving, leaving), w.cfg.Now())
	f.Missed = w.counters.missed.newest()
	f.Next, f.Limit = w.awake.nextFew(), w.awake.limit
	w.figuresOf.fill(&f)
	slices.SortFunc(f.Partitions, func(a, b status.Partition) int { return cmp.Compare(a.Partition, b.Partition) })
	return f
}

func (p *partition) figures(state string) status.Partition {
	s := p.stats()
	f := status.Partition{
		Partition: p.number, State: state, Since: p.began.UTC(), Took: p.took,
		Awake: s.Awake, Events: s.Events, Read: s.Read, Saved: s.Saved,
	}
	p.mu.Lock()
	if p.aside.upTo > f.Saved {
		f.Saved, f.Aside = p.aside.upTo, p.aside.spaces
	}
	p.mu.Unlock()
	for _, h := range p.all() {
		if h.laneDone() != allDone {
			f.Unsaved++
		}
	}
	return f
}

// offerFigures answers status requests, as soon as that is possible.
func (w *Worker) offerFigures() {
	w.tasks.Go(func() { // ends when the endpoint is offered, or with w.ctx
		status.Offer(w.ctx, w.bus, w.cfg.ID, w.Figures, func(err error) {
			w.cfg.faults.Warn("offer the worker's figures", "", "worker", w.cfg.ID, "error", err)
			_ = pause.For(w.ctx, w.cfg.MemberTTL)
		})
	})
}
