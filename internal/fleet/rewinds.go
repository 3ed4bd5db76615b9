package fleet

import (
	"context"
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

// rewinds reads what processes have noted of streams that have gone back. If the notes cannot be read, there
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
		if n.IsNews(f.At) {
			f.Rewinds = append(f.Rewinds, n)
		}
	}
}

// Noted are all rewinds that are noted, also those that are old or acknowledged.
func (f *Fleet) Noted() []model.RewindNote { return f.noted }

// WentBack says for people which streams the member has noticed to have gone back, and when; "" if none has.
// It leaves out what is noted: RewindText says that.
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

// RewindText says for people which streams processes have noted to have gone back, one text for each
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

// rewindText names streams that have gone back, of so many in all.
func rewindText(all []model.Rewind, count int) string {
	if len(all) == 0 {
		return ""
	}
	newest := all[0].At
	// Of the bucket of the workers, nothing is lost that they do not say again.
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

// Denied is what the member was denied by the server within the last ten minutes, "" if nothing.
func (m *Member) Denied() string {
	switch {
	case m.Figures != nil:
		return m.Figures.Denied
	case m.Noticed != nil:
		return m.Noticed.Denied
	}
	return ""
}

// Kind is what kind of process the member is: a worker, or a coordinator.
func (m *Member) Kind() string {
	if m.Coordinates() || m.Noticed != nil {
		return model.RoleCoordinator
	}
	return "worker"
}
