package test

import (
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/telemetry/measure"
	"github.com/settlehq/settle/internal/telemetry/meters"
	"github.com/settlehq/settle/internal/telemetry/recent"
	"github.com/settlehq/settle/model"
)

// measured is a program that does everything that has a metric of its own.
func measured() *settle.Program {
	p := relay()
	charge := settle.NewAction[int, int]("charge")
	p.Handle("pay", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		charge.Start(tx, "1", 1)
		return settle.Value{}, nil
	})
	charge.Perform(p, func(_ context.Context, _ string, n int) (int, error) { return n, nil })
	charge.Done(p, func(tx *settle.Tx, _ settle.Task[int, int]) error {
		tx.Set("paid", 1)
		return nil
	})
	p.Handle("set", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		tx.SendAfter(tx.Space(), "ring", time.Millisecond, nil)
		return settle.Value{}, nil
	})
	p.Handle("ring", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		tx.Set("rung", 1)
		return settle.Value{}, nil
	})
	return p
}

// A worker with its gateway, a coordinator and a client export the metrics of the tables and no others, with their values of attributes, and
// their counts are those of what has happened. The alerts and the dashboard ask for what is exported. Exemplars name traces.
func TestMetrics_OfAFleet(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	m, err := measure.Setup(ctx, "settle-test", "p1", "an address")
	if err != nil {
		t.Fatal(err)
	}
	traces := recent.New(recent.Limits{})
	d := deploy(t, settle.Config{Programs: settle.Always(measured()), Workers: -1})
	connect := func(name string) *bus.Bus {
		b, err := bus.Connect(ctx, bus.Config{Server: d.Server(), Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	at := addressOf(t)
	w, err := settle.StartWorker(ctx, connect("worker/w1"), settle.WorkerConfig{
		ID: "w1", Programs: settle.Always(measured()), Meter: m.Meter, Tracer: traces.Tracer("test"), HTTP: gateway.Config{Addr: at},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := coordinator.New(connect("coordinator/c2"), coordinator.Config{Meter: m.Meter})
	c.Start()
	client, err := settle.NewClient(connect("client/c1"), settle.ClientConfig{ID: "c1", Meter: m.Meter})
	if err != nil {
		t.Fatal(err)
	}
	call := func(e settle.Outgoing) *model.Receipt {
		t.Helper()
		rc, err := client.Call(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		return rc
	}
	for n := range 3 {
		call(flight(n+1, "here", "there"))
	}
	if rc := call(settle.Outgoing{Space: "here", Stream: "nosuch", ID: settle.ID("r1")}); rc.Outcome != model.Refused {
		t.Fatalf("the receipt is %+v", rc)
	}
	eventually(t, client, "there", "arrived", 3)
	var got map[string]float64
	wants := func(want map[string]float64) {
		t.Helper()
		for name, want := range want {
			if got[name] != want {
				t.Errorf("%s is %v, not %v", name, got[name], want)
			}
		}
	}
	until(t, func() bool { // the other coordinator may be first, and then this one finds them there
		got = scraped(t, m.Scrape)
		return got[`settle_coordinator_releases_total{}`] == 3 && got[`settle_coordinator_dead_letters_total{}`] == 1 && got[`settle_coordinator_unreleased{}`] == 0
	})
	wants(map[string]float64{
		`settle_worker_events_total{settle_outcome="handled"}`:                6, // three departures, three arrivals
		`settle_worker_events_total{settle_outcome="refused"}`:                1,
		`settle_worker_events_total{settle_outcome="failed"}`:                 0,
		`settle_worker_event_duration_seconds_count{}`:                        7,
		`settle_worker_activations_total{}`:                                   2,
		`settle_worker_activation_duration_seconds_count{}`:                   2,
		`settle_worker_spaces{settle_state="loaded"}`:                         2,
		`settle_worker_partitions{settle_state="serving"}`:                    2,
		`settle_worker_takeover_duration_seconds_count{}`:                     2,
		`settle_worker_events_waiting{}`:                                      0,
		`settle_worker_events_waiting_age_seconds{}`:                          0,
		`settle_worker_events_parked{}`:                                       0,
		`settle_worker_tasks_started_total{}`:                                 0,
		`settle_client_call_duration_seconds_count{settle_outcome="handled"}`: 3,
		`settle_client_call_duration_seconds_count{settle_outcome="refused"}`: 1,
		`settle_client_send_duration_seconds_count{settle_result="stored"}`:   4,
	})
	if commits := got[`settle_worker_commits_total{}`]; commits < 4 || got[`settle_worker_commit_duration_seconds_count{}`] != commits || got[`settle_worker_commit_events_sum{}`] != 7 {
		t.Errorf("%v commits, of which %v were measured; they ended %v events", commits, got[`settle_worker_commit_duration_seconds_count{}`], got[`settle_worker_commit_events_sum{}`])
	}
	call(settle.Outgoing{Space: "here", Stream: "pay", ID: settle.ID("p1")})
	call(settle.Outgoing{Space: "here", Stream: "set", ID: settle.ID("s1")})
	eventually(t, client, "here", "paid", 1)
	eventually(t, client, "here", "rung", 1)
	if _, err := client.Space("here").GetCurrent(ctx, "total"); err != nil {
		t.Fatal(err)
	}
	if status := request(t, at, "/v1/spaces/here/documents/total", ""); status != http.StatusOK {
		t.Errorf("HTTP answers with status %d", status)
	}
	if status := request(t, at, "/v1/spaces/here/documents/total", "elsewhere.example.com"); status != http.StatusForbidden {
		t.Errorf("HTTP answers with status %d for another host", status)
	}
	got = scraped(t, m.Scrape)
	wants(map[string]float64{
		`settle_worker_tasks_started_total{}`:                                      1,
		`settle_worker_tasks_pending{}`:                                            0,
		`settle_worker_task_attempt_duration_seconds_count{settle_outcome="done"}`: 1,
		`settle_worker_timer_lateness_seconds_count{}`:                             1,
		`settle_worker_timers{}`:                                                   0,
		`settle_worker_read_duration_seconds_count{settle_result="current"}`:       2,
		`settle_gateway_refusals_total{settle_reason="host"}`:                      1,
		`settle_gateway_refusals_total{settle_reason="token"}`:                     0,
		`settle_worker_runs_total{settle_result="changed"}`:                        1, // of total, for the reads
		`settle_worker_runs_total{settle_result="failed"}`:                         0,
		`http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="200",http_route="/v1/spaces/{space}/documents/{document}"}`: 1,
	})
	if names, want := exported(got), documented(); !slices.Equal(names, want) {
		t.Errorf("exported:   %v\ndocumented: %v", names, want)
	}
	boundedValues(t, got)
	queried(t, got, "../deploy/prometheus/alerts.yaml")
	queried(t, got, "../deploy/grafana/settle.json")
	exemplars(t, m.Scrape, traces)
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

// request asks a gateway for a document, under another name of the host if one is given.
func request(t *testing.T, at, path, host string) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(testContext(t), http.MethodGet, "http://"+at+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = cmp.Or(host, r.Host)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, a.Body)
	_ = a.Body.Close()
	return a.StatusCode
}

// seriesForm is a line of Prometheus without its value.
var seriesForm = regexp.MustCompile(`^([a-z0-9_]+)\{(.*)\}$`)

// boundedValues checks that no attribute has another value than those of the tables.
func boundedValues(t *testing.T, got map[string]float64) {
	t.Helper()
	may := map[string][]string{}
	for _, i := range tables() {
		may[i.Prometheus()] = i.Values
	}
	value := regexp.MustCompile(`settle_\w+="([^"]*)"`)
	for series := range got {
		m := seriesForm.FindStringSubmatch(series)
		for _, v := range value.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(may[plain(m[1])], v[1]) {
				t.Errorf("%s has a value that is not in the table", series)
			}
		}
	}
}

// queried checks that each metric in a file of rules or queries is exported, with the labels that are asked for.
func queried(t *testing.T, got map[string]float64, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), `\"`, `"`)
	labels := map[string]map[string]bool{}
	for series := range got {
		m := seriesForm.FindStringSubmatch(series)
		if labels[m[1]] == nil {
			labels[m[1]] = map[string]bool{"instance": true} // added by Prometheus
		}
		for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[2], -1) {
			labels[m[1]][l[1]] = true
		}
	}
	metrics := regexp.MustCompile(`\b((?:settle_(?:worker|coordinator|gateway|client|workflow)|http_server|go)_[a-z0-9_]+)\b(?:\{([^}]*)\})?`).FindAllStringSubmatch(text, -1)
	if len(metrics) < 10 {
		t.Fatalf("%s asks for %d metrics; are they still found?", path, len(metrics))
	}
	for _, m := range metrics {
		if labels[m[1]] == nil {
			t.Errorf("%s asks for %s, which is not exported", path, m[1])
			continue
		}
		for _, l := range regexp.MustCompile(`(\w+)(?:=|!=|=~|!~)"`).FindAllStringSubmatch(m[2], -1) {
			if !labels[m[1]][l[1]] {
				t.Errorf("%s asks for %s by %s, which it does not have", path, m[1], l[1])
			}
		}
		for _, v := range regexp.MustCompile(`(\w+)="([^"]+)"`).FindAllStringSubmatch(m[2], -1) {
			if !hasValue(got, m[1], v[0]) {
				t.Errorf("%s asks for %s with %s, which it does not have", path, m[1], v[0])
			}
		}
	}
	for _, m := range regexp.MustCompile(`by \(([a-z_,]+)\) \(rate\(([a-z_]+)`).FindAllStringSubmatch(text, -1) {
		for l := range strings.SplitSeq(m[1], ",") {
			if !labels[m[2]][l] {
				t.Errorf("%s sums %s by %s, which it does not have", path, m[2], l)
			}
		}
	}
}

// hasValue reports whether a metric has a series with a label of a value.
func hasValue(got map[string]float64, name, label string) bool {
	for series := range got {
		if m := seriesForm.FindStringSubmatch(series); m[1] == name && strings.Contains(m[2], label) {
			return true
		}
	}
	return false
}

// exemplars checks that the histograms name traces that were recorded.
func exemplars(t *testing.T, h http.Handler, traces *recent.Store) {
	t.Helper()
	known := map[string]bool{}
	for _, s := range traces.List(1000) {
		known[s.ID.String()] = true
	}
	r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)_bucket\{.*# \{.*trace_id="([0-9a-f]{32})"`).FindAllStringSubmatch(w.Body.String(), -1) {
		found[m[1]] = true
		if !known[m[2]] {
			t.Errorf("%s has an exemplar of the trace %s, which was not recorded", m[1], m[2])
		}
	}
	for _, name := range []string{
		"settle_worker_event_duration_seconds", "settle_worker_commit_duration_seconds", "settle_worker_pass_duration_seconds", "settle_worker_task_attempt_duration_seconds",
		"settle_worker_read_duration_seconds", "settle_worker_timer_lateness_seconds", "http_server_request_duration_seconds",
	} {
		if !found[name] {
			t.Errorf("%s has no exemplar", name)
		}
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
		line = strings.TrimSpace(line)
		end := strings.LastIndex(line, " ") // values of labels may have spaces
		if end < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		name, value := line[:end], line[end+1:]
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

// plain returns the name of a metric without the suffixes of histograms.
func plain(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// exported returns the names of the metrics that are Settle's own.
func exported(values map[string]float64) []string {
	names := map[string]bool{}
	for series := range values {
		if strings.HasPrefix(series, "settle_") || strings.HasPrefix(series, "http_") {
			names[plain(seriesForm.FindStringSubmatch(series)[1])] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func tables() []meters.Instrument {
	return slices.Concat(meters.Worker, meters.Coordinator, meters.Client, meters.Gateway)
}

// documented returns the names of the tables, as Prometheus has them.
func documented() (names []string) {
	for _, i := range tables() {
		names = append(names, i.Prometheus())
	}
	slices.Sort(names)
	return names
}
