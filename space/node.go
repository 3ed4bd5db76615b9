package space

import (
	"time"

	"github.com/settlehq/settle/model"
)

// Status is where a node stands (seed 001 section 4.1).
type Status uint8

const (
	// NeverRan: no completed run, so no read set.
	NeverRan Status = iota
	// Clean: nothing it read has changed since its last run began.
	Clean
	// Invalid: something it read has.
	Invalid
)

func (s Status) String() string {
	return [...]string{"never-ran", "clean", "invalid"}[s]
}

// node is the hot record of a node: what changes while it runs. Its identity and
// its structure are mirrored in the structure tables for others to read.
//
// Always:
//
//  1. status Clean implies that causes is empty;
//  2. live is true iff the node is an effect, or demand is positive, or its output
//     has a live reader (a circle of computations does not keep itself live);
//  3. a live node counts once in refs of every document in deps;
//  4. a node that is live and not Clean is in the graph's ready list.
type node struct {
	id     string
	handle uint32 // dense, in order of registration: the tie-break of the order
	kind   NodeKind
	output *doc // nil for effects
	run    func(tx *Tx) (model.Value, error)

	status Status
	causes causeSet
	deps   []*dep

	// waiting says that the last run met a foreign document that is not there yet.
	// The node does not run again before something it read has changed.
	waiting bool
	live    bool
	// demand counts the reasons to run that are not readers: an event that waits
	// for the node's output.
	demand int
	queued bool // in the ready list
	pulled bool // see Space.pull

	// Gate and budget (seed 001 sections 7.7 and 8).
	backoffUntil time.Duration
	streak       int
	passRuns     int
	runs         uint64

	// Scratch of the sort.
	blockers int
	mark     int
}

// dep is the edge from a node to one document it reads, at one or more paths.
type dep struct {
	node  *node
	doc   *doc
	paths []model.Path
}

// docKey addresses a document; space is "" for the own space.
type docKey struct{ space, doc string }

func (k docKey) String() string {
	if k.space == "" {
		return k.doc
	}
	return "@" + k.space + "/" + k.doc
}

// doc is the hot record of a document: its value as this runtime sees it now,
// speculative transactions included, and who reads and writes it.
type doc struct {
	key     docKey
	value   model.Value
	writer  *node
	readers []*dep
	// refs is the number of live nodes among the readers, plus one while an event
	// waits for the document.
	refs int
	// sizeBound is what the encoded document has at most, once it was measured.
	sizeBound int
	measured  bool
	// loaded is set once a foreign document's value has arrived; own documents
	// are always loaded.
	loaded bool
	// followed says that the runtime was asked to mirror this foreign document.
	followed bool
}

// causeSet is the set of addresses that made a node invalid, in order of arrival.
// Past its cap it keeps only whole documents: a dormant node may be invalidated
// for years, and must not grow with it.
type causeSet struct {
	list  []string
	wider bool
}

// maxCauses bounds the addresses that are told apart.
const maxCauses = 16

func (c *causeSet) add(d *doc, path model.Path) {
	cause := d.key.String()
	if !c.wider {
		cause += path.String()
	}
	for _, have := range c.list {
		if have == cause {
			return
		}
	}
	if len(c.list) < maxCauses {
		c.list = append(c.list, cause)
		return
	}
	c.widen()
	c.add(d, nil)
}

// widen replaces the collected addresses by "*": many things changed.
func (c *causeSet) widen() {
	c.list, c.wider = []string{"*"}, true
}

func (c *causeSet) take() []string {
	list := c.list
	*c = causeSet{}
	return list
}
