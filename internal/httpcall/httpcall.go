// Package httpcall makes the HTTP requests that tasks of programs ask for, to servers that an operator has allowed and to no others.
//
// What a program asks for is not believed: the address is compared with the rules before each request and each redirect, and the address to
// which a name resolves is compared once more when the connection is made, so that a name of a public server cannot lead into the network of
// the operator. Time and sizes are bounded. See docs/adr/0087.
package httpcall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/settlehq/settle/model"
)

// Bounds of a request.
const (
	// MaxBody is the largest body of a request and of an answer, in bytes.
	MaxBody = 128 << 10
	// MaxTime is how long a request may take, redirects included.
	MaxTime = time.Minute

	maxURL       = 4 << 10
	maxHeaders   = 50
	maxHeader    = 4 << 10
	maxRedirects = 5
)

// Types of errors.
const (
	// NotAllowed: no rule allows the request. Another attempt cannot succeed, nor one after a RequestError.
	NotAllowed = "NotAllowed"
	// RequestError: what is asked for is no request.
	RequestError = "RequestError"
	// ConnectionError: there was no answer.
	ConnectionError = "ConnectionError"
	// StatusError: the server has answered 429, or 500 or above.
	StatusError = "StatusError"
	// AnswerError: the answer is too large, or neither JSON nor text.
	AnswerError = "AnswerError"
)

// Error is why there is no result.
type Error struct{ Type, Message string }

func (e *Error) Error() string { return e.Type + ": " + e.Message }

// Permanent reports whether another attempt cannot succeed either.
func (e *Error) Permanent() bool { return e.Type == NotAllowed || e.Type == RequestError }

func failed(kind, format string, args ...any) *Error {
	return &Error{kind, fmt.Sprintf(format, args...)}
}

// Rule allows requests to a host.
type Rule struct {
	scheme, host, port string
	below              bool // all hosts below host, and not itself
}

// ParseRule reads a rule: https://api.example.com, https://*.example.com, http://localhost:8080. It has no path.
func ParseRule(text string) (Rule, error) {
	wrong := func(why string) (Rule, error) {
		return Rule{}, fmt.Errorf("%q %s; write one such as https://api.example.com or https://*.example.com", text, why)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return wrong("is no address")
	case u.Scheme != "https" && u.Scheme != "http":
		return wrong("begins with neither https:// nor http://")
	case u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || u.Opaque != "" || u.ForceQuery:
		return wrong("has more than a host and a port")
	}
	r := Rule{scheme: u.Scheme, port: portOf(u)}
	r.host, r.below = strings.CutPrefix(hostOf(u), "*.")
	if r.host == "" || strings.ContainsAny(r.host, "*?[] ") || r.below && !strings.Contains(r.host, ".") {
		return wrong("names no host; an asterisk stands for the first part of one, in front of a domain and its top-level domain")
	}
	return r, nil
}

// Private reports whether the rule names a host that is an address which is not public, or localhost: no request to it is possible unless private
// addresses are allowed.
func (r Rule) Private() bool {
	return r.host == "localhost" || net.ParseIP(r.host) != nil && checkAddress(net.JoinHostPort(r.host, r.port)) != nil
}

func hostOf(u *url.URL) string { return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) }

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

func (r Rule) allows(u *url.URL) bool {
	host := hostOf(u)
	is := host == r.host
	if r.below {
		is = strings.HasSuffix(host, "."+r.host)
	}
	return is && u.Scheme == r.scheme && portOf(u) == r.port
}

// Caller makes requests.
type Caller struct {
	rules  []Rule
	client http.Client
}

// New returns a caller for the hosts of the rules. Unless private is set, a connection to an address that is not public is refused, whatever its name.
func New(rules []Rule, private bool) *Caller {
	c := &Caller{rules: rules}
	dialer := net.Dialer{Timeout: 10 * time.Second}
	if !private {
		dialer.Control = func(_, address string, _ syscall.RawConn) error { return checkAddress(address) }
	}
	c.client = http.Client{
		Timeout: MaxTime,
		Transport: &http.Transport{ // without a proxy, whose address would be the one that is checked
			DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
		},
		CheckRedirect: c.redirect,
	}
	return c
}

// Close ends idle connections.
func (c *Caller) Close() { c.client.CloseIdleConnections() }

// special are networks with addresses that look public and lead elsewhere.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// checkAddress returns an error unless an address is a public one.
func checkAddress(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return failed(NotAllowed, "the address %s is none", address)
	}
	ip := at.Addr().Unmap()
	public := ip.IsGlobalUnicast() && !ip.IsPrivate() && !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) })
	if !public {
		return failed(NotAllowed, "the name leads to %s, which is no public address; --private allows those", ip)
	}
	return nil
}

func (c *Caller) check(u *url.URL) *Error {
	if u.User != nil {
		return failed(RequestError, "an address must not contain a user or a password")
	}
	if !slices.ContainsFunc(c.rules, func(r Rule) bool { return r.allows(u) }) {
		return failed(NotAllowed, "requests to %s://%s are not allowed here; the operator names the hosts that are", u.Scheme, u.Host)
	}
	return nil
}

// redirect is called before a redirect is followed.
func (c *Caller) redirect(to *http.Request, via []*http.Request) error {
	if err := c.check(to.URL); err != nil {
		return err
	}
	first := via[0]
	switch {
	case len(via) > maxRedirects:
		return failed(ConnectionError, "more than %d redirects", maxRedirects)
	case to.URL.Scheme == first.URL.Scheme && to.URL.Host == first.URL.Host:
	case to.Method != http.MethodGet && to.Method != http.MethodHead:
		return failed(NotAllowed, "a redirect of %s to another host is not followed", to.Method)
	default: // what was meant for one server is not for another one
		to.Header = http.Header{}
	}
	return nil
}

var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// ownHeaders belong to the protocol, or name the one that asks.
var ownHeaders = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Accept-Encoding", "Expect"}

// Do makes the request of a task: {"url": ..., "method": "GET", "headers": {...}, "body": VALUE}. The result is {"status": 200, "headers": {...}, "body": VALUE}, with
// a body that is the value of JSON, or else a text. key goes along as the header Idempotency-Key and event, if there is one, as Settle-Event, unless the task has
// others. The error is an *Error.
func (c *Caller) Do(ctx context.Context, key, event string, in model.Value) (model.Value, error) {
	r, wrong := request(ctx, key, event, in)
	if wrong == nil {
		wrong = c.check(r.URL)
	}
	if wrong != nil {
		return model.Value{}, wrong
	}
	a, err := c.client.Do(r)
	if err != nil {
		if own, is := errors.AsType[*Error](err); is {
			return model.Value{}, own
		}
		return model.Value{}, failed(ConnectionError, "%v", err)
	}
	defer func() { _ = a.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(a.Body, MaxBody+1))
	switch {
	case err != nil:
		return model.Value{}, failed(ConnectionError, "the answer ends early: %v", err)
	case a.StatusCode == http.StatusTooManyRequests || a.StatusCode >= 500:
		return model.Value{}, failed(StatusError, "%d: %.500s", a.StatusCode, strings.ToValidUTF8(string(body), "?"))
	case len(body) > MaxBody:
		return model.Value{}, failed(AnswerError, "the answer has more than %d bytes", MaxBody)
	}
	return answer(a, body)
}

func request(ctx context.Context, key, event string, in model.Value) (*http.Request, *Error) {
	for name := range in.All() {
		if !slices.Contains([]string{"url", "method", "headers", "body"}, name) {
			return nil, failed(RequestError, "the input has a field %.50q; a request has url, method, headers and body", name)
		}
	}
	address, is := in.Get("url").AsString()
	if !is || address == "" || len(address) > maxURL {
		return nil, failed(RequestError, "the input has no url, or one of more than %d bytes", maxURL)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, failed(RequestError, "%.200q is no address that begins with https:// or http://", address)
	}
	method := http.MethodGet
	if m := in.Get("method"); !m.IsAbsent() {
		if method, _ = m.AsString(); !slices.Contains(methods, method) {
			return nil, failed(RequestError, "the method is %.50s; it is one of %s", m, strings.Join(methods, ", "))
		}
	}
	var body io.Reader
	kind := ""
	if v := in.Get("body"); !v.IsAbsent() && !v.IsNull() {
		text, isText := v.AsString()
		kind = "text/plain; charset=utf-8"
		if !isText {
			text, kind = v.String(), "application/json"
		}
		if len(text) > MaxBody {
			return nil, failed(RequestError, "the body has %d bytes; at most %d are possible", len(text), MaxBody)
		}
		body = bytes.NewReader([]byte(text))
	}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, failed(RequestError, "%v", err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	r.Header.Set("Accept", "application/json, text/*;q=0.5")
	r.Header.Set("User-Agent", "settle")
	r.Header.Set("Idempotency-Key", key)
	if event != "" {
		r.Header.Set("Settle-Event", event)
	}
	return r, addHeaders(r, in.Get("headers"))
}

func addHeaders(r *http.Request, headers model.Value) *Error {
	if headers.Len() > maxHeaders {
		return failed(RequestError, "there are %d headers; at most %d are possible", headers.Len(), maxHeaders)
	}
	for name, v := range headers.All() {
		text, is := v.AsString()
		switch {
		case !is || !isToken(name) || !isLine(text) || len(text) > maxHeader:
			return failed(RequestError, "header %.50q is not valid: a name, and a text of at most %d bytes in one line", name, maxHeader)
		case slices.Contains(ownHeaders, http.CanonicalHeaderKey(name)):
			return failed(RequestError, "header %.50q cannot be set", name)
		}
		r.Header.Set(name, text)
	}
	return nil
}

// isToken reports whether a text can be the name of a header.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// isLine reports whether a text can be the value of a header.
func isLine(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// answer returns the result.
func answer(a *http.Response, body []byte) (model.Value, error) {
	var headers []model.Field
	for name, values := range a.Header { // any order: an object is sorted
		if len(headers) < maxHeaders && len(values) > 0 && len(values[0]) <= maxHeader && name != "Set-Cookie" {
			headers = append(headers, model.Field{Key: strings.ToLower(name), Value: model.String(values[0])})
		}
	}
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	v := model.Null()
	switch isJSON := kind == "application/json" || strings.HasSuffix(kind, "+json"); {
	case len(bytes.TrimSpace(body)) == 0:
	case isJSON:
		var err error
		if v, err = model.ParseValue(bytes.TrimSpace(body)); err != nil {
			return v, failed(AnswerError, "the answer has the type of JSON and is none: %v", err)
		}
	case !utf8.Valid(body):
		return v, failed(AnswerError, "the answer, of type %.100q, is neither JSON nor text", kind)
	default:
		v = model.String(string(body))
	}
	return model.Object(
		model.Field{Key: "status", Value: model.Int(int64(a.StatusCode))}, model.Field{Key: "headers", Value: model.Object(headers...)}, model.Field{Key: "body", Value: v},
	), nil
}
