package space

import (
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/inspect"
)

// origin is the source of a change. The zero origin is another runtime, or unknown.
type origin struct {
	// node is the node whose run made the change; the change does not invalidate it (P5, docs/adr/0007).
	node *node
	// group is the change group of the transaction, "" for none.
	group string
	// remote reports that another runtime's commit made the change.
	remote bool
	// at is the number of the transaction or, for a remote change, its sequence in the log; 0 otherwise.
	at uint64
	// paths are the places of the writes in the document, nil if unknown.
	paths []model.Path
	// via is the trail of a change that follows from documents of other spaces.
	via *model.Trail
}

// affects reports whether changes of this origin are passed to a reader.
func (o *origin) affects(n *node) bool {
	return n != o.node && (o.group == "" || o.group != n.spec.Group)
}

// changes sets the values of documents, and invalidates their readers.
type changes struct {
	documents *documents
	queue     *queue
	gates     *gates
	staleness *staleness
	trace     *Trace
	stats     *Stats
	// from is the origin of the change that is being applied.
	from origin
	// shots numbers the causes.
	shots uint32
	// undoing is the node whose writes are being undone, nil if none; it is not notified of that.
	undoing *node
	// comparing has the reads by resumed nodes of documents that have not arrived, with the fingerprint of
	// the value that each node read there.
	comparing map[*dep]uint64
	recorder  *inspect.Recorder
}

// change gives a document a new value and invalidates the readers that this concerns. Every change of a value
// goes through it (P1): local transactions, foreign commits, mirrored documents and rollbacks.
func (c *changes) change(d *doc, after model.Value, from origin) {
	c.from = from
	c.apply(d, after)
}

// changeByRun is change for a node's run. It fills in the origin in place, because copying it costs more than
// everything else.
func (c *changes) changeByRun(d *doc, after model.Value, n *node, group string, rec *model.Tx) {
	from := &c.from
	from.node, from.group, from.remote, from.at = n, group, false, rec.N
	from.paths, from.via = pathsIn(rec.Writes, d), rec.Via
	c.apply(d, after)
}

// apply applies a change from c.from.
func (c *changes) apply(d *doc, after model.Value) {
	before := d.value
	d.value = after
	if model.Equal(before, after) {
		return
	}
	c.documents.setTrail(d, c.from.via)
	if after.IsAbsent() {
		c.documents.mayForget(d)
	}
	c.documents.noteTask(d)
	if f := c.trace.Changed; f != nil {
		f(c.changeInfo(d, before))
	}
	if d.paths != nil {
		c.stats.Matched += uint64(d.paths.match(before, after, c.from.paths, c.notifyReader))
	} else {
		c.scan(d, before)
	}
	if len(c.documents.listings) > 0 && before.IsAbsent() != after.IsAbsent() {
		c.relist(d)
	}
}

// scan tests each reader of a document that has few.
func (c *changes) scan(d *doc, before model.Value) {
	c.stats.Matched += uint64(len(d.readers))
	for _, r := range d.readers {
		if len(r.path) == 0 && !r.shallow || touches(before, d.value, r.path, r.shallow) {
			c.notifyReader(r)
		} else {
			c.stats.Filtered++
		}
	}
}

// notifyReader invalidates a reader whose value has changed.
func (c *changes) notifyReader(r *dep) {
	n := r.node
	if r.declared || n == c.undoing || !c.from.affects(n) {
		return
	}
	if c.from.remote {
		n.noteRemote(r.doc)
	}
	if f := c.trace.Invalidated; f != nil {
		f(InvalidInfo{Node: n.id(), Cause: r.String(), Live: n.live})
	}
	if w := c.recorder; w.On() {
		w.Triggered(c.trigger(n, r), r.doc.key.String())
	}
	if n.status == NeverRan {
		return // it will run anyway, and has read nothing yet
	}
	c.fire(r)
	n.noteNews(c.from.node)
	c.invalid(n)
}

// trigger describes the change that is being applied, for the recorder.
func (c *changes) trigger(n *node, r *dep) inspect.TriggerEntry {
	t := inspect.TriggerEntry{Node: n.id(), Cause: r.String(), Live: n.live, NeverRan: n.status == NeverRan}
	if by := c.from.node; by != nil {
		t.Writer = by.id()
	}
	if c.from.remote {
		t.Seq = c.from.at
	} else {
		t.Tx = c.from.at
	}
	return t
}

func (c *changes) changeInfo(d *doc, before model.Value) ChangeInfo {
	info := ChangeInfo{Doc: d.key.String(), Before: before, After: d.value, Group: c.from.group}
	if c.from.node != nil {
		info.Node = c.from.node.id()
	}
	return info
}

// invalidate invalidates a node for a cause other than a read.
func (c *changes) invalidate(n *node, cause string) {
	if f := c.trace.Invalidated; f != nil {
		f(InvalidInfo{Node: n.id(), Cause: cause, Live: n.live})
	}
	if w := c.recorder; w.On() {
		w.Triggered(inspect.TriggerEntry{Node: n.id(), Cause: cause, Live: n.live, NeverRan: n.status == NeverRan}, "")
	}
	if n.status == NeverRan {
		return
	}
	n.addCause(cause)
	c.invalid(n)
}

// invalid marks a node that has run before. A dormant one is not enqueued, and costs nothing (I2).
func (c *changes) invalid(n *node) {
	n.waiting = false
	if n.more != nil {
		c.gates.armGate(n)
	}
	if n.status != Invalid {
		c.staleness.setStatus(n, Invalid)
	}
	c.queue.enqueue(n)
}

// fire marks a read as a cause.
func (c *changes) fire(d *dep) {
	if d.fired == 0 {
		c.shots++
		d.fired = c.shots
	}
}

// giveBack returns causes to a node whose run did not complete. Addresses that it no longer reads become
// names.
func (c *changes) giveBack(n *node, why causes) {
	for _, name := range why.other {
		n.addCause(name)
	}
	for _, d := range why.reads {
		if d.indexed {
			c.fire(d)
		} else {
			n.addCause(d.String())
		}
	}
}

// catchUp invalidates the node of a run if an address that it read for the first time changed before the read
// was indexed.
func (c *changes) catchUp(l *readLog) {
	for i := range l.fresh {
		if f := &l.fresh[i]; touches(f.root, f.dep.doc.value, f.dep.path, f.dep.shallow) {
			c.invalidate(l.node, f.dep.String())
		}
	}
}

// clearSuspicion makes a node clean again if the only addresses that changed while it ran are ones that this
// run no longer read (I3).
func (c *changes) clearSuspicion(n *node) {
	if n.status != Invalid || n.hasCause() {
		return
	}
	if n.more != nil {
		n.more.gate.armed = false
	}
	c.staleness.setStatus(n, Clean)
}

// compareLater stores the fingerprint that a resumed node has for a document that has not arrived.
func (c *changes) compareLater(d *dep, seen uint64) {
	if c.comparing == nil {
		c.comparing = map[*dep]uint64{}
	}
	c.comparing[d] = seen
}

// arrive gives a foreign document its first value. Nodes that read it in this process are notified as of any
// change; resumed ones only if the value is not the one that they last saw.
func (c *changes) arrive(d *doc, v model.Value, via *model.Trail) {
	before := d.value
	c.documents.setLoaded(d, true)
	c.documents.setTrail(d, via)
	d.value = v
	c.from = origin{}
	if f := c.trace.Changed; f != nil && !model.Equal(before, v) {
		f(c.changeInfo(d, before))
	}
	for _, r := range d.readers {
		differs := touches(before, v, r.path, r.shallow)
		if seen, ok := c.comparing[r]; ok {
			delete(c.comparing, r)
			differs = fingerprint(v, r.path, r.shallow) != seen
		}
		if differs || r.node.waiting {
			c.notifyReader(r)
		}
	}
}
