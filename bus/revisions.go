package bus

import (
	"strings"
	"sync"
)

// revisions remembers, for recently saved or loaded items, the log sequence that
// they reflect, and the revision under which they are stored. It drops the older half
// when it is full, and a space on request; unknown items can be read
// again. The zero value is ready.
type revisions struct {
	mu          sync.Mutex
	recent, old generation
}

// generation is one half: by space, the items under their keys.
type generation struct {
	spaces map[string]map[string]revision
	n      int
}

type revision struct{ rev, seq uint64 }

// revisionsRoom is how many items each half holds: a few MB at most, and more than
// are saved again soon.
const revisionsRoom = 1 << 15

// note records an item. The key begins with the name of its space and a dot.
func (r *revisions) note(key string, rev, seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.recent.n >= revisionsRoom {
		r.recent, r.old = generation{}, r.recent
	}
	r.recent.put(key, revision{rev, seq})
}

// seq returns the sequence that an item reflects if it is stored under a revision.
// Revision 0, under which nothing is stored, is always known.
func (r *revisions) seq(key string, rev uint64) (seq uint64, known bool) {
	if rev == 0 {
		return 0, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	noted, known := r.recent.get(key)
	if !known {
		noted, known = r.old.get(key)
	}
	return noted.seq, known && noted.rev == rev
}

// forget drops the items of a space.
func (r *revisions) forget(space string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent.drop(space)
	r.old.drop(space)
}

// len returns the number of remembered items.
func (r *revisions) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recent.n + r.old.n
}

func (g *generation) put(key string, noted revision) {
	space, _, _ := strings.Cut(key, ".")
	of := g.spaces[space]
	if of == nil {
		if g.spaces == nil {
			g.spaces = map[string]map[string]revision{}
		}
		of = map[string]revision{}
		g.spaces[space] = of
	}
	before := len(of)
	of[key] = noted
	g.n += len(of) - before
}

func (g *generation) get(key string) (noted revision, known bool) {
	space, _, _ := strings.Cut(key, ".")
	noted, known = g.spaces[space][key]
	return noted, known
}

func (g *generation) drop(space string) {
	g.n -= len(g.spaces[space])
	delete(g.spaces, space)
}

// clear forgets everything.
func (r *revisions) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent, r.old = generation{}, generation{}
}
