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
type markers struct {
	mu   sync.Mutex
	gone map[string]model.StateDoc
}

// markersStep is how many markers of a space are purged at a time.
const markersStep = 256

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

// covered are up to n markers of what was deleted up to a log sequence.
func (m *markers) covered(seq uint64, n int) []model.StateDoc {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []model.StateDoc
	for _, d := range m.gone { // any order: sorted below
		if d.Seq <= seq {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b model.StateDoc) int { return cmp.Compare(a.Doc, b.Doc) })
	return list[:min(len(list), n)]
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
