package bus

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
)

// noted waits until n rewinds are recorded, and returns them.
func noted(t *testing.T, b *Bus, n int) []model.RewindNote {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for begun := time.Now(); ; <-again.C {
		notes, err := b.RewindNotes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(notes) == n {
			return notes
		}
		if len(notes) > n || time.Since(begun) > 20*time.Second {
			t.Fatalf("%d are noted, and should be %d: %+v", len(notes), n, notes)
		}
	}
}

// The process that first detects a rewind records it, and the record outlives the process. A later detection,
// or one by another process, is a separate one.
func TestRewinds_TheFirstProcessNotesThem(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{Name: "coordinator/c1"})
	if notes := noted(t, b, 0); notes != nil {
		t.Errorf("%+v", notes)
	}
	was := wire.Anchor{Seq: 90}
	b.streams.Past.Note("SETTLE_LANE_0", was)
	b.streams.WentBack("SETTLE_LANE_0", was, "it ends at 80")
	n := noted(t, b, 1)[0]
	if n.Stream != "SETTLE_LANE_0" || n.Known != 90 || n.Found != "it ends at 80" || n.By != "coordinator/c1" || time.Since(n.At).Abs() > time.Minute || n.Acknowledged {
		t.Errorf("it is noted that %+v", n)
	}
	tell := func(by, stream string, at time.Time) {
		t.Helper()
		err := b.tryNoteRewind(t.Context(), model.RewindNote{Rewind: model.Rewind{At: at, Stream: stream, Known: 91, Found: "it ends at 81"}, By: by})
		if err != nil {
			t.Fatal(err)
		}
	}
	tell("worker/w1", "SETTLE_LANE_0", n.At.Add(time.Minute))
	noted(t, b, 1)
	tell("worker/w1", "SETTLE_LOG_0", n.At.Add(time.Minute))
	noted(t, b, 2)
	tell("coordinator/c1", "SETTLE_LANE_0", n.At.Add(2*time.Minute))
	noted(t, b, 3)
	tell("worker/w1", "SETTLE_LANE_0", n.At.Add(time.Hour))
	var got []string
	for _, n := range noted(t, b, 4) {
		got = append(got, n.By+" "+n.Stream)
	}
	if text := strings.Join(got, ", "); text != "coordinator/c1 SETTLE_LANE_0, worker/w1 SETTLE_LOG_0, coordinator/c1 SETTLE_LANE_0, worker/w1 SETTLE_LANE_0" {
		t.Error(text)
	}
	for i := range 9 {
		tell("worker/w1", "SETTLE_LOG_0", n.At.Add(time.Duration(2+i)*time.Hour))
	}
	noted(t, b, 3+keptRewinds)
}

// An acknowledged rewind is no longer reported; a later one is.
func TestRewinds_AreAcknowledged(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	now := time.Now().UTC()
	tell := func(stream string, at time.Time) {
		t.Helper()
		if err := b.tryNoteRewind(t.Context(), model.RewindNote{Rewind: model.Rewind{At: at, Stream: stream}, By: "worker/w1"}); err != nil {
			t.Fatal(err)
		}
	}
	acknowledge := func(want int) {
		t.Helper()
		if n, err := b.AcknowledgeRewinds(t.Context()); err != nil || n != want {
			t.Errorf("%d are acknowledged, %v; want %d", n, err, want)
		}
	}
	news := func() (of []string) {
		t.Helper()
		notes, err := b.RewindNotes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range notes {
			if notes[i].ShouldReport(now) {
				of = append(of, fmt.Sprint(notes[i].Stream, " ", now.Sub(notes[i].At)))
			}
		}
		return of
	}
	acknowledge(0)
	tell("A", now.Add(-8*24*time.Hour))
	tell("A", now.Add(-time.Hour))
	tell("B", now.Add(-time.Minute))
	if got := fmt.Sprint(news()); got != "[A 1h0m0s B 1m0s]" {
		t.Errorf("the news are %s", got)
	}
	acknowledge(3)
	if got := news(); got != nil {
		t.Errorf("the news are %v", got)
	}
	tell("B", now)
	if got := fmt.Sprint(news()); got != "[B 0s]" {
		t.Errorf("the news are %s", got)
	}
	acknowledge(1)
	acknowledge(0)
}

// A process whose user may not record a rewind does not try to, and reports that.
func TestRewinds_AUserWithoutPermissionToRecordThemIsNotDenied(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "server.conf")
	err := os.WriteFile(conf, []byte(`accounts { APP { jetstream: enabled, users: [
		{user: all, password: p}
		{user: reader, password: p, permissions: {publish: {deny: ["$KV.SETTLE_PROGRAMS.>"]}}}
	] } }`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s := natstest.StartServer(t, embedded.Config{ConfigFile: conf})
	joined(t, Config{Server: s, User: "all", Password: "p", Partitions: 1})
	var log strings.Builder
	b, err := Connect(t.Context(), Config{Server: s, User: "reader", Password: "p", Name: "client/shop", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	b.noteRewind(model.Rewind{At: time.Now(), Stream: "SETTLE_LANE_0", Known: 9})
	noted(t, b, 0)
	at, why := b.LastDenial()
	b.Close()
	if !at.IsZero() {
		t.Errorf("it was denied: %s", why)
	}
	if text := log.String(); !strings.Contains(text, "could not be recorded in the deployment") || !strings.Contains(text, "needs the role client") {
		t.Errorf("it says %s", text)
	}
}
