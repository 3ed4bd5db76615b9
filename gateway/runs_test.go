package gateway_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/model"
)

// finder is an ingress that finds a run in each space of the parameters that may be read.
type finder struct {
	ingress
	held chan struct{} // nil: it answers at once
	come chan struct{} // has an element for each search that is held
}

func (f *finder) FindRuns(ctx context.Context, parameters url.Values, mayRead func(space, document string) bool) (any, error) {
	if parameters.Get("state") == "late" {
		return nil, &model.ServiceError{Code: model.CodeBadRequest, Text: "there is no state late"}
	}
	found := []string{}
	for _, space := range parameters["space"] {
		if mayRead(space, "runs") {
			found = append(found, space)
		}
	}
	if f.held != nil {
		f.come <- struct{}{}
		select {
		case <-f.held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return map[string]any{"runs": found}, nil
}

// finding returns a function that searches runs in the name of a principal with rights on spaces a and b of three.
func finding(t *testing.T, f *finder) func(query string) (int, string) {
	t.Helper()
	s := newSite(t, gateway.Config{Principals: principalsFile(t, `{"principals": [{"name": "shop", "tokens_sha256": ["`+sum("secret")+`"], "read": ["a/runs", "b/*"]}]}`)})
	handler := s.g.Handler(s.source, f)
	return func(query string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/v1/runs"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer secret")
		w := &answer{header: http.Header{}, status: http.StatusOK}
		handler.ServeHTTP(w, r)
		return w.status, w.body.String()
	}
}

// answer is a response that is kept.
type answer struct {
	header http.Header
	status int
	body   strings.Builder
}

func (a *answer) Header() http.Header            { return a.header }
func (a *answer) WriteHeader(status int)         { a.status = status }
func (a *answer) Write(part []byte) (int, error) { return a.body.Write(part) }

// A search has what the caller may read.
func TestRuns_OnlyOfSpacesThatTheCallerMayRead(t *testing.T) {
	find := finding(t, &finder{})
	if status, body := find("?space=a&space=b&space=c"); status != http.StatusOK || body != `{"runs":["a","b"]}`+"\n" {
		t.Errorf("%d %s", status, body)
	}
	if status, body := find("?state=late"); status != http.StatusBadRequest || !strings.Contains(body, "there is no state late") {
		t.Errorf("%d %s", status, body)
	}
}

// A worker answers four searches at a time.
func TestRuns_ManySearchesAtATimeAreRefused(t *testing.T) {
	f := &finder{held: make(chan struct{}), come: make(chan struct{})}
	find := finding(t, f)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if status, body := find("?space=a"); status != http.StatusOK {
				t.Errorf("%d %s", status, body)
			}
		})
		<-f.come
	}
	if status, body := find("?space=a"); status != http.StatusTooManyRequests || !strings.Contains(body, "other searches") {
		t.Errorf("a fifth search: %d %s", status, body)
	}
	close(f.held)
	all.Wait()
	f.held = nil
	if status, body := find("?space=a"); status != http.StatusOK {
		t.Errorf("after them: %d %s", status, body)
	}
}
