package dev_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/dev"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/internal/starter"
)

// asks sends a request to the address of the dev server, and returns the answer.
func (s *server) asks(method, path string) (int, string) {
	s.Helper()
	q, err := http.NewRequestWithContext(s.Context(), method, s.server.HTTP+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		s.Fatal(err)
	}
	defer a.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		s.Fatal(err)
	}
	return a.StatusCode, strings.TrimSpace(string(body))
}

// shows checks a document.
func (s *server) shows(document, want string) {
	s.Helper()
	if code, got := s.asks(http.MethodGet, "/v1/spaces/home/documents/"+document); code != http.StatusOK || got != want {
		s.Errorf("%s is %s (%d), want %s\n%s", document, got, code, want, s.out)
	}
}

// replaces changes a file of the program.
func (s *server) replaces(name, former, text string) {
	s.Helper()
	was, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil || !strings.Contains(string(was), former) {
		s.Fatalf("%s has no %s: %v", name, former, err)
	}
	s.write(name, strings.Replace(string(was), former, text, 1))
}

// door writes a program in Go into a directory, which is built without a network.
func door(t *testing.T) string {
	t.Helper()
	for _, variable := range [][2]string{{"GOPROXY", "off"}, {"GOFLAGS", ""}, {"GOWORK", "off"}} {
		t.Setenv(variable[0], variable[1])
	}
	of, err := starter.Built("dev")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "door")
	if _, err := starter.Go(dir, "example.com/door", of); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A program in Go is built and runs; after a change it runs again, with its documents and timers; while it does not build, and after it was killed, what
// was there is there.
func TestGo_RunsAgainWhenItsFilesChange(t *testing.T) {
	dir := door(t)
	s := start(t, dir, nil)
	s.await("(program house: 4 streams, 2 documents)", "settle send door unlock --wait", "settle watch door status", "Save a file to build it and run it again")
	if code, body := s.asks(http.MethodPost, "/v1/spaces/home/streams/unlock?wait=receipt"); code != http.StatusOK {
		t.Fatalf("an event: %d %s", code, body)
	}
	s.shows("status", `"closed"`)
	if code, page := s.asks(http.MethodGet, "/spaces/home"); code != http.StatusOK || !strings.Contains(page, "locked") {
		t.Errorf("the console: %d", code)
	}

	s.replaces("door.go", `return "closed", nil`, `return "shut", nil`)
	s.await("door: built in", "and runs again; documents and timers stay")
	s.shows("status", `"shut"`)
	s.shows("door", `{"locked":false,"open":false,"visits":0}`)

	s.replaces("door.go", `return "open", nil`, `return "open", nils`)
	s.await("it does not build; the previous version keeps running", "undefined: nils")
	s.shows("status", `"shut"`)
	s.replaces("door.go", `return "open", nils`, `return "open", nil`)
	s.await("door: the same as what runs")

	b, err := bus.Connect(t.Context(), bus.Config{URL: s.server.NATS, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	f, err := fleet.Look(t.Context(), b)
	if err != nil || len(f.Workers) != 1 || len(f.Coordinators) != 1 {
		t.Errorf("beside the process there is more than the coordinator of settle dev: %+v, %+v, %v", f.Workers, f.Coordinators, err)
	}
	killed, err := dev.Kill(t.Context(), b, dev.KillRequest{Space: "home"})
	if err != nil || killed.Worker != "w1" || len(killed.Others) > 0 {
		t.Fatalf("killed %+v, %v", killed, err)
	}
	s.await("door: it has ended: signal: killed; it is started again in", "door: it is back")
	s.shows("status", `"shut"`)

	s.stop()
	if left := strings.Count(s.out.String(), "door: it has ended"); left != 1 {
		t.Errorf("the process has ended %d times before settle dev has:\n%s", left, s.out)
	}
}

// A program that describes itself can be generated from; another one is said to lack what.
func TestDescribe_SaysWhatAProgramLacks(t *testing.T) {
	t.Setenv("GOFLAGS", "")
	dir := t.TempDir()
	if _, err := dev.Describe(context.Background(), dir, "home"); err == nil || !strings.Contains(err.Error(), "no program in Go") {
		t.Errorf("without one: %v", err)
	}
	for name, text := range map[string]string{"go.mod": "module silent\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dev.Describe(context.Background(), dir, "home"); err == nil || !strings.Contains(err.Error(), "has to call settle.Main or spaceworker.Main") {
		t.Errorf("one that describes nothing: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() { x }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dev.Describe(context.Background(), dir, "home"); err == nil || !strings.Contains(err.Error(), "undefined: x") {
		t.Errorf("one that does not build: %v", err)
	}
}

// A program that does not build at first runs as soon as it does, and that is printed.
func TestGo_RunsOnceItBuilds(t *testing.T) {
	dir := door(t)
	broken := &server{T: t, dir: dir, out: newScreen()}
	broken.replaces("door.go", `return "open", nil`, `return "open", nils`)
	s := start(t, dir, nil)
	s.await("it does not build; nothing runs until it does", "undefined: nils", "nothing runs yet", "settle watch SPACE DOCUMENT")
	s.replaces("door.go", `return "open", nils`, `return "open", nil`)
	s.await("and runs; documents and timers stay")
	s.shows("status", `"locked"`)
}
