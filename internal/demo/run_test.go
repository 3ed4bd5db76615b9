package demo

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/examples/flights"
)

// blank is a screen that shows nothing and records the notes.
type blank struct {
	notes []Note
	// noted, if set, is called for each note.
	noted func()
}

func (*blank) Start(Plan, func() Snapshot) {}
func (*blank) Stop()                       {}

func (b *blank) Note(n Note) {
	b.notes = append(b.notes, n)
	if b.noted != nil {
		b.noted()
	}
}

// some returns the first n flights of the input.
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
		Store: t.TempDir(), Fsync: embedded.FsyncInterval, Rejoin: time.Millisecond,
	}
}

func TestARunWithDuplicatesAndAKilledWorkerIsVerified(t *testing.T) {
	for _, program := range []string{Go, Star} {
		t.Run(program, func(t *testing.T) { verifiedRun(t, program) })
	}
}

func verifiedRun(t *testing.T, program string) {
	o := small(t)
	o.Program = program
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

func TestAStoreThatWasUsedBeforeGoesOnWhereItWas(t *testing.T) {
	o := small(t)
	o.Flights = o.Flights[:100]
	for i, program := range []string{Go, Star} { // the second run finds what the first one has left
		o.Program = program
		res, err := Run(t.Context(), o, &blank{})
		if err != nil {
			t.Fatal(err)
		}
		if r := res.Report; !r.Verified || r.EventsSent != 100 || r.Receipts != 200 {
			t.Errorf("run %d: verified %v, %d sent, %d receipts; want true, 100, 200: %v", i+1, r.Verified, r.EventsSent, r.Receipts, res.Verdict.Differences)
		}
	}
	o.Flights = o.Flights[:50]
	res, err := Run(t.Context(), o, &blank{})
	if err != nil {
		t.Fatal(err)
	}
	if r := res.Report; !r.Verified || r.Receipts != 100 {
		t.Errorf("another input in the same store: verified %v, %d receipts; want true, 100: %v", r.Verified, r.Receipts, res.Verdict.Differences)
	}
}

func TestOnAnOutsideServerARunHasItsOwnStreamsAndTakesThemAway(t *testing.T) {
	server := natstest.StartServer(t, embedded.Config{Listen: ":0"})
	other, err := bus.Connect(t.Context(), bus.Config{Server: server, Name: "client/test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	streams := func() (names []string) {
		list := other.JetStream().StreamNames(t.Context())
		for name := range list.Name() {
			names = append(names, name)
		}
		if err := list.Err(); err != nil {
			t.Fatal(err)
		}
		return names
	}
	o := small(t)
	o.Flights, o.Store, o.NATS = o.Flights[:100], "", server.ClientURL()
	for _, keep := range []bool{false, true} {
		o.Keep = keep
		res, err := Run(t.Context(), o, &blank{})
		if err != nil {
			t.Fatal(err)
		}
		if !res.Report.Verified {
			t.Errorf("not verified: %v", res.Verdict.Differences)
		}
		left := streams()
		if !keep && len(left) != 0 {
			t.Errorf("streams were left behind: %v", left)
		}
		if keep && len(left) != 3+3*o.Partitions {
			t.Errorf("of 3 streams per partition, the dead letters and the buckets of workers and programs, %v were kept", left)
		}
		for _, name := range left {
			if !strings.HasPrefix(strings.TrimPrefix(name, "KV_"), "DEMO-") {
				t.Errorf("stream %s does not say that it is a demo's", name)
			}
		}
	}
}

func TestAnInterruptedRunLeavesNoDirectoryBehind(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, interrupt := context.WithCancel(t.Context())
	o := small(t)
	o.Store, o.Kill = "", 1
	if _, err := Run(ctx, o, &blank{noted: interrupt}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	left, err := os.ReadDir(tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("%s was left behind", entry.Name())
	}
}

func TestARunThatMakesNoProgressSaysWhatIsMissing(t *testing.T) {
	r := &run{o: Options{Patience: time.Nanosecond}, logs: newLogs(some(t, 3), time.Time{})}
	r.watches = newWatches(nil, flights.Tally{}, r.logs.changed)
	stalled, err := r.wait(t.Context(), nil, nil)
	if want := "nothing entered the logs for 1ns; still missing: 6 departures and arrivals"; err != nil || stalled != want {
		t.Errorf("got %q, %v; want %q", stalled, err, want)
	}
	if _, err := r.wait(t.Context(), make(chan error), nil); err == nil || !strings.Contains(err.Error(), "the server answers no sends") {
		t.Errorf("while sends have no answer: got %v", err)
	}
}
