package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

// wantProblem checks that an answer is a problem of a type that docs/problems.md explains.
func (s *site) wantProblem(r *http.Response, status int, name string) {
	s.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	body := s.body(r)
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		s.Errorf("%s: %v: %s", r.Request.URL, err, body)
		return
	}
	page, err := os.ReadFile("../docs/problems.md")
	if err != nil {
		s.Fatal(err)
	}
	if kind := r.Header.Get("Content-Type"); kind != "application/problem+json" || r.StatusCode != status || p.Status != status || p.Title == "" || p.Detail == "" ||
		p.Type != "https://github.com/settlehq/settle/blob/main/docs/problems.md#"+name {
		s.Errorf("%s: status %d, %s: %s; want %d %s", r.Request.URL, r.StatusCode, kind, body, status, name)
	}
	if !strings.Contains(string(page), "\n### "+name+"\n") {
		s.Errorf("docs/problems.md does not explain %s", name)
	}
}

// Every error is a problem (RFC 9457) with its status and its type.
func TestProblem_EveryErrorIsOne(t *testing.T) {
	s := newSite(t, gateway.Config{})
	for _, c := range []struct {
		err    error
		path   string
		status int
		name   string
	}{
		{nil, "/v1/nosuch", 404, "not-found"},
		{nil, "/v1/spaces/alice/documents//total", 404, "not-found"},
		{nil, "/v1/spaces/alice/streams/add", 405, "method-not-allowed"},
		{nil, doc + "?colour=red", 400, "bad-request"},
		{nil, "/v1/spaces/alice/documents/missing", 404, "no-document"},
		{fmt.Errorf("space alice: %w", model.ErrNoProgram), doc, 404, "no-program"},
		{&model.ServiceError{Code: model.CodeNotFound, Text: "of another worker: the space has no program to run"}, doc, 404, "no-program"},
		{model.CheckName("space", "a b"), doc, 400, "bad-request"},
		{&model.ServiceError{Code: model.CodeConflict, Text: "quarantined"}, doc, 409, "set-aside"},
		{model.ErrTooLarge, doc, 413, "too-large"},
		{context.DeadlineExceeded, doc, 504, "timeout"},
		{model.ErrElsewhere, doc, 503, "unavailable"},
		{os.ErrClosed, doc, 500, "internal-error"},
		{fmt.Errorf("space alice: %w", model.ErrNoProgram), doc + "/watch", 404, "no-program"},
	} {
		s.source.err = c.err
		s.wantProblem(s.get(c.path), c.status, c.name)
	}
	s.source.err, s.source.answer = nil, live.Answer{Revision: 7, Found: true, Value: []byte(`{"n":1}`)}
	for _, header := range [][]string{{"Range", "bytes=9999-"}, {"Range", "bytes=0-1"}, {"If-Match", `"other"`}} { // of files: JSON is answered whole
		if r := s.get(doc, header...); r.StatusCode != http.StatusOK || s.body(r) != `{"n":1}` {
			t.Errorf("%s: status %d", header, r.StatusCode)
		}
	}
	s.wantProblem(s.get("/v1/watch", "Upgrade", "h2c", "Connection", "Upgrade"), 400, "bad-request")
	s.wantProblem(s.get("/v1/watch", "Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "7"), 400, "bad-request")
	s.source.answer.Found = false
	if r := s.get(doc); r.Header.Get("ETag") != "" || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("a problem may be kept: %v", r.Header)
	}
	s.wantProblem(s.get(doc, "Host", "evil.example"), 403, "forbidden")
	if r := s.get("/v1/spaces/alice/streams/add"); r.Header.Get("Allow") != "POST" {
		t.Errorf("Allow: %q", r.Header.Get("Allow"))
	}
	locked := newSite(t, gateway.Config{Token: "secret"})
	locked.wantProblem(locked.get(doc), 401, "token-needed")
}

// An event that was not handled is a problem of the type of its outcome.
func TestProblem_AnEventThatWasNotHandled(t *testing.T) {
	s := newSite(t, gateway.Config{})
	for _, o := range []model.Outcome{model.Rejected, model.Failed, model.Refused, model.Cancelled, model.Expired} {
		s.ingress.receipt = &model.Receipt{Outcome: o, Error: "because", Code: "full"}
		s.wantProblem(s.askWith(http.MethodPost, add+"?wait=receipt", ""), 422, string(o))
	}
}

// The page explains no type that there is not.
func TestProblem_ThePageExplainsWhatThereIs(t *testing.T) {
	page, err := os.ReadFile("../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("problem.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllSubmatch(page, -1) {
		if !strings.Contains(string(source), fmt.Sprintf("%q", m[1])) {
			t.Errorf("there is no problem %s", m[1])
		}
	}
}

// A request can want a place in a document, and a page of what is there.
func TestPart_APathAndPages(t *testing.T) {
	s := newSite(t, gateway.Config{})
	s.source.answer = live.Answer{Revision: 7, Found: true, Value: []byte(`{"a":1,"b":2,"c":3}`)}
	for query, want := range map[string]string{ // any order: each on its own
		"?limit=2":            `{"revision":7,"size":3,"entries":[{"key":"a","value":1},{"key":"b","value":2}],"next":"b"}`,
		"?limit=2&after=b":    `{"revision":7,"size":3,"entries":[{"key":"c","value":3}]}`,
		"?order=desc&limit=1": `{"revision":7,"size":3,"entries":[{"key":"c","value":3}],"next":"c"}`,
		"?after=c":            `{"revision":7,"size":3,"entries":[]}`,
		"?after=&limit=1":     `{"revision":7,"size":3,"entries":[{"key":"a","value":1}],"next":"a"}`,
		"":                    `{"a":1,"b":2,"c":3}`,
	} {
		r := s.get(doc + query)
		if got := strings.TrimSpace(s.body(r)); got != want || r.StatusCode != 200 || (r.Header.Get("ETag") == "") != (query != "") {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	s.source.answer.Value = []byte(`{"":0,"a":1}`)
	for query, want := range map[string]string{ // any order: each on its own
		"?limit=1":            `[{"key":"","value":0}],"next":""}`,
		"?limit=1&after=":     `[{"key":"a","value":1}]}`,
		"?order=desc&limit=1": `[{"key":"a","value":1}],"next":"a"}`,
	} {
		if got := strings.TrimSpace(s.body(s.get(doc + query))); got != `{"revision":7,"size":2,"entries":`+want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	s.source.answer.Value = []byte(`["x","y","z"]`)
	for query, want := range map[string]string{ // any order: each on its own
		"?limit=2":                    `[{"key":0,"value":"x"},{"key":1,"value":"y"}],"next":1}`,
		"?limit=2&after=1":            `[{"key":2,"value":"z"}]}`,
		"?limit=2&after=9":            `[]}`,
		"?order=desc&limit=2":         `[{"key":2,"value":"z"},{"key":1,"value":"y"}],"next":1}`,
		"?order=desc&after=1":         `[{"key":0,"value":"x"}]}`,
		"?order=desc&after=9&limit=1": `[{"key":2,"value":"z"}],"next":2}`,
	} {
		if got := strings.TrimSpace(s.body(s.get(doc + query))); got != `{"revision":7,"size":3,"entries":`+want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for _, query := range []string{"?limit=0", "?limit=1001", "?after=x", "?after=-1", "?order=up", "?limit=1&limit=2"} {
		s.wantProblem(s.get(doc+query), 400, "bad-request")
	}
	s.source.answer.Value = []byte(`7`)
	s.wantProblem(s.get(doc+"?limit=1"), 400, "bad-request")
	s.get(doc + "?path=lines&path=17")
	if got := s.source.got; strings.Join(got.Path, "/") != "lines/17" {
		t.Errorf("the path is %q", got.Path)
	}
	s.wantProblem(s.get("/v1/spaces/alice/documents/missing?path=lines"), 404, "no-document")
}

// A caller finds the spaces that it may read something of, in pages.
func TestSpaces_AreListedForThoseWhoMayRead(t *testing.T) {
	s := newSite(t, gateway.Config{Principals: principalsFile(t, `{"principals": [
		{"name": "all", "tokens_sha256": ["`+sum("all")+`"], "read": ["*/*"]},
		{"name": "lots", "tokens_sha256": ["`+sum("lots")+`"], "read": ["lot-*/total"]}]}`)})
	s.ingress.spaces = []string{"alice", "lot-1", "lot-2", "lot-3"}
	for _, c := range []struct{ token, query, want string }{
		{"all", "", `{"spaces":["alice","lot-1","lot-2","lot-3"]}`},
		{"all", "?spaces=lot-*&limit=2", `{"spaces":["lot-1","lot-2"],"next":"lot-2"}`},
		{"all", "?spaces=lot-*&limit=2&after=lot-2", `{"spaces":["lot-3"]}`},
		{"lots", "", `{"spaces":["lot-1","lot-2","lot-3"]}`},
		{"lots", "?spaces=a*", `{"spaces":[]}`},
	} {
		if got := strings.TrimSpace(s.body(s.get("/v1/spaces"+c.query, "Authorization", "Bearer "+c.token))); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.token, c.query, got, c.want)
		}
	}
	for _, query := range []string{"?spaces=lot", "?spaces=l%20*", "?limit=x", "?page=2"} {
		s.wantProblem(s.get("/v1/spaces"+query, "Authorization", "Bearer all"), 400, "bad-request")
	}
}
