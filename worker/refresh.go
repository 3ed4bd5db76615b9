package worker

import (
	"maps"
	"slices"

	"github.com/settlehq/settle/space"
)

// Refresh looks again which program each space runs (Config.Programs), and is to be called
// when the answers may have changed. A space that is awake and is to run another one, as told
// by the pointer, changes over between two commits, in memory (space.Change): nothing is
// handed back, loaded or said to anybody, and what waits or is being observed goes on. Spaces
// that wait for a program are loaded if they have one now. Attachments are not concerned.
//
// A space that is to run none any more, or of which that cannot be told, goes on with the one
// that it has, and that is logged as an error: a registry that is out of order is no reason
// for a space to stand still. Once it has left memory it waits, like any without a program.
//
// Refresh does not wait for the spaces: each changes over when what it has done is under way to
// the log, one whose append is in doubt when that is answered. Events that come until then are
// handled by the program before. It may be called at any time, by several
// at once; what Programs has said last is what counts.
func (w *Worker) Refresh() {
	w.mu.Lock()
	parts := make([]*partition, 0, len(w.partitions))
	for _, number := range slices.Sorted(maps.Keys(w.partitions)) {
		parts = append(parts, w.partitions[number])
	}
	w.mu.Unlock()
	for _, p := range parts {
		p.refresh()
	}
}

// refresh asks for the programs with the partition locked, as whoever starts a host does: so
// each host gets them in the order in which they were told.
func (p *partition) refresh() {
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
	without.tell(p)
	for _, space := range slices.Sorted(maps.Keys(p.asleep)) {
		p.hostOf(space, true)
	}
	for _, space := range slices.Sorted(maps.Keys(p.leases)) {
		p.hostOf(space, true)
	}
}

// refreshHost has a host run what its space is to run. The error is why that is not known.
func (p *partition) refreshHost(h *host) error {
	program, err := p.w.cfg.Programs(h.space)
	switch {
	case err != nil:
		return err
	case program == nil:
		return ErrNoProgram
	case program != h.wanted:
		h.wanted = program
		h.call(func() { h.change(program) })
	}
	return nil
}

// withoutProgram are spaces that are awake, and are to run no program any more. There may be
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

func (w *withoutProgram) tell(p *partition) {
	if w.n > 0 {
		p.w.cfg.Logger.Error("no program for spaces that are awake; they go on with those that they have", "worker", p.w.cfg.ID,
			"spaces", w.n, "space", w.first.space, "program", w.first.wanted.Name, "version", w.first.wanted.Version, "error", w.err)
	}
}

// change has the core run another program as soon as that can be.
func (h *host) change(p *space.Program) {
	if h.draining {
		return // whoever comes next has it
	}
	h.stirred = true
	if err := h.core.Change(p); err != nil {
		h.report("change the program", err)
	}
}

// changed is told by the core that it runs another program.
func (h *host) changed(i space.ProgramInfo) {
	h.env.cfg.Logger.Debug("space runs another program", "space", h.space, "worker", h.env.cfg.ID, "program", i.Name,
		"version", i.Version, "before", i.Before, "kept", i.Kept, "changed", i.Changed, "new", i.New, "gone", i.Gone, "makers", i.Makers)
}

// build tells the code of nodes that name no version. Two programs may be of one executable.
func (h *host) build() string {
	version := h.core.Program().Version
	if h.env.cfg.Build == "" || version == "" {
		return h.env.cfg.Build
	}
	return h.env.cfg.Build + "/" + version
}
