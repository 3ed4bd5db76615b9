package runs

import (
	"cmp"
	"slices"
)

// Bounds of the steps that are kept, of runs that go on and of those that have ended.
const (
	// keptPages is the number of full pages of records that are kept before a snapshot.
	keptPages = 48
	// MaxSteps is the largest size of the steps of an ended run that are kept, in bytes; the oldest go.
	MaxSteps = 512 << 10
	// maxSteps is the largest size of the steps of all ended runs of a space; those of the runs that ended first go.
	maxSpaceSteps = 4 << 20
	// maxRecordBytes is the largest size of a record and the snapshot after it, and of what both start, that fit
	// into one transaction as texts.
	maxRecordBytes = 440 << 10
	// maxRemoved is the number of runs whose steps, or which, are removed in one transaction.
	maxRemoved = 100
)

// Members of a run's document: the pages of its records, from the first to before the other.
const (
	inPages = "pages"
	inFrom  = "from"
	inTo    = "to"
)

// keepPages decides which pages are dropped after a snapshot. The records before it are kept for the history, and not
// needed to make the run again.
func (d *driver) keepPages(last *step) {
	first := max(d.first, d.page-keptPages)
	size := 2*(len(last.snap)+len(last.text)) + 1000
	for i := range last.plan.start {
		size += sizeOf(&last.plan.start[i])
	}
	if size > maxRecordBytes {
		first = d.page // also the record of this step
	}
	last.drop = [2]int{d.first, first}
	d.first = first
}

// dropPages removes pages of records.
func (h *host) dropPages(id string, from, to int) {
	for page := from; page < to; page++ {
		if !h.tx.Peek(pageDoc(id, page)).IsAbsent() {
			h.tx.Delete(pageDoc(id, page))
		}
	}
}

// keepSteps bounds what is kept of a run that ends: its last records, and its snapshot if the records do not
// begin with the first.
func (h *host) keepSteps(id string, e *entry) {
	from, to, total := e.d.first, e.last.page+1, 0
	snapshot := h.tx.Peek(snapshotDoc(id))
	if !snapshot.IsAbsent() {
		total = len(snapshot.String())
	}
	first := to
	for page := to - 1; page >= from; page-- {
		size := 0
		if v := h.tx.Peek(pageDoc(id, page)); !v.IsAbsent() {
			size = len(v.String())
		}
		if total+size > MaxSteps {
			break
		}
		first, total = page, total+size
	}
	if !snapshot.IsAbsent() && first == 0 { // the run can be rebuilt from its first record
		h.tx.Delete(snapshotDoc(id))
		total -= len(snapshot.String())
	}
	h.dropPages(id, from, first)
	h.tx.Set(Doc(id), first, inPages, inFrom)
	h.tx.Set(Doc(id), to, inPages, inTo)
	h.tx.Set(Index, total, id, "bytes")
	if kept := h.addKept(total); kept > maxSpaceSteps {
		h.dropOldest(kept)
	}
}

// addKept changes the size of the steps of all ended runs.
func (h *host) addKept(n int) int {
	was, _ := h.tx.Peek(load, "kept").AsInt()
	kept := max(int(was)+n, 0)
	h.tx.Set(load, kept, "kept")
	return kept
}

// endedRun is an entry of the index.
type endedRun struct {
	id string
	at int64
}

// ended returns the runs that have ended, the first one first.
func (h *host) ended() []endedRun {
	var list []endedRun
	for id, entry := range h.tx.Peek(Index).All() {
		if at, is := entry.Get("ended").AsInt(); is {
			list = append(list, endedRun{id, at})
		}
	}
	slices.SortFunc(list, func(a, b endedRun) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	return list
}

// dropOldest drops the steps of runs until there is room for some more.
func (h *host) dropOldest(kept int) {
	n := 0
	for _, e := range h.ended() {
		if kept <= maxSpaceSteps*3/4 || n == maxRemoved {
			return
		}
		if size := h.dropSteps(e.id); size > 0 {
			kept, n = kept-size, n+1
		}
	}
}

// dropSteps removes what is kept of the steps of a run that has ended, and returns its size.
func (h *host) dropSteps(id string) int {
	size, _ := h.tx.Peek(Index, id, "bytes").AsInt()
	pages := h.tx.Peek(Doc(id), inPages)
	if pages.IsAbsent() {
		return 0
	}
	from, _ := pages.Get(inFrom).AsInt()
	to, _ := pages.Get(inTo).AsInt()
	h.dropPages(id, int(from), int(to))
	if !h.tx.Peek(snapshotDoc(id)).IsAbsent() {
		h.tx.Delete(snapshotDoc(id))
	}
	h.tx.Delete(Doc(id), inPages)
	if size > 0 {
		h.tx.Delete(Index, id, "bytes")
		h.addKept(-int(size))
	}
	return int(size)
}

// remove removes a run that has ended, unless calls that wait for it do not know its end yet.
func (h *host) remove(id string) {
	if h.unreported(id) {
		return
	}
	h.dropSteps(id)
	h.tx.Delete(Index, id)
	h.tx.Delete(Doc(id))
	if !h.tx.Peek(childrenDoc(id)).IsAbsent() {
		h.tx.Delete(childrenDoc(id))
	}
	h.dropAttributes(id)
}
