package host

import (
	"cmp"

	"github.com/settlehq/settle/status"
)

// load is what waits for a space.
type load struct {
	status.Load
	// unread reports that events wait in the lane for which the space has no room. span bounds the number of
	// events that the space is not known to be done with.
	unread bool
	span   uint64
}

// compareLoads orders spaces by the number of waiting events, largest first.
func compareLoads(a, b load) int {
	switch {
	case a.unread && !b.unread:
		return -1
	case b.unread && !a.unread:
		return 1
	case a.unread && a.span != b.span:
		return cmp.Compare(b.span, a.span)
	}
	return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(b.span, a.span), cmp.Compare(a.Space, b.Space))
}
