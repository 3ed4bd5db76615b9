package space

import (
	"slices"
	"unsafe"

	"github.com/settlehq/settle/model"
)

// readLog records the reads of one run, and matches them against those of the node's last run as they are
// made. A run that reads the same addresses in the same order, as most do, costs one comparison per read, and
// leaves nothing to apply (P6).
type readLog struct {
	node *node
	// next is the index of the dep that the next read is expected to match. diverged reports that a read did
	// not match; list then has the reads in order.
	next     int
	diverged bool
	list     []*dep
	run      int32
	byAddr   map[depKey]*dep // indexes node.deps, when there are many
	fresh    []freshRead
}

type depKey struct {
	doc     *doc
	path    string
	shallow bool
}

// begin resets the log for a new run.
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

// expected answers a read that matches the expected one, or repeats the last one, if there is no link on the way
// and the document has arrived: nearly all reads of nearly all runs.
func (l *readLog) expected(space, id string, path model.Path) (v model.Value, ok bool) {
	if l.diverged {
		return l.recent(space, id, path)
	}
	deps := l.node.deps
	if i := l.next; i < len(deps) && deps[i].same(space, id, path) {
		if v, ok = deps[i].withoutLinks(); ok {
			l.next++
		}
		return v, ok
	}
	if i := l.next - 1; i >= 0 && deps[i].same(space, id, path) {
		return deps[i].withoutLinks()
	}
	return v, false
}

// recent answers a read that repeats one of the last few, as loops do.
func (l *readLog) recent(space, id string, path model.Path) (v model.Value, ok bool) {
	for i := len(l.list) - 1; i >= max(0, len(l.list)-4); i-- {
		if l.list[i].same(space, id, path) {
			return l.list[i].withoutLinks()
		}
	}
	return v, false
}

func (d *dep) same(space, id string, path model.Path) bool {
	k := &d.doc.key
	return sameText(k.doc, id) && sameText(k.space, space) && !d.shallow && !d.declared &&
		len(d.path) == len(path) && (len(path) == 0 || slices.Equal(d.path, path))
}

// sameText compares names that are usually the same string, without a call in that case.
func sameText(a, b string) bool {
	return len(a) == len(b) && (len(a) == 0 || unsafe.StringData(a) == unsafe.StringData(b) || a == b)
}

// withoutLinks returns the value if no link has to be followed.
func (d *dep) withoutLinks() (v model.Value, ok bool) {
	v = d.doc.value
	for i := range d.path {
		if v.IsLink() {
			return v, false
		}
		v = v.At(d.path[i : i+1])
	}
	return v, d.doc.loaded && !v.IsLink()
}

// expect returns the document of the next expected read if it is the requested one, without a lookup.
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

// add records a read. It reports whether the address is new for the node.
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

// diverge starts the list with the reads so far, all of which were as expected.
func (l *readLog) diverge() {
	l.diverged = true
	l.list = append(l.list[:0], l.node.deps[:l.next]...)
	for _, d := range l.list {
		d.seen = l.run
	}
}

// manyReads is the number of reads from which a map pays off.
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

// unchanged reports whether the run has made the same reads as the node's last one.
func (l *readLog) unchanged() bool { return !l.diverged && l.next == len(l.node.deps) }

// hand returns the list of reads. The node's previous list is reused for its next run, so a node whose reads
// keep changing does not allocate one each time.
func (l *readLog) hand() []*dep {
	if cap(l.list) > 2*len(l.list)+4 {
		return slices.Clone(l.list)
	}
	return l.list
}

// cover marks the reads that a read of an ancestor makes redundant: a deep read covers everything below. A
// shallow one covers nothing.
func cover(deps []*dep) {
	if len(deps) <= manyReads {
		for _, d := range deps {
			d.covered = coveredBy(d, deps)
		}
		return
	}
	// Comparing all pairs would take a second for a node that makes thousands of reads in one document.
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

// deepReads are the places that a node reads deeply: the length of the shortest path in each document, and
// the paths themselves once a read below one was found.
type deepReads struct {
	deps     []*dep
	shortest map[*doc]int
	at       map[depKey]bool
}

// cover does the same as coveredBy, for many reads.
func (r *deepReads) cover(d *dep) bool {
	from, some := r.shortest[d.doc]
	to := len(d.path) // an equal path covers it only if d is shallow
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

// freshRead is an address that a run has read and that its node had not read before, with its value at that
// time. The read is indexed only when the run ends, so until then a change would not invalidate the node: a
// child that the run has just registered may write an address that the run has read.
type freshRead struct {
	dep  *dep
	root model.Value
}

// noteFresh records the latest read. The run's own writes to its document do not count.
func (l *readLog) noteFresh(d *doc) {
	l.fresh = append(l.fresh, freshRead{l.list[len(l.list)-1], d.value})
}
