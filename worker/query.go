package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker/roster"
)

// Answer is a document as it is at the head of the log.
type Answer struct {
	Value    model.Value // absent if there is no such document
	Revision uint64      // log sequence of the commit that set the value, 0 if there is none
	// Stale, if not "", is why the value is not current: its inputs
	// did not come to rest in time, or a node fails.
	Stale string
}

// ErrElsewhere reports that the space is not served here, or not now: ask the present owner
// of the space.
var ErrElsewhere = errors.New("the space is not served here at the moment")

// ErrNoProgram reports that a space runs no program, so none of its derived documents can be computed.
var ErrNoProgram = errors.New("the space has no program to run")

// Query reads a document of a space that this worker serves, at the head of the log: the
// value reflects everything that was in the log when Query was called. A derived
// document without an observer is observed meanwhile. Query loads the space if necessary.
// After wait it returns the present value, and reports it as stale.
//
// The error is ErrElsewhere, ErrNoProgram, a model.NameError or that of ctx.
func (w *Worker) Query(ctx context.Context, name, doc string, wait time.Duration) (Answer, error) {
	if err := checkAddress(name, doc); err != nil {
		return Answer{}, err
	}
	p := w.partitionOf(name)
	if p == nil {
		return Answer{}, ErrElsewhere
	}
	q := &query{ctx: ctx, doc: doc, host: make(chan *host, 1), done: make(chan Answer, 1)}
	began := time.Now()
	var err error
	if q.head, err = w.bus.Head(ctx, name); err != nil {
		return Answer{}, fmt.Errorf("read the head of space %s: %w", name, err)
	}
	if err := p.ask(name, q.put); err != nil {
		return Answer{}, err
	}
	return q.await(p.ctx.Done(), wait-time.Since(began))
}

func checkAddress(space, doc string) error {
	if err := model.CheckName("space", space); err != nil {
		return err
	}
	return model.CheckName("document", doc)
}

// Owner returns the worker that should serve a space now, as far as this worker knows: possibly
// itself, and possibly one to which another has yet to hand the space over. It is "" if this
// worker is leaving and knows of no other.
func (w *Worker) Owner(space string) string {
	n := w.bus.Partitions()
	return roster.Divide(n, w.roster.Staying(time.Now()))[model.PartitionOf(space, n)]
}

// ID returns the worker's id.
func (w *Worker) ID() string { return w.cfg.ID }

// partitionOf returns the partition of a space, nil if this worker does not serve it.
func (w *Worker) partitionOf(name string) *partition {
	return w.served(model.PartitionOf(name, w.bus.Partitions()))
}

// served returns the partition of that number, nil if this worker does not serve it.
func (w *Worker) served(number int) *partition {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return nil
	}
	return w.partitions[number]
}

// queries are the pending queries of this host, and the counters that they wait by. They belong
// to its loop.
type queries struct {
	waiting []*query
	glances []*glance
	// confirmed and refused count appends by outcome.
	confirmed, refused uint64
	// reading reports that a read of the log is in flight, dry is the number of successive
	// empty reads.
	reading bool
	dry     int
}

// query is a request to read a document at the head.
type query struct {
	ctx context.Context // the caller's context
	doc string
	// host receives the host that will answer, or nil if there is none.
	host chan *host
	// head is the end of the log at the time of the request: the answer reflects at least that.
	head uint64
	// done receives the answer, or is closed if this host cannot give one.
	done chan Answer
	// late reports that the present value must be returned now.
	late bool
	// reached reports that the document was up to date, except for a flaw, at a time when so many appends
	// had been refused. The answer waits until due appends are confirmed.
	reached      bool
	flaw         string
	due, refused uint64
}

// put passes the query to the host of its space.
func (q *query) put(h *host) {
	if h != nil {
		h.call(func() { h.beginQuery(q) })
	}
	q.host <- h
}

// await returns the answer to a query, after wait the present value. closed is closed with
// the partition.
func (q *query) await(closed <-chan struct{}, wait time.Duration) (Answer, error) {
	late := time.NewTimer(wait)
	defer late.Stop()
	var h *host
	select {
	case h = <-q.host:
	case <-closed:
	case <-q.ctx.Done():
		return Answer{}, q.ctx.Err()
	}
	if h == nil {
		return Answer{}, ErrElsewhere
	}
	for {
		select {
		case a, ok := <-q.done:
			if !ok {
				return Answer{}, ErrElsewhere
			}
			return a, nil
		case <-late.C:
			h.call(func() { q.late = true })
		case <-h.done:
			return Answer{}, ErrElsewhere
		case <-q.ctx.Done():
			h.call(func() { h.endQuery(q) })
			return Answer{}, q.ctx.Err()
		}
	}
}

func (h *host) beginQuery(q *query) {
	if h.draining || q.ctx.Err() != nil || h.core.Observe(q.doc) != nil { // the name was checked
		close(q.done)
		return
	}
	h.queries.waiting = append(h.queries.waiting, q)
}

// endQuery cancels a query, unless it has been answered.
func (h *host) endQuery(q *query) {
	list := h.queries.waiting
	if i := slices.Index(list, q); i >= 0 {
		h.queries.waiting = slices.Delete(list, i, i+1)
		h.core.Unobserve(q.doc)
	}
}

// answerQueries answers the queries that are ready. It is called after each Settle.
func (h *host) answerQueries() {
	h.answerGlances()
	h.queries.waiting = slices.DeleteFunc(h.queries.waiting, func(q *query) bool {
		done := h.tryAnswer(q)
		if done {
			h.core.Unobserve(q.doc)
			h.inbox.rouse() // an input: the core has to settle
		}
		return done
	})
}

// tryAnswer reports whether the query has ended.
func (h *host) tryAnswer(q *query) bool {
	switch {
	case h.draining:
		close(q.done)
		return true
	case !h.core.Owned():
		return false
	case h.core.Seq() < q.head:
		h.readOthers()
		return false
	}
	if !q.reached || q.refused != h.queries.refused {
		q.reach(h)
	}
	switch {
	case q.reached && h.queries.confirmed >= q.due:
		h.answer(q, q.flaw)
	case q.late:
		h.answer(q, cmp.Or(h.core.Freshness(q.doc).Why, "what the document is made of is not in the log yet"))
	default:
		return false
	}
	return true
}

// reach checks whether the document is up to date here; if so, only the confirmation of
// its commits in the log is missing.
func (q *query) reach(h *host) {
	f := h.core.Freshness(q.doc)
	q.reached, q.flaw = !f.Pending, f.Why
	q.due, q.refused = h.queries.confirmed+uint64(h.core.Unconfirmed()), h.queries.refused
}

func (h *host) answer(q *query, stale string) {
	a := Answer{Stale: stale}
	a.Value, a.Revision = h.core.Confirmed(q.doc)
	q.done <- a
}

// readOthers integrates the commits of other runtimes that the host does not know: the
// log has more than the host. A host with something to append learns of them by its refusal.
func (h *host) readOthers() {
	qs := &h.queries
	if qs.reading || !h.core.Settled() {
		return
	}
	qs.reading = true
	after, wait := h.core.Seq(), pause.Backoff(qs.dry)
	h.env.tasks.Go(func() { // ends with the read
		_ = pause.For(h.ctx, wait)
		entries, err := h.env.bus.ReadLog(h.ctx, h.space, after, readPage)
		h.call(func() {
			qs.reading = false
			if qs.dry++; len(entries) > 0 {
				qs.dry = 0
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
		if err := h.core.Integrate(entries...); err != nil {
			h.fail("integrate the commits of another runtime", err)
		}
	}
}
