package worker

import (
	"cmp"
	"slices"
	"sync"

	"github.com/settlehq/settle/model"
)

// markers are the markers of deleted documents and observations that a space has in its
// bucket. A marker keeps an owner that was deposed from putting the document back: what it
// would write is older. When a checkpoint that covers the deletion has stood for long enough,
// the marker can go: a document that is stored behind a mark that covers it is not believed
// (replica.Load), and deleted again.
//
// A save of the owner's own that arrives a second time, after the marker is gone, would be covered
// by the next mark: before it purges, the owner makes sure that every later mark names one that
// stands now (model.Mark.Purged).
type markers struct {
	mu   sync.Mutex
	gone map[string]model.StateDoc
	// standing is the newest mark that is known to stand, behind those that are named.
	standing model.Standing
	behind   []model.Standing
	// under says that a mark may be under way, naming that it names the last one of behind.
	under, naming bool
}

// markersStep is how many markers of a space are purged at a time, and markersNamed how many
// marks a mark names. There is one more at most in each PurgeDelay, so that the oldest to go is of
// a time whose saves have long arrived or been lost.
const (
	markersStep  = 256
	markersNamed = 8
)

// begin returns what a mark that is made now has to name.
func (m *markers) begin() []model.Standing {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.under, m.naming = true, true
	return slices.Clone(m.behind)
}

// stands says that the mark that was begun last stands.
func (m *markers) stands(at model.Standing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.standing, m.under = at, false
}

// note takes in items as they were loaded, or as they were to be saved. Of the latter it is
// not certain that they were; the bus looks before it purges.
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

// resurrectable reports whether no harm is done when an item comes back that was deleted:
// a document is recognised, and what a node has observed spares work at most. The markers of
// all else stay.
func resurrectable(key string) bool {
	_, node := model.NodeOfStateKey(key)
	return node || model.CheckName("document", key) == nil
}

// covered are up to n markers of what was deleted up to a log sequence. It returns none as long as
// a mark may be under way that names no mark of now.
func (m *markers) covered(seq uint64, n int) []model.StateDoc {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []model.StateDoc
	for _, d := range m.gone { // any order: sorted below
		if d.Seq <= seq {
			list = append(list, d)
		}
	}
	if !m.named(list) {
		return nil
	}
	slices.SortFunc(list, func(a, b model.StateDoc) int { return cmp.Compare(a.Doc, b.Doc) })
	return list[:min(len(list), n)]
}

// named reports whether all marks to come name one that covers the deletions in list.
func (m *markers) named(list []model.StateDoc) bool {
	var last model.Standing
	if n := len(m.behind); n > 0 {
		last = m.behind[n-1]
	}
	if slices.ContainsFunc(list, func(d model.StateDoc) bool { return d.Seq > last.Seq }) {
		m.behind = append(m.behind[max(0, len(m.behind)-markersNamed+1):], m.standing)
		m.naming = false
	}
	return m.naming || !m.under
}

// forget takes off what was purged.
func (m *markers) forget(list []model.StateDoc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range list {
		if m.gone[list[i].Doc].Rev == list[i].Rev {
			delete(m.gone, list[i].Doc)
		}
	}
}
