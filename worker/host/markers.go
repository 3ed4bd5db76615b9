package host

import (
	"cmp"
	"slices"
	"sync"

	"github.com/settlehq/settle/model"
)

// markers are the markers of deleted documents and observations that a space has in its
// bucket. A marker prevents a deposed owner from restoring the document: its
// write is older. When a checkpoint that covers the deletion is old enough,
// the marker can be purged: a document stored behind a mark that covers it is ignored
// (replica.Load), and deleted again.
//
// A save of the owner's own that arrives a second time, after the marker is gone, would be covered
// by the next mark: before it purges, the owner makes sure that every later mark names one that
// is stored now (model.Mark.Purged).
type markers struct {
	mu   sync.Mutex
	gone map[string]model.StateDoc
	// newest is the newest mark that is known to be stored, after the named ones.
	newest model.MarkPosition
	behind []model.MarkPosition
	// under reports that a mark may be in flight, and naming that it names the last of behind.
	under, naming bool
	// floors are the floors that stored marks have, in their order; see replica.Floor.
	floors []markedFloor
}

// markedFloor is a floor and the log sequence of the first mark that has it.
type markedFloor struct{ rev, seq uint64 }

// markersStep is how many markers of a space are purged at a time, and markersNamed how many marks a mark
// names. At most one is added per PurgeDelay, so the oldest one that is dropped is from a time whose saves
// have long arrived or been lost.
const (
	markersStep  = 256
	markersNamed = 8
)

// begin returns the marks that a new mark must name.
func (m *markers) begin() []model.MarkPosition {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.under, m.naming = true, true
	return slices.Clone(m.behind)
}

// stored records that the last mark that was begun is stored.
func (m *markers) stored(at model.MarkPosition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest, m.under = at, false
}

// note records items as they were loaded, or as they were to be saved. The latter
// may not have been stored; the bus checks before it purges.
func (m *markers) note(items []model.StateDoc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range items {
		d := &items[i]
		if !resurrectable(d.Doc) {
			continue
		}
		if d.Data != nil || d.Rev == 0 {
			delete(m.gone, d.Doc)
			continue
		}
		if m.gone == nil {
			m.gone = map[string]model.StateDoc{}
		}
		m.gone[d.Doc] = *d
	}
}

// resurrectable reports whether a deleted item may come back without harm:
// a stale document is recognised, and a node's observations only save work. The markers of
// all other items stay.
func resurrectable(key string) bool {
	_, node := model.NodeOfStateKey(key)
	return node || isDocument(key)
}

func isDocument(key string) bool { return model.CheckName("document", key) == nil }

// raised records the floor of a mark that is stored.
func (m *markers) raised(rev, seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.floors); rev > 0 && (n == 0 || rev > m.floors[n-1].rev) {
		m.floors = append(m.floors, markedFloor{rev, seq})
	}
}

// floorOf returns the floor of the marks up to a log sequence. The later ones are kept.
func (m *markers) floorOf(seq uint64) uint64 {
	for len(m.floors) > 1 && m.floors[1].seq <= seq {
		m.floors = m.floors[1:]
	}
	if len(m.floors) == 0 || m.floors[0].seq > seq {
		return 0
	}
	return m.floors[0].rev
}

// aboveFloor returns the number of markers of documents that only a higher floor lets be purged, and the last revision of one.
func (m *markers) aboveFloor() (n int, last uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	floor := uint64(0)
	if n := len(m.floors); n > 0 {
		floor = m.floors[n-1].rev
	}
	for _, d := range m.gone { // any order: a count and a maximum
		if d.Rev > floor && isDocument(d.Doc) {
			n, last = n+1, max(last, d.Rev)
		}
	}
	return n, last
}

// covered returns up to n markers of items that were deleted up to a log sequence. It returns none while
// a mark may be in flight that names no present mark.
func (m *markers) covered(seq uint64, n int) []model.StateDoc {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []model.StateDoc
	floor := m.floorOf(seq)
	for _, d := range m.gone { // any order: sorted below
		if d.Seq <= seq && (d.Rev <= floor || !isDocument(d.Doc)) {
			list = append(list, d)
		}
	}
	if !m.named(list) {
		return nil
	}
	slices.SortFunc(list, func(a, b model.StateDoc) int { return cmp.Compare(a.Doc, b.Doc) })
	return list[:min(len(list), n)]
}

// named reports whether all later marks name one that covers the deletions in list.
func (m *markers) named(list []model.StateDoc) bool {
	var last model.MarkPosition
	if n := len(m.behind); n > 0 {
		last = m.behind[n-1]
	}
	if slices.ContainsFunc(list, func(d model.StateDoc) bool { return d.Seq > last.Seq }) {
		m.behind = append(m.behind[max(0, len(m.behind)-markersNamed+1):], m.newest)
		m.naming = false
	}
	return m.naming || !m.under
}

// forget drops purged markers.
func (m *markers) forget(list []model.StateDoc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range list {
		if m.gone[list[i].Doc].Rev == list[i].Rev {
			delete(m.gone, list[i].Doc)
		}
	}
}
