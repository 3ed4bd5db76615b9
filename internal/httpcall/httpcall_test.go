package httpcall

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

// service answers as the path says. What it was asked last is in the answers.
func service(t *testing.T, elsewhere string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/json":
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"method":"`+r.Method+`","key":"`+r.Header.Get("Idempotency-Key")+`","secret":"`+r.Header.Get("X-Secret")+`","type":"`+r.Header.Get("Content-Type")+`","got":`+model.String(string(body)).String()+`}`)
		case "/text":
			w.Header().Set("Set-Cookie", "a=b")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "nothing here")
		case "/wrong":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{")
		case "/bytes":
			_, _ = w.Write([]byte{0xff, 0xfe})
		case "/large":
			_, _ = io.WriteString(w, strings.Repeat("a", MaxBody+1))
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "later")
		case "/circle":
			http.Redirect(w, r, "/circle", http.StatusFound)
		case "/away":
			http.Redirect(w, r, elsewhere+"/json", http.StatusTemporaryRedirect)
		case "/never":
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func caller(t *testing.T, private bool, rules ...string) *Caller {
	t.Helper()
	var all []Rule
	for _, text := range rules {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	c := New(all, private)
	t.Cleanup(c.Close)
	return c
}

func ask(t *testing.T, c *Caller, in string) string {
	t.Helper()
	v, err := model.ParseValue([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Do(t.Context(), "order-17", "e-1", v)
	if err != nil {
		return err.Error()
	}
	return out.Get("status").String() + " " + out.Get("body").String()
}

// A request is made as it was asked for, with the key of the task, and its answer is a value.
func TestDo_AsksAndReturnsAValue(t *testing.T) {
	s := service(t, "")
	c := caller(t, true, s.URL)
	for in, want := range map[string]string{ // any order: each on its own
		`{"url":"/json"}`: `200 {"got":"","key":"order-17","method":"GET","secret":"","type":""}`,
		`{"url":"/json","method":"POST","body":{"cents":5},"headers":{"X-Secret":"s","idempotency-key":"mine"}}`: `200 {"got":"{\"cents\":5}","key":"mine","method":"POST","secret":"s","type":"application/json"}`,
		`{"url":"/json","method":"PUT","body":"text"}`:                                                           `200 {"got":"text","key":"order-17","method":"PUT","secret":"","type":"text/plain; charset=utf-8"}`,
		`{"url":"/text"}`:                        `404 "nothing here"`,
		`{"url":"/wrong"}`:                       "AnswerError: the answer has the type of JSON",
		`{"url":"/bytes"}`:                       "AnswerError: ",
		`{"url":"/large"}`:                       "AnswerError: the answer has more than 131072 bytes",
		`{"url":"/busy"}`:                        "StatusError: 503: later",
		`{"url":"/circle"}`:                      "ConnectionError: more than 5 redirects",
		`{"url":"/json","method":"TRACE"}`:       "RequestError: the method",
		`{"url":"/json","verb":"GET"}`:           `RequestError: the input has a field "verb"`,
		`{"url":"/json","headers":{"Host":"x"}}`: "RequestError: header \"Host\" cannot be set",
		`{"url":"/json","headers":{"X":"a\nb"}}`: "RequestError: header \"X\" is not valid",
		`{"url":"/json","body":"` + strings.Repeat("a", MaxBody+1) + `"}`: "RequestError: the body has",
		`{}`:                      "RequestError: the input has no url",
		`{"url":"ftp://a.com/x"}`: "RequestError: ",
	} {
		in = strings.Replace(in, `"url":"/`, `"url":"`+s.URL+`/`, 1)
		if got := ask(t, c, in); !strings.HasPrefix(got, want) {
			t.Errorf("%.100s: %s, want %s", in, got, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Do(ctx, "k", "", model.Object(model.F("url", s.URL+"/never")))
	if e, is := errors.AsType[*Error](err); !is || e.Type != ConnectionError || e.Permanent() {
		t.Errorf("after the end of the attempt: %v", err)
	}
}

// Nothing is asked of a server that no rule names, whether by the program or by a redirect.
func TestDo_OnlyOfServersThatAreAllowed(t *testing.T) {
	other := service(t, "")
	s := service(t, other.URL)
	if got := ask(t, caller(t, true), `{"url":"`+s.URL+`/json"}`); !strings.HasPrefix(got, "NotAllowed: requests to http://127.0.0.1:") {
		t.Errorf("without rules: %s", got)
	}
	c := caller(t, true, s.URL)
	for in, want := range map[string]string{ // any order: each on its own
		`{"url":"` + other.URL + `/json"}`: "NotAllowed: ", `{"url":"` + s.URL + `/away"}`: "NotAllowed: ", `{"url":"http://localhost/x"}`: "NotAllowed: ",
		`{"url":"` + strings.Replace(s.URL, "http://", "http://u:p@", 1) + `/json"}`: "RequestError: an address must not contain a user",
		`{"url":"` + strings.Replace(s.URL, "http:", "https:", 1) + `/json"}`:        "NotAllowed: ",
	} {
		if got := ask(t, c, in); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	both := caller(t, true, s.URL, other.URL)
	if got := ask(t, both, `{"url":"`+s.URL+`/away","headers":{"X-Secret":"s"}}`); got != `200 {"got":"","key":"","method":"GET","secret":"","type":""}` {
		t.Errorf("a redirect to another server takes along what was meant for the first: %s", got)
	}
	if got := ask(t, both, `{"url":"`+s.URL+`/away","method":"POST","body":"s"}`); !strings.HasPrefix(got, "NotAllowed: a redirect of POST") {
		t.Errorf("a redirected body: %s", got)
	}
}

func TestRule_KnowsWhenNoRequestIsPossible(t *testing.T) {
	for rule, private := range map[string]bool{ // any order: each on its own
		"http://127.0.0.1:8080": true, "http://localhost": true, "http://LOCALHOST.": true, "https://[::1]": true, "https://10.0.0.7": true,
		"https://8.8.8.8": false, "https://api.example.com": false, "https://*.example.com": false, "http://localhost.example.com": false,
	} {
		if r, err := ParseRule(rule); err != nil || r.Private() != private {
			t.Errorf("%s: private is %t, and not %t: %v", rule, r.Private(), private, err)
		}
	}
}

// A name that is allowed does not lead to an address that is not public.
func TestDo_OnlyToPublicAddresses(t *testing.T) {
	s := service(t, "")
	if got := ask(t, caller(t, false, s.URL), `{"url":"`+s.URL+`/json"}`); got != "NotAllowed: the name leads to 127.0.0.1, which is no public address; --private allows those" {
		t.Errorf("the loopback address: %s", got)
	}
	for address, public := range map[string]bool{ // any order: each on its own
		"8.8.8.8:443": true, "[2606:4700::1111]:443": true, "[::ffff:8.8.8.8]:80": true,
		"127.0.0.1:80": false, "10.1.2.3:80": false, "192.168.0.1:80": false, "172.16.0.1:80": false, "169.254.169.254:80": false, "100.64.0.1:80": false, "0.0.0.0:80": false,
		"224.0.0.1:80": false, "255.255.255.255:80": false, "198.18.0.1:80": false, "[::1]:80": false, "[::]:80": false, "[::ffff:127.0.0.1]:80": false, "[fd00::1]:80": false,
		"[fe80::1]:80": false, "[64:ff9b::7f00:1]:80": false, "[2002:7f00:1::]:80": false, "[::127.0.0.1]:80": false, "localhost:80": false,
	} {
		if err := checkAddress(address); (err == nil) != public {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// A rule names a host, or all hosts below a domain, and nothing that is easily mistaken for it.
func TestRule_NamesHosts(t *testing.T) {
	for _, c := range []struct {
		rule, url string
		is        bool
	}{
		{"https://api.example.com", "https://api.example.com/x?y=1", true},
		{"https://api.example.com", "https://API.example.com.:443/", true},
		{"https://api.example.com", "http://api.example.com/", false},
		{"https://api.example.com", "https://api.example.com:8443/", false},
		{"https://api.example.com", "https://api.example.com.evil.org/", false},
		{"https://api.example.com", "https://evil.org/?https://api.example.com", false},
		{"https://*.example.com", "https://a.b.example.com/", true},
		{"https://*.example.com", "https://example.com/", false},
		{"https://*.example.com", "https://evilexample.com/", false},
		{"http://localhost:8080", "http://localhost:8080/x", true},
	} {
		r, err := ParseRule(c.rule)
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		if r.allows(u) != c.is {
			t.Errorf("%s allows %s: %v", c.rule, c.url, !c.is)
		}
	}
	for _, wrong := range []string{"", "api.example.com", "https://", "https://*", "https://*.com", "https://a*.example.com", "https://a.com/path", "https://u@a.com", "ftp://a.com", "https://a.com?x"} {
		if r, err := ParseRule(wrong); err == nil {
			t.Errorf("%q is the rule %+v", wrong, r)
		}
	}
}
