package dev_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/access"
)

var formToken = regexp.MustCompile(`name="token" value="([^"]+)"`)

// A rule of a developer closes the deployment to clients without a principal, and not its own console: that shows everything, operates, and sends in the
// name of the operator. The interface for programs, at the same address, obeys the rules.
func TestDev_ItsConsoleIsThatOfTheOperator(t *testing.T) {
	quietHome(t)
	dir := t.TempDir()
	s := &server{T: t, dir: dir}
	s.write("shop.star", tally("a", "1"))
	s = start(t, dir, nil)
	s.call(s.client(), "shop", "add")
	if _, err := access.Change(t.Context(), s.bus(), "alice", func(r *access.Rule) { r.Send, r.Read = []string{"shop/*"}, []string{"shop/*"} }); err != nil {
		t.Fatal(err)
	}
	jar, _ := cookiejar.New(nil) // never fails
	browser := http.Client{Jar: jar, Timeout: patience, Transport: &http.Transport{}}
	t.Cleanup(browser.CloseIdleConnections)
	asks := func(method, path, kind, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.server.HTTP+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		answer, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	const jsonType, n = "application/json", "/v1/spaces/shop/documents/count"
	deadline := time.Now().Add(patience)
	for code := 0; code != http.StatusForbidden; { // workers follow the rules, moments later
		var text string
		if code, text = asks(http.MethodGet, n, jsonType, ""); time.Now().After(deadline) {
			t.Fatalf("a client without a principal reads: %d %s", code, text)
		}
	}
	if code, text := asks(http.MethodPost, "/v1/spaces/shop/streams/add?wait=receipt", jsonType, ""); code != http.StatusForbidden {
		t.Errorf("a client without a principal sends: %d %s", code, text)
	}
	for path, want := range map[string]string{"/": "add to shop: 1 event was refused over HTTP, and not stored", "/spaces": "shop", "/spaces/shop": "product", "/settings": `(?s)refused over HTTP.*a client without a principal may not send events of stream add to space shop`, "/fleet": "w1", "/spaces/shop/graph": "constant"} { // any order: pages are independent
		for { // workers are seen moments after they have begun
			code, text := asks(http.MethodGet, path, "", "")
			if code == http.StatusOK && regexp.MustCompile(want).MatchString(text) {
				break
			}
			if time.Now().After(deadline) || code == http.StatusForbidden {
				t.Fatalf("%s: %d, without %q: %s", path, code, want, text)
			}
		}
	}
	_, text := asks(http.MethodGet, "/spaces/shop", "", "")
	token := formToken.FindStringSubmatch(text)
	if token == nil {
		t.Fatalf("no form has a token: %s", text)
	}
	form := url.Values{"token": {token[1]}, "space": {"shop"}, "stream": {"add"}, "id": {"mine"}, "back": {"/spaces/shop"}}
	const formType = "application/x-www-form-urlencoded"
	if code, text := asks(http.MethodPost, "/-/do/send", formType, form.Encode()); code != http.StatusOK || !strings.Contains(text, "add mine was handled, with the result 2") {
		t.Errorf("the form sends: %d %s", code, text)
	}
}
