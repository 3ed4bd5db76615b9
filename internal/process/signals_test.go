package process

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
)

// A program with --metrics serves them, and is ready while it runs.
func TestRun_ServesMetricsAndHealth(t *testing.T) {
	t.Parallel()
	s := natstest.StartServer(t, embedded.Config{Listen: ":0"})
	ctx, end := context.WithCancel(t.Context())
	defer end()
	r, w := io.Pipe()
	f := parse(t, "--nats", s.ClientURL(), "--partitions", "1", "--id", "p1", "--metrics", "127.0.0.1:0")
	done := make(chan error, 1)
	var at string
	stopping := make(chan struct{})
	go func() { // ends with the program
		done <- f.Run(ctx, "worker", w, func(p Process) (func(context.Context) error, error) {
			if p.Meter == nil {
				t.Error("there is no meter")
			}
			if _, err := p.Meter.Int64Counter("settle.test"); err != nil {
				t.Error(err)
			}
			return func(context.Context) error { <-stopping; return nil }, nil
		})
		_ = w.Close()
	}()
	lines := lineReader(r)
	at = lines.find(t, `address=(http://\S+)/metrics`)
	lines.find(t, `msg=running`)
	want := func(path string, status int, part string) {
		t.Helper()
		if got, body := fetch(t, at+path); got != status || !strings.Contains(body, part) {
			t.Errorf("%s answers %d %q, not %d %q", path, got, body, status, part)
		}
	}
	want("/readyz", 200, "ok")
	want("/metrics", 200, "go_goroutines")
	want("/debug/pprof/", 404, "")
	end()
	lines.find(t, `msg=stopping`)
	want("/readyz", 503, "stopping")
	want("/livez", 200, "ok")
	close(stopping)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// --pprof without an address for it is an error that says what to set.
func TestRun_ProfilesNeedAnAddress(t *testing.T) {
	t.Parallel()
	err := parse(t, "--pprof", "--id", "p1").Run(t.Context(), "worker", io.Discard, nil)
	if err == nil || !strings.Contains(err.Error(), "set --metrics, too") {
		t.Errorf("the error is %v", err)
	}
}

func fetch(t *testing.T, url string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
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

// logLines delivers the lines of a log, and drops them when too many were not looked for.
type logLines chan string

func lineReader(r io.Reader) logLines {
	lines := make(logLines, 1000)
	go func() { // ends with the program, which closes the log
		scanner := bufio.NewScanner(r)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			default:
			}
		}
		close(lines)
	}()
	return lines
}

// find waits for a line that matches, and returns the first group, "" if there is none.
func (l logLines) find(t *testing.T, pattern string) string {
	t.Helper()
	form := regexp.MustCompile(pattern)
	for line := range l {
		if m := form.FindStringSubmatch(line); m != nil {
			return append(m, "")[min(1, len(m))]
		}
	}
	t.Fatalf("the log ended without %s", pattern)
	return ""
}
