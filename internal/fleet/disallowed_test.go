package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle/status"
)

func TestDisallowed_OfSeveralWorkersTheNewestFirst(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 11, 27, 12, minute, 0, 0, time.UTC) }
	of := func(minute int, principal, space string, n uint64) status.Disallowed {
		return status.Disallowed{Principal: principal, Space: space, Stream: "add", Count: n, Event: "e", At: at(minute), Reason: "no rule"}
	}
	f := &Fleet{Workers: []Member{
		{ID: "w1", Figures: &status.Figures{Disallowed: []status.Disallowed{of(9, "bob", "s", 3), of(2, "eve", "s", 1)}}},
		{ID: "w2"},
		{ID: "w3", Figures: &status.Figures{Disallowed: []status.Disallowed{of(12, "bob", "s", 1), of(10, "bob", "t", 1200), of(8, "", "s", 1)}}},
	}}
	got := ""
	for _, d := range f.Disallowed(at(2)) {
		got += fmt.Sprintf("%q %s %d\n", d.Principal, d.Space, d.Count)
	}
	if want := "\"bob\" s 1\n\"bob\" t 1200\n\"\" s 1\n"; got != want {
		t.Errorf("%s, not\n%s", got, want)
	}
	many, one := of(1, "bob", "s", 1200), of(1, "bob", "s", 1)
	if got, want := DisallowedText(&many), "1,200 events were passed over, the last of them e: the space does not exist, and no rule"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	if got, want := DisallowedText(&one), "1 event was passed over, the last of them e: the space does not exist, and no rule"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	f.Workers[2].Figures.Denials = []status.Disallowed{of(9, "bob", "s", 1), of(8, "bob", "s", 2), of(2, "bob", "t", 1)}
	got = ""
	for _, d := range f.Denials(at(2)) {
		got += d.Space + ": " + DenialText(&d) + "; "
	}
	got += DenialText(&many)
	if many.Event = ""; DenialText(&many) != "1,200 events were refused over HTTP, and not stored: no rule" {
		t.Error(DenialText(&many))
	}
	if want := "s: 1 event was refused, e: no rule; 1,200 events were refused, the last of them e: no rule"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}
