package space

import (
	"slices"
	"unsafe"

	"github.com/settlehq/settle/model"
)

// readLog is what one run has read, matched against what the node read last time
// while it reads: a run that reads the same addresses in the same order, as most do,
// costs a comparison per read, and leaves nothing to apply (P6).
type readLog struct {
	node *node
	// next is the dep that the next read is expected to be. diverged says that one was
	// another; list has the reads in order then.
	next     int
	diverged bool
	list     []*dep
	run      int32
	byAddr   map[depKey]*dep // of node.deps, when they are many
	fresh    []freshRead
}

type depKey struct {
	doc     *doc
	path    string
	shallow bool
}

// begin makes it the log of a new run.
func (l *readLog) begin(n *node, run int32) {
	l.node, l.next, l.diverged, l.run = n, 0, false, run
	l.list = l.list[:0]
	if len(l.fresh) > 0 {
		clear(l.fresh)
		l.fresh = l.fresh[:0]
	}
	if l.byAddr != nil {
		l.byAddr = nil
	}
}

// asBefore answers a read that is the one that is expected, or the last one once more, if
// there is no link on the way and the document is here: what nearly all reads of nearly all
// runs are.
func (l *readLog) asBefore(space, id string, path model.Path) (v model.Value, ok bool) {
	if l.diverged {
		return l.lately(space, id, path)
	}
	deps := l.node.deps
	if i := l.next; i < len(deps) && deps[i].same(space, id, path) {
		if v, ok = deps[i].straight(); ok {
			l.next++
		}
		return v, ok
	}
	if i := l.next - 1; i >= 0 && deps[i].same(space, id, path) {
		return deps[i].straight()
	}
	return v, false
}

// lately answers a read that is one of the last few: in a loop, the same addresses come
// again and again.
func (l *readLog) lately(space, id string, path model.Path) (v model.Value, ok bool) {
	for i := len(l.list) - 1; i >= max(0, len(l.list)-4); i-- {
		if l.list[i].same(space, id, path) {
			return l.list[i].straight()
		}
	}
	return v, false
}

func (d *dep) same(space, id string, path model.Path) bool {
	k := &d.doc.key
	return sameText(k.doc, id) && sameText(k.space, space) && !d.shallow && !d.declared &&
		len(d.path) == len(path) && (len(path) == 0 || slices.Equal(d.path, path))
}

// sameText compares names that are mostly not only equal but the same string, for which it
// needs no call.
func sameText(a, b string) bool {
	return len(a) == len(b) && (len(a) == 0 || unsafe.StringData(a) == unsafe.StringData(b) || a == b)
}

// straight returns the value, if it is there without following a link.
func (d *dep) straight() (v model.Value, ok bool) {
	v = d.doc.value
	for i := range d.path {
		if v.IsLink() {
			return v, false
		}
		v = v.At(d.path[i : i+1])
	}
	return v, d.doc.loaded && !v.IsLink()
}

// expect returns the document of the next expected read if that is the one that is
// asked for, without looking anything up.
func (l *readLog) expect(space, id string) *doc {
	if l.diverged {
		return nil
	}
	for i := l.next; i >= max(0, l.next-1); i-- {
		if i < len(l.node.deps) {
			if d := l.node.deps[i].doc; d.key.doc == id && d.key.space == space {
				return d
			}
		}
	}
	return nil
}

// add notes a read. It reports whether the address is a new one for the node.
func (l *readLog) add(d *doc, path model.Path, shallow bool) (isNew bool) {
	deps := l.node.deps
	if !l.diverged {
		if l.next < len(deps) && deps[l.next].is(d, path, shallow) {
			l.next++
			return false
		}
		if l.next > 0 && deps[l.next-1].is(d, path, shallow) {
			return false
		}
		l.diverge()
	}
	if have := l.find(d, path, shallow); have != nil {
		if have.seen != l.run {
			have.seen = l.run
			l.list = append(l.list, have)
		}
		return false
	}
	fresh := &dep{node: l.node, doc: d, path: slices.Clone(path), shallow: shallow, seen: l.run}
	if l.byAddr != nil {
		l.byAddr[fresh.key()] = fresh
	}
	l.list = append(l.list, fresh)
	return true
}

// diverge begins the list with what was read as expected.
func (l *readLog) diverge() {
	l.diverged = true
	l.list = append(l.list[:0], l.node.deps[:l.next]...)
	for _, d := range l.list {
		d.seen = l.run
	}
}

// manyReads is where a map begins to pay.
const manyReads = 16

func (l *readLog) find(d *doc, path model.Path, shallow bool) *dep {
	if l.byAddr == nil && len(l.node.deps)+len(l.list) > manyReads {
		l.byAddr = make(map[depKey]*dep, len(l.node.deps)+len(l.list))
		for _, dep := range slices.Concat(l.node.deps, l.list) {
			if !dep.declared {
				l.byAddr[dep.key()] = dep
			}
		}
	}
	if l.byAddr != nil {
		return l.byAddr[depKey{d, path.String(), shallow}]
	}
	is := func(dep *dep) bool { return dep.is(d, path, shallow) }
	if i := slices.IndexFunc(l.node.deps, is); i >= 0 {
		return l.node.deps[i]
	}
	if i := slices.IndexFunc(l.list, is); i >= 0 {
		return l.list[i]
	}
	return nil
}

func (d *dep) is(doc *doc, path model.Path, shallow bool) bool {
	return d.doc == doc && d.shallow == shallow && !d.declared && slices.Equal(d.path, path)
}

func (d *dep) key() depKey { return depKey{d.doc, d.path.String(), d.shallow} }

// unchanged reports whether the run read what the node read last time.
func (l *readLog) unchanged() bool { return !l.diverged && l.next == len(l.node.deps) }

// hand gives the list of reads away. The node's former list becomes the next run's, so a
// node whose reads change all the time does not make a new one each time.
func (l *readLog) hand() []*dep {
	if cap(l.list) > 2*len(l.list)+4 {
		return slices.Clone(l.list)
	}
	return l.list
}

// cover marks the reads that another one of an ancestor makes superfluous: a deep read
// covers everything below. A shallow one covers nothing (trigger semantics 4.2).
func cover(deps []*dep) {
	if len(deps) <= manyReads {
		for _, d := range deps {
			d.covered = coveredBy(d, deps)
		}
		return
	}
	// All against all would take a second where a node reads thousands of places of one
	// document, one by one.
	deep := deepReads{deps: deps, shortest: map[*doc]int{}}
	for _, d := range deps {
		if n, ok := deep.shortest[d.doc]; !d.shallow && (!ok || len(d.path) < n) {
			deep.shortest[d.doc] = len(d.path)
		}
	}
	for _, d := range deps {
		d.covered = deep.cover(d)
	}
}

// deepReads are the places that a node reads deeply: how long the shortest path is in each
// document, and, once something is read below one, which they are.
type deepReads struct {
	deps     []*dep
	shortest map[*doc]int
	at       map[depKey]bool
}

// cover is coveredBy for many.
func (r *deepReads) cover(d *dep) bool {
	from, some := r.shortest[d.doc]
	to := len(d.path) // an equal one covers it only if it is shallow
	if d.shallow {
		to++
	}
	for n := from; some && n < to; n++ {
		if r.has(depKey{doc: d.doc, path: d.path[:n].String()}) {
			return true
		}
	}
	return false
}

func (r *deepReads) has(k depKey) bool {
	if r.at == nil {
		r.at = make(map[depKey]bool, len(r.deps))
		for _, d := range r.deps {
			if !d.shallow {
				r.at[d.key()] = true
			}
		}
	}
	return r.at[k]
}

func coveredBy(d *dep, by []*dep) bool {
	for _, o := range by {
		if o != d && o.doc == d.doc && !o.shallow && d.path.HasPrefix(o.path) && (d.shallow || len(o.path) < len(d.path)) {
			return true
		}
	}
	return false
}

// freshRead is an address that a run has read and that its node had not read before, with
// the document as it was then. The index does not know of it before the run ends, so what
// the run pulls meanwhile may change it without the node being told (A38): a child that
// the run has just registered may write what the run began with.
type freshRead struct {
	dep  *dep
	root model.Value
}

// noteFresh notes the read that was added last. What the run itself has written there is
// its own and left out of account.
func (l *readLog) noteFresh(d *doc) {
	l.fresh = append(l.fresh, freshRead{l.list[len(l.list)-1], d.value})
}
