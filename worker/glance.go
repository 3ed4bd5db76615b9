package worker

import (
	"context"
	"slices"

	"github.com/settlehq/settle/space"
)

// Place is a document of a space.
type Place struct {
	Space    string `json:"space"`
	Document string `json:"document"`
}

// Glance is how a document stands, as far as the owner of its space knows at the moment.
type Glance struct {
	// Revision is that of the value which the log has.
	Revision uint64
	// Stale is as in Answer.
	Stale string
	// Passing says that what Stale names may pass by itself: something has yet to run, to be
	// confirmed, or to answer.
	Passing bool
}

const (
	staleElsewhere = "the space is not served by anybody at the moment"
	staleBusy      = "the space has not answered yet: it is being loaded, or at work"
)

// Glance says how documents stand, of spaces that this worker serves. Unlike Query it asks
// neither the log nor waits for what is pending, and observes nothing: it is for those who
// observe documents and want to know now and then whether they are what they should be. What a
// space has not answered when ctx ends is Passing.
func (w *Worker) Glance(ctx context.Context, places []Place) []Glance {
	out := make([]Glance, len(places))
	of := map[string]*glance{}
	found := make(chan glanced, len(places)) // so that a host never waits
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

// next is what has come by the end of ctx.
func next(ctx context.Context, found <-chan glanced) (f glanced, is bool) {
	select {
	case f = <-found:
		return f, true
	case <-ctx.Done():
	}
	select { // it may have come as well
	case f = <-found:
		return f, true
	default:
		return f, false
	}
}

// glance asks a space. What is known without it is returned; otherwise the zero Glance is.
func (w *Worker) glance(name string, g *glance) Glance {
	p := w.partitionOf(name)
	if p == nil {
		return Glance{Stale: staleElsewhere, Passing: true}
	}
	return p.glance(name, g)
}

// glance asks a space that is awake. None is woken for it: those who observe it have it woken.
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
	switch program, err := p.w.cfg.Programs(name); {
	case err != nil:
		return Glance{Stale: "the program of the space could not be had: " + err.Error(), Passing: true}
	case program == nil:
		return Glance{Stale: ErrNoProgram.Error()}
	}
	return Glance{Stale: staleBusy, Passing: true}
}

// glance is somebody's wish to know how documents of one space stand.
type glance struct {
	ctx  context.Context
	docs []string
	at   []int // where each is among all that was asked for
	// found is told of each, and has room for that.
	found chan<- glanced
	// seen is how they stood when so many appends had been refused. It counts when due
	// appends are confirmed.
	seen         []space.Freshness
	due, refused uint64
}

type glanced struct {
	at int
	Glance
}

// glance gives a glance to the loop, which may be busy for ever: those that nobody waits for any
// more make room.
func (h *host) glance(g *glance) {
	h.mu.Lock()
	h.inbox.glances = append(slices.DeleteFunc(h.inbox.glances, (*glance).over), g)
	h.mu.Unlock()
	h.rouse()
}

func (g *glance) over() bool { return g.ctx.Err() != nil }

// answerGlances answers those that can be, and drops those that nobody waits for any more.
func (h *host) answerGlances() {
	h.queries.glances = slices.DeleteFunc(h.queries.glances, func(g *glance) bool {
		return h.draining || g.over() || h.core.Owned() && g.look(h)
	})
}

// look reports whether what is seen is in the log, in which case it is told.
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
