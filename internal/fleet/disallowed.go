package fleet

import (
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/status"
)

// DisallowedFor is for how long an event that no rule allows, and whose space does not exist, needs attention.
const DisallowedFor = time.Hour

// Disallowed returns the events that no rule allows and whose space does not exist, as the workers report them: those that were found after a
// time, the newest first, one entry for each principal, space and stream.
func (f *Fleet) Disallowed(after time.Time) []status.Disallowed {
	return f.lastOf(after, func(g *status.Figures) []status.Disallowed { return g.Disallowed })
}

// Denials is Disallowed for the events whose space exists: they have ended as refused.
func (f *Fleet) Denials(after time.Time) []status.Disallowed {
	return f.lastOf(after, func(g *status.Figures) []status.Disallowed { return g.Denials })
}

// DenialText says in a clause what has become of them, and why.
func DenialText(d *status.Disallowed) string {
	switch {
	case d.Event == "" && d.Count == 1:
		return "1 event was refused over HTTP, and not stored: " + d.Reason
	case d.Event == "":
		return display.Grouped(d.Count) + " events were refused over HTTP, and not stored: " + d.Reason
	case d.Count == 1:
		return fmt.Sprintf("1 event was refused, %s: %s", d.Event, d.Reason)
	}
	return fmt.Sprintf("%s events were refused, the last of them %s: %s", display.Grouped(d.Count), d.Event, d.Reason)
}

func (f *Fleet) lastOf(after time.Time, of func(*status.Figures) []status.Disallowed) (list []status.Disallowed) {
	for i := range f.Workers {
		if g := f.Workers[i].Figures; g != nil {
			list = append(list, of(g)...)
		}
	}
	slices.SortStableFunc(list, func(a, b status.Disallowed) int { return b.At.Compare(a.At) })
	type about struct{ principal, space, stream string }
	seen := map[about]bool{}
	return slices.DeleteFunc(list, func(d status.Disallowed) bool {
		of := about{d.Principal, d.Space, d.Stream}
		known := seen[of] // by another worker, which has the partition no more
		seen[of] = true
		return known || !d.At.After(after)
	})
}

// DisallowedText says in a clause what has become of them, and why.
func DisallowedText(d *status.Disallowed) string {
	events := "events were"
	if d.Count == 1 {
		events = "event was"
	}
	return fmt.Sprintf("%s %s passed over, the last of them %s: the space does not exist, and %s", display.Grouped(d.Count), events, d.Event, d.Reason)
}
