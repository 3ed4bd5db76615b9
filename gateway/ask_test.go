package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/model"
)

// asked records questions, and answers with their kinds. With a gate it answers once the gate is closed.
type asked struct {
	last *gateway.Question
	err  error
	gate chan struct{}
	in   chan struct{}
}

func (a *asked) Ask(ctx context.Context, q *gateway.Question) (any, error) {
	if a.gate != nil {
		a.in <- struct{}{}
		select {
		case <-a.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return map[string]string{"kind": q.Kind}, nil
	}
	a.last = q
	return map[string]string{"kind": q.Kind}, a.err
}

// Each question has a path, and its parameters reach what answers.
func TestAsk_PathsAndParameters(t *testing.T) {
	a := &asked{}
	s := newSite(t, gateway.Config{Questions: a})
	const every = 2 * time.Second
	for path, want := range map[string]gateway.Question{ // any order: each on its own
		"/v1/spaces/s/why/n": {Kind: "why", Space: "s", Of: "n", Interval: every},
		"/v1/spaces/s/why/e1?as=event&stream=add&limit=7&load=true":  {Kind: "why", Space: "s", Of: "e1", As: "event", Stream: "add", Limit: 7, Load: true, Interval: every},
		"/v1/spaces/s/lane?after=5&limit=2":                          {Kind: "lane", Space: "s", After: 5, Limit: 2, Interval: every},
		"/v1/spaces/s/graph?node=n&depth=2&after=300":                {Kind: "graph", Space: "s", Of: "n", Depth: 2, After: 300, Interval: every},
		"/v1/spaces/s/log?document=d&before=9":                       {Kind: "log", Space: "s", Of: "d", Before: 9, Interval: every},
		"/v1/spaces/s/documents/d/history?path=a&path=b%2Fc&limit=3": {Kind: "history", Space: "s", Of: "d", Path: model.Path{"a", "b/c"}, Limit: 3, Interval: every},
		"/v1/top?interval=100ms&sort=runs&limit=5":                   {Kind: "top", Sort: "runs", Limit: 5, Interval: 100 * time.Millisecond},
	} {
		r := s.get(path)
		if body := s.body(r); r.StatusCode != http.StatusOK || body != fmt.Sprintf(`{"kind":%q}`+"\n", want.Kind) || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %s %v %s", path, r.Status, r.Header, body)
		}
		if !reflect.DeepEqual(*a.last, want) {
			t.Errorf("%s asks %+v, want %+v", path, *a.last, want)
		}
	}
}

func TestAsk_WhatIsWrongIsABadRequest(t *testing.T) {
	a := &asked{}
	s := newSite(t, gateway.Config{Questions: a})
	for _, path := range []string{
		"/v1/spaces/s/why/n?limit=x", "/v1/spaces/s/why/n?limit=-1", "/v1/spaces/s/why/n?before=1", "/v1/spaces/s/lane?node=n", "/v1/spaces/s/lane?limit=1&limit=2",
		"/v1/spaces/s/graph?load=maybe", "/v1/spaces/s/log?before=-1", "/v1/spaces/s/log?before=99999999999999999999", "/v1/top?interval=1ns", "/v1/top?interval=1h", "/v1/top?interval=x",
	} {
		if r := s.get(path); r.StatusCode != http.StatusBadRequest || !strings.Contains(s.body(r), `"detail"`) {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
	if a.last != nil {
		t.Errorf("a question was asked: %+v", a.last)
	}
	for _, err := range []error{&model.ServiceError{Code: model.CodeNotFound, Text: "there is no space"}, model.ErrNoResponder, context.DeadlineExceeded} {
		a.err = err
		want := map[bool]int{true: http.StatusNotFound, false: http.StatusServiceUnavailable}[!errors.Is(err, model.ErrNoResponder)]
		if errors.Is(err, context.DeadlineExceeded) {
			want = http.StatusGatewayTimeout
		}
		if r := s.get("/v1/spaces/s/lane"); r.StatusCode != want {
			t.Errorf("%v: %s, want %d", err, r.Status, want)
		}
	}
}

// A gateway works on a limited number of questions at a time, and refuses others for the moment.
func TestAsk_TooManyAtATimeAreRefused(t *testing.T) {
	a := &asked{gate: make(chan struct{}), in: make(chan struct{})}
	s := newSite(t, gateway.Config{Questions: a})
	answers := make(chan int, 16)
	for range cap(answers) {
		go func() { answers <- s.get("/v1/spaces/s/lane").StatusCode }() // ends with the gate
		<-a.in
	}
	r := s.get("/v1/spaces/s/lane")
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("the 17th question: %s, %v", r.Status, r.Header)
	}
	close(a.gate)
	for range cap(answers) {
		if got := <-answers; got != http.StatusOK {
			t.Errorf("a question that waited: status %d", got)
		}
	}
}

// Questions about a space need the right to read all of its documents, and a question about all spaces that of all: in the entry of a principal,
// and in the rules once there is one.
func TestAsk_NeedsTheRightToReadTheWholeSpace(t *testing.T) {
	server := membus.NewServer(membus.Config{Partitions: 1})
	c := server.Connect("rules")
	t.Cleanup(c.Close)
	book, err := access.Open(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(book.Close)
	file := principalsFile(t, `{"principals": [
		{"name": "all", "tokens_sha256": ["`+sum("all")+`"], "read": ["*/*"]},
		{"name": "shop", "tokens_sha256": ["`+sum("shop")+`"], "read": ["shop-*/*", "other/total"]},
		{"name": "some", "tokens_sha256": ["`+sum("some")+`"], "read": ["shop-1/a*", "shop-1/*b"], "send": ["*/*"]},
		{"name": "rules", "tokens_sha256": ["`+sum("rules")+`"]}]}`)
	g, err := gateway.Listen(gateway.Config{Addr: "127.0.0.1:0", Principals: file, Token: "holder", Access: book, Questions: &asked{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	h := g.Handler(empty{}, &ingress{})
	status := func(token, path string) int {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	about := []string{"/v1/spaces/%s/why/n", "/v1/spaces/%s/lane", "/v1/spaces/%s/graph", "/v1/spaces/%s/log", "/v1/spaces/%s/documents/a/history"}
	check := func(when, token, space string, want int) {
		t.Helper()
		for _, path := range about {
			if got := status(token, fmt.Sprintf(path, space)); got != want {
				t.Errorf("%s: %s %s: status %d, want %d", when, token, fmt.Sprintf(path, space), got, want)
			}
		}
	}
	top := func(when, token string, want int) {
		t.Helper()
		if got := status(token, "/v1/top"); got != want {
			t.Errorf("%s: %s asks about all: status %d, want %d", when, token, got, want)
		}
	}
	const open, closed = "without rules", "with a rule"
	for _, token := range []string{"all", "holder"} {
		check(open, token, "shop-1", http.StatusOK)
		top(open, token, http.StatusOK)
	}
	check(open, "shop", "shop-1", http.StatusOK)
	check(open, "shop", "other", http.StatusForbidden)
	check(open, "some", "shop-1", http.StatusForbidden)
	check(open, "rules", "shop-1", http.StatusForbidden)
	check(open, "unknown", "shop-1", http.StatusUnauthorized)
	for _, token := range []string{"shop", "some", "rules"} {
		top(open, token, http.StatusForbidden)
	}
	for principal, read := range map[string]string{"rules": "shop-1/*", "all": "shop-2/*"} { // any order
		if _, err := access.Change(t.Context(), c, principal, func(r *access.Rule) { r.Read = []string{read} }); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); status("rules", "/v1/spaces/shop-1/lane") != http.StatusOK || status("all", "/v1/spaces/shop-2/lane") != http.StatusOK; {
		if time.Now().After(deadline) {
			t.Fatal("the rules do not arrive")
		}
	}
	check(closed, "rules", "shop-1", http.StatusOK)
	check(closed, "rules", "shop-2", http.StatusForbidden)
	check(closed, "all", "shop-2", http.StatusOK)
	check(closed, "all", "shop-1", http.StatusForbidden)
	check(closed, "shop", "shop-1", http.StatusForbidden)
	check(closed, "holder", "shop-1", http.StatusForbidden)
	for _, token := range []string{"all", "rules", "holder"} {
		top(closed, token, http.StatusForbidden)
	}
	if _, err := access.Change(t.Context(), c, "all", func(r *access.Rule) { r.Read = []string{"*/*"} }); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); status("all", "/v1/top") != http.StatusOK; {
		if time.Now().After(deadline) {
			t.Fatal("the rule does not arrive")
		}
	}
	// Without a token, the rules decide on a loopback address, except for the operator.
	for operator, want := range map[bool]int{false: http.StatusForbidden, true: http.StatusOK} { // any order: each by itself
		g, err := gateway.Listen(gateway.Config{Addr: "127.0.0.1:0", Access: book, Questions: &asked{}, Operator: operator})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		h := g.Handler(empty{}, &ingress{})
		for _, path := range []string{"/v1/spaces/shop-1/lane", "/v1/top"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, http.NoBody))
			if w.Code != want {
				t.Errorf("operator %v: %s: status %d, want %d", operator, path, w.Code, want)
			}
		}
	}
}
