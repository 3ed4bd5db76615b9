package space

import (
	"cmp"
	linked "container/list" // "list" is taken in the tests
	"maps"
	"slices"
	"time"

	"github.com/settlehq/settle/ledger"
)

// echoSettings are the limits of the remote-echo breaker. Zero fields have defaults.
type echoSettings struct {
	trip   int           // echo steps within the window that trip a pair; 12
	window time.Duration // 60 s
	// deferral is how long a node waits after the step that trips a pair; 500 ms. It doubles with each further step, up to longest, 30 s. Both
	// sides continue, but slowly enough to be harmless.
	deferral, longest time.Duration
	quiet             time.Duration // a tripped pair without a step for this long is cleared; 120 s
	pairs             int           // capacity of the table; 4096
}

func (s echoSettings) filled() echoSettings {
	s.trip = cmp.Or(s.trip, 12)
	s.window = cmp.Or(s.window, 60*time.Second)
	s.deferral = cmp.Or(s.deferral, 500*time.Millisecond)
	s.longest = cmp.Or(s.longest, max(30*time.Second, s.deferral))
	s.quiet = cmp.Or(s.quiet, 120*time.Second)
	s.pairs = cmp.Or(s.pairs, 4096)
	return s
}

// Reasons for clearing a tripped pair.
const (
	echoEqual   = "equal"   // a run left the document equal
	echoQuiet   = "quiet"   // no echo for the quiet time
	echoRetired = "retired" // the node is gone
	echoEvicted = "evicted" // the table was full
)

// echoCleared is the end of an episode.
type echoCleared struct {
	node, doc string
	reason    string // one of the four above
}

// echoBreaker slows down a node that competes with another runtime for a document: each writes a value that
// makes the other write a different one. Every run succeeds and every pass settles, so no budget bounds it.
//
// An echo step is a run that was triggered by a remote change of a document and wrote a different value to
// that same document. A run that was triggered by this runtime's own commit is not an echo step, and must not
// be passed to step. Steps are counted per pair of node and document. A pair with too many of them trips, and
// stays in force until it is cleared; each further step defers its node again.
//
// Times must not decrease. Without echoes, nothing is allocated or visited.
type echoBreaker struct {
	settings echoSettings
	nodes    map[string]*echoNode
	recent   linked.List // of *echoPair, latest step first
	inForce  int         // pairs that are tripped
}

// echoNode is a node with a pair in the table.
type echoNode struct {
	pairs   map[string]*echoPair // by document
	inForce int                  // tripped pairs among them
	until   time.Duration        // the node is deferred until then; 0 if no pair is in force
}

type echoPair struct {
	node, doc string
	at        *linked.Element
	// steps are the times of the steps within the window, oldest first. A tripped pair does not count steps
	// and has none.
	steps   []time.Duration
	last    time.Duration // the latest step
	tripped bool
	// inForce is the number of steps since it tripped, including that one.
	inForce int
}

func newEchoBreaker(s echoSettings) *echoBreaker {
	return &echoBreaker{settings: s.filled()}
}

// step records an echo step: a run of node that was triggered by a remote change of doc and wrote a different
// value to it. It reports whether the pair trips, once per episode. cleared is an episode that this ends:
// that of a pair evicted to make room, or of this pair if its quiet time was over but sweep had not cleared
// it yet.
func (b *echoBreaker) step(node, doc string, now time.Duration) (trip bool, cleared *echoCleared) {
	p := b.find(node, doc)
	if p != nil && b.over(p, now) {
		p, cleared = nil, b.drop(p, echoQuiet)
	}
	if p == nil {
		if b.recent.Len() >= b.settings.pairs {
			cleared = b.drop(b.recent.Back().Value.(*echoPair), echoEvicted)
		}
		p = b.add(node, doc)
	}
	b.recent.MoveToFront(p.at)
	p.last = now
	return b.countStep(p, now), cleared
}

// countStep trips p after too many steps, and defers the node of a pair in force.
func (b *echoBreaker) countStep(p *echoPair, now time.Duration) (trip bool) {
	n := b.nodes[p.node]
	if !p.tripped && p.count(now, b.settings.window) >= b.settings.trip {
		p.tripped, p.steps, trip = true, nil, true
		n.inForce++
		b.inForce++
	}
	if p.tripped {
		p.inForce++
		n.until = max(n.until, now+ledger.Doubled(b.settings.deferral, b.settings.longest, p.inForce))
	}
	return trip
}

// count adds a step and removes those that have left the window. The window slides: fixed windows of 60 s
// would miss a burst across a boundary.
func (p *echoPair) count(now, window time.Duration) int {
	old := 0
	for old < len(p.steps) && now-p.steps[old] > window {
		old++
	}
	p.steps = append(slices.Delete(p.steps, 0, old), now)
	return len(p.steps)
}

// quietRun records that a run of node left doc equal: the runtimes agree, and the count starts over. The
// result is nil if the pair was not in force.
func (b *echoBreaker) quietRun(node, doc string) (cleared *echoCleared) {
	if p := b.find(node, doc); p != nil {
		return b.drop(p, echoEqual)
	}
	return nil
}

// sweep clears pairs that have been quiet for long enough, and removes expired counts, in the order of their
// last steps.
func (b *echoBreaker) sweep(now time.Duration) (cleared []echoCleared) {
	young := min(b.settings.window, b.settings.quiet)
	for e := b.recent.Back(); e != nil; {
		p := e.Value.(*echoPair)
		if now-p.last < young {
			break // the others are more recent
		}
		e = e.Prev()
		if b.over(p, now) {
			cleared = gatherCleared(cleared, b.drop(p, echoQuiet))
		}
	}
	return cleared
}

// sweepAt returns when the next sweep has something to clear, 0 if no pair is in force. Without a wake-up at
// that time, the end of the last episode in a quiet space would never be reported.
func (b *echoBreaker) sweepAt() time.Duration {
	if b.inForce == 0 {
		return 0
	}
	e := b.recent.Back()
	for !e.Value.(*echoPair).tripped {
		e = e.Prev()
	}
	return e.Value.(*echoPair).last + b.settings.quiet
}

// retire removes a node, and returns its episodes sorted by document.
func (b *echoBreaker) retire(node string) (cleared []echoCleared) {
	n := b.nodes[node]
	if n == nil {
		return nil
	}
	for _, doc := range slices.Sorted(maps.Keys(n.pairs)) {
		cleared = gatherCleared(cleared, b.drop(n.pairs[doc], echoRetired))
	}
	return cleared
}

// deferredUntil returns the time before which node should not run again, 0 if none of its pairs is in force. It
// may lie in the past.
func (b *echoBreaker) deferredUntil(node string) time.Duration {
	if n := b.nodes[node]; n != nil {
		return n.until
	}
	return 0
}

// stepsInForce returns the number of steps since a pair of node tripped, the largest of its pairs; 0 if none is in force.
func (b *echoBreaker) stepsInForce(node string) (steps int) {
	if n := b.nodes[node]; n != nil {
		for _, p := range n.pairs { // any order: the largest counts
			steps = max(steps, p.inForce)
		}
	}
	return steps
}

// over reports whether p has expired: it is tripped and quiet, or all of its steps have left the window.
func (b *echoBreaker) over(p *echoPair, now time.Duration) bool {
	if p.tripped {
		return now-p.last >= b.settings.quiet
	}
	return now-p.last > b.settings.window
}

func (b *echoBreaker) find(node, doc string) *echoPair {
	if n := b.nodes[node]; n != nil {
		return n.pairs[doc]
	}
	return nil
}

func (b *echoBreaker) add(node, doc string) *echoPair {
	if b.nodes == nil {
		b.nodes = map[string]*echoNode{}
	}
	n := b.nodes[node]
	if n == nil {
		n = &echoNode{pairs: map[string]*echoPair{}}
		b.nodes[node] = n
	}
	p := &echoPair{node: node, doc: doc}
	p.at = b.recent.PushFront(p)
	n.pairs[doc] = p
	return p
}

// drop removes p from the table. The node stays deferred while another of its pairs is in force. The result
// is nil if p was not in force.
func (b *echoBreaker) drop(p *echoPair, reason string) *echoCleared {
	n := b.nodes[p.node]
	b.recent.Remove(p.at)
	delete(n.pairs, p.doc)
	if len(n.pairs) == 0 {
		delete(b.nodes, p.node)
	}
	if !p.tripped {
		return nil
	}
	b.inForce--
	if n.inForce--; n.inForce == 0 {
		n.until = 0
	}
	return &echoCleared{p.node, p.doc, reason}
}

func gatherCleared(all []echoCleared, c *echoCleared) []echoCleared {
	if c == nil {
		return all
	}
	return append(all, *c)
}
