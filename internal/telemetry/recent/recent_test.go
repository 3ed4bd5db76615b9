package recent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/internal/telemetry/recent"
	"github.com/settlehq/settle/model"
)

// begin begins a span in a space.
func begin(ctx context.Context, s *recent.Store, name, space string, links ...trace.Link) (context.Context, trace.Span) {
	return s.Tracer("test").Start(ctx, name, trace.WithLinks(links...), trace.WithAttributes(telemetry.Space.String(space)))
}

func TestStore_ATraceIsATree(t *testing.T) {
	s := recent.New(recent.Limits{})
	_, other := begin(t.Context(), s, "other", "z")
	other.End()
	ctx, send := begin(t.Context(), s, "send", "a")
	under, handle := begin(ctx, s, "handle", "b", trace.Link{SpanContext: other.SpanContext()})
	_, commit := begin(under, s, "commit", "b")
	telemetry.End(commit, fmt.Errorf("append: %w", model.ErrRefused))
	handle.End()
	if list := s.List(1); len(list) != 1 || list[0].Spans != 2 { // send is open: it is not there yet
		t.Fatalf("the list is %+v", list)
	}
	send.End()
	list := s.List(10)
	if len(list) != 2 || list[0].Name != "send" || list[0].Failed != 1 || strings.Join(list[0].Spaces, " ") != "a b" || list[1].Name != "other" {
		t.Fatalf("the list is %+v", list)
	}
	of, ok := s.Get(list[0].ID)
	if !ok || len(of.Roots) != 1 {
		t.Fatalf("the trace is %+v", of)
	}
	if got, want := of.Shape(), "send a [internal]\n  handle b [internal] linked\n    commit b (refused: "+commitError+") [internal]\n"; got != want {
		t.Errorf("the trace is\n%s\nnot\n%s", got, want)
	}
	if got, want := of.Roots[0].Children[0].Links, (recent.Link{Trace: other.SpanContext().TraceID(), Span: other.SpanContext().SpanID()}); len(got) != 1 || got[0] != want {
		t.Errorf("the links are %v", got)
	}
	if _, ok := s.Get(trace.TraceID{1}); ok {
		t.Error("there is a trace that was not recorded")
	}
}

var commitError = fmt.Errorf("append: %w", model.ErrRefused).Error()

// The trace that has had no new span for longest goes first, and no trace has more spans than its limit.
func TestStore_IsBounded(t *testing.T) {
	s := recent.New(recent.Limits{Traces: 3, Spans: 2, All: 5})
	span := func(ctx context.Context, name string) context.Context {
		ctx, span := begin(ctx, s, name, "s")
		span.End()
		return ctx
	}
	names := func() (all string) {
		for _, l := range s.List(100) {
			all += fmt.Sprintf("%s:%d+%d ", l.Name, l.Spans, l.Dropped)
		}
		return all
	}
	a := span(t.Context(), "a")
	span(t.Context(), "b")
	span(t.Context(), "c")
	span(a, "a2") // a is newer than b now
	span(t.Context(), "d")
	if got := names(); got != "d:1+0 a:2+0 c:1+0 " {
		t.Errorf("the traces are %s", got)
	}
	span(a, "a3")
	span(a, "a4")
	if got := names(); got != "a:2+2 d:1+0 c:1+0 " {
		t.Errorf("the traces are %s", got)
	}
	e := span(t.Context(), "e")
	span(e, "e2")
	f := span(t.Context(), "f")
	span(f, "f2")
	if got := names(); got != "f:2+0 e:2+0 " { // with a there were six spans
		t.Errorf("the traces are %s", got)
	}
}

func TestStore_TextsAreCutOff(t *testing.T) {
	s := recent.New(recent.Limits{})
	_, span := begin(t.Context(), s, "long", strings.Repeat("x", 5000))
	telemetry.End(span, errors.New(strings.Repeat("y", 5000)))
	of, _ := s.Get(s.List(1)[0].ID)
	if a, e := len(of.Roots[0].Attribute(telemetry.Space)), len(of.Roots[0].Error); a != 1024 || e > 1030 {
		t.Errorf("an attribute has %d bytes, the error %d", a, e)
	}
}

func TestHandler(t *testing.T) {
	s := recent.New(recent.Limits{})
	get := func(host, path string) (int, string) {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, "http://"+host+path, http.NoBody)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		text, _ := io.ReadAll(w.Result().Body)
		return w.Code, string(text)
	}
	if code, text := get("localhost", "/traces"); code != http.StatusOK || text != "no traces yet\n" {
		t.Errorf("status %d: %s", code, text)
	}
	ctx, root := begin(t.Context(), s, "send", "a")
	_, span := begin(ctx, s, "handle", "b")
	telemetry.End(span, errors.New("a bell \a and a\nline"))
	root.End()
	id := root.SpanContext().TraceID().String()
	for _, c := range []struct {
		host, path string
		code       int
		want       string
	}{
		{"127.0.0.1:7334", "/traces?n=1", http.StatusOK, id},
		{"[::1]:7334", "/traces", http.StatusOK, "send  2 spans, 1 failed  a b\n"},
		{"localhost:7334", "/traces/" + id, http.StatusOK, "\nsend a  "},
		{"localhost:7334", "/traces/" + id, http.StatusOK, "\n  handle b (_OTHER: a bell   and a line)  "},
		{"localhost", "/traces/" + strings.Repeat("1", 32), http.StatusNotFound, "not kept"},
		{"localhost", "/traces/one", http.StatusBadRequest, "32 hexadecimal digits"},
		{"localhost", "/traces?n=-1", http.StatusBadRequest, "1 or more"},
		{"settle.example.com", "/traces", http.StatusForbidden, "use localhost"},
		{"10.0.0.1", "/traces/" + id, http.StatusForbidden, "use localhost"},
	} {
		if code, text := get(c.host, c.path); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s%s: status %d, not %d, with %q, not %q", c.host, c.path, code, c.code, text, c.want)
		}
	}
}
