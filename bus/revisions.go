package bus

import "sync"

// revisions remembers of items that were lately saved or loaded which log sequence
// they reflect, and under which revision they are stored. It forgets the older half
// when it is full; what it does not know can be read again. The zero value is ready.
type revisions struct {
	mu          sync.Mutex
	recent, old map[itemKey]revision
}

type itemKey struct {
	partition int
	key       string
}

type revision struct{ rev, seq uint64 }

// revisionsRoom is how many items each half holds: a few MB at most, and more than
// are saved again before long.
const revisionsRoom = 1 << 15

// note remembers an item.
func (r *revisions) note(partition int, key string, rev, seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.recent) >= revisionsRoom {
		r.recent, r.old = nil, r.recent
	}
	if r.recent == nil {
		r.recent = map[itemKey]revision{}
	}
	r.recent[itemKey{partition, key}] = revision{rev, seq}
}

// seq is the sequence that an item reflects if it is stored under a revision.
// Revision 0, under which nothing is stored, is always known.
func (r *revisions) seq(partition int, key string, rev uint64) (seq uint64, known bool) {
	if rev == 0 {
		return 0, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	noted, known := r.recent[itemKey{partition, key}]
	if !known {
		noted, known = r.old[itemKey{partition, key}]
	}
	return noted.seq, known && noted.rev == rev
}
