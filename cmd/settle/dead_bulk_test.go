package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/model"
)

// flood stores dead letters of the spaces s0 and s1; the first half of them are a day old.
func flood(t *testing.T, b *bus.Bus, n int) {
	t.Helper()
	for i := range n {
		d := &model.DeadLetter{
			Version: model.DeadVersion, Space: fmt.Sprint("s", i%2), Stream: "ship", Event: fmt.Sprint("e", i),
			Outcome: model.Failed, Error: fmt.Sprint("no room in shelf ", i%3), Ended: time.Now(),
		}
		if i < n/2 {
			d.Ended = d.Ended.Add(-24 * time.Hour)
		}
		if err := b.StoreDead(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
}

// Some of many letters are selected, counted, redriven and dismissed; repeating the commands has no
// effect.
func TestDead_ManyAreChosenCountedAndDealtWith(t *testing.T) {
	t.Parallel()
	d := running(t)
	flood(t, d.Bus(), 600)
	want(t, 0, "600 dead letters: 600 open, 0 sent again, 0 dismissed", "dead", "--count")
	want(t, 0, `{"letters":300,"open":300,"redriven":0,"dismissed":0}`, "dead", "s1", "--count", "--json")
	want(t, 0, "100 open", "dead", "s1", "--count", "--error", "Shelf 2")
	out := want(t, 0, "these are the oldest; 600 in all, 600 open: --limit 0 lists all", "dead", "--limit", "7")
	if n := strings.Count(out, "no room in shelf"); n != 7 {
		t.Errorf("%d are listed", n)
	}
	if out := want(t, 0, "", "dead", "--json", "--limit", "0", "--newer", "1h"); strings.Count(out, "\n") != 300 {
		t.Errorf("%d of the last hour are listed", strings.Count(out, "\n"))
	}
	want(t, 0, "no such dead letters (600 in all: settle dead)", "dead", "--stream", "other")
	wantSoon(t, 1, `"check": "dead letters" | 600 events, ever; 600 open, the oldest for 24h | settle redrive --all`, "doctor", "--json")

	want(t, 2, "150 events of space s0 would be dismissed | --confirm 150", "dismiss", "s0", "--all", "--older", "2h")
	want(t, 0, "150 of 150 dismissed, in ", "dismiss", "s0", "--all", "--older", "2h", "--confirm", "150", "--reason", "too old")
	want(t, 2, "100 events of space s1 would be sent again", "redrive", "s1", "--all", "--error", "shelf 0")
	out = want(t, 0, "e3: sent again to s1/ship as e3:r1", "redrive", "s1", "--all", "--error", "shelf 0", "--confirm", "100", "--rate", "1000")
	if n := strings.Count(out, "sent again to s1/ship"); n != 100 {
		t.Errorf("%d were sent again", n)
	}
	want(t, 0, "nothing to send again of space s1", "redrive", "s1", "--all", "--error", "shelf 0")
	want(t, 0, "600 dead letters: 350 open, 100 sent again, 150 dismissed", "dead", "--count")
	want(t, 0, "350 of 350 sent again, in ", "redrive", "--all", "--confirm", "350")
	want(t, 0, "0 open, 450 sent again, 150 dismissed", "dead", "--count")
	for i := range 2 {
		events, err := d.Bus().ReadLane(t.Context(), fmt.Sprint("s", i), 0, 1000)
		if err != nil || len(events) != 150+150*i {
			t.Errorf("%d events were sent to s%d, %v", len(events), i, err)
		}
	}
	want(t, 2, "go with --all", "redrive", "s1", "e1", "--rate", "5")
	want(t, 2, "use a positive number", "redrive", "--all", "--rate=-1")
}
