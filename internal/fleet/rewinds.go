package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// maxRewinds is how many streams that have gone back are named in one text.
const maxRewinds = 6

// together is how far apart streams may be noticed to have gone back that did so by one event.
const together = time.Minute

// WentBack says for people which streams the worker has noticed to have gone back, and when; "" if none has.
func (m *Member) WentBack() string {
	if m.Figures == nil || m.Figures.Rewound.Stream == "" {
		return ""
	}
	all := slices.Clone(m.Figures.Rewinds)
	if len(all) == 0 { // a worker of an earlier version
		all = []model.Rewind{m.Figures.Rewound}
	}
	// Of the bucket of the workers, nothing is lost that they do not say again.
	isWorkers := func(r model.Rewind) bool { return strings.HasSuffix(r.Stream, "_WORKERS") }
	all = append(slices.DeleteFunc(slices.Clone(all), isWorkers), slices.DeleteFunc(all, func(r model.Rewind) bool { return !isWorkers(r) })...)
	newest := m.Figures.Rewound.At
	named := all[:min(len(all), maxRewinds)]
	texts := make([]string, len(named))
	for i, r := range named {
		texts[i] = fmt.Sprintf("stream %s was known up to %d, and %s", r.Stream, r.Known, r.Found)
		if newest.Sub(r.At).Abs() > together {
			texts[i] += " (at " + r.At.Format(time.RFC3339) + ")"
		}
	}
	if more := max(m.Figures.RewindCount, len(all)) - len(named); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return "at " + newest.Format(time.RFC3339) + ": " + strings.Join(texts, "; ")
}
