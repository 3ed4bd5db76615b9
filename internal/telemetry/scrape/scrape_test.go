package scrape

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

func get(t *testing.T, s *Server, path string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text)
}

func listen(t *testing.T, profiles bool) *Server {
	t.Helper()
	s, err := Listen(t.Context(), Config{
		Addr: "127.0.0.1:0", Profiles: profiles, Logger: slog.New(slog.DiscardHandler),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "some_metric 1\n") }),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestServer_IsLiveAtOnceAndReadyWhenItServes(t *testing.T) {
	t.Parallel()
	s := listen(t, false)
	want := func(path string, status int, text string) {
		t.Helper()
		if got, body := get(t, s, path); got != status || !strings.Contains(body, text) {
			t.Errorf("%s answers %d %q, not %d %q", path, got, body, status, text)
		}
	}
	want("/livez", 200, "ok")
	want("/readyz", 503, "starting")
	want("/metrics", 200, "some_metric 1")
	s.Ready(func() error { return nil })
	want("/readyz", 200, "ok")
	s.Ready(func() error { return errors.New("no server is reachable") })
	want("/readyz", 503, "no server is reachable")
	want("/debug/pprof/", 404, "")
	want("/", 404, "")
}

func TestServer_ServesProfilesIfAsked(t *testing.T) {
	t.Parallel()
	s := listen(t, true)
	if status, body := get(t, s, "/debug/pprof/"); status != 200 || !strings.Contains(body, "goroutine") {
		t.Errorf("%d %s", status, body)
	}
}

// An address that is taken is an error that names the flag.
func TestListen_AnAddressThatIsTaken(t *testing.T) {
	t.Parallel()
	s := listen(t, false)
	_, err := Listen(t.Context(), Config{Addr: s.Addr(), Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "--metrics") {
		t.Errorf("the error is %v", err)
	}
}
