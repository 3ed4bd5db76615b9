package space

import "github.com/settlehq/settle/model"

// origin says where a change comes from. The zero origin is somebody else.
type origin struct {
	// node is the node whose run made the change; it is not invalidated by it (P5).
	node *node
	// group is the change group of the transaction, "" for none.
	group string
	// remote says that another runtime's commit brought it.
	remote bool
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
	before := d.value
	d.value = after
	if model.Equal(before, after) {
		return
	}
	if f := g.trace.Changed; f != nil {
		f(changeInfo(d, before, &from))
	}
	if d.paths != nil {
		d.paths.match(before, after, from.paths, func(r *dep) { g.concern(r, &from) })
	} else {
		g.scan(d, before, &from)
	}
	if from.remote {
		d.eachSurface(true, func(s *surface) { s.node.noteRemote(d) })
	}
}

// scan tests the readers of a document that has few.
func (g *graph) scan(d *doc, before model.Value, from *origin) {
	g.stats.Matched += uint64(len(d.readers))
	for _, r := range d.readers {
		if touches(before, d.value, r.path, r.shallow) {
			g.concern(r, from)
		} else {
			g.stats.Filtered++
		}
	}
}

// concern tells a reader that what it read has changed.
func (g *graph) concern(r *dep, from *origin) {
	if !r.declared && from.concerns(r.node) {
		g.invalidate(r.node, r.String())
	}
}

func changeInfo(d *doc, before model.Value, from *origin) ChangeInfo {
	info := ChangeInfo{Doc: d.key.String(), Before: before, After: d.value, Group: from.group}
	if from.node != nil {
		info.Node = from.node.id()
	}
	return info
}

// invalidate notes that something n read has changed. A dormant node stays where
// it is, at no cost (I2).
func (g *graph) invalidate(n *node, cause string) {
	if f := g.trace.Invalidated; f != nil {
		f(InvalidInfo{Node: n.id(), Cause: cause, Live: n.live})
	}
	if n.status == NeverRan {
		return // it is to run anyway, and has read nothing yet
	}
	n.addCause(cause)
	n.waiting = false
	g.armGate(n)
	g.setStatus(n, Invalid)
	g.enqueue(n)
}
