package dev_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// What a program logs, and what fails, is sent by OTLP where the standard variables ask for it, and is on the screen once.
func TestDev_SendsItsLogByOTLP(t *testing.T) {
	quietHome(t)
	var mu sync.Mutex
	var sent strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		sent.Write(body)
	}))
	defer collector.Close()
	defer http.DefaultClient.CloseIdleConnections()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	t.Setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", collector.URL)
	dir := t.TempDir()
	s := &server{T: t, dir: dir}
	s.write("talk.star", `
def say(e):
    log("a word of mine")
    return 1

def fall(e):
    fail("it is broken")

handle("say", say)
handle("fall", fall)
`)
	s = start(t, dir, nil)
	c := s.client()
	s.call(c, "talk", "say")
	s.call(c, "talk", "fall")
	s.await("it is broken")
	s.stop()
	for _, part := range []string{"settle-dev", "a word of mine", "event failed", "it is broken"} {
		mu.Lock()
		if !strings.Contains(sent.String(), part) {
			t.Errorf("%q was not sent: %q", part, sent.String())
		}
		mu.Unlock()
	}
	for _, part := range []string{"a word of mine", "it is broken"} {
		if n := strings.Count(s.out.String(), part); n != 1 {
			t.Errorf("%q is on the screen %d times:\n%s", part, n, s.out)
		}
	}
}
