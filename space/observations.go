package space

import (
	"cmp"
	"slices"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// Observation is the saved state of a node that may spare it a run after a restart. It is an index,
// overwritten in place: the addresses that the node has read, the log sequence up to which it is known to be
// clean, and a fingerprint of each value that it has read. It holds no values and no history.
type Observation struct {
	Node    string `json:"n"`
	Version string `json:"v,omitzero"` // of the implementation, see NodeSpec
	// Shape is a fingerprint of the node's kind and surfaces; 0 for a plain computation, whose output has the
	// node's name.
	Shape uint64 `json:"o,omitzero"`
	// Basis is a log sequence: the node was clean with all commits up to there.
	Basis uint64 `json:"b"`
	// Failed reports that the last run returned an error: the node is resumed as invalid.
	Failed bool `json:"f,omitzero"`
	// Blank reports that the output of the node was absent.
	Blank bool `json:"x,omitzero"`
	// Makes reports that the node has made others: it must run again to make them.
	Makes bool `json:"m,omitzero"`
	// Effect reports that the node is an effect, and was made by another: it stays one.
	Effect bool       `json:"e,omitzero"`
	Reads  []Observed `json:"r,omitzero"`
	// Gate is the gate that was set while the node ran, if it differs from the spec.
	Gate *GateSpec `json:"g,omitzero"`
	// Due reports that the node was invalid, and held back by its debounce or throttle: it is resumed as invalid. Basis
	// is the sequence at which it was saved then. Failed is set as well, for versions that do not know Due and would take it for clean.
	Due bool `json:"u,omitzero"`
	// Times are those from which its gates count, nil if it has none.
	Times *GateTimes `json:"t,omitzero"`
}

// Observed is one address of a read set and the fingerprint of its value.
type Observed struct {
	Space   string     `json:"s,omitzero"`
	Doc     string     `json:"d"`
	Path    model.Path `json:"p,omitzero"`
	Shallow bool       `json:"sh,omitzero"`
	Print   uint64     `json:"fp"`
	// Changed reports that the value has changed since the last run: it is a cause of the next one.
	Changed bool `json:"c,omitzero"`
}

// observations keeps track of the observations that must be saved, and of saved ones whose nodes are not
// registered yet.
type observations struct {
	graph  *graph
	ledger *ledger.Ledger
	// unsaved are the nodes whose observation must be saved, resumable the saved observations of nodes that
	// have not been registered yet, forgotten the ids of removed nodes with a saved one.
	unsaved   []*node
	forgotten []string
	resumable map[string]*Observation
}

func (all *observations) take() (out []Observation, gone []string) {
	var later []*node
	for _, n := range all.unsaved {
		switch {
		case n.removed:
		case (n.status == Clean || all.heldByGate(n)) && all.graph.inSync(n) && !n.ofFormerCode():
			n.unsaved, n.saved = false, true
			out = append(out, all.observe(n))
			continue
		default:
			later = append(later, n)
			continue
		}
		n.unsaved = false
	}
	all.unsaved = later
	slices.SortFunc(out, func(a, b Observation) int { return cmp.Compare(a.Node, b.Node) })
	gone, all.forgotten = all.forgotten, nil
	return out, slices.DeleteFunc(gone, func(id string) bool { return all.graph.byID[id] != nil })
}

// heldByGate reports whether a node that is invalid waits for a time that outlives the process.
func (all *observations) heldByGate(n *node) bool {
	return n.status == Invalid && n.timed() && all.graph.wall() != 0 && !n.more.gate.ungated && n.eligibleAt() > all.graph.now
}

// ofFormerCode reports whether the code that the node last ran may differ from that of the program: it was
// made under a previous program, and has no version.
func (n *node) ofFormerCode() bool { return n.more != nil && n.more.outdated && n.spec.Version == "" }

func (all *observations) observe(n *node) Observation {
	o := Observation{Node: n.id(), Version: n.spec.Version, Shape: n.spec.shape(), Basis: all.ledger.Replica().Seq}
	o.Blank = n.own.doc != nil && n.own.doc.value.IsAbsent()
	if n.more != nil {
		o.Failed = n.failed()
		o.Makes = len(n.more.children) > 0
		o.Effect = n.kind == Effect && n.more.parent != nil
		gt := &n.more.gate
		if now := (GateSpec{Debounce: gt.debounce, MaxWait: gt.maxWait, Throttle: gt.throttle, NoAutoDebounce: gt.noAuto}); now != n.spec.Gate {
			o.Gate = &now
		}
		o.Due, o.Times = n.status == Invalid, all.graph.savedTimes(n)
		o.Failed = o.Failed || o.Due
	}
	for _, d := range n.deps {
		if !d.covered && !d.declared {
			o.Reads = append(o.Reads, Observed{
				Space: d.doc.key.space, Doc: d.doc.key.doc, Path: d.path, Shallow: d.shallow,
				Print: fingerprint(d.doc.value, d.path, d.shallow), Changed: d.fired != 0,
			})
		}
	}
	return o
}

// note records that the saved observation of a node is out of date. Nodes that a run or the application has
// added are identified by their ids, like those of the program. Removed ones are dropped when room is needed,
// since a host need not save observations at all.
func (all *observations) note(n *node) {
	if n.unsaved {
		return
	}
	n.unsaved = true
	if len(all.unsaved) == cap(all.unsaved) {
		all.unsaved = slices.DeleteFunc(all.unsaved, func(n *node) bool { return n.removed })
		if len(all.unsaved) > cap(all.unsaved)/2 {
			all.unsaved = slices.Grow(all.unsaved, len(all.unsaved)+1)
		}
	}
	all.unsaved = append(all.unsaved, n)
}

func (all *observations) rehydrate(saved []Observation) {
	for i := range saved {
		o := &saved[i]
		if n := all.graph.byID[o.Node]; n != nil {
			all.resume(n, o)
			continue
		}
		if all.resumable == nil {
			all.resumable = map[string]*Observation{}
		}
		all.resumable[o.Node] = o
	}
}

// resumeChild resumes a node that has just been registered.
func (all *observations) resumeChild(n *node) {
	if o := all.resumable[n.id()]; o != nil {
		delete(all.resumable, n.id())
		if o.Effect && o.Version == n.spec.Version && n.parent() != nil && !n.spec.Volatile && !n.materializer() {
			all.graph.setKind(n, Effect)
		}
		all.resume(n, o)
	}
}

// resume resumes one node if its observation is usable.
func (all *observations) resume(n *node, o *Observation) {
	if o.Version != n.spec.Version || o.Shape != n.spec.shape() || o.Makes || n.status != NeverRan {
		return
	}
	deps, status := all.restore(n, o)
	if deps == nil && len(o.Reads) > 0 {
		return // the name is impossible, so the observation is not ours
	}
	all.adoptRestored(n, o, deps, status)
}

// restore compares the observed reads with the present values.
func (all *observations) restore(n *node, o *Observation) ([]*dep, Status) {
	status := Clean
	if o.Failed || o.Due || all.outputMoved(n, o) {
		status = Invalid
	}
	deps := make([]*dep, 0, len(o.Reads))
	records := make([]dep, len(o.Reads))
	for i := range o.Reads {
		r := &o.Reads[i]
		d, err := all.graph.ensureRead(docKey{r.Space, r.Doc})
		if err != nil {
			return nil, status
		}
		restored := &records[i]
		restored.node, restored.doc, restored.path, restored.shallow = n, d, r.Path, r.Shallow
		switch {
		case r.Changed:
			all.graph.fire(restored)
		case r.Space != "":
			all.graph.compareLater(restored, r.Print)
		case all.mayDiffer(d, o.Basis) && fingerprint(d.value, r.Path, r.Shallow) != r.Print:
			all.graph.fire(restored)
			status = Invalid
		}
		deps = append(deps, restored)
	}
	return deps, status
}

// mayDiffer reports whether a document may differ from its state at basis. The age of an absent document is
// unknown, since deletions are forgotten in the end.
func (all *observations) mayDiffer(d *doc, basis uint64) bool {
	if d.value.IsAbsent() || d.key.isListing() {
		return true // comparing it is cheap
	}
	differs := all.ledger.Replica().Doc(d.key.doc).Seq > basis || d.isVolatile() || all.ledger.Holds(d.key.doc)
	if differs {
		all.graph.stats.Compared++
	}
	return differs
}

// outputMoved reports whether another writer has changed the node's output.
func (all *observations) outputMoved(n *node, o *Observation) bool {
	d := n.own.doc
	return d != nil && (n.spec.Volatile || all.ledger.Replica().Doc(d.key.doc).Seq > o.Basis || d.value.IsAbsent() != o.Blank)
}

func (all *observations) adoptRestored(n *node, o *Observation, deps []*dep, status Status) {
	g := all.graph
	for _, d := range n.deps {
		if d.indexed {
			g.unindex(d) // the declared dep
		}
	}
	n.deps = deps
	cover(deps)
	for _, d := range deps {
		if !d.covered {
			g.index(d)
		}
	}
	if o.Gate != nil {
		n.ext().gate.apply(*o.Gate)
	}
	n.saved = true
	g.setStatus(n, status)
	if n.timed() {
		g.resume(resumed{node: n, times: o.Times, due: o.Due, same: all.ledger.Replica().Seq == o.Basis, ran: all.outputMoved(n, o)})
	}
	g.enqueue(n)
	all.graph.stats.Resumed++
}
