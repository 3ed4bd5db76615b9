package attack_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/internal/telemetry/measure"
)

// written collects log lines.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// canary is in every payload, document, result, token and password of the test.
const canary = "CANARY7Q"

var note = settle.NewStream[noted]("note")

// noted is a payload with a type.
type noted struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
}

// secretive is a program that does with its payloads all that can be done, and whose handlers fail in every way. None of its own errors
// has a payload.
func secretive() *settle.Program {
	p := settle.NewProgram("secretive")
	calls := settle.NewAction[string, string]("calls")
	calls.Perform(p, func(context.Context, string, string) (string, error) { return canary, nil })
	calls.Done(p, func(tx *settle.Tx, t settle.Task[string, string]) error {
		tx.Set("called", t.Out)
		return t.Err
	})
	note.Handle(p, func(tx *settle.Tx, in noted) error {
		tx.Set("note", in.Text)
		calls.Start(tx, tx.Event().ID, in.Text)
		tx.Send("other", "keep", in.Text)
		return nil
	})
	return p.
		Handle("keep", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			tx.Set("kept", ev.Payload)
			return ev.Payload, nil
		}).
		Handle("fail", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, errors.New("it fails") }).
		Handle("panic", func(*settle.Tx, *settle.Event) (settle.Value, error) { panic("it panics") }).
		Compute("derived", func(v *settle.View) (settle.Value, error) { return v.Get("note"), nil }).
		Compute("broken", func(v *settle.View) (settle.Value, error) {
			v.Get("note")
			return settle.Value{}, errors.New("it cannot be computed")
		})
}

// No log line, span, metric or error has a payload, a value of a document, a token or a password.
func TestAttack_SecretsAreInNoLogTraceOrMetric(t *testing.T) {
	t.Parallel()
	d := start(t)
	logs := &written{}
	logger := slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	tracer := provider.Tracer(telemetry.Scope)
	m, err := measure.Setup(t.Context(), "settle-test", "p1", "an address")
	d.must(err)
	ports, err := natstest.FreePorts(1)
	d.must(err)
	file := filepath.Join(t.TempDir(), "principals.json")
	d.must(os.WriteFile(file, fmt.Appendf(nil, `{"principals": [{"name": "shop", "tokens_sha256": [%q], "send": ["*/*"], "read": ["*/*"]}]}`, hash(canary)), 0o600))
	addr := fmt.Sprintf("127.0.0.1:%d", ports[0])

	server := natstest.StartServer(t, embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0"}) // without users
	connect := func() *bus.Bus {
		b, err := bus.Connect(t.Context(), bus.Config{URL: server.ClientURL(), Prefix: "secret", Partitions: 1, Logger: logger})
		d.must(err)
		t.Cleanup(b.Kill)
		return b
	}
	d.must(connect().Provision(t.Context()))
	w, err := settle.StartWorker(t.Context(), connect(), settle.WorkerConfig{
		ID: "w1", Programs: settle.Always(secretive()), HTTP: gateway.Config{Addr: addr, Principals: file}, Logger: logger, Tracer: tracer, Meter: m.Meter,
	})
	d.must(err)
	t.Cleanup(w.Kill)
	c := coordinator.New(connect(), coordinator.Config{Save: 50 * time.Millisecond, Logger: logger, Tracer: tracer, Meter: m.Meter})
	c.Start()
	t.Cleanup(c.Stop)

	web := &http.Client{}
	t.Cleanup(web.CloseIdleConnections)
	do := func(method, path, token, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body))
		d.must(err)
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := web.Do(req)
		d.must(err)
		defer func() { _ = resp.Body.Close() }()
		var b bytes.Buffer
		_, err = b.ReadFrom(resp.Body)
		d.must(err)
		return b.String()
	}
	wait := "?wait=receipt&timeout=1m"
	answers := map[string]string{
		"a payload that is no JSON":            do(http.MethodPost, "/v1/spaces/s/streams/keep", canary, `{"`+canary),
		"a payload of another type":            do(http.MethodPost, "/v1/spaces/s/streams/note", canary, `{"number":"`+canary+`"}`),
		"a payload that is too large":          do(http.MethodPost, "/v1/spaces/s/streams/keep", canary, `"`+strings.Repeat(canary, 1<<18)+`"`),
		"a stream that there is not":           do(http.MethodPost, "/v1/spaces/s/streams/none", canary, `"`+canary+`"`),
		"an event that fails":                  do(http.MethodPost, "/v1/spaces/s/streams/fail"+wait, canary, `"`+canary+`"`),
		"an event with which a handler panics": do(http.MethodPost, "/v1/spaces/s/streams/panic"+wait, canary, `"`+canary+`"`),
		"another token":                        do(http.MethodGet, "/v1/spaces/s/documents/note", canary+"x", ""),
	}
	if got := do(http.MethodPost, "/v1/spaces/s/streams/note"+wait, canary, `{"number":1,"text":"`+canary+`"}`); !strings.Contains(got, `"handled"`) {
		t.Fatalf("a note: %s", got)
	}
	for _, doc := range []string{"s/documents/note", "s/documents/derived", "other/documents/kept", "s/documents/called"} {
		until(t, doc, func() bool { return strings.Contains(do(http.MethodGet, "/v1/spaces/"+doc, canary, ""), canary) })
	}
	answers["a document that cannot be computed"] = do(http.MethodGet, "/v1/spaces/s/documents/broken?timeout=2s", canary, "")
	// What a client stores directly is not checked before.
	raw := connect().Conn()
	for i, body := range []string{`{"` + canary, `{"number":"` + canary + `"}`, `"` + canary + `"`} {
		_, err := raw.Request(fmt.Sprintf("secret.send.0.s.note.raw%d", i), []byte(body), patience)
		d.must(err)
	}
	_, err = raw.Request("secret.log.0.s", []byte(`{"v":99,"sp":"s","tx":[{"w":[{"v":"`+canary+`"}]}]}`), patience)
	d.must(err)
	_, err = raw.Request("secret.send.0.s.keep.last", []byte(`"`+canary+`"`), patience) // the owner notices it with its next commit
	d.must(err)
	until(t, "the commit that cannot be read is noticed", func() bool { return strings.Contains(logs.String(), "a stored message cannot be read") })
	_, err = bus.Connect(t.Context(), bus.Config{URL: strings.Replace(d.server.ClientURL(), "nats://", "nats://worker:"+canary+"@", 1), Logger: logger})
	answers["a password that is wrong"] = fmt.Sprint(err)
	_, err = bus.Connect(t.Context(), bus.Config{URL: "nats://worker:" + canary + "@127.0.0.1:1", Logger: logger})
	answers["a server that cannot be reached"] = fmt.Sprint(err)

	d.must(w.Stop(t.Context()))
	d.must(provider.ForceFlush(t.Context()))
	scrape := httptest.NewRecorder()
	m.Scrape.ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	answers["the log"], answers["the metrics"] = logs.String(), scrape.Body.String()
	answers["the traces"] = fmt.Sprintf("%+v", spans.GetSpans())
	if len(spans.GetSpans()) < 10 || len(answers["the log"]) < 500 || len(answers["the metrics"]) < 500 {
		t.Errorf("%d spans, %d bytes of log, %d of metrics: too few to find anything in", len(spans.GetSpans()), len(answers["the log"]), len(answers["the metrics"]))
	}
	for what, text := range answers { // any order: each on its own
		for line := range strings.Lines(text) {
			if at := strings.Index(line, canary); at >= 0 {
				t.Errorf("%s has a secret: %.300q", what, line[max(0, at-200):])
			}
		}
	}
}
