package test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/telemetry/measure"
	"github.com/settlehq/settle/internal/telemetry/meters"
	"github.com/settlehq/settle/model"
)

// A worker and a coordinator export the metrics of the table and no others, with its values of attributes, and their
// counts are those of what has happened.
func TestMetrics_OfAWorkerAndACoordinator(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	m, err := measure.Setup(ctx, "settle-test", "p1", "an address")
	if err != nil {
		t.Fatal(err)
	}
	d := deploy(t, settle.Config{Programs: settle.Always(relay()), Workers: -1})
	connect := func(name string) *bus.Bus {
		b, err := bus.Connect(ctx, bus.Config{Server: d.Server(), Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	w, err := settle.StartWorker(ctx, connect("worker/w1"), settle.WorkerConfig{ID: "w1", Programs: settle.Always(relay()), Meter: m.Meter})
	if err != nil {
		t.Fatal(err)
	}
	c := coordinator.New(connect("coordinator/c2"), coordinator.Config{Meter: m.Meter})
	c.Start()
	for n := range 3 {
		if _, err := d.Client().Call(ctx, flight(n+1, "here", "there")); err != nil {
			t.Fatal(err)
		}
	}
	if rc, err := d.Client().Call(ctx, settle.Outgoing{Space: "here", Stream: "nosuch", ID: settle.ID("r1")}); err == nil && rc.Outcome != model.Refused {
		t.Fatalf("the receipt is %+v", rc)
	}
	eventually(t, d.Client(), "there", "arrived", 3)
	var got map[string]float64
	until(t, func() bool { // the other coordinator may be first, and then this one finds them there
		got = scraped(t, m.Scrape)
		return got[`settle_coordinator_releases_total{}`] == 3 && got[`settle_coordinator_dead_letters_total{}`] == 1 && got[`settle_coordinator_unreleased{}`] == 0
	})
	for name, want := range map[string]float64{
		`settle_worker_events_total{settle_outcome="handled"}`: 6, // three departures, three arrivals
		`settle_worker_events_total{settle_outcome="refused"}`: 1,
		`settle_worker_events_total{settle_outcome="failed"}`:  0,
		`settle_worker_event_duration_seconds_count{}`:         7,
		`settle_worker_activations_total{}`:                    2,
		`settle_worker_activation_duration_seconds_count{}`:    2,
		`settle_worker_spaces{settle_state="loaded"}`:          2,
		`settle_worker_partitions{settle_state="serving"}`:     2,
		`settle_worker_takeover_duration_seconds_count{}`:      2,
		`settle_worker_events_waiting{}`:                       0,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, not %v", name, got[name], want)
		}
	}
	if commits := got[`settle_worker_commits_total{}`]; commits < 4 || got[`settle_worker_commit_duration_seconds_count{}`] != commits || got[`settle_worker_commit_events_sum{}`] != 7 {
		t.Errorf("%v commits, of which %v were measured; they ended %v events", commits, got[`settle_worker_commit_duration_seconds_count{}`], got[`settle_worker_commit_events_sum{}`])
	}
	if runs := got[`settle_worker_runs_total{}`]; runs == 0 && len(w.Runs()) > 0 {
		t.Errorf("no runs are counted: %v", w.Runs())
	}
	if names, want := exported(got), documented(); !slices.Equal(names, want) {
		t.Errorf("exported:   %v\ndocumented: %v", names, want)
	}
	c.Stop()
	if err := w.Stop(ctx); err != nil {
		t.Error(err)
	}
	if left := exported(scraped(t, m.Scrape)); slices.ContainsFunc(left, func(name string) bool { return strings.HasSuffix(name, "_spaces") }) {
		t.Errorf("after the end there are %v", left)
	}
	if err := m.Flush(ctx); err != nil {
		t.Error(err)
	}
}

// scraped returns what Prometheus is given, by name and attributes.
func scraped(t *testing.T, h http.Handler) map[string]float64 {
	t.Helper()
	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	text, err := io.ReadAll(r.Result().Body)
	if err != nil || r.Code != http.StatusOK {
		t.Fatalf("status %d: %v: %s", r.Code, err, text)
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(line, "#") || !strings.HasPrefix(line, "settle_") {
			continue
		}
		if !strings.Contains(name, "{") {
			name += "{}"
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(err)
		}
		values[name] = v
	}
	return values
}

// exported returns the names of metrics, without the suffixes of histograms.
func exported(values map[string]float64) []string {
	names := map[string]bool{}
	for name := range values {
		name, _, _ = strings.Cut(name, "{")
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, suffix)
		}
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// documented returns the names of the table, as Prometheus has them.
func documented() (names []string) {
	for _, i := range slices.Concat(meters.Worker, meters.Coordinator) {
		names = append(names, i.Prometheus())
	}
	slices.Sort(names)
	return names
}
