package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// maxRewinds is the largest number of streams that are named in one text.
const maxRewinds = 6

// together is the time within which several rewinds count as one incident.
const together = time.Minute

// rewinds reads the recorded rewinds. If the records cannot be read, there
// are none here: members report what they have noticed themselves, and the doctor reports what cannot be read.
func (f *Fleet) rewinds(ctx context.Context, b Bus) {
	knows, can := b.(interface {
		RewindNotes(context.Context) ([]model.RewindNote, error)
	})
	if !can {
		return
	}
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	f.noted, _ = knows.RewindNotes(ctx)
	for _, n := range f.noted {
		if n.ShouldReport(f.At) {
			f.Rewinds = append(f.Rewinds, n)
		}
	}
}

// Noted returns all recorded rewinds, including old and acknowledged ones.
func (f *Fleet) Noted() []model.RewindNote { return f.noted }

// WentBack describes the rewinds of streams that the member has noticed; "" if there are none.
// It leaves out recorded ones, which RewindText describes.
func (m *Member) WentBack(noted []model.RewindNote) string {
	var all []model.Rewind
	count := 0
	switch {
	case m.Figures != nil && len(m.Figures.Rewinds) > 0:
		all, count = slices.Clone(m.Figures.Rewinds), m.Figures.RewindCount
	case m.Figures != nil && m.Figures.Rewound.Stream != "": // a worker of an earlier version
		all, count = []model.Rewind{m.Figures.Rewound}, 1
	case m.Noticed != nil:
		all, count = slices.Clone(m.Noticed.Rewinds), m.Noticed.RewindCount
	}
	before := len(all)
	all = slices.DeleteFunc(all, func(r model.Rewind) bool {
		return slices.ContainsFunc(noted, func(n model.RewindNote) bool {
			return n.IsSame(&r) || n.Acknowledged && n.Stream == r.Stream && r.At.Before(n.At)
		})
	})
	return rewindText(all, count-(before-len(all)))
}

// RewindText describes the recorded rewinds of streams, one text for each
// process.
func RewindText(noted []model.RewindNote) (by, texts []string) {
	for _, n := range noted {
		if !slices.Contains(by, n.By) {
			by = append(by, n.By)
		}
	}
	for i, name := range by {
		var all []model.Rewind
		for _, n := range noted {
			if n.By == name {
				all = append(all, n.Rewind)
			}
		}
		slices.Reverse(all)
		by[i], texts = strings.Replace(name, "/", " ", 1), append(texts, rewindText(all, len(all)))
	}
	return by, texts
}

// rewindText names the streams of rewinds; count is their total number.
func rewindText(all []model.Rewind, count int) string {
	if len(all) == 0 {
		return ""
	}
	newest := all[0].At
	// The bucket of the workers comes last: they announce its contents again.
	isWorkers := func(r model.Rewind) bool { return strings.HasSuffix(r.Stream, "_WORKERS") }
	all = append(slices.DeleteFunc(slices.Clone(all), isWorkers), slices.DeleteFunc(all, func(r model.Rewind) bool { return !isWorkers(r) })...)
	named := all[:min(len(all), maxRewinds)]
	texts := make([]string, len(named))
	for i, r := range named {
		texts[i] = fmt.Sprintf("stream %s was known up to %d, and %s", r.Stream, r.Known, r.Found)
		if newest.Sub(r.At).Abs() > together {
			texts[i] += " (at " + r.At.Format(time.RFC3339) + ")"
		}
	}
	if more := max(count, len(all)) - len(named); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return "at " + newest.Format(time.RFC3339) + ": " + strings.Join(texts, "; ")
}

// Denied returns the permissions violation of the member within the last ten minutes, "" if there is none.
func (m *Member) Denied() string {
	switch {
	case m.Figures != nil:
		return m.Figures.Denied
	case m.Noticed != nil:
		return m.Noticed.Denied
	}
	return ""
}

// PassedOver returns what the member has passed over because it cannot be read, by stream.
func (m *Member) PassedOver() []model.PassedOver {
	switch {
	case m.Figures != nil:
		return m.Figures.PassedOver
	case m.Noticed != nil:
		return m.Noticed.PassedOver
	}
	return nil
}

// PassedOver returns what the processes have passed over, by stream: of each, what the process reports that has passed over most.
func (f *Fleet) PassedOver() (all []model.PassedOver) {
	most := map[string]model.PassedOver{}
	for _, m := range slices.Concat(f.Workers, f.Coordinators) {
		for _, p := range m.PassedOver() {
			if p.Count > most[p.Stream].Count {
				most[p.Stream] = p
			}
		}
	}
	for _, stream := range slices.Sorted(maps.Keys(most)) {
		all = append(all, most[stream])
	}
	return all
}

// Kind returns the role of the process: worker or coordinator.
func (m *Member) Kind() string {
	if m.Coordinates() || m.Noticed != nil {
		return model.RoleCoordinator
	}
	return "worker"
}
