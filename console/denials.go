package console

import (
	"cmp"
	"time"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/status"
)

// maxDisallowed is how many principals, spaces and streams with events that no rule allows are named; the page of settings has all.
const maxDisallowed = 3

// denialsURL is the list of the events that no rule allows.
const denialsURL = "/settings#disallowed"

// denialConcerns lists the events that no rule allows: those whose space does not exist, which leave no other trace, and those that were refused.
func denialConcerns(f *fleet.Fleet) (list []concern) {
	since := f.At.Add(-fleet.DisallowedFor)
	passed, refused := f.Disallowed(since), f.Denials(since)
	add := func(key string, d *status.Disallowed, text string) {
		list = append(list, concern{
			Key: key + " " + d.Principal + " " + d.Space + " " + d.Stream, State: "failed", What: cmp.Or(d.Principal, "a client"), URL: denialsURL,
			Text: d.Stream + " to " + d.Space + ": " + text, Since: d.At, CLI: "settle who-may",
		})
	}
	for i := range passed[:min(len(passed), maxDisallowed)] {
		add("disallowed", &passed[i], fleet.DisallowedText(&passed[i]))
	}
	for i := range refused[:min(len(refused), maxDisallowed)] {
		add("denied", &refused[i], fleet.DenialText(&refused[i]))
	}
	if more := max(0, len(passed)-maxDisallowed) + max(0, len(refused)-maxDisallowed); more > 0 {
		list = append(list, concern{
			Key: "denied more", State: "failed", What: "access", URL: denialsURL, Text: "no rule allows events of " + display.Count(more, "more sender") + ", by principal, space and stream", CLI: "settle who-may",
		})
	}
	return list
}

// denial is a row of the list of events that no rule allows.
type denial struct {
	status.Disallowed
	// Refused reports that the space exists, so that the events have receipts and are dead letters.
	Refused bool
}

// denialsOf returns all that workers report, the newest first.
func denialsOf(f *fleet.Fleet) (list []denial) {
	passed, refused := f.Disallowed(time.Time{}), f.Denials(time.Time{})
	for len(passed)+len(refused) > 0 {
		if len(refused) == 0 || len(passed) > 0 && passed[0].At.After(refused[0].At) {
			list, passed = append(list, denial{passed[0], false}), passed[1:]
		} else {
			list, refused = append(list, denial{refused[0], true}), refused[1:]
		}
	}
	return list
}
