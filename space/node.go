package space

import (
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// node is the hot record of a node: its mutable state. Its constant part is the spec, which all spaces of a
// program share. Other goroutines read tables instead, which are updated from it on demand (publish.go).
//
// Invariants:
//
//  1. status Clean implies that there are no causes;
//  2. live is true iff wanted returns true (liveness.go);
//  3. a live node counts once in the refs of every document that an indexed dep of it
//     names, and of every surface there that the dep overlaps;
//  4. a node that is due (live, and not Clean) is in one of the places of the queue, or
//     waits for something that will put it there;
//  5. a node whose status is Invalid, or NeverRan while another node reads its output or
//     it writes more than its output, is in graph.stale.
type node struct {
	spec *declaration
	// own is the surface of the primary output; own.doc is nil if there is none.
	own  surface
	deps []*dep
	more *extra
	runs uint64

	handle uint32 // index in graph.nodes
	// ordinal is the number of the first registration, which breaks ties.
	ordinal uint32
	// height is above that of every node whose output this one reads, except in circles.
	height int32
	// demand counts the reasons to be live other than readers: an event that waits for the output, and
	// provisional demand.
	demand   int32
	mark     int32 // scratch for searches, as is markDown
	markDown int32
	sought   int32 // scratch for Space.freshen
	staleAt  int32 // index in graph.stale plus one, 0 if absent

	kind     NodeKind
	status   Status
	passRuns uint8

	live    bool
	queued  bool // in the queue, or among the idle materializers
	held    bool // among the gated
	removed bool
	// removedMeanwhile reports that the node was removed during its own run, and will be deleted after it.
	removedMeanwhile bool
	// waiting reports that the last run read a foreign document that had not arrived. The node does not run
	// again until one of its reads changes.
	waiting bool
	running bool // its function is on the stack
	seeking bool // see Space.freshen
	unsaved bool // in Space.unsaved
	saved   bool // there is a saved observation of it
}

// extra has the fields that few nodes need.
type extra struct {
	outputs   []*surface // static side-writes: tier 2
	envelope  []*surface // tier 3
	gate      gate
	parent    *node
	children  []*node
	blueprint map[string]bool // ids that the current run has registered
	// retries counts consecutive runs that returned a transient error.
	retries int
	// waited is the number of the sweep in which the node has waited for its maker.
	waited uint64
	// provisional is set while demand includes provisional demand.
	provisional bool
	// remote are surfaces of this node that other runtimes' commits have changed since the last run.
	remote []*doc
	// outdated reports that the node was made under a previous program, renewing that it has made such nodes
	// and must make them again.
	outdated, renewing bool
	// cleanAs is the version under which the node was clean before its code changed, "" for none.
	cleanAs string
	lastErr error
	// failedAt is the place in failures.live plus one, 0 for none.
	failedAt int32
	errors   uint64 // runs that returned an error
	// causes are those other than reads.
	causes []string
	// firing are the causes of the current run, see runner.firing.
	firing []string
}

func (n *node) id() string { return n.spec.ID }

// ext returns the extra part, creating it if necessary.
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

// materializer reports whether the node has a declared envelope.
func (n *node) materializer() bool { return len(n.spec.Envelope) > 0 }

// due reports whether the node has to run as soon as no gate or limit holds it.
func (n *node) due() bool { return n.live && n.status != Clean && !n.removed }

// eachSurface visits the places that the node writes: its output, its side-writes and, on request, its
// envelope.
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

// eachReader visits the edges to the readers of the node's surfaces.
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
	// refs counts the live readers of the place. Envelopes are not counted.
	refs int32
}

// overlaps reports whether there is an edge: one path must be a prefix of the other, and writes more than one
// level below the path of a shallow reader do not concern it.
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
	// fired is nonzero if the value here has changed since the node last ran, which makes it a cause. Larger
	// numbers are later causes.
	fired uint32
	slot  int32 // index in doc.readers
	place int32
	seen  int32 // the last run that read it
	// shallow reports that only the keys, the length or the scalar there matter.
	shallow bool
	// covered reports that another read of the node, of an ancestor, makes this one redundant; it is not
	// indexed then.
	covered bool
	// declared reports a read that a node is expected to make in its first run: it orders and demands, but
	// triggers nothing.
	declared bool
	// indexed is set while the dep is among doc.readers, back while it closes a circle.
	// listed is set while it is among graph.backs.
	indexed bool
	back    bool
	listed  bool
}

// doc is the hot record of a document: its value as this runtime sees it, speculative transactions included,
// and the nodes that read and write it.
type doc struct {
	key   docKey
	value model.Value
	// writer is the surface of the node whose primary output this is.
	writer  *surface
	readers []*dep
	// paths indexes the readers by path when there are many.
	paths *pathIndex
	// others are the surfaces of side-writes and envelopes.
	others []*surface
	// refs is the number of live reads of the document, plus one while an event waits for it.
	refs int32
	// sizeBound is an upper bound of the encoded size, valid if measured.
	sizeBound int32
	measured  bool
	// loaded is set once a foreign document's value has arrived; own documents are always loaded.
	loaded bool
	awayAt int32 // index in graph.away plus one, 0 if absent
	// followed reports that the host was asked to mirror this foreign document.
	followed bool
	// leaving is set while the document is a candidate for removal.
	leaving bool
}

// eachSurface visits the surfaces in the document.
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

// isEnvelope reports whether the surface is an envelope: a node with envelopes has no declared Writes.
func (s *surface) isEnvelope() bool { return s != &s.node.own && s.node.materializer() }

// gate decides when a node may run. The zero gate is open.
type gate struct {
	debounce, throttle time.Duration
	maxWait            time.Duration // as in GateSpec
	noAuto             bool
	auto               autoDebounce
	// armed reports that a debounced node was invalidated since its last run began, first at firstAt and last
	// at changedAt; arming, that it was at a time which is not known yet.
	changedAt     time.Duration
	firstAt       time.Duration
	armed, arming bool
	// ungated reports that a run which had passed the gate was undone: the next one does not wait for debounce
	// or throttle again, since its reads may never change again, and the node's output is now older than it
	// was.
	ungated bool
	// ranAt is the time of the last run, if ran is set.
	ranAt time.Duration
	ran   bool
	// heldAt is the node's key among the gated, place its index.
	heldAt time.Duration
	place  int
	// backoffUntil holds a node that did not converge; streak is the number of passes in a row that exhausted
	// its budget, holds how many of them kept the space from being idle.
	backoffUntil time.Duration
	streak       int
	holds        int
	// givenUp reports that no event waits for a pause of the node any more; news, that a change has come from
	// outside its circle since it last ran; trying, that it runs for an event in this pass. See patience.
	givenUp, news, trying bool
	// echoUntil holds a node that answers another runtime's writes with its own, and echoSteps counts the answers for which it was held.
	echoUntil time.Duration
	echoSteps int
}

// pathIndex finds the readers of a document that a change concerns: a tree by path, in which the search skips
// parts that are equal in both values.
type pathIndex struct{ root pathNode }

// pathNode holds the readers of one path.
type pathNode struct {
	step     string // the last step of the path
	here     []*dep
	children map[string]*pathNode
	// order has the children in order of first use, because notifications must not follow the order of a map.
	// A removed child, of size 0, may stay for a while.
	order []*pathNode
	size  int // readers here and below
}

func (n *node) failed() bool { return n.more != nil && n.more.lastErr != nil }

// isVolatile reports whether the document is not in the log.
func (d *doc) isVolatile() bool { return d.writer != nil && d.writer.node.spec.Volatile }

// isWritten reports whether any node may write the document.
func (d *doc) isWritten() bool { return d.writer != nil || len(d.others) > 0 }

// owner returns the node whose primary output the document is, or nil.
func (d *doc) owner() *node {
	if d.writer == nil {
		return nil
	}
	return d.writer.node
}

// surface returns the i-th surface of eachSurface, nil if there are fewer.
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

// surface returns the i-th surface of eachSurface, nil if there are fewer.
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

// output returns the document of the primary output, "" if there is none.
func (n *node) output() string {
	if n.own.doc == nil {
		return ""
	}
	return n.own.doc.key.doc
}

// by returns the name under which the node's transactions are in the log.
func (n *node) by() string {
	if n.kind == Effect {
		return "effect " + n.id()
	}
	return "compute " + n.id()
}

// shownAs returns the name of the node for users: its output, or else its id.
func (n *node) shownAs() string {
	if n.own.doc != nil {
		return n.own.doc.key.String()
	}
	return n.id()
}

// mayWriteAt reports whether a place lies within the node's declared writes.
func (n *node) mayWriteAt(d *doc, path model.Path) bool {
	within := false
	n.eachSurface(true, func(s *surface) { within = within || s.doc == d && path.HasPrefix(s.path) })
	return within
}

// worthWaitingFor reports whether the node itself is not up to date and worth waiting for. A node that was removed
// while an event waited for it never will be, and for one that does not converge there is no value to wait for: the
// lane must not be blocked forever (I6).
func (n *node) worthWaitingFor() bool {
	switch {
	case n.status == Clean || n.removed:
		return false
	case n.more == nil:
		return true
	}
	gt := &n.more.gate
	if gt.givenUp {
		return (gt.news || gt.trying) && gt.echoSteps < stubborn
	}
	return max(gt.streak, gt.echoSteps) < stubborn
}

// String returns the address as it appears in a cause.
func (d *dep) String() string {
	name := d.doc.key.String() + d.path.String()
	if d.shallow {
		name += "#"
	}
	return name
}

// readNames returns the read set for users and for the log: each read as the document and a JSON pointer,
// with "#" appended for a shallow read.
func (n *node) readNames() []string {
	var names []string
	for _, d := range n.deps {
		if !d.covered && !d.declared {
			names = append(names, d.String())
		}
	}
	return names
}

// noteRemote records that another runtime's commit has invalidated the node through a document that the node
// may write itself. Most nodes never need this.
func (n *node) noteRemote(d *doc) {
	mine := d.writer != nil && d.writer.node == n || slices.ContainsFunc(d.others, func(s *surface) bool { return s.node == n })
	if mine && !slices.Contains(n.ext().remote, d) {
		n.more.remote = append(n.more.remote, d)
	}
}

// docValue is a document and its value after a transaction.
type docValue struct {
	doc   *doc
	value model.Value
	// added is an upper bound of the bytes that the writes have added, or of the document if whole: then one has replaced it.
	added int
	whole bool
}
