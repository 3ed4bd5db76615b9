package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// source returns prepared answers.
type source struct {
	answer live.Answer
	err    error
	events chan live.Event
	mu     sync.Mutex
	asked  []live.Watch
	got    live.Get
	done   chan error // the errors that watches ended with
}

func newSource() *source {
	return &source{events: make(chan live.Event, 100), done: make(chan error, 10)}
}

func (s *source) Get(_ context.Context, q live.Get) (live.Answer, error) {
	s.got = q
	if q.Document == "missing" {
		return live.Answer{Space: q.Space, Document: q.Document}, nil
	}
	return s.answer, s.err
}

func (s *source) Watch(ctx context.Context, q live.Watch, deliver func(live.Event) error) (err error) {
	s.mu.Lock()
	s.asked = append(s.asked, q)
	s.mu.Unlock()
	defer func() { s.done <- err }()
	if s.err != nil {
		return s.err
	}
	for {
		select {
		case e, ok := <-s.events:
			if !ok {
				return live.ErrMoved
			}
			if err := deliver(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// site is a running gateway and a client of it.
type site struct {
	*testing.T
	source  *source
	ingress *ingress
	g       *gateway.Gateway
	http    http.Client
	leave   func()
	ended   chan struct{}
}

func newSite(t *testing.T, cfg gateway.Config) *site {
	t.Helper()
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	s := &site{T: t, source: newSource(), ingress: &ingress{}, ended: make(chan struct{})}
	var err error
	if s.g, err = gateway.Listen(cfg); err != nil {
		t.Fatal(err)
	}
	leaving := make(chan struct{})
	s.leave = sync.OnceFunc(func() { close(leaving) })
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // ends with the test
		defer close(s.ended)
		s.g.Serve(ctx, leaving, s.source, s.ingress)
	}()
	s.http.Transport, s.http.Timeout = &http.Transport{}, time.Minute // a safety net
	t.Cleanup(func() {
		s.http.CloseIdleConnections()
		cancel()
		<-s.ended
	})
	return s
}

// get makes a request, with headers in pairs.
func (s *site) get(path string, headers ...string) *http.Response {
	s.Helper()
	return s.ask(http.MethodGet, path, headers...)
}

func (s *site) ask(method, path string, headers ...string) *http.Response {
	s.Helper()
	return s.askWith(method, path, "", headers...)
}

func (s *site) askWith(method, path, body string, headers ...string) *http.Response {
	s.Helper()
	_, port, _ := net.SplitHostPort(s.g.Addr())
	r, err := http.NewRequestWithContext(s.Context(), method, "http://127.0.0.1:"+port+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.http.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func (s *site) body(r *http.Response) string {
	s.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.Error(err)
	}
	_ = r.Body.Close()
	return string(b)
}

// An API in place of the gateway's own is behind the same checks, and so is its answer that no worker is there.
func TestListen_AnotherAPIIsBehindTheSameChecks(t *testing.T) {
	t.Parallel()
	s := newSite(t, gateway.Config{
		Pages: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") }),
		API:   http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { gateway.Unavailable(w, "none at "+r.URL.Path) }),
	})
	r := s.get(doc)
	if body := s.body(r); r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "none at "+doc) || r.Header.Get("Retry-After") != "1" || r.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v %s", r.StatusCode, r.Header, body)
	}
	if r := s.get(doc, "Origin", "https://evil.example"); r.StatusCode != http.StatusForbidden {
		t.Errorf("a foreign origin: %d", r.StatusCode)
	}
	if r := s.get("/"); s.body(r) != "page" {
		t.Error("pages are not those of the gateway")
	}
}

const doc = "/v1/spaces/alice/documents/total"

func TestGet_ReturnsTheDocumentWithItsRevisionAsETag(t *testing.T) {
	s := newSite(t, gateway.Config{})
	s.source.answer = live.Answer{Revision: 17, Found: true, Value: []byte(`{"n":1}`)}
	r := s.get(doc)
	tag := r.Header.Get("ETag")
	if body := s.body(r); r.StatusCode != 200 || body != `{"n":1}` || !strings.HasPrefix(tag, `"17-`) || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s %v", r.StatusCode, body, r.Header)
	}
	if r := s.get(doc, "If-None-Match", tag); r.StatusCode != http.StatusNotModified || s.body(r) != "" {
		t.Errorf("the current ETag: status %d", r.StatusCode)
	}
	if r := s.get(doc, "If-None-Match", `"16"`); r.StatusCode != 200 {
		t.Errorf("an old ETag: status %d", r.StatusCode)
	}
	s.source.answer.Value = []byte(`{"n":2}`) // the store has gone back and assigned the revision again
	if r := s.get(doc, "If-None-Match", tag); r.StatusCode != 200 {
		t.Errorf("another value with the same revision: status %d", r.StatusCode)
	}
	s.source.answer.Stale = "it is\nheld back"
	if r := s.get(doc, "If-None-Match", tag); r.StatusCode != 200 || r.Header.Get("Settle-Stale") != "it is held back" || r.Header.Get("ETag") != "" {
		t.Errorf("a stale value: status %d, header %v", r.StatusCode, r.Header)
	}
}

func TestGet_ErrorsHaveTheirStatus(t *testing.T) {
	s := newSite(t, gateway.Config{})
	for _, c := range []struct {
		err  error
		path string
		want int
	}{
		{nil, "/v1/spaces/alice/documents/missing", 404},
		{nil, doc + "?timeout=soon", 400},
		{nil, "/v1/spaces/alice", 404},
		{&model.ServiceError{Code: 400, Text: "no"}, doc, 400},
		{&model.ServiceError{Code: 503, Text: "busy"}, doc, 503},
		{&model.ServiceError{Code: 504, Text: "late"}, doc, 504},
		{errors.New("broken"), doc, 500},
		{&model.ServiceError{Code: 400, Text: "no"}, doc + "/watch", 400},
		{nil, doc + "/watch?from=x", 400},
		{nil, doc + "/watch?from=17-x", 400},
	} {
		s.source.err = c.err
		if r := s.get(c.path); r.StatusCode != c.want {
			t.Errorf("%s with %v: %d, want %d", c.path, c.err, r.StatusCode, c.want)
		}
	}
	s.source.err = nil
	s.source.answer = live.Answer{Space: "alice", Document: "total", Revision: 17} // it was deleted
	if r := s.get(doc); r.StatusCode != 404 {
		t.Errorf("a deleted document: status %d", r.StatusCode)
	}
	s.source.err = &model.ServiceError{Code: model.CodeUnavailable, Text: "busy"}
	if r := s.get(doc); r.StatusCode != 503 || r.Header.Get("Retry-After") != "1" {
		t.Errorf("a temporary error: status %d, Retry-After %q", r.StatusCode, r.Header.Get("Retry-After"))
	}
	if r := s.ask(http.MethodPost, doc); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST of a document: status %d", r.StatusCode)
	}
}

// lines reads a stream of events line by line.
func lines(r *http.Response, n int) string {
	var out []string
	in := bufio.NewScanner(r.Body)
	for len(out) < n && in.Scan() {
		out = append(out, in.Text())
	}
	return strings.Join(out, "\n")
}

func TestWatch_IsAStreamOfServerSentEvents(t *testing.T) {
	s := newSite(t, gateway.Config{})
	s.source.events <- live.Event{Kind: live.Value, Revision: 17, Print: "0123456789ab", Data: []byte(`{"n":1}`)}
	s.source.events <- live.Event{Kind: live.Beating, Revision: 17}
	s.source.events <- live.Event{Kind: live.Deleted, Revision: 18}
	s.source.events <- live.Event{Kind: live.Stale, Revision: 18, Stale: "no \"light\",\nnone at all"}
	s.source.events <- live.Event{Kind: live.Current, Revision: 18}
	r := s.get(doc+"/watch", "Last-Event-ID", "16")
	if r.Header.Get("Content-Type") != "text/event-stream" || r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("header %v", r.Header)
	}
	want := "retry: 1000\n\nid: 17-0123456789ab\nevent: value\ndata: {\"n\":1}\n\n: \n\nid: 18\nevent: deleted\ndata: null\n\n" +
		"event: stale\ndata: \"no \\\"light\\\",\\nnone at all\"\n\nevent: current\ndata: null\n"
	if got := lines(r, 18); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if q := s.source.asked[0]; q.From != live.At(16) || q.Space != "alice" || q.Document != "total" {
		t.Errorf("the source received %+v", q)
	}
	_ = r.Body.Close() // the client leaves, which ends the watch and its demand
	s.http.CloseIdleConnections()
	if err := <-s.source.done; !errors.Is(err, context.Canceled) {
		t.Errorf("the watch ended with %v", err)
	}
	s.source.events <- live.Event{Kind: live.Value, Revision: 19, Data: []byte("1")}
	_ = lines(s.get(doc+"/watch?from=18-0123456789ab"), 3)
	if q := s.source.asked[1]; q.From != (live.Known{Revision: 18, Print: "0123456789ab"}) {
		t.Errorf("the source received %+v", q)
	}
}

// A browser that reconnects requests the address of the page again, and reports in a header the last event
// that it received. The header wins.
func TestWatch_LastEventIDOverridesTheAddress(t *testing.T) {
	s := newSite(t, gateway.Config{})
	s.source.events <- live.Event{Kind: live.Value, Revision: 19, Data: []byte("1")}
	r := s.get(doc+"/watch?from=3", "Last-Event-ID", "16")
	_ = lines(r, 3)
	if q := s.source.asked[0]; q.From != live.At(16) {
		t.Errorf("the watch resumes from %s, want 16", q.From)
	}
}

// A temporary error must not be an error status: a browser would never reconnect.
func TestWatch_ATemporaryErrorMakesABrowserReconnect(t *testing.T) {
	s := newSite(t, gateway.Config{})
	s.source.err = &model.ServiceError{Code: model.CodeUnavailable, Text: "busy"}
	if r := s.get(doc + "/watch"); r.StatusCode != 200 || s.body(r) != "retry: 1000\n\n: busy (503)\n\n" {
		t.Errorf("status %d", r.StatusCode)
	}
	s.source.err = errors.New("broken\n\nevent: value\rdata: 1")
	if r := s.get(doc + "/watch"); s.body(r) != "retry: 1000\n\n: broken  event: value data: 1\n\n" {
		t.Error("an error text was sent as an event")
	}
}

// After a store has gone back, a browser that reconnects must not name the lost revision.
func TestWatch_ABrowserForgetsItsRevisionWithTheStore(t *testing.T) {
	s := newSite(t, gateway.Config{})
	s.source.events <- live.Event{Kind: live.Rewound}
	if got := lines(s.get(doc+"/watch"), 5); got != "retry: 1000\n\nid: 0\nevent: rewound\ndata: null" {
		t.Errorf("got\n%s", got)
	}
}

// slow is a source that answers when the test lets it.
type slow struct {
	*source
	asked, answer chan struct{}
}

func (s *slow) Get(ctx context.Context, q live.Get) (live.Answer, error) {
	close(s.asked)
	select {
	case <-s.answer:
	case <-ctx.Done():
		return live.Answer{}, ctx.Err()
	}
	return s.source.Get(ctx, q)
}

// A worker that leaves still answers pending gets.
func TestGet_IsAnsweredByALeavingWorker(t *testing.T) {
	g, err := gateway.Listen(gateway.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	s := &slow{source: newSource(), asked: make(chan struct{}), answer: make(chan struct{})}
	s.source.answer = live.Answer{Revision: 1, Found: true, Value: []byte("1")}
	leaving, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends with the test
		defer close(ended)
		g.Serve(context.Background(), leaving, s, nil)
	}()
	client := http.Client{Transport: &http.Transport{}}
	status := make(chan int, 1)
	go func() { // ends with the answer
		r, err := client.Get("http://" + g.Addr() + doc)
		if err != nil {
			status <- 0
			return
		}
		_ = r.Body.Close()
		status <- r.StatusCode
	}()
	<-s.asked
	close(leaving)
	for { // until the gateway accepts no more connections
		conn, err := net.Dial("tcp", g.Addr())
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	close(s.answer)
	if got := <-status; got != 200 {
		t.Errorf("status %d", got)
	}
	client.CloseIdleConnections()
	<-ended
}

func TestWatch_EndsWhenTheWorkerLeaves(t *testing.T) {
	s := newSite(t, gateway.Config{})
	s.source.events <- live.Event{Kind: live.Value, Revision: 17, Data: []byte("1")}
	r := s.get(doc + "/watch")
	_ = lines(r, 5)
	s.leave()
	close(s.source.events) // as a live.Server that leaves does
	if rest := s.body(r); strings.Contains(rest, "data") {
		t.Errorf("after the end: %q", rest)
	}
	<-s.ended
}

// A client that stops reading is disconnected after a while, and delays nothing else.
func TestWatch_AClientThatDoesNotReadIsDisconnected(t *testing.T) {
	s := newSite(t, gateway.Config{WriteTimeout: 50 * time.Millisecond})
	big := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	for i := range 64 {
		s.source.events <- live.Event{Kind: live.Value, Revision: uint64(i + 1), Data: big}
	}
	// A raw connection: an HTTP client would buffer too much or, on a slow machine, read nothing.
	_, port, _ := net.SplitHostPort(s.g.Addr())
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET "+doc+"/watch HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-s.source.done; err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("the watch ended with %v", err)
	}
}

func TestListen_AnOpenAddressNeedsAToken(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "example.com:0"} {
		if _, err := gateway.Listen(gateway.Config{Addr: addr}); err == nil || !strings.Contains(err.Error(), "token") {
			t.Errorf("%s without a token: %v", addr, err)
		}
	}
	if _, err := gateway.Listen(gateway.Config{Addr: "8470"}); err == nil {
		t.Error("no address, and no error")
	}
	g, err := gateway.Listen(gateway.Config{Addr: ":0", Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	g.Close()
}

func TestGuard_ChecksOriginHostAndToken(t *testing.T) {
	for _, c := range []struct {
		name    string
		cfg     gateway.Config
		path    string
		headers []string
		want    int
	}{
		{"loopback address", gateway.Config{}, doc, nil, 200},
		{"localhost", gateway.Config{}, doc, []string{"Host", "localhost:8470"}, 200},
		{"a foreign host name that resolves to this machine", gateway.Config{}, doc, []string{"Host", "evil.example.com"}, 403},
		{"a foreign host name that begins like one of this machine", gateway.Config{}, doc, []string{"Host", "localhost.evil.example"}, 403},
		{"a foreign host name that ends like one of this machine", gateway.Config{}, doc, []string{"Host", "evil-localhost"}, 403},
		{"a configured host name", gateway.Config{Hosts: []string{"board.example.com"}}, doc, []string{"Host", "board.example.com"}, 200},
		{"a foreign page", gateway.Config{}, doc, []string{"Origin", "https://evil.example.com"}, 403},
		{"an opaque origin", gateway.Config{}, doc, []string{"Origin", "null"}, 403},
		{"a foreign page without an Origin header", gateway.Config{}, doc + "/watch", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a configured origin", gateway.Config{Origins: []string{"https://board.example.com"}}, doc, []string{"Origin", "https://board.example.com"}, 200},
		{"the gateway's own origin", gateway.Config{}, doc, []string{"Host", "localhost:1", "Origin", "http://localhost:1"}, 200},
		{"no token", gateway.Config{Token: "secret"}, doc, nil, 401},
		{"a shorter token", gateway.Config{Token: "secret"}, doc, []string{"Authorization", "Bearer secre"}, 401},
		{"a wrong token of the same length", gateway.Config{Token: "secret"}, doc, []string{"Authorization", "Bearer secreT"}, 401},
		{"a wrong header and a valid cookie", gateway.Config{Token: "secret"}, doc, []string{"Authorization", "Bearer no", "Cookie", "settle_token=secret"}, 401},
		{"a host name that is not configured", gateway.Config{Addr: ":0", Token: "secret", Hosts: []string{"board.example.com"}}, doc, []string{"Host", "any.example.com", "Authorization", "Bearer secret"}, 403},
		{"the token in a header", gateway.Config{Token: "secret"}, doc, []string{"Authorization", "Bearer secret"}, 200},
		{"the token in a cookie", gateway.Config{Token: "secret"}, doc, []string{"Cookie", "settle_token=secret"}, 200},
		{"the token in the address", gateway.Config{Token: "secret"}, doc + "?access_token=secret", nil, 200},
		{"an open address", gateway.Config{Addr: ":0", Token: "secret"}, doc, []string{"Host", "any.example.com", "Authorization", "Bearer secret"}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, c.cfg)
			s.source.answer = live.Answer{Revision: 1, Found: true, Value: []byte("1")}
			r := s.get(c.path, c.headers...)
			if r.StatusCode != c.want {
				t.Errorf("%d, want %d: %s", r.StatusCode, c.want, s.body(r))
			}
			if r.Header.Get("Vary") != "Origin" {
				t.Errorf("the Vary header is %q", r.Header.Get("Vary"))
			}
			allowed := r.Header.Get("Access-Control-Allow-Origin")
			if c.want == 403 && allowed != "" {
				t.Errorf("a refused request allows origin %s", allowed)
			}
		})
	}
}

func TestGuard_AnswersPreflightRequests(t *testing.T) {
	s := newSite(t, gateway.Config{Token: "secret", Origins: []string{"https://board.example.com"}})
	r := s.ask(http.MethodOptions, doc, "Origin", "https://board.example.com", "Access-Control-Request-Headers", "authorization")
	if r.StatusCode != http.StatusNoContent || r.Header.Get("Access-Control-Allow-Origin") != "https://board.example.com" || !strings.Contains(r.Header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
}
