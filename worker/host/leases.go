package host

import (
	"time"

	"github.com/settlehq/settle/model"
)

// leases are the valid observations, by space.
type leases map[string]map[leaseKey]time.Time

type leaseKey struct{ doc, watcher string }

// maxLease limits the duration of a lease, whatever its observer requests.
const maxLease = 10 * model.LeaseTTL

// any reports whether the space has an observer.
func (l leases) any(space string) bool { return len(l[space]) > 0 }

// onlyDocuments reports whether no lease of the space is that of an attached runtime.
func (l leases) onlyDocuments(space string) bool {
	for k := range l[space] { // any order: all of them count
		if k.doc == "" {
			return false
		}
	}
	return true
}

// renew records a lease, and reports whether it was valid already.
func (l leases) renew(m model.Lease, now time.Time) (had bool) {
	of := l[m.Space]
	if of == nil {
		of = map[leaseKey]time.Time{}
		l[m.Space] = of
	}
	k := leaseKey{m.Doc, m.Watcher}
	_, had = of[k]
	of[k] = now.Add(min(m.TTL, maxLease))
	return had
}

// end removes a lease, and reports whether it was valid.
func (l leases) end(space string, k leaseKey) (had bool) {
	of := l[space]
	_, had = of[k]
	if delete(of, k); len(of) == 0 {
		delete(l, space)
	}
	return had
}
