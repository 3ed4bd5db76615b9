package space

import "github.com/settlehq/settle/model"

// change gives a document a new value and marks the readers that it concerns.
// This is the one door through which values change (P1): local transactions,
// foreign commits, mirrored documents and rollbacks all come in here.
//
// source is the node whose run made the change; it is not invalidated by it (P5).
func (g *graph) change(d *doc, after model.Value, source *node) {
	before := d.value
	d.value = after
	if model.Equal(before, after) {
		return
	}
	if f := g.trace.Changed; f != nil {
		f(changeInfo(d, before, source))
	}
	for _, r := range d.readers {
		if r.node == source {
			continue
		}
		if path, hit := firstTouched(r.paths, before, after); hit {
			g.invalidate(r.node, d, path)
		}
	}
}

func changeInfo(d *doc, before model.Value, source *node) ChangeInfo {
	info := ChangeInfo{Doc: d.key.String(), Before: before, After: d.value}
	if source != nil {
		info.Node = source.id
	}
	return info
}

func firstTouched(paths []model.Path, before, after model.Value) (model.Path, bool) {
	for _, p := range paths {
		if touches(before, after, p) {
			return p, true
		}
	}
	return nil, false
}

// invalidate notes that something n read has changed. A dormant node stays where
// it is, at no cost (I2).
func (g *graph) invalidate(n *node, d *doc, path model.Path) {
	if f := g.trace.Invalidated; f != nil {
		f(InvalidInfo{Node: n.id, Cause: d.key.String() + path.String(), Live: n.live})
	}
	n.causes.add(d, path)
	n.waiting = false
	if n.status == Clean {
		n.status = Invalid
	}
	g.enqueue(n)
}
