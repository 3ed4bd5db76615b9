package host

import (
	"maps"
	"slices"

	"github.com/settlehq/settle/model"
)

// Refresh looks up again which program each space runs (Config.Programs); call it
// when the results may have changed. A loaded space whose program is another pointer
// changes over between two commits, in memory (Graph.Change): it is not
// handed over, loaded or announced again, and waiting events and observations stay. Spaces
// that wait for a program are loaded if they have one now. Attachments are not affected.
//
// A space that has no program any more, or whose program cannot be looked up, keeps its
// present one, and that is logged as an error: a faulty registry must not stop
// a space. Once it has left memory it waits, like any space without a program.
//
// Refresh does not wait for the spaces: each changes over when its finished work has been sent to
// the log; a space whose append is in doubt, when that is resolved. Events that arrive earlier are
// handled by the previous program. Refresh may be called at any time and concurrently;
// the last result of Programs is decisive.
func (w *Worker) Refresh() {
	w.mu.Lock()
	parts := make([]*servedPartition, 0, len(w.partitions))
	for _, number := range slices.Sorted(maps.Keys(w.partitions)) {
		parts = append(parts, w.partitions[number])
	}
	w.mu.Unlock()
	for _, p := range parts {
		p.refresh()
	}
}

// refresh looks up the programs with the partition locked, like the code that starts hosts: so
// each host gets them in the order in which they were returned.
func (p *servedPartition) refresh() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.ctx.Err() != nil {
		return
	}
	var without withoutProgram
	for _, space := range slices.Sorted(maps.Keys(p.hosts)) {
		if err := p.refreshHost(p.hosts[space]); err != nil {
			without.add(p.hosts[space], err)
		}
	}
	without.log(p)
	for _, space := range slices.Sorted(maps.Keys(p.asleep)) {
		if _, waits := p.waiting[space]; !waits { // one that waits is given its program when its turn has come
			p.hostOf(space, true)
		}
	}
	for _, space := range slices.Sorted(maps.Keys(p.leases.of)) {
		p.lookupHost(space, true)
	}
}

// refreshHost assigns a host its present program. The error is why that is not known.
func (p *servedPartition) refreshHost(h *host) error {
	program, err := p.cfg.Programs(h.space)
	switch {
	case err != nil:
		return err
	case program == nil:
		return model.ErrNoProgram
	case program != h.start.wanted:
		h.start.wanted = program
		if h.unborn.Load() && program.MadeByReads(h.space) {
			p.begins(h) // what observes it creates it now
			return nil
		}
		h.call(func() { h.change(program) })
	}
	return nil
}

// withoutProgram are loaded spaces that have no program any more. There may be
// thousands for one reason, so one stands for all of a partition.
type withoutProgram struct {
	n     int
	first *host
	err   error
}

func (w *withoutProgram) add(h *host, err error) {
	if w.n++; w.n == 1 {
		w.first, w.err = h, err
	}
}

func (w *withoutProgram) log(p *servedPartition) {
	if w.n > 0 {
		name, version := w.first.start.wanted.Label()
		p.cfg.Logger.Error("no program for spaces that are awake; they go on with those that they have", "worker", p.cfg.ID,
			"spaces", w.n, "space", w.first.space, "program", name, "version", version, "error", w.err)
	}
}

// change makes the core run another program as soon as possible.
func (h *host) change(p Program) {
	if h.draining || h.graph == nil {
		return // the next host gets it
	}
	h.idle.active = true
	if err := h.graph.core.Change(p); err != nil {
		h.report("change the program", err)
	}
}
