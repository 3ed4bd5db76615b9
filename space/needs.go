package space

import (
	"slices"
	"time"
)

// needs is what attempts at the event at the head of the lane have been found to need, one attempt after the
// other. All of it is kept up to date until the event is handled: if the first were let go while the second
// is waited for, no attempt might ever meet both.
type needs struct {
	nodes []*node
	docs  []*doc
	// awaits is a document of another space that is not here and that the event waits for, since when it
	// was found to.
	awaits *doc
	since  time.Duration
	// wait is for how long the event waits for one, 0 for no end of it.
	wait time.Duration
}

// add takes in what an attempt lacked: a document of another space, or that a node is up to date. wait is for
// how long a document is waited for.
func (h *needs) add(g *graph, missing *doc, stale *node, wait time.Duration) {
	switch {
	case missing != nil:
		h.docs = append(h.docs, missing)
		g.needDoc(missing, true)
	case !slices.Contains(h.nodes, stale):
		h.nodes = append(h.nodes, stale)
		g.demandRun(stale)
	}
	h.wait = wait
	h.noteAwaited(g)
}

// lacks reports whether anything of it is missing.
func (h *needs) lacks(g *graph) bool {
	for _, d := range h.docs {
		if !d.loaded {
			return true
		}
	}
	return slices.ContainsFunc(h.nodes, g.isStale)
}

// release takes the demand back.
func (h *needs) release(g *graph) {
	was := *h
	*h = needs{}
	for _, d := range was.docs {
		g.needDoc(d, false)
	}
	for _, n := range was.nodes {
		g.releaseRun(n)
	}
}

// noteAwaited notes since when a document of another space is waited for, if one is.
func (h *needs) noteAwaited(g *graph) {
	if h.wait == 0 || h.awaits != nil && !h.awaits.loaded {
		return
	}
	h.awaits, h.since = h.lacked(g), g.now
}

// overdue is the error that the event fails with because it has waited for too long, nil if it has not.
func (h *needs) overdue(g *graph, wait time.Duration) error {
	h.wait = wait
	h.noteAwaited(g)
	if at := h.failsAt(); at == 0 || g.now < at {
		return nil
	}
	if d := h.lacked(g); d != h.awaits { // what needed it does not any more
		h.awaits, h.since = d, g.now
		return nil
	}
	return &DocumentError{Document: h.awaits.key.String(), Waited: h.wait}
}

// failsAt returns when the event fails if the document that it waits for does not come, 0 for never.
func (h *needs) failsAt() time.Duration {
	if h.wait > 0 && h.awaits != nil && !h.awaits.loaded {
		return h.since + h.wait
	}
	return 0
}

// lacked returns a document of another space that is not here and that the event needs, or something that it
// needs does; nil if there is none.
func (h *needs) lacked(g *graph) *doc {
	for _, d := range h.docs {
		if !d.loaded {
			return d
		}
	}
	if g.pending == 0 {
		return nil
	}
	seen := map[*node]bool{}
	for work := append([]*node{}, h.nodes...); len(work) > 0; work = work[1:] {
		n := work[0]
		if seen[n] || n.removed {
			continue
		}
		seen[n] = true
		for _, d := range n.deps {
			switch {
			case !d.indexed:
			case !d.doc.loaded:
				return d.doc
			default:
				d.eachWriter(true, func(w *surface) { work = append(work, w.node) })
			}
		}
	}
	return nil
}
