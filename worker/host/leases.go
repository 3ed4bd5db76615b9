package host

import (
	"time"

	"github.com/settlehq/settle/model"
)

// leases are the valid observations of a partition.
type leases struct {
	of map[string]map[leaseKey]time.Time // by space
	n  int
}

type leaseKey struct{ doc, watcher string }

// maxLease limits the duration of a lease, whatever its observer requests.
const maxLease = 10 * model.LeaseTTL

// maxLeases is how many leases a partition has; more are passed over. A client that may watch can make them, under any names.
const maxLeases = 50_000

// any reports whether the space has an observer.
func (l *leases) any(space string) bool { return len(l.of[space]) > 0 }

// onlyDocuments reports whether no lease of the space is that of an attached runtime.
func (l *leases) onlyDocuments(space string) bool {
	for k := range l.of[space] { // any order: all of them count
		if k.doc == "" {
			return false
		}
	}
	return true
}

// renew records a lease, and reports whether it was valid already, and whether there is room for it.
func (l *leases) renew(m model.Lease, now time.Time) (had, ok bool) {
	of, k := l.of[m.Space], leaseKey{m.Doc, m.Watcher}
	_, had = of[k]
	if !had && l.n >= maxLeases && m.Doc != "" { // a process that attaches is counted, and never passed over
		return false, false
	}
	if of == nil {
		if l.of == nil {
			l.of = map[string]map[leaseKey]time.Time{}
		}
		of = map[leaseKey]time.Time{}
		l.of[m.Space] = of
	}
	if !had {
		l.n++
	}
	of[k] = now.Add(min(m.TTL, maxLease))
	return had, true
}

// end removes a lease, and reports whether it was valid.
func (l *leases) end(space string, k leaseKey) (had bool) {
	of := l.of[space]
	if _, had = of[k]; had {
		l.n--
	}
	if delete(of, k); len(of) == 0 {
		delete(l.of, space)
	}
	return had
}
