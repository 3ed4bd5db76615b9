package gateway_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/testpki"
	"github.com/settlehq/settle/live"
)

// trusting returns a client that trusts certificates of the authority, and makes a connection for each request.
func trusting(t *testing.T, ca *testpki.Authority) *http.Client {
	t.Helper()
	text, err := os.ReadFile(ca.File)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true, ForceAttemptHTTP2: true}}
}

func getFrom(t *testing.T, client *http.Client, url string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// replace copies the files of one certificate over those of another, as a certificate manager does, with the time at
// which that happens.
func replace(t *testing.T, old, with testpki.Pair, at time.Time) {
	t.Helper()
	for from, to := range map[string]string{with.Cert: old.Cert, with.Key: old.Key} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err == nil {
			err = os.Chtimes(to, at, at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The gateway speaks HTTPS with its certificate, and with the one that replaces it, without losing a watch that is open. A
// certificate without its key replaces nothing.
func TestTLS_TheCertificateIsReplacedWhileWatchesAreOpen(t *testing.T) {
	ca := testpki.NewAuthority(t)
	p := ca.Issue(t, "first", "127.0.0.1")
	var log bytes.Buffer
	s := newSite(t, gateway.Config{TLSCert: p.Cert, TLSKey: p.Key, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.source.answer = live.Answer{Revision: 1, Found: true, Value: []byte("1")}
	url, client := "https://"+s.g.Addr()+doc, trusting(t, ca)
	serial := func() string {
		r := getFrom(t, client, url)
		if body := s.body(r); r.StatusCode != 200 || body != "1" {
			t.Errorf("%d %s", r.StatusCode, body)
		}
		return r.TLS.PeerCertificates[0].Subject.CommonName
	}
	if name := serial(); name != "first" {
		t.Errorf("the certificate is %s", name)
	}
	s.source.events <- live.Event{Kind: live.Value, Revision: 1, Data: []byte("1")}
	watch := bufio.NewReader(getFrom(t, client, url+"/watch").Body)

	replace(t, p, testpki.Pair{Cert: ca.Issue(t, "half", "127.0.0.1").Cert, Key: p.Key}, time.Now().Add(time.Minute))
	if name := serial(); name != "first" || !strings.Contains(log.String(), "the earlier one remains in use") {
		t.Errorf("the certificate is %s; log: %s", name, log.String())
	}
	replace(t, p, ca.Issue(t, "second", "127.0.0.1"), time.Now().Add(2*time.Minute))
	if name := serial(); name != "second" {
		t.Errorf("the certificate is %s", name)
	}
	s.source.events <- live.Event{Kind: live.Value, Revision: 2, Data: []byte("2")}
	for {
		line, err := watch.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "data: 2\n" {
			return
		}
	}
}

// Plain HTTP gets no document from a gateway with a certificate, nor does a page of its name that was sent without TLS.
func TestTLS_NothingIsServedWithout(t *testing.T) {
	ca := testpki.NewAuthority(t)
	p := ca.Issue(t, "server", "127.0.0.1")
	s := newSite(t, gateway.Config{TLSCert: p.Cert, TLSKey: p.Key})
	s.source.answer = live.Answer{Revision: 1, Found: true, Value: []byte("1")}
	if r := s.get(doc); r.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP: %d", r.StatusCode)
	}
	for origin, want := range map[string]int{"http://": http.StatusForbidden, "https://": http.StatusOK} {
		if r := getFrom(t, trusting(t, ca), "https://"+s.g.Addr()+doc, "Origin", origin+s.g.Addr()); r.StatusCode != want {
			t.Errorf("a page from %s: %d, not %d", origin, r.StatusCode, want)
		}
	}
}

func TestTLS_HalfACertificateIsRefused(t *testing.T) {
	p := testpki.NewAuthority(t).Issue(t, "server", "127.0.0.1")
	for _, cfg := range []gateway.Config{{TLSCert: p.Cert}, {TLSKey: p.Key}, {TLSCert: p.Key, TLSKey: p.Cert}, {TLSCert: "/nowhere", TLSKey: p.Key}} {
		cfg.Addr = "127.0.0.1:0"
		if g, err := gateway.Listen(cfg); err == nil {
			g.Close()
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
