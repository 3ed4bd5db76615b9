package space

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/inspect"
)

// The limits of circles over spaces (docs/adr/0068).
const (
	// freeSteps is how often a change may come through documents of other spaces again before its pace is limited.
	freeSteps = 100
	// roundPace is for how long the first step beyond that is held back; it doubles with each further step, up to longestPace.
	roundPace, longestPace = 500 * time.Millisecond, 30 * time.Second
	// roundQuiet is how long after the last step an episode ends, at the least.
	roundQuiet = 2 * time.Minute
	// maxEpisodes bounds the episodes that a space keeps at a time. Those beyond it are held back all the same.
	maxEpisodes = 64
)

// rounds limits the pace of circles that lead through derived documents of several spaces. None of these spaces can see the circle, every run
// succeeds and every pass comes to rest; but each change carries the trail of documents that it has come through (model.Trail). Values whose
// trail has turned for too long are held back before they arrive: the nodes that read them stay clean, no event waits for them, and a change
// that has another origin passes at once.
type rounds struct {
	space string
	graph *graph
	held  map[*doc]*heldValue
	// news are the held documents whose time is set at the next tick.
	news     []*doc
	episodes map[string]*roundEpisode
}

// heldValue is the newest value of a document of another space, which has not arrived yet.
type heldValue struct {
	value model.Value
	trail *model.Trail
	// until is when it arrives, 0 if that is not known yet.
	until time.Duration
}

// roundEpisode is a circle that turns.
type roundEpisode struct {
	inspect.Round
	last time.Duration
}

// deliver gives a document of another space its confirmed value, now or later.
func (r *rounds) deliver(d *doc, v model.Value, via *model.Trail) {
	trail := via.Through(d.key.space, d.key.doc)
	h := r.held[d]
	switch {
	case !d.loaded:
		delete(r.held, d)
		r.graph.arrive(d, v, trail)
	case trail.Steps < freeSteps:
		delete(r.held, d)
		r.graph.change(d, v, origin{via: trail})
	case h != nil:
		h.value, h.trail = v, trail
	default:
		if r.held == nil {
			r.held = map[*doc]*heldValue{}
		}
		r.held[d] = &heldValue{value: v, trail: trail}
		r.news = append(r.news, d)
	}
}

// tick delivers the values whose time has come, and ends episodes.
func (r *rounds) tick() {
	for _, d := range r.news {
		if h := r.held[d]; h != nil && h.until == 0 {
			r.hold(h)
		}
	}
	clear(r.news)
	r.news = r.news[:0]
	for _, d := range r.due() {
		h := r.held[d]
		delete(r.held, d)
		r.graph.change(d, h.value, origin{via: h.trail})
	}
	for key, e := range r.episodes { // any order: each is over or not
		if r.graph.now >= e.over() {
			delete(r.episodes, key)
			r.report(e, true)
		}
	}
}

// due returns the documents whose values arrive now, sorted, and forgets those that are no longer followed.
func (r *rounds) due() (list []*doc) {
	for d, h := range r.held { // any order: sorted below
		switch {
		case !d.followed || !d.loaded:
			delete(r.held, d)
		case h.until <= r.graph.now:
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b *doc) int {
		return cmp.Or(cmp.Compare(a.key.space, b.key.space), cmp.Compare(a.key.doc, b.key.doc))
	})
	return list
}

func (r *rounds) hold(h *heldValue) {
	h.until = r.graph.now + ledger.Doubled(roundPace, longestPace, int(min(h.trail.Steps-freeSteps, 63))+1)
	r.graph.stats.Rounds++
	docs := fromSmallest(h.trail.Docs)
	key := strings.Join(docs, " ")
	e := r.episodes[key]
	if e == nil {
		if len(r.episodes) == maxEpisodes {
			return
		}
		e = &roundEpisode{Round: inspect.Round{Docs: docs}}
		if r.episodes == nil {
			r.episodes = map[string]*roundEpisode{}
		}
		r.episodes[key] = e
		defer r.report(e, false)
	}
	e.last, e.Steps, e.Until = r.graph.now, h.trail.Steps, h.until
}

// over returns when the episode ends unless another step comes before: each space on the way may hold the next one back.
func (e *roundEpisode) over() time.Duration {
	return e.last + max(roundQuiet, 2*longestPace*time.Duration(len(e.Docs)))
}

// report reports an episode. Of the spaces on a circle, that of the smallest name reports it.
func (r *rounds) report(e *roundEpisode, over bool) {
	f := r.graph.trace.Round
	smaller := func(at string) bool {
		space, _, _ := strings.Cut(at, "/")
		return space < r.space
	}
	if f != nil && !slices.ContainsFunc(e.Docs, smaller) {
		f(RoundInfo{Docs: e.Docs, Steps: e.Steps, Until: e.Until, Over: over})
	}
}

// wake returns when tick has something to do, 0 for never.
func (r *rounds) wake() (at time.Duration) {
	earliest := func(t time.Duration) {
		if at == 0 || t < at {
			at = t
		}
	}
	for _, h := range r.held { // any order: the earliest counts
		earliest(h.until)
	}
	for _, e := range r.episodes { // any order: the earliest counts
		earliest(e.over())
	}
	return at
}

// list returns the circles that turn, sorted.
func (r *rounds) list() (out []inspect.Round) {
	for _, key := range slices.Sorted(maps.Keys(r.episodes)) {
		out = append(out, r.episodes[key].Round)
	}
	return out
}

// holds returns the document among the reads of a node whose newest value is held back, nil if there is none.
func (r *rounds) holds(n *node) *doc {
	for _, d := range n.deps {
		if r.held[d.doc] != nil {
			return d.doc
		}
	}
	return nil
}

// fromSmallest returns the names of a circle beginning with the smallest.
func fromSmallest(docs []string) []string {
	at := 0
	for i := range docs {
		if docs[i] < docs[at] {
			at = i
		}
	}
	return slices.Concat(docs[at:], docs[:at])
}
