package spaceworker_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	collogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/internal/telemetry/recent"
)

// collector is one of OTLP over HTTP that keeps the lines of logs.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	lines []line
	wrong []string
}

// line is a line of a log, with the resource and the scope that it has come with.
type line struct {
	*logs.LogRecord
	resource map[string]string
	scope    string
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var in collogs.ExportLogsServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &in)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil || r.URL.Path != "/v1/logs" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			c.wrong = append(c.wrong, fmt.Sprint(r.URL.Path, r.Header, err))
			http.Error(w, "wrong", http.StatusBadRequest)
			return
		}
		for _, of := range in.GetResourceLogs() {
			for _, s := range of.GetScopeLogs() {
				for _, l := range s.GetLogRecords() {
					c.lines = append(c.lines, line{l, attributes(of.GetResource().GetAttributes()), s.GetScope().GetName()})
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// attributes returns attributes as texts.
func attributes(list []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[a.GetKey()] = v.StringValue
		default:
			out[a.GetKey()] = a.GetValue().String()
		}
	}
	return out
}

// about returns the lines with a body.
func (c *collector) about(body string) []line {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.lines), func(l line) bool { return l.GetBody().GetStringValue() != body })
}

// A worker sends its log by OTLP where the standard variables ask for it, beside standard error: the same lines and no more, with the attributes
// of docs/logs.md, and with the trace and the span that a line belongs to.
func TestMain_SendsItsLogByOTLP(t *testing.T) {
	t.Parallel()
	const refused, atOnce = 150, 100 // of one message
	s, err := embedded.Start(t.Context(), embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	to := newCollector(t)
	worker := exec.Command(os.Args[0], "--nats", s.ClientURL(), "--id", "w-7", "--partitions", "1")
	worker.Env = append(os.Environ(), asWorker+"=1", "OTEL_LOGS_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT="+to.URL+"/v1/logs")
	var out bytes.Buffer
	worker.Stdout, worker.Stderr = &out, &out
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = worker.Process.Kill() })()
	b, err := bus.Connect(ctx, bus.Config{URL: s.ClientURL(), Name: "client/test"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := errors.Join(b.AwaitDeployment(ctx), b.AwaitProvision(ctx)); err != nil { // the worker creates its streams
		t.Fatal(err)
	}
	tracer := recent.New(recent.Limits{}).Tracer("test")
	c, err := settle.NewClient(b, settle.ClientConfig{ID: "test", Tracer: tracer})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, span := tracer.Start(ctx, "test")
	defer span.End()
	for n := range refused {
		_, err := c.Call(ctx, settle.Outgoing{Space: "alice", Stream: "nosuch", ID: settle.ID(fmt.Sprint("e", n))})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := worker.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if len(to.wrong) > 0 {
		t.Errorf("the collector was sent %q", to.wrong)
	}
	for _, body := range []string{"running", "stopping"} {
		if l := to.about(body); len(l) != 1 || l[0].GetSeverityText() != "INFO" || l[0].GetSeverityNumber() != logs.SeverityNumber_SEVERITY_NUMBER_INFO {
			t.Errorf("of %q it has %v", body, l)
		}
	}
	got := to.about("event refused")
	if here := strings.Count(out.String(), `msg="event refused"`); len(got) != here || here < atOnce || here == refused {
		t.Fatalf("%d lines were sent, and standard error has %d:\n%s", len(got), here, &out)
	}
	l := got[0]
	if want := span.SpanContext().TraceID().String(); hex.EncodeToString(l.GetTraceId()) != want || len(l.GetSpanId()) != 8 {
		t.Errorf("the trace of the line is %x, not %s; its span is %x", l.GetTraceId(), want, l.GetSpanId())
	}
	if l.GetSeverityText() != "WARN" || l.GetSeverityNumber() != logs.SeverityNumber_SEVERITY_NUMBER_WARN || l.GetTimeUnixNano() == 0 {
		t.Errorf("the line is %v", l)
	}
	about := attributes(l.GetAttributes())
	if !strings.Contains(about["error"], "nosuch") {
		t.Errorf("its error is %q", about["error"])
	}
	delete(about, "error")
	if want := map[string]string{"space": "alice", "stream": "nosuch", "event": "e0"}; !maps.Equal(about, want) {
		t.Errorf("its attributes are %v, not %v", about, want)
	}
	if l.resource["service.name"] != "settle-worker" || l.resource["service.instance.id"] != "w-7" || l.scope != telemetry.Scope {
		t.Errorf("it is of %v, scope %s", l.resource, l.scope)
	}
}
