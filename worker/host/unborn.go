package host

import (
	"fmt"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// A space exists from its first event on (docs/adr/0043), unless its program has reads create it. A read or a watch of one that does not exist is answered from
// nothing: its host steps a core as if its commits were in a log, and stores none of them, nor a checkpoint.
// It handles no event, has no jobs, and performs no tasks.
//
//	an event, a time, another runtime, a commit in the log      the host ends, and another one takes the space over
//	an event that no rule allows                                it is passed over: a client without the right to send creates nothing
//	nothing                                                    it leaves memory when nothing reads it any more
//
// Whether a host is of that kind is decided, with the partition locked, when the space is loaded; an event that
// arrives later finds it decided.

// checkUnborn decides whether the space is one that does not exist; r is what the store has of it. A replica that is
// behind may have answered, so the leader decides.
func (h *host) checkUnborn(r *replica.Replica) error {
	cfg := h.env.cfg
	if h.env.home == nil || cfg.WithoutGraph || r.Seq > 0 || h.start.program.MadeByReads(h.space) {
		return nil
	}
	behind, refused, err := h.isBehindRefused()
	if err != nil || !refused {
		return err
	}
	head, err := h.env.bus.Head(h.ctx, h.space)
	if err != nil {
		return fmt.Errorf("read the head: %w", err)
	}
	if head == 0 {
		h.saver.none = h.env.home.isUnborn(h, behind)
	}
	if h.saver.none {
		h.start.behind = 0
	}
	return nil
}

// isBehindRefused reports whether no rule allows any of the events that were delivered before this host existed, and returns them.
func (h *host) isBehindRefused() (all *disallowedLog, refused bool, err error) {
	all = &disallowedLog{}
	if h.start.behind > 0 && !h.env.cfg.Access.Rules().Closed() {
		return nil, false, nil
	}
	for after := h.inbox.doneBefore(); after < h.start.behind; {
		events, err := h.env.bus.ReadLane(h.ctx, h.space, after, h.inbox.page())
		if err != nil {
			return nil, false, fmt.Errorf("read lane after %d: %w", after, err)
		}
		if len(events) == 0 {
			return nil, false, nil // a replica that is behind: as if one were allowed
		}
		for i := range events {
			h.inbox.sees(&events[i])
			reason := h.env.cfg.refusal(&events[i])
			if reason == nil {
				return nil, false, nil
			}
			all.note(&events[i], reason.Error(), h.env.cfg.Now())
			after = events[i].Seq
		}
	}
	return all, true, nil
}

// confirmUnstored answers an append of a space without a log as if it were in one.
func (h *host) confirmUnstored(a *ledger.Append) {
	h.call(func() {
		h.appends.inFlight = false
		h.graph.confirmed(a.Commit)
		if err := h.core.Confirm(a.Expect + 1); err != nil {
			h.fail("go on in memory", err)
		}
	})
}

// isUnborn records that the space of a host has no log, unless there is something to handle for it. behind are events that no rule allows,
// from before the host.
func (p *servedPartition) isUnborn(h *host, behind *disallowedLog) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.hosts[h.space] != h || !p.leases.onlyDocuments(h.space) || h.start.wanted.MadeByReads(h.space) {
		return false
	}
	dropped, none := h.inbox.dropRefused(p.cfg.refuses, h.start.behind)
	if !none {
		return false
	}
	h.unborn.Store(true)
	p.passOverAll(behind)
	for i := range dropped {
		p.passOver(&dropped[i])
	}
	return true
}

// begins replaces the host of a space without a log by one that takes the space over. p.mu is held.
func (p *servedPartition) begins(h *host) *host {
	h.endWith(model.ErrElsewhere)
	p.residency.replace()
	return p.startHost(h.space, h.start.wanted, false)
}

// exists records that a space has a log.
func (p *servedPartition) exists(space string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.hosts[space]; h != nil && h.unborn.Load() && !p.closed {
		p.begins(h)
	}
}

// unbornState returns the state of a document of a space without a log: for a current read what the document would
// be. A watch delivers what is in logs, which is no document; it is stale if a computation would make one.
func unbornState(a model.DocumentState, current bool) model.DocumentState {
	a.Revision = 0
	if !current && !a.Value.IsAbsent() {
		return model.DocumentState{Stale: staleUnborn}
	}
	return a
}

const staleUnborn = "the space does not exist: nothing was ever handled there, and its first event creates it. Send it one, or let the program say that reads create it: made_by_reads in Starlark, MadeByReads in Go"

// missedCommits has the host read commits of other runtimes, or end if its space had none until now.
func (h *host) missedCommits(read func()) {
	if h.unborn.Load() {
		h.env.home.exists(h.space)
		return
	}
	h.call(read)
}
