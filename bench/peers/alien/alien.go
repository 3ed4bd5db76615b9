// Package alien is a signal library in Go with the push-pull algorithm of alien-signals
// (github.com/stackblitz/alien-signals): a write marks everything downstream as possibly changed, and observed
// readers then pull, from the top, what has really changed. It is representative of such a library in Go:
// values of any comparable type, no recursion however deep the graph is, effects that may write (to signals
// that they have not read).
//
// The inputs and the readers of a node are doubly linked lists of the same links. A body whose reads are the
// same as before does not change them.
package alien

type flag uint8

const (
	mutable  flag = 1 << iota // has a value that others can read
	watching                  // is an effect, and not in the queue
	running                   // its body is being executed
	dirty                     // an input has changed
	pending                   // something further up may have changed
)

// System is a set of nodes that may read each other. It must be used from one goroutine.
type System struct {
	active *node
	run    uint64
	depth  int
	queue  []*node
}

// node has the common state of signals, computeds and effects.
type node struct {
	sys               *System
	deps, lastDep     *link
	readers, lastRead *link
	flags             flag
	update            func() bool // brings the value up to date and reports whether it changed
}

type link struct {
	dep, reader            *node
	prevDep, nextDep       *link
	prevReader, nextReader *link
	run                    uint64
}

// Signal is a value that can be set.
type Signal[T comparable] struct {
	node
	value, next T
}

// NewSignal returns a new signal.
func NewSignal[T comparable](s *System, v T) *Signal[T] {
	n := &Signal[T]{node: node{sys: s, flags: mutable}, value: v, next: v}
	n.update = n.take
	return n
}

func (n *Signal[T]) take() bool {
	n.flags = mutable
	changed := n.value != n.next
	n.value = n.next
	return changed
}

// Set writes the value and, outside of a batch, runs the effects that depend on it.
func (n *Signal[T]) Set(v T) {
	if n.next == v {
		return
	}
	n.next = v
	n.flags = mutable | dirty
	if n.readers == nil {
		return
	}
	n.sys.suspect(n.readers)
	if n.sys.depth == 0 {
		n.sys.flush()
	}
}

// Get reads the value.
func (n *Signal[T]) Get() T {
	if n.flags&dirty != 0 && n.take() {
		n.sys.confirm(n.readers)
	}
	n.sys.track(&n.node)
	return n.value
}

// Computed is a value that is derived from others. It is computed when it is read.
type Computed[T comparable] struct {
	node
	value T
	body  func() T
}

// NewComputed returns a new computed.
func NewComputed[T comparable](s *System, body func() T) *Computed[T] {
	n := &Computed[T]{node: node{sys: s, flags: mutable | dirty}, body: body}
	n.update = n.compute
	return n
}

func (n *Computed[T]) compute() bool {
	before := n.begin(mutable | running)
	v := n.body()
	n.end(before)
	changed := v != n.value
	n.value = v
	return changed
}

// Get reads the value.
func (n *Computed[T]) Get() T {
	switch {
	case n.flags&dirty != 0, n.flags&pending != 0 && n.sys.changed(n.deps, &n.node):
		if n.compute() {
			n.sys.confirm(n.readers)
		}
	default:
		n.flags &^= pending
	}
	n.sys.track(&n.node)
	return n.value
}

// Effect runs body now, and again whenever something that it read has changed.
func Effect(s *System, body func()) {
	n := &node{sys: s}
	n.update = func() bool {
		before := n.begin(watching | running)
		body()
		n.end(before)
		return false
	}
	n.update()
}

// Batch runs the effects of all writes in fn once, at its end.
func Batch(s *System, fn func()) {
	s.depth++
	fn()
	if s.depth--; s.depth == 0 {
		s.flush()
	}
}

func (s *System) flush() {
	for i := 0; i < len(s.queue); i++ { // an effect that writes makes it longer
		n := s.queue[i]
		n.flags |= watching
		if n.flags&dirty != 0 || n.flags&pending != 0 && s.changed(n.deps, n) {
			n.update()
		} else {
			n.flags = watching
		}
	}
	s.queue = s.queue[:0]
}

func (s *System) enqueue(n *node) {
	n.flags &^= watching
	s.queue = append(s.queue, n)
}

// begin and end enclose an execution of the node's body.
func (n *node) begin(f flag) (before *node) {
	s := n.sys
	s.run++
	n.lastDep, n.flags = nil, f
	before, s.active = s.active, n
	return before
}

func (n *node) end(before *node) {
	n.sys.active = before
	n.flags &^= running
	n.drop()
}

// resume is the place where a depth-first walk continues after a subtree.
type resume struct {
	at *link
	up *resume
}

// suspect marks everything downstream, and queues its effects.
func (s *System) suspect(at *link) {
	var back *resume
	for {
		for at != nil {
			r := at.reader
			f := r.flags
			if f&(running|dirty|pending) != 0 {
				at = at.nextReader
				continue
			}
			r.flags = f | pending
			if f&watching != 0 {
				s.enqueue(r)
			}
			if f&mutable != 0 && r.readers != nil {
				if at.nextReader != nil {
					back = &resume{at.nextReader, back}
				}
				at = r.readers
				continue
			}
			at = at.nextReader
		}
		if back == nil {
			return
		}
		at, back = back.at, back.up
	}
}

// confirm marks the readers of a node that has changed.
func (s *System) confirm(at *link) {
	for ; at != nil; at = at.nextReader {
		r := at.reader
		if f := r.flags; f&(pending|dirty) == pending {
			r.flags = f | dirty
			if f&(watching|running) == watching {
				s.enqueue(r)
			}
		}
	}
}

// changed reports whether an input of the reader has changed. It examines inputs recursively, in the order in
// which they were read.
func (s *System) changed(at *link, reader *node) bool {
	var back *resume
	for depth := 0; ; {
		d := at.dep
		dirtied := reader.flags&dirty != 0
		switch {
		case dirtied:
		case d.flags&(mutable|dirty) == mutable|dirty:
			if dirtied = d.update(); dirtied && d.readers.nextReader != nil {
				s.confirm(d.readers)
			}
		case d.flags&(mutable|pending) == mutable|pending:
			if at.nextReader != nil || at.prevReader != nil {
				back = &resume{at, back}
			}
			at, reader = d.deps, d
			depth++
			continue
		}
		for dirtied || at.nextDep == nil { // the result for reader is known
			if depth == 0 {
				return dirtied
			}
			depth--
			n := reader
			shared := n.readers.nextReader != nil
			if at = n.readers; shared {
				at, back = back.at, back.up
			}
			reader = at.reader
			if !dirtied {
				n.flags &^= pending
			} else if dirtied = n.update(); dirtied && shared {
				s.confirm(n.readers)
			}
		}
		at = at.nextDep
	}
}

// track records dep as an input of the running body.
func (s *System) track(dep *node) {
	r := s.active
	if r == nil {
		return
	}
	prev := r.lastDep
	if prev != nil && prev.dep == dep {
		return
	}
	next := r.deps
	if prev != nil {
		next = prev.nextDep
	}
	if next != nil && next.dep == dep {
		next.run, r.lastDep = s.run, next
		return
	}
	last := dep.lastRead
	if last != nil && last.run == s.run && last.reader == r {
		return
	}
	l := &link{dep: dep, reader: r, prevDep: prev, nextDep: next, prevReader: last, run: s.run}
	r.lastDep, dep.lastRead = l, l
	if next != nil {
		next.prevDep = l
	}
	if prev != nil {
		prev.nextDep = l
	} else {
		r.deps = l
	}
	if last != nil {
		last.nextReader = l
	} else {
		dep.readers = l
	}
}

// drop removes the inputs after the last one that was read.
func (n *node) drop() {
	l := n.deps
	if n.lastDep != nil {
		l = n.lastDep.nextDep
	}
	for l != nil {
		l = l.cut()
	}
}

// cut removes a link from both lists. A node without readers forgets its inputs, and is computed afresh when it
// is read again.
func (l *link) cut() (next *link) {
	r, d := l.reader, l.dep
	next = l.nextDep
	if l.nextDep != nil {
		l.nextDep.prevDep = l.prevDep
	} else {
		r.lastDep = l.prevDep
	}
	if l.prevDep != nil {
		l.prevDep.nextDep = l.nextDep
	} else {
		r.deps = l.nextDep
	}
	if l.nextReader != nil {
		l.nextReader.prevReader = l.prevReader
	} else {
		d.lastRead = l.prevReader
	}
	if l.prevReader != nil {
		l.prevReader.nextReader = l.nextReader
	} else if d.readers = l.nextReader; d.readers == nil && d.deps != nil {
		d.lastDep, d.flags = nil, mutable|dirty
		d.drop()
	}
	return next
}
