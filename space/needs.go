package space

import (
	"slices"
	"time"
)

// needs are the documents that successive attempts at the event at the head of the lane lacked. All of them
// are kept up to date until the event is handled: if the first were released while the second is awaited, an
// attempt might never find both.
type needs struct {
	nodes []*node
	docs  []*doc
	// awaits is the absent document of another space that the event waits for, since the time when an attempt
	// first lacked it.
	awaits *doc
	since  time.Duration
	// wait limits that wait; 0 means no limit.
	wait time.Duration
}

// add adds what an attempt lacked: a document of another space, or a node that is not up to date. wait limits
// the wait for a document.
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

// lacks reports whether any of the needs is unmet.
func (h *needs) lacks(g *graph) bool {
	for _, d := range h.docs {
		if !d.loaded {
			return true
		}
	}
	return slices.ContainsFunc(h.nodes, g.isStale)
}

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

// noteAwaited records the beginning of a wait for a document of another space.
func (h *needs) noteAwaited(g *graph) {
	if h.wait == 0 || h.awaits != nil && !h.awaits.loaded {
		return
	}
	h.awaits, h.since = h.missingDocument(g), g.now
}

// overdue returns the error of an event that has waited too long, nil if it has not.
func (h *needs) overdue(g *graph, wait time.Duration) error {
	h.wait = wait
	h.noteAwaited(g)
	if at := h.failsAt(); at == 0 || g.now < at {
		return nil
	}
	if d := h.missingDocument(g); d != h.awaits { // the document is no longer needed
		h.awaits, h.since = d, g.now
		return nil
	}
	return &DocumentError{Document: h.awaits.key.String(), Waited: h.wait}
}

// failsAt returns when the event fails if the awaited document does not arrive, 0 for never.
func (h *needs) failsAt() time.Duration {
	if h.wait > 0 && h.awaits != nil && !h.awaits.loaded {
		return h.since + h.wait
	}
	return 0
}

// missingDocument returns an absent document of another space that the event needs, directly or indirectly; nil if
// there is none.
func (h *needs) missingDocument(g *graph) *doc {
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
