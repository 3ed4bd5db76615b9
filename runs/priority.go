package runs

import (
	"cmp"
	"slices"

	"github.com/settlehq/settle/model"
)

// MaxPriority is the highest priority of a run, and with a minus sign the lowest.
const MaxPriority = 9

// priorityOf returns the priority in the document of a run, or in the input of a task; 0 if there is none.
func priorityOf(v model.Value) int {
	n, _ := v.Get("priority").AsInt()
	return int(min(max(n, -MaxPriority), MaxPriority))
}

// checkPriority returns the priority in the payload of a start.
func checkPriority(v model.Value) (int, error) {
	if v.IsAbsent() || v.IsNull() {
		return 0, nil
	}
	n, is := v.AsInt()
	if !is || n < -MaxPriority || n > MaxPriority {
		return 0, refuse(Invalid, "the priority is %.50s; it must be an integer from %d to %d, of which the highest comes first", v.String(), -MaxPriority, MaxPriority)
	}
	return int(n), nil
}

// byPriority sorts runs: those of a higher priority come first, and others by their IDs.
func (h *host) byPriority(ids []string) {
	of := make(map[string]int, len(ids))
	for _, id := range ids {
		of[id] = priorityOf(h.tx.Peek(Doc(id)))
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
}
