package space

import "github.com/settlehq/settle/model"

// origin says where a change comes from. The zero origin is somebody else.
type origin struct {
	// node is the node whose run made the change; it is not invalidated by it (P5,
	// docs/adr/0007).
	node *node
	// group is the change group of the transaction, "" for none.
	group string
	// remote says that another runtime's commit brought it.
	remote bool
	// at is the number of the transaction or, of a remote change, its place in the log;
	// 0 if it is neither.
	at uint64
	// paths are where in the document something was written, nil if that is not known.
	paths []model.Path
}

// concerns reports whether a reader is to hear of changes from here.
func (o *origin) concerns(n *node) bool {
	return n != o.node && (o.group == "" || o.group != n.spec.Group)
}

// change gives a document a new value and marks the readers that it concerns.
// This is the one door through which values change (P1): local transactions,
// foreign commits, mirrored documents and rollbacks all come in here.
func (g *graph) change(d *doc, after model.Value, from origin) {
	g.from = from
	g.tell(d, after)
}

// changeByRun is change for what a node's run has made. It fills the origin in place:
// copying it costs more than the rest.
func (g *graph) changeByRun(d *doc, after model.Value, n *node, tx *Tx, at uint64) {
	from := &g.from
	from.node, from.group, from.remote, from.at = n, tx.attempt.Group, false, at
	from.paths = tx.pathsIn(d)
	g.tell(d, after)
}

// tell does what change says, for a change from g.from.
func (g *graph) tell(d *doc, after model.Value) {
	before := d.value
	d.value = after
	if model.Equal(before, after) {
		return
	}
	if after.IsAbsent() {
		g.mayForget(d)
	}
	if f := g.trace.Changed; f != nil {
		f(g.changeInfo(d, before))
	}
	if d.paths != nil {
		g.stats.Matched += uint64(d.paths.match(before, after, g.from.paths, g.concern))
	} else {
		g.scan(d, before)
	}
}

// scan tests the readers of a document that has few.
func (g *graph) scan(d *doc, before model.Value) {
	g.stats.Matched += uint64(len(d.readers))
	for _, r := range d.readers {
		if len(r.path) == 0 && !r.shallow || touches(before, d.value, r.path, r.shallow) {
			g.concern(r)
		} else {
			g.stats.Filtered++
		}
	}
}

// concern tells a reader that what it read has changed.
func (g *graph) concern(r *dep) {
	n := r.node
	if r.declared || n == g.undoing || !g.from.concerns(n) {
		return
	}
	if g.from.remote {
		n.noteRemote(r.doc)
	}
	if f := g.trace.Invalidated; f != nil {
		f(InvalidInfo{Node: n.id(), Cause: r.String(), Live: n.live})
	}
	if w := g.watch; w != nil {
		w.because(r, &g.from)
		w.triggered(n, r.String())
	}
	if n.status == NeverRan {
		return // it is to run anyway, and has read nothing yet
	}
	g.fire(r)
	g.invalid(n)
}

func (g *graph) changeInfo(d *doc, before model.Value) ChangeInfo {
	info := ChangeInfo{Doc: d.key.String(), Before: before, After: d.value, Group: g.from.group}
	if g.from.node != nil {
		info.Node = g.from.node.id()
	}
	return info
}

// invalidate gives a node another reason to run than a read.
func (g *graph) invalidate(n *node, cause string) {
	if f := g.trace.Invalidated; f != nil {
		f(InvalidInfo{Node: n.id(), Cause: cause, Live: n.live})
	}
	if w := g.watch; w != nil {
		w.triggered(n, cause)
	}
	if n.status == NeverRan {
		return
	}
	n.addCause(cause)
	g.invalid(n)
}

// invalid marks a node that has run. A dormant one stays where it is, at no cost (I2).
func (g *graph) invalid(n *node) {
	n.waiting = false
	if n.more != nil {
		g.armGate(n)
	}
	if n.status != Invalid {
		g.setStatus(n, Invalid)
	}
	g.enqueue(n)
}
