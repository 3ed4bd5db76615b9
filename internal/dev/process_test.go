package dev

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// script is an executable that is no worker.
func script(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// A process that serves nothing is reported, and ends when its standard input does; so is one that ends before it serves.
func TestProcess_ThatIsNoWorker(t *testing.T) {
	var out bytes.Buffer
	p, err := execute(script(t, "cat; echo bye"), "nats://127.0.0.1:1", "home", &out)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.serves(t.Context(), 50*time.Millisecond); !errors.Is(err, errSilent) {
		t.Errorf("a process that serves nothing: %v", err)
	}
	p.stop()
	if !strings.Contains(out.String(), "bye") {
		t.Errorf("it has printed %q", out.String())
	}
	if p, err = execute(script(t, "exit 3"), "nats://127.0.0.1:1", "home", &out); err != nil {
		t.Fatal(err)
	}
	if err := p.serves(t.Context(), time.Hour); err == nil || !strings.Contains(err.Error(), "it has ended: exit status 3") {
		t.Errorf("a process that ends: %v", err)
	}
}

// The proxy passes a request on as it came, waits for a program that is being replaced, and answers for one that does not run. Headers that the gateway
// in front has set are not there twice.
func TestProxy_IsAsTheWorkerItself(t *testing.T) {
	p := newProxy()
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		w.Header().Set("Vary", "Origin")
		w.Header().Set("X-Host", r.Host)
	}))
	defer worker.Close()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "front")
		w.Header().Set("Vary", "Origin")
		p.ServeHTTP(w, r)
	}))
	defer front.Close()
	get := func(ctx context.Context) (*http.Response, error) {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+"/v1/spaces", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Host = "localhost:7333"
		q.Header.Set("Origin", "http://localhost:7333")
		a, err := front.Client().Do(q)
		if err == nil {
			_ = a.Body.Close()
		}
		return a, err
	}
	come := time.AfterFunc(20*time.Millisecond, func() {
		to, err := url.Parse(worker.URL)
		if err != nil {
			t.Error(err)
		}
		p.to.Store(to)
	})
	defer come.Stop()
	a, err := get(t.Context())
	if err != nil || a.StatusCode != http.StatusOK || a.Header.Get("X-Host") != "localhost:7333" {
		t.Fatalf("%v, %v", a, err)
	}
	for _, header := range []string{"Access-Control-Allow-Origin", "Vary"} {
		if n := len(a.Header.Values(header)); n != 1 {
			t.Errorf("%s is there %d times", header, n)
		}
	}
	if a.Header.Get("Access-Control-Allow-Origin") != "front" {
		t.Errorf("the origin that may read is %s", a.Header.Get("Access-Control-Allow-Origin"))
	}
	worker.Close() // and the program is gone before the proxy knows
	if a, err = get(t.Context()); err != nil || a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") != "1" {
		t.Errorf("a program that is gone: %v, %v", a, err)
	}
}
