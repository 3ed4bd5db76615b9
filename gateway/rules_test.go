package gateway_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/live"
)

// Once there is a rule, it decides: beside what an entry of the file says, alone for an entry that says nothing, and for the token
// of the configuration as for what has no principal.
func TestAccess_RulesDecideOnceThereIsOne(t *testing.T) {
	server := membus.NewServer(membus.Config{Partitions: 1})
	c := server.Connect("rules")
	t.Cleanup(c.Close)
	book, err := access.Open(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(book.Close)
	sum := func(token string) string {
		s := sha256.Sum256([]byte(token))
		return hex.EncodeToString(s[:])
	}
	file := filepath.Join(t.TempDir(), "principals.json")
	text := `{"principals": [
		{"name": "alice", "tokens_sha256": ["` + sum("a") + `"], "send": ["*/add", "*/pay"], "read": ["*/*"]},
		{"name": "bob", "tokens_sha256": ["` + sum("b") + `"]},
		{"name": "reads", "tokens_sha256": ["` + sum("r") + `"], "read": ["s/other"]},
		{"name": "sends", "tokens_sha256": ["` + sum("s") + `"], "send": ["s/other"]}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.Listen(gateway.Config{Addr: "127.0.0.1:0", Principals: file, Token: "all", Access: book})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	h := g.Handler(empty{}, &ingress{})
	status := func(token, method, path string) int {
		r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader("1"))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	const add, pay, n = "/v1/spaces/s/streams/add", "/v1/spaces/s/streams/pay", "/v1/spaces/s/documents/n"
	want := func(when string, code int, token, method, path string) {
		t.Helper()
		if got := status(token, method, path); got != code {
			t.Errorf("%s: %s %s %s: status %d, want %d", when, token, method, path, got, code)
		}
	}
	want("open", http.StatusAccepted, "a", "POST", add)
	want("open", http.StatusNotFound, "a", "GET", n)
	want("open", http.StatusForbidden, "b", "POST", add)
	want("open", http.StatusNotFound, "all", "GET", n)

	for principal, r := range map[string]access.Rule{ // any order: each on its own
		"alice": {Send: []string{"s/add", "s/other"}}, "b*": {Send: []string{"s/pay"}, Read: []string{"s/n"}}, "*s": {Send: []string{"s/*"}, Read: []string{"s/*"}},
	} {
		if _, err := access.Change(t.Context(), c, principal, func(to *access.Rule) { to.Send, to.Read = r.Send, r.Read }); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for len(book.Rules().All()) < 3 {
		if _, err := c.LoadRecord(ctx, "access.none"); err != nil { // a round through the server
			t.Fatal(err)
		}
	}
	want("closed", http.StatusAccepted, "a", "POST", add)
	want("closed", http.StatusForbidden, "a", "POST", pay)
	want("closed", http.StatusForbidden, "a", "POST", "/v1/spaces/s/streams/other")
	want("closed", http.StatusForbidden, "a", "GET", n)
	want("closed", http.StatusAccepted, "b", "POST", pay)
	want("closed", http.StatusForbidden, "b", "POST", add)
	want("closed", http.StatusNotFound, "b", "GET", n)
	for _, token := range []string{"r", "s"} { // an entry that says one thing of two leaves nothing to the rules
		want("closed", http.StatusForbidden, token, "POST", pay)
		want("closed", http.StatusForbidden, token, "GET", n)
	}
	want("closed", http.StatusForbidden, "all", "GET", n)
}

// empty has no document.
type empty struct{}

func (empty) Get(context.Context, live.Get) (live.Answer, error) { return live.Answer{}, nil }

func (empty) Watch(ctx context.Context, _ live.Watch, _ func(live.Event) error) error {
	<-ctx.Done()
	return ctx.Err()
}
