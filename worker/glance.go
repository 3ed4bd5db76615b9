package worker

import (
	"context"
	"slices"

	"github.com/settlehq/settle/space"
)

// Place names a document of a space.
type Place struct {
	Space    string `json:"space"`
	Document string `json:"document"`
}

// Glance is the state of a document as the owner of its space knows it now.
type Glance struct {
	// Revision is that of the value in the log.
	Revision uint64
	// Stale is as in Answer.
	Stale string
	// Passing reports that Stale names a transient problem: something has yet to run, to be
	// confirmed, or to answer.
	Passing bool
}

const (
	staleElsewhere = "the space is not served by anybody at the moment"
	staleBusy      = "the space has not answered yet: it is being loaded, or at work"
)

// Glance returns the states of documents in spaces that this worker serves. Unlike Query it neither
// reads the log nor waits for pending work, and observes nothing: it is for clients that
// observe documents already and periodically check their freshness. Documents of a
// space that has not answered when ctx ends are Passing.
func (w *Worker) Glance(ctx context.Context, places []Place) []Glance {
	out := make([]Glance, len(places))
	of := map[string]*glance{}
	found := make(chan glanced, len(places)) // so that a host never blocks on it
	for i, at := range places {
		out[i] = Glance{Stale: staleBusy, Passing: true}
		g := of[at.Space]
		if g == nil {
			g = &glance{ctx: ctx, found: found}
			of[at.Space] = g
		}
		g.docs, g.at = append(g.docs, at.Document), append(g.at, i)
	}
	left := len(places)
	for name, g := range of { // any order: each on its own
		if known := w.glance(name, g); known.Stale != "" {
			left -= len(g.at)
			for _, i := range g.at {
				out[i] = known
			}
		}
	}
	for ; left > 0; left-- {
		f, is := next(ctx, found)
		if !is {
			break
		}
		out[f.at] = f.Glance
	}
	return out
}

// next returns a result that arrives before ctx ends.
func next(ctx context.Context, found <-chan glanced) (f glanced, is bool) {
	select {
	case f = <-found:
		return f, true
	case <-ctx.Done():
	}
	select { // a result may have arrived as well
	case f = <-found:
		return f, true
	default:
		return f, false
	}
}

// glance asks a space. It returns the answer if that is known without the space; otherwise the zero Glance.
func (w *Worker) glance(name string, g *glance) Glance {
	p := w.partitionOf(name)
	if p == nil {
		return Glance{Stale: staleElsewhere, Passing: true}
	}
	return p.glance(name, g)
}

// glance asks a loaded space. It loads none: the space's observers have that done.
func (p *partition) glance(name string, g *glance) Glance {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.hosts[name]; h != nil {
		h.glance(g)
		return Glance{}
	}
	if p.closed || p.ctx.Err() != nil {
		return Glance{Stale: staleElsewhere, Passing: true}
	}
	if _, waits := p.waiting[name]; waits {
		return Glance{Stale: staleBusy, Passing: true}
	}
	switch program, err := p.cfg.Programs(name); {
	case err != nil:
		return Glance{Stale: "the program of the space could not be had: " + err.Error(), Passing: true}
	case program == nil:
		return Glance{Stale: ErrNoProgram.Error()}
	}
	return Glance{Stale: staleBusy, Passing: true}
}

// glance is a request for the state of documents of one space.
type glance struct {
	ctx  context.Context
	docs []string
	at   []int // the index of each in the whole request
	// found receives the result of each document, and has room for all.
	found chan<- glanced
	// seen is their state at a time when so many appends had been refused. It is valid once due
	// appends are confirmed.
	seen         []space.Freshness
	due, refused uint64
}

type glanced struct {
	at int
	Glance
}

// glance passes a request to the loop, which may be busy without end: requests whose callers have
// given up make room.
func (h *host) glance(g *glance) {
	h.inbox.mu.Lock()
	h.inbox.glances = append(slices.DeleteFunc(h.inbox.glances, (*glance).over), g)
	h.inbox.mu.Unlock()
	h.inbox.rouse()
}

func (g *glance) over() bool { return g.ctx.Err() != nil }

// answerGlances answers the requests that are ready, and drops those whose callers have given up.
func (h *host) answerGlances() {
	h.queries.glances = slices.DeleteFunc(h.queries.glances, func(g *glance) bool {
		return h.draining || g.over() || h.core.Owned() && g.look(h)
	})
}

// look reports whether the state in seen is in the log, and if so answers with it.
func (g *glance) look(h *host) bool {
	if g.seen == nil || g.refused != h.queries.refused {
		g.seen = g.seen[:0]
		for _, doc := range g.docs {
			g.seen = append(g.seen, h.core.Freshness(doc))
		}
		g.due, g.refused = h.queries.confirmed+uint64(h.core.Unconfirmed()), h.queries.refused
	}
	if h.queries.confirmed < g.due {
		return false
	}
	for i, f := range g.seen {
		_, revision := h.core.Confirmed(g.docs[i])
		g.found <- glanced{g.at[i], Glance{Revision: revision, Stale: f.Why, Passing: f.Pending}}
	}
	return true
}
