package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
)

// Read returns the states of documents in spaces that this worker serves, in the order of the request.
//
// For a current read, the error is model.ErrElsewhere, model.ErrNoProgram, a *model.NameError, a *model.ServiceError of a
// space that is set aside (model.CodeConflict), or that of ctx. Otherwise there is none: what is known of a space that does not answer, until ctx ends, is
// the state of its documents.
func (w *Worker) Read(ctx context.Context, q model.ReadRequest) ([]model.DocumentState, error) {
	out := make([]model.DocumentState, len(q.Documents))
	at := map[string][]int{} // the documents of each space, as indices
	for i, d := range q.Documents {
		if q.Current {
			if err := errors.Join(model.CheckName("space", d.Space), model.CheckName("document", d.Document)); err != nil {
				return nil, err
			}
		}
		at[d.Space] = append(at[d.Space], i)
	}
	var spaces errgroup.Group
	for name, of := range at { // any order: each on its own
		one := func() error {
			docs := make([]string, len(of))
			for n, i := range of {
				docs[n] = q.Documents[i].Document
			}
			states, err := w.readSpace(ctx, name, docs, &q)
			if err != nil && q.Current {
				return err
			}
			for n, i := range of {
				if err != nil {
					out[i] = unreadState(err)
				} else {
					out[i] = states[n]
				}
			}
			return nil
		}
		if len(at) == 1 {
			return out, one()
		}
		spaces.Go(one)
	}
	return out, spaces.Wait()
}

// unreadState returns the state of a document of a space that did not answer.
func unreadState(err error) model.DocumentState {
	switch {
	case errors.Is(err, model.ErrElsewhere):
		return model.DocumentState{Stale: staleElsewhere, Passing: true}
	case errors.Is(err, model.ErrNoProgram):
		return model.DocumentState{Stale: model.ErrNoProgram.Error()}
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return model.DocumentState{Stale: staleBusy, Passing: true}
	}
	if e, is := errors.AsType[*model.ServiceError](err); is {
		return model.DocumentState{Stale: e.Text, Passing: e.Code != model.CodeConflict}
	}
	return model.DocumentState{Stale: err.Error(), Passing: true}
}

// readSpace reads documents of one space.
func (w *Worker) readSpace(ctx context.Context, name string, docs []string, q *model.ReadRequest) ([]model.DocumentState, error) {
	p := w.partitionOf(name)
	if p == nil {
		return nil, model.ErrElsewhere
	}
	if err := p.losses.refusal(name); err != nil {
		return nil, err // it is loaded again by itself: see retryLost
	}
	r := &documentRead{ctx: ctx, docs: docs, current: q.Current, host: make(chan *loop, 1), done: make(chan []model.DocumentState, 1)}
	if !q.Current {
		if err := p.askLoaded(name, r.put); err != nil {
			return nil, err
		}
		return r.await(p.ctx.Done(), nil)
	}
	late := time.NewTimer(q.Wait)
	defer late.Stop()
	var err error
	if r.head, err = w.bus.Head(ctx, name); err != nil {
		return nil, fmt.Errorf("read the head of space %s: %w", name, err)
	}
	if r.head > 0 {
		p.exists(name)
	}
	if err := p.ask(name, true, r.put); err != nil {
		return nil, err
	}
	return r.await(p.ctx.Done(), late.C)
}

// askLoaded is ask for a space that is loaded. It loads none: only observers load a space.
func (p *servedPartition) askLoaded(name string, f func(*host)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.hosts[name]; h != nil {
		f(h)
		return nil
	}
	if p.closed || p.ctx.Err() != nil {
		return model.ErrElsewhere
	}
	if _, waits := p.waiting[name]; waits {
		return errBusy
	}
	switch program, err := p.cfg.Programs(name); {
	case err != nil:
		return fmt.Errorf("the program of the space could not be had: %w", err)
	case program == nil:
		return model.ErrNoProgram
	}
	return errBusy
}

// errBusy reports that a space must be loaded first, which a read that is not current does not wait for.
var errBusy = errors.New(staleBusy)

const (
	staleElsewhere = "no worker serves the space at the moment"
	staleBusy      = "the space has not answered yet: it is being loaded, or at work"
)

// put passes the read to the host of its space, whose loop may be busy without end: reads whose
// callers have given up make room.
func (r *documentRead) put(h *host) {
	if h == nil {
		r.host <- nil
		return
	}
	h.inbox.read(r)
	r.host <- h.loop
}

// await returns the answer to a read; after late, if that is not nil, the present values. closed is
// closed with the partition.
func (r *documentRead) await(closed <-chan struct{}, late <-chan time.Time) ([]model.DocumentState, error) {
	var h *loop
	select {
	case h = <-r.host:
	case <-closed:
	case <-r.ctx.Done():
		return nil, r.ctx.Err()
	}
	if h == nil {
		return nil, model.ErrElsewhere
	}
	for {
		select {
		case states, ok := <-r.done:
			if !ok {
				return nil, model.ErrElsewhere
			}
			return states, nil
		case <-late:
			h.call(func() { r.late = true })
		case <-h.done:
			return nil, model.ErrElsewhere
		case <-r.ctx.Done():
			h.wake() // the loop drops the read
			select {
			case states, ok := <-r.done: // an answer may have arrived as well
				if ok {
					return states, nil
				}
			default:
			}
			return nil, r.ctx.Err()
		}
	}
}

// beginReads starts the reads that have arrived.
func (h *host) beginReads(all []*documentRead) {
	for _, r := range all {
		if h.draining || r.over() {
			close(r.done)
			continue
		}
		if r.current {
			if h.traced.to != nil {
				h.graph.core.Woken(telemetry.Of(r.ctx))
			}
			for _, doc := range r.docs {
				_ = h.graph.core.Observe(doc) // its name was checked
			}
		}
		h.graph.reads.waiting = append(h.graph.reads.waiting, r)
	}
}

// answerReads answers the reads that are ready. It is called after each Settle.
func (h *host) answerReads() {
	if h.graph == nil {
		return
	}
	h.graph.reads.waiting = slices.DeleteFunc(h.graph.reads.waiting, func(r *documentRead) bool {
		ended := h.tryAnswer(r)
		if ended && r.current {
			for _, doc := range r.docs {
				h.graph.core.Unobserve(doc)
			}
			h.inbox.wakeLoop() // an input: the core has to settle
		}
		return ended
	})
}

// tryAnswer reports whether a read has ended.
func (h *host) tryAnswer(r *documentRead) bool {
	switch {
	case h.draining || r.over():
		close(r.done)
		return true
	case !h.core.Owned():
		return false
	case h.core.Seq() < r.head:
		h.readOthers()
		return false
	}
	if r.seen == nil || r.pending() || r.outdated(&h.graph.reads) {
		r.look(h.graph.core, &h.graph.reads)
	}
	switch {
	case !r.pending() && h.graph.reads.confirmed >= r.due:
		h.answer(r, "")
	case r.late:
		stale := ""
		if r.look(h.graph.core, &h.graph.reads); h.graph.reads.confirmed < r.due {
			stale = "what the document is made of is not in the log yet"
		}
		h.answer(r, stale)
	default:
		return false
	}
	return true
}

// answer answers with the values in the log, and with the reason why a value without one is stale.
func (h *host) answer(r *documentRead, stale string) {
	states := make([]model.DocumentState, len(r.docs))
	for i, f := range r.seen {
		a := model.DocumentState{Stale: cmp.Or(f.Reason, stale), Passing: f.Pending}
		a.Value, a.Revision = h.graph.core.Confirmed(r.docs[i])
		if h.unborn.Load() {
			a = unbornState(a, r.current)
		}
		states[i] = a
	}
	r.done <- states
}

// readOthers integrates the commits of other runtimes that the host does not know: the
// log has more than the host. A host with something to append learns of them by its refusal.
func (h *host) readOthers() {
	rs := &h.graph.reads
	if rs.reading || !h.core.Settled() {
		return
	}
	rs.reading = true
	after, wait := h.core.Seq(), pause.Backoff(rs.dry)
	h.env.tasks.Go(func() { // ends with the read
		_ = pause.For(h.ctx, wait)
		entries, err := h.env.bus.ReadLog(h.ctx, h.space, after, readPage)
		h.call(func() {
			rs.reading = false
			if rs.dry++; len(entries) > 0 {
				rs.dry = 0
			}
			h.takeRead(entries, err)
		})
	})
}

// takeRead makes the core integrate what was read, unless it has an append in flight
// by now, which will be refused.
func (h *host) takeRead(entries []model.LogEntry, err error) {
	switch {
	case err != nil:
		h.report("read log", err)
	case !h.core.Settled():
	default:
		if err := h.integrator().Integrate(entries...); err != nil {
			h.fail("integrate the commits of another runtime", err)
		}
	}
}
