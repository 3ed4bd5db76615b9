package gateway_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// ingress keeps the events that it is given.
type ingress struct {
	mu      sync.Mutex
	events  []gateway.Event
	err     error
	receipt *model.Receipt
	spaces  []string
	// held is closed when awaits may return; nil for at once.
	held, waits chan struct{}
}

func (in *ingress) Send(_ context.Context, e *gateway.Event) (string, bool, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.err != nil {
		return "", false, in.err
	}
	duplicate := false
	for _, other := range in.events {
		duplicate = duplicate || e.ID != "" && other.ID == e.ID
	}
	in.events = append(in.events, *e)
	if e.ID == "" {
		return "minted", duplicate, nil
	}
	return e.ID, duplicate, nil
}

func (in *ingress) Await(ctx context.Context, _ *gateway.Event, _ string) (*model.Receipt, error) {
	if in.held == nil {
		return in.receipt, nil
	}
	close(in.waits)
	select {
	case <-in.held:
		return in.receipt, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (in *ingress) FindSpaces(_ context.Context, pattern, after string, limit int) (names []string, next string, err error) {
	for _, name := range in.spaces {
		if name > after && model.MatchesPattern(pattern, name) && len(names) < limit {
			names = append(names, name)
		}
	}
	return names, "", nil
}

func (in *ingress) last() gateway.Event {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.events[len(in.events)-1]
}

const add = "/v1/spaces/alice/streams/add"

func TestSend_StoresTheEvent(t *testing.T) {
	s := newSite(t, gateway.Config{})
	r := s.askWith(http.MethodPost, add, `{"n":1}`, "Content-Type", "application/json; charset=utf-8", "Idempotency-Key", `"order 17"`)
	if body := s.body(r); r.StatusCode != http.StatusAccepted || body != `{"duplicate":false,"event":"order 17"}`+"\n" {
		t.Errorf("%d %s", r.StatusCode, body)
	}
	e := s.ingress.last()
	if e.By != "" || e.Space != "alice" || e.Stream != "add" || e.ID != "order 17" || e.Payload.String() != `{"n":1}` || !e.NotBefore.IsZero() || !e.Expires.IsZero() {
		t.Errorf("stored: %+v", e)
	}
	r = s.askWith(http.MethodPost, add, "", "Idempotency-Key", "order 17")
	if body := s.body(r); r.StatusCode != http.StatusAccepted || !strings.Contains(body, `"duplicate":true`) {
		t.Errorf("again: %d %s", r.StatusCode, body)
	}
	before := time.Now()
	if r = s.askWith(http.MethodPost, add+"?after=1h&expires=2h", ""); r.StatusCode != http.StatusAccepted {
		t.Errorf("without a payload: %d %s", r.StatusCode, s.body(r))
	}
	if e := s.ingress.last(); !e.Payload.IsAbsent() || e.NotBefore.Before(before.Add(time.Hour)) || e.Expires.Sub(e.NotBefore) < 59*time.Minute {
		t.Errorf("stored: %+v", e)
	}
}

// What is wrong with a request is said before anything is stored.
func TestSend_RefusesBeforeAnythingIsStored(t *testing.T) {
	s := newSite(t, gateway.Config{})
	for name, c := range map[string]struct {
		query, body, says string
		headers           []string
		code              int
	}{
		"not JSON":           {"", "{", "the payload is not JSON", []string{"Content-Type", "application/json"}, 400},
		"a form":             {"", "a=1", "send it with Content-Type: application/json", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		"no type":            {"", "1", "send it with Content-Type: application/json", nil, 415},
		"too large":          {"", `"` + strings.Repeat("x", 1<<20) + `"`, "more than 1048576 bytes", []string{"Content-Type", "application/json"}, 413},
		"an empty key":       {"", "", "Idempotency-Key is empty", []string{"Idempotency-Key", `""`}, 400},
		"a long key":         {"", "", "has 257 bytes, of which 256 are allowed", []string{"Idempotency-Key", strings.Repeat("k", 257)}, 400},
		"wait":               {"?wait=long", "", "use receipt, or leave it out", nil, 400},
		"timeout":            {"?wait=receipt&timeout=2h", "", "a duration of at most 1m0s", nil, 400},
		"negative timeout":   {"?wait=receipt&timeout=-1s", "", "a duration of at most 1m0s", nil, 400},
		"after":              {"?after=-1s", "", "after is", nil, 400},
		"expires":            {"?expires=soon", "", "expires is", nil, 400},
		"of another site":    {"", "", "pages of this origin are not allowed", []string{"Origin", "https://elsewhere.example"}, 403},
		"of no certain page": {"", "", "pages of this origin are not allowed", []string{"Sec-Fetch-Site", "cross-site"}, 403},
	} {
		r := s.askWith(http.MethodPost, add+c.query, c.body, c.headers...)
		if body := s.body(r); r.StatusCode != c.code || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d %s", name, r.StatusCode, body)
		}
	}
	if len(s.ingress.events) > 0 {
		t.Errorf("stored: %+v", s.ingress.events)
	}
}

func TestSend_WaitsForTheReceipt(t *testing.T) {
	s := newSite(t, gateway.Config{})
	s.ingress.receipt = &model.Receipt{Outcome: model.Handled, Result: model.Int(7)}
	r := s.askWith(http.MethodPost, add+"?wait=receipt", "", "Idempotency-Key", "e1")
	if body := s.body(r); r.StatusCode != http.StatusOK || body != `{"duplicate":false,"event":"e1","outcome":"handled","result":7}`+"\n" {
		t.Errorf("handled: %d %s", r.StatusCode, body)
	}
	s.ingress.receipt = &model.Receipt{Outcome: model.Failed, Error: "the shelf is empty"}
	r = s.askWith(http.MethodPost, add+"?wait=receipt", "", "Idempotency-Key", "e2")
	if body := s.body(r); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(body, `"detail":"the shelf is empty"`) || !strings.Contains(body, `"outcome":"failed"`) {
		t.Errorf("failed: %d %s", r.StatusCode, body)
	}
	no := &receipts.Rejection{Code: "full", Message: "no place is left", Data: model.MustOf(map[string]int{"free": 0})}
	s.ingress.receipt = receipts.Rejected(&model.Event{ID: "order-17"}, no)
	r = s.askWith(http.MethodPost, add+"?wait=receipt", "", "Idempotency-Key", "order-17")
	want := `{"code":"full","data":{"free":0},"detail":"no place is left","duplicate":false,"event":"order-17","outcome":"rejected","status":422,` +
		`"title":"The handler has rejected the event","type":"https://github.com/settlehq/settle/blob/main/docs/problems.md#rejected"}`
	if body := s.body(r); r.StatusCode != http.StatusUnprocessableEntity || body != want+"\n" {
		t.Errorf("rejected: %d %s", r.StatusCode, body)
	}
	s.ingress.held, s.ingress.waits = make(chan struct{}), make(chan struct{})
	r = s.askWith(http.MethodPost, add+"?wait=receipt&timeout=1ms", "", "Idempotency-Key", "e3")
	if body := s.body(r); r.StatusCode != http.StatusAccepted || !strings.Contains(body, `"pending":"there is no receipt yet`) {
		t.Errorf("not yet: %d %s", r.StatusCode, body)
	}
}

// A worker that leaves does not wait for receipts.
func TestSend_AWaitEndsWhenTheWorkerLeaves(t *testing.T) {
	s := newSite(t, gateway.Config{})
	s.ingress.held, s.ingress.waits = make(chan struct{}), make(chan struct{})
	go func() { // ends when the request waits
		<-s.ingress.waits
		s.leave()
	}()
	r := s.askWith(http.MethodPost, add+"?wait=receipt&timeout=1m", "", "Idempotency-Key", "e1")
	if body := s.body(r); r.StatusCode != http.StatusAccepted || !strings.Contains(body, `"pending"`) {
		t.Errorf("%d %s", r.StatusCode, body)
	}
}

func TestSend_ErrorsOfTheStore(t *testing.T) {
	s := newSite(t, gateway.Config{})
	for want, err := range map[int]error{
		503: fmt.Errorf("send: %w", model.ErrLaneFull), 413: fmt.Errorf("send: %w", model.ErrTooLarge),
		404: &model.ServiceError{Code: model.CodeNotFound, Text: "no handler"},
	} {
		s.ingress.err = err
		if r := s.askWith(http.MethodPost, add, ""); r.StatusCode != want || (want == 503) != (r.Header.Get("Retry-After") != "") {
			t.Errorf("%v: %d", err, r.StatusCode)
		}
	}
}

func sum(token string) string {
	s := sha256.Sum256([]byte(token))
	return hex.EncodeToString(s[:])
}

// principalsFile writes a file of principals.
func principalsFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "principals.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPrincipals_SendAndReadWhatTheirEntriesAllow(t *testing.T) {
	file := principalsFile(t, `{"principals": [
		{"name": "shop", "tokens_sha256": ["`+sum("old")+`", "`+sum("new")+`"], "send": ["ali*/add"], "read": ["alice/tot*"]},
		{"name": "sign", "tokens_sha256": ["`+sum("sign")+`"], "read": ["*/*"]}
	]}`)
	s := newSite(t, gateway.Config{Principals: file, Token: "all"})
	close(s.source.events) // a watch that is allowed would end at once
	for name, c := range map[string]struct {
		method, path, token string
		want                int
	}{
		"sends":                       {"POST", add, "old", 202},
		"sends with another token":    {"POST", add, "new", 202},
		"another stream":              {"POST", "/v1/spaces/alice/streams/pay", "old", 403},
		"another space":               {"POST", "/v1/spaces/bob/streams/add", "old", 403},
		"reads":                       {"GET", doc, "old", 200},
		"another document":            {"GET", "/v1/spaces/alice/documents/n", "old", 403},
		"watches another document":    {"GET", "/v1/spaces/alice/documents/n/watch", "old", 403},
		"a reader sends":              {"POST", add, "sign", 403},
		"a reader reads":              {"GET", "/v1/spaces/bob/documents/n", "sign", 200},
		"the token sends":             {"POST", add, "all", 403},
		"the token reads":             {"GET", doc, "all", 200},
		"no token":                    {"POST", add, "", 401},
		"a wrong token":               {"GET", doc, "wrong", 401},
		"the sum in place of a token": {"GET", doc, sum("sign"), 401},
	} {
		s.source.answer.Found, s.source.answer.Value = true, []byte("1")
		r := s.askWith(c.method, c.path, "", "Authorization", "Bearer "+c.token)
		if body := s.body(r); r.StatusCode != c.want {
			t.Errorf("%s: %d %s", name, r.StatusCode, body)
		}
	}
	if e := s.ingress.last(); e.By != "shop" {
		t.Errorf("stored: %+v", e)
	}
	if r := s.askWith(http.MethodPost, add+"?access_token=old", ""); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token in the address of a send: status %d", r.StatusCode)
	}
}

// The requests of a principal are limited, and those of others are not by that.
func TestPrincipals_HaveLimits(t *testing.T) {
	file := principalsFile(t, `{"principals": [
		{"name": "shop", "tokens_sha256": ["`+sum("shop")+`"], "send": ["*/*"], "read": ["*/*"], "requests_per_second": 0.001},
		{"name": "slow", "tokens_sha256": ["`+sum("slow")+`"], "send": ["*/*"], "requests_at_a_time": 1},
		{"name": "sign", "tokens_sha256": ["`+sum("sign")+`"], "read": ["*/*"], "watches": 1}
	]}`)
	s := newSite(t, gateway.Config{Principals: file})
	send := func(token, query string) (int, string) {
		r := s.askWith(http.MethodPost, add+query, "", "Authorization", "Bearer "+token)
		if r.StatusCode == http.StatusTooManyRequests && r.Header.Get("Retry-After") == "" {
			t.Error("the answer does not say when to try again")
		}
		return r.StatusCode, s.body(r)
	}
	if code, body := send("shop", ""); code != http.StatusAccepted {
		t.Errorf("the first request: %d %s", code, body)
	}
	if code, body := send("shop", ""); code != http.StatusTooManyRequests || !strings.Contains(body, "more than 0.001 requests per second") {
		t.Errorf("the second request: %d %s", code, body)
	}

	s.ingress.held, s.ingress.waits = make(chan struct{}), make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() { // ends when held is closed
		if code, body := send("slow", "?wait=receipt&timeout=1m"); code != http.StatusOK {
			t.Errorf("the one that waits: %d %s", code, body)
		}
	})
	s.ingress.receipt = &model.Receipt{Outcome: model.Handled}
	<-s.ingress.waits
	if code, body := send("slow", ""); code != http.StatusTooManyRequests || !strings.Contains(body, "has 1 requests at a time") {
		t.Errorf("beside one that waits: %d %s", code, body)
	}
	close(s.ingress.held)
	waiting.Wait()
	if code, body := send("slow", ""); code != http.StatusAccepted {
		t.Errorf("after it: %d %s", code, body)
	}

	watch := func() *http.Response { return s.get(doc+"/watch", "Authorization", "Bearer sign") }
	s.source.events <- live.Event{Kind: live.Deleted}
	if r := watch(); r.StatusCode != http.StatusOK {
		t.Errorf("a watch: %d", r.StatusCode)
	}
	if r := watch(); r.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a second watch: %d", r.StatusCode)
	}
}

// The file is read again when it changes. One that is wrong is logged, and the earlier one remains in use.
func TestPrincipals_AreReadAgain(t *testing.T) {
	entry := func(token string) string {
		return `{"principals": [{"name": "shop", "tokens_sha256": ["` + sum(token) + `"], "send": ["*/*"]}]}`
	}
	file := principalsFile(t, entry("one"))
	s := newSite(t, gateway.Config{Principals: file})
	at := time.Now()
	write := func(text string) {
		t.Helper()
		at = at.Add(time.Second)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	code := func(token string) int {
		return s.askWith(http.MethodPost, add, "", "Authorization", "Bearer "+token).StatusCode
	}
	if one, two := code("one"), code("two"); one != 202 || two != 401 {
		t.Errorf("at first: %d, %d", one, two)
	}
	write("{")
	if one := code("one"); one != 202 {
		t.Errorf("beside a broken file: %d", one)
	}
	write(entry("two"))
	if one, two := code("one"), code("two"); one != 401 || two != 202 {
		t.Errorf("after the change: %d, %d", one, two)
	}
}

func TestPrincipals_AFileThatIsWrongIsRefusedAtTheStart(t *testing.T) {
	for says, text := range map[string]string{
		"unexpected EOF":                   `{"principals": [`,
		"unknown field":                    `{"principals": [{"name": "a", "token": "x"}]}`,
		"operator: the name is that":       `{"principals": [{"name": "operator", "tokens_sha256": ["` + sum("a") + `"]}]}`,
		"entry 1 (a b): principal":         `{"principals": [{"name": "a b", "tokens_sha256": ["` + sum("a") + `"]}]}`,
		"entry 1 (a): it has no token":     `{"principals": [{"name": "a"}]}`,
		"it has 64 hexadecimal digits":     `{"principals": [{"name": "a", "tokens_sha256": ["secret"]}]}`,
		"principal a is there twice":       `{"principals": [{"name": "a", "tokens_sha256": ["` + sum("a") + `"]}, {"name": "a", "tokens_sha256": ["` + sum("b") + `"]}]}`,
		"principals a and b have the same": `{"principals": [{"name": "a", "tokens_sha256": ["` + sum("a") + `"]}, {"name": "b", "tokens_sha256": ["` + sum("a") + `"]}]}`,
		`"add" is no pattern`:              `{"principals": [{"name": "a", "tokens_sha256": ["` + sum("a") + `"], "send": ["add"]}]}`,
		`"[a]/b" is no pattern`:            `{"principals": [{"name": "a", "tokens_sha256": ["` + sum("a") + `"], "read": ["[a]/b"]}]}`,
		"a limit is negative":              `{"principals": [{"name": "a", "tokens_sha256": ["` + sum("a") + `"], "watches": -1}]}`,
		"there is more after the object":   `{"principals": []} {}`,
	} {
		g, err := gateway.Listen(gateway.Config{Addr: "127.0.0.1:0", Principals: principalsFile(t, text)})
		if err == nil {
			g.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; want %q", text, err, says)
		}
	}
}
