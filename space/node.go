package space

import (
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// node is the hot record of a node: what changes while it runs. What is fixed stands
// in its spec, which all spaces of a program share. Readers in other goroutines see it in tables that are compared with
// it when they ask (publish.go).
//
// Always:
//
//  1. status Clean implies that there are no causes;
//  2. live is true iff wanted says so (liveness.go);
//  3. a live node counts once in the refs of every document that an indexed dep of it
//     names, and of every surface there that the dep overlaps;
//  4. a node that is due (live, and not Clean) is in one of the places of the queue, or
//     waits for something that will put it there;
//  5. a node whose status is Invalid, or NeverRan while another node reads what it writes or
//     it writes more than its output, is in graph.stale.
type node struct {
	spec *declaration
	// own is the surface of the primary output; own.doc is nil if there is none.
	own  surface
	deps []*dep
	more *extra
	runs uint64

	handle uint32 // index in graph.nodes
	// ordinal is the order of first registration: the tie-break of the order.
	ordinal uint32
	// height is above that of every node whose output this one reads, but for circles.
	height int32
	// demand counts the reasons to be live that are not readers: an event that waits
	// for the output, and having just been made by a run.
	demand   int32
	mark     int32 // scratch of searches, as markDown
	markDown int32
	sought   int32 // scratch of Space.freshen
	staleAt  int32 // index in graph.stale plus one, 0 if it is not there

	kind     NodeKind
	status   Status
	passRuns uint8

	live    bool
	queued  bool // in the queue or among the idle materializers
	held    bool // among the gated
	removed bool
	// doomed says that it was removed in the middle of its own run, and goes with its end.
	doomed bool
	// waiting says that the last run met a foreign document that is not there yet.
	// The node does not run again before something it read has changed.
	waiting bool
	running bool // its function is on the stack
	seeking bool // see Space.freshen
	unsaved bool // in Space.unsaved
	saved   bool // there is a saved observation of it
}

// extra is what few nodes need.
type extra struct {
	outputs   []*surface // static side-writes: tier 2
	envelope  []*surface // tier 3
	gate      gate
	parent    *node
	children  []*node
	blueprint map[string]bool // ids that the run under way has registered
	// retries counts the runs in a row that ended in a transient error.
	retries int
	// waited is the sweep in which it has waited for its maker.
	waited uint64
	// provisional is set while demand includes the node's having just been made.
	provisional bool
	// remote are the own surfaces that others' commits have changed since the last run.
	remote []*doc
	// outdated says that the node was made under a former program, renewing that it has
	// made such ones and is to make them again.
	outdated, renewing bool
	// cleanAs is the version as which it was clean before its code was changed, "" for none.
	cleanAs string
	lastErr error
	errors  uint64 // runs that ended in one
	// causes are those that are not among the reads.
	causes []string
	// firing are those of the run under way, see Space.firing.
	firing []string
}

func (n *node) id() string { return n.spec.ID }

// ext is the rarely needed part, made when first written to.
func (n *node) ext() *extra {
	if n.more == nil {
		n.more = &extra{}
	}
	return n.more
}

func (n *node) parent() *node {
	if n.more == nil {
		return nil
	}
	return n.more.parent
}

// materializer reports whether the node has a declared envelope (seed 001 section 4.3).
func (n *node) materializer() bool { return len(n.spec.Envelope) > 0 }

// due reports whether the node is to run as soon as nothing holds it.
func (n *node) due() bool { return n.live && n.status != Clean && !n.removed }

// eachSurface visits what the node writes: its output, its side-writes, and its
// envelope if that is asked for.
func (n *node) eachSurface(envelope bool, visit func(*surface)) {
	if n.own.doc != nil {
		visit(&n.own)
	}
	if n.more == nil {
		return
	}
	for _, s := range n.more.outputs {
		visit(s)
	}
	if envelope {
		for _, s := range n.more.envelope {
			visit(s)
		}
	}
}

// eachReader visits the edges to the readers of what the node writes.
func (n *node) eachReader(envelope bool, visit func(*dep)) {
	n.eachSurface(envelope, func(s *surface) {
		for _, d := range s.doc.readers {
			if d.node != n && s.overlaps(d) {
				visit(d)
			}
		}
	})
}

// eachWriter visits the surfaces that the dep reads from.
func (d *dep) eachWriter(envelope bool, visit func(*surface)) {
	d.doc.eachSurface(envelope, func(s *surface) {
		if s.node != d.node && s.overlaps(d) {
			visit(s)
		}
	})
}

// surface is a place that a node may write to.
type surface struct {
	node *node
	doc  *doc
	path model.Path
	// refs counts the live readers of the place. Envelopes are not counted (seed 001
	// section 4.3, rule 3).
	refs int32
}

// overlaps is the rule for edges between nodes (reference: trigger semantics 4.7): one
// path is a prefix of the other; and a shallow reader is not concerned by what is
// written more than one level below it.
func (s *surface) overlaps(d *dep) bool {
	if len(s.path) == 0 {
		return true
	}
	if d.shallow && len(s.path) > len(d.path)+1 {
		return false
	}
	n := min(len(s.path), len(d.path))
	return slices.Equal(s.path[:n], d.path[:n])
}

// dep is the edge from a node to an address that it reads.
type dep struct {
	node *node
	doc  *doc
	path model.Path
	// fired is not 0 if what is read here has changed since the node last ran: it is a
	// cause. The number is the order in which they came.
	fired uint32
	slot  int32 // index in doc.readers, place in the list of its path if there is an index
	place int32
	seen  int32 // the run that has read it
	// shallow says that only the keys, the length or the scalar there matter.
	shallow bool
	// covered says that another read of the node's, of an ancestor, says all that this
	// one could; it is not indexed then.
	covered bool
	// declared says that the node has not run yet and is expected to read this: it
	// orders and pulls, and triggers nothing.
	declared bool
	// indexed is set while the dep is among doc.readers, back if it closes a circle.
	// listed says that it is among graph.backs.
	indexed bool
	back    bool
	listed  bool
}

// doc is the hot record of a document: its value as this runtime sees it now,
// speculative transactions included, and which nodes read and write it.
type doc struct {
	key   docKey
	value model.Value
	// writer is the surface of the node whose primary output this is.
	writer  *surface
	readers []*dep
	// paths finds readers by path when there are many.
	paths *pathIndex
	// others are the surfaces of side-writes and envelopes.
	others []*surface
	// refs is the number of live reads of the document, plus one while an event waits
	// for it.
	refs int32
	// sizeBound is what the encoded document has at most, once it was measured.
	sizeBound int32
	measured  bool
	// loaded is set once a foreign document's value has arrived; own documents
	// are always loaded.
	loaded bool
	awayAt int32 // index in graph.away plus one, 0 if it is not there
	// followed says that the runtime was asked to mirror this foreign document.
	followed bool
	// leaving is set while the document is among those that may be forgotten.
	leaving bool
}

// eachSurface visits the surfaces that lie in the document.
func (d *doc) eachSurface(envelope bool, visit func(*surface)) {
	if d.writer != nil {
		visit(d.writer)
	}
	for _, s := range d.others {
		if envelope || !s.isEnvelope() {
			visit(s)
		}
	}
}

// isEnvelope: a node that declares envelopes has no static side-writes.
func (s *surface) isEnvelope() bool { return s != &s.node.own && s.node.materializer() }

// gate says when a node may run (seed 001 section 8.1). The zero gate is open.
type gate struct {
	debounce, throttle time.Duration
	maxWait            time.Duration // as in GateSpec
	noAuto             bool
	auto               autoDebounce
	// armed says that a debounced node was invalidated since its last run began, and
	// changedAt when that last was, firstAt when first; arming, that it has been and the time is not known yet.
	changedAt     time.Duration
	firstAt       time.Duration
	armed, arming bool
	// owed says that a run was undone that had been let through: the next one does not
	// wait for debounce or throttle again (F20), as nothing that it read need have changed.
	// Meanwhile what the node writes is older than it was.
	owed bool
	// ranAt is when the node last ran, as far as that is known: ran says so.
	ranAt time.Duration
	ran   bool
	// heldAt is the time under which the node stands among the gated, place where.
	heldAt time.Duration
	place  int
	// backoffUntil holds a node that did not converge; streak is how many passes in a
	// row it has exhausted, holds how many of them kept the space from being idle.
	backoffUntil time.Duration
	streak       int
	holds        int
	// echoUntil holds a node that answers another runtime's writes with its own.
	echoUntil time.Duration
}

// pathIndex finds the readers of a document that a change concerns: a tree by path, in
// which equal parts of the two values are passed over.
type pathIndex struct{ root pathNode }

// pathNode holds the readers of one path.
type pathNode struct {
	step string // the last of the path
	here []*dep
	kids map[string]*pathNode
	// order are the kids in order of first use, for what is told to whom first must not
	// depend on the order of a map. One that was dropped, of size 0, may stay for a while.
	order []*pathNode
	size  int // readers here and below
}

func (n *node) failed() bool { return n.more != nil && n.more.lastErr != nil }

// isVolatile reports whether the document is not in the log.
func (d *doc) isVolatile() bool { return d.writer != nil && d.writer.node.spec.Volatile }

// isWritten reports whether any node may write the document.
func (d *doc) isWritten() bool { return d.writer != nil || len(d.others) > 0 }

// owner is the node whose primary output the document is, or nil.
func (d *doc) owner() *node {
	if d.writer == nil {
		return nil
	}
	return d.writer.node
}

// surface is the i-th of those that eachSurface visits, nil if there are fewer.
func (d *doc) surface(i int) *surface {
	if d.writer != nil {
		if i--; i < 0 {
			return d.writer
		}
	}
	if i < len(d.others) {
		return d.others[i]
	}
	return nil
}

// surface is the i-th of those that eachSurface visits, nil if there are fewer.
func (n *node) surface(i int) *surface {
	if n.own.doc != nil {
		if i--; i < 0 {
			return &n.own
		}
	}
	if n.more == nil {
		return nil
	}
	if i < len(n.more.outputs) {
		return n.more.outputs[i]
	}
	if i -= len(n.more.outputs); i < len(n.more.envelope) {
		return n.more.envelope[i]
	}
	return nil
}

// by names the node in the log.
func (n *node) by() string {
	if n.kind == Effect {
		return "effect " + n.id()
	}
	return "compute " + n.id()
}

// shownAs is what people know the node's work by: its output, or itself.
func (n *node) shownAs() string {
	if n.own.doc != nil {
		return n.own.doc.key.String()
	}
	return n.id()
}

// mayWriteAt reports whether a place lies within what the node has declared.
func (n *node) mayWriteAt(d *doc, path model.Path) bool {
	within := false
	n.eachSurface(true, func(s *surface) { within = within || s.doc == d && path.HasPrefix(s.path) })
	return within
}

// lacking reports whether the node is not up to date by itself, in a way that is worth
// waiting for. One that was removed while an event waited for it will never be.
func (n *node) lacking() bool {
	return n.status != Clean && !n.removed && (n.more == nil || n.more.gate.streak < patience)
}

// patience is the number of exhausted passes in a row after which an event no longer
// waits for a node that does not converge: there is no value to wait for, and the
// lane must not stand still for ever (I6). With the default backoff that is after
// about four seconds.
const patience = 5

// String names the address, as in a cause.
func (d *dep) String() string {
	name := d.doc.key.String() + d.path.String()
	if d.shallow {
		name += "#"
	}
	return name
}

// readNames lists the read set for people and for the log: document, then a JSON
// pointer; a shallow read ends in "#".
func (n *node) readNames() []string {
	var names []string
	for _, d := range n.deps {
		if !d.covered && !d.declared {
			names = append(names, d.String())
		}
	}
	return names
}

// noteRemote remembers that another runtime's commit has woken the node by a document
// that it may write itself. Most nodes never do.
func (n *node) noteRemote(d *doc) {
	mine := d.writer != nil && d.writer.node == n || slices.ContainsFunc(d.others, func(s *surface) bool { return s.node == n })
	if mine && !slices.Contains(n.ext().remote, d) {
		n.more.remote = append(n.more.remote, d)
	}
}

// docValue is a document and the value a transaction leaves it with.
type docValue struct {
	doc   *doc
	value model.Value
	added int // bytes that the writes can have added at most
}
