package space

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// manyReaders is the number of readers from which an index by path pays off; with fewer, testing every reader
// is faster.
const manyReaders = 32

func (x *pathIndex) add(r *dep) {
	t := &x.root
	t.size++
	for _, step := range r.path {
		next := t.children[step]
		if next == nil {
			next = &pathNode{step: step}
			if t.children == nil {
				t.children = map[string]*pathNode{}
			}
			t.children[step] = next
			t.order = append(t.order, next)
		}
		t = next
		t.size++
	}
	r.place = int32(len(t.here))
	t.here = append(t.here, r)
}

func (t *pathNode) remove(r *dep, path model.Path) {
	t.size--
	if len(path) > 0 {
		kid := t.children[path[0]]
		kid.remove(r, path[1:])
		if kid.size == 0 {
			t.drop(kid)
		}
		return
	}
	last := len(t.here) - 1
	t.here[r.place] = t.here[last]
	t.here[r.place].place = r.place
	t.here[last] = nil
	t.here = t.here[:last]
}

// drop removes a child without readers.
func (t *pathNode) drop(kid *pathNode) {
	delete(t.children, kid.step)
	if len(t.order) >= 2*len(t.children)+8 {
		t.order = slices.DeleteFunc(t.order, func(k *pathNode) bool { return k.size == 0 })
	}
}

// match visits the readers whose value differs between before and after. If the places of the writes are
// known, it examines only those.
func (x *pathIndex) match(before, after model.Value, paths []model.Path, visit func(*dep)) (tested int) {
	m := matching{visit: visit}
	if len(paths) == 1 {
		m.along(&x.root, before, after, true, true, paths[0])
	} else {
		m.below(&x.root, before, after, true, true)
	}
	return m.tested
}

// matching is the state of one match. okB and okA report whether the path could be followed to this place in
// before and after.
type matching struct {
	visit  func(*dep)
	tested int
}

// along follows the path of a write: above its end, only values on the path can have changed.
func (m *matching) along(t *pathNode, b, a model.Value, okB, okA bool, path model.Path) {
	if len(path) == 0 {
		m.below(t, b, a, okB, okA)
		return
	}
	m.readers(t, b, a, okB, okA)
	if t.size == len(t.here) {
		return
	}
	if !container(b) || !container(a) {
		// The write created the path: everything below has changed.
		m.matchChildren(t, b, a, okB, okA)
		return
	}
	if kid := t.children[path[0]]; kid != nil {
		m.along(kid, b.At(path[:1]), a.At(path[:1]), okB, okA, path[1:])
	}
}

// below examines a place and everything under it.
func (m *matching) below(t *pathNode, b, a model.Value, okB, okA bool) {
	if okB && okA && model.Equal(b, a) {
		return // everything below is equal
	}
	m.readers(t, b, a, okB, okA)
	m.matchChildren(t, b, a, okB, okA)
}

// readers visits the readers of one place, which differ only in depth.
func (m *matching) readers(t *pathNode, b, a model.Value, okB, okA bool) {
	if len(t.here) == 0 {
		return
	}
	deep, flat := okB != okA, okB != okA
	if okB && okA {
		deep = differ(b, a, false)
		flat = deep && differ(b, a, true)
	}
	m.tested += len(t.here)
	for _, r := range t.here {
		if deep && !r.shallow || flat && r.shallow {
			m.visit(r)
		}
	}
}

// matchChildren examines the children. If neither value continues here and both were reached equally far, nothing
// below differs, unless a link leads on from here. If only one of them was reached, everything below differs:
// the paths end at different places (see touches).
func (m *matching) matchChildren(t *pathNode, b, a model.Value, okB, okA bool) {
	if len(t.children) == 0 {
		return
	}
	inB, inA := okB, okA
	if okB == okA {
		inB, inA = okB && container(b), okA && container(a)
		if !inB && !inA {
			if !linksDiffer(b, a) {
				return
			}
			inB = true // so that no path counts as unchanged
		}
	}
	for _, kid := range t.order {
		if kid.size > 0 {
			m.below(kid, b.At(model.Path{kid.step}), a.At(model.Path{kid.step}), inB, inA)
		}
	}
}

// pathAdded updates the index of a document, and creates it when there are many readers.
func (d *doc) pathAdded(r *dep) {
	if d.paths != nil {
		d.paths.add(r)
		return
	}
	if len(d.readers) > manyReaders {
		d.paths = &pathIndex{}
		for _, r := range d.readers {
			d.paths.add(r)
		}
	}
}

// pathRemoved undoes pathAdded, and removes the index when there are few readers again.
func (d *doc) pathRemoved(r *dep) {
	if d.paths == nil {
		return
	}
	if len(d.readers) < manyReaders/2 {
		d.paths = nil
		return
	}
	d.paths.root.remove(r, r.path)
}
