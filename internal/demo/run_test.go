package demo

import (
	"slices"
	"testing"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/examples/flights"
)

// blank is a screen that shows nothing and keeps the notes.
type blank struct{ notes []Note }

func (*blank) Start(Plan, func() Snapshot) {}
func (b *blank) Note(n Note)               { b.notes = append(b.notes, n) }
func (*blank) Stop()                       {}

// some are the first n flights of the input.
func some(t *testing.T, n int) []flights.Flight {
	t.Helper()
	all, err := flights.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	return all[:n]
}

func small(t *testing.T) Options {
	return Options{
		Flights: some(t, 500), Workers: 2, Partitions: 2, Duplicate: 1,
		Store: t.TempDir(), Fsync: bus.FsyncInterval, Rejoin: time.Millisecond,
	}
}

func TestARunWithDuplicatesAndAKilledWorkerIsVerified(t *testing.T) {
	o := small(t)
	o.Duplicate, o.Kill = 3, 1
	screen := &blank{}
	res, err := Run(t.Context(), o, screen)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range res.Verdict.Differences {
		t.Error(d)
	}
	if res.Stalled != "" {
		t.Error(res.Stalled)
	}
	r := res.Report
	if !r.Verified || r.Lost != 0 || r.Duplicates != 0 || r.OutOfOrder != 0 || r.UnobservedRuns != 0 {
		t.Errorf("not verified: %+v", r)
	}
	if r.EventsSent != 1500 || r.DeparturesHandled != 500 || r.ArrivalsHandled != 500 || r.Receipts != 1000 {
		t.Errorf("sent %d, departures %d, arrivals %d, receipts %d; want 1500, 500, 500, 1000", r.EventsSent, r.DeparturesHandled, r.ArrivalsHandled, r.Receipts)
	}
	if r.Commits == 0 || r.Seconds <= 0 || r.EventsPerSecond <= 0 || len(r.Airports) != len(flights.Plain(o.Flights)) {
		t.Errorf("commits %d, seconds %v, events per second %v, airports %d", r.Commits, r.Seconds, r.EventsPerSecond, len(r.Airports))
	}
	kinds := []NoteKind{}
	for _, n := range screen.notes {
		kinds = append(kinds, n.Kind)
	}
	if !slices.Equal(kinds, []NoteKind{Killed, Joined}) {
		t.Errorf("notes are %+v, want one killed and one joined", screen.notes)
	}
}
