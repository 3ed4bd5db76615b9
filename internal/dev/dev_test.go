package dev_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/internal/dev"
	"github.com/settlehq/settle/internal/devserver"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/starter"
	"github.com/settlehq/settle/program"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// patience turns a hang into a failure.
const patience = 2 * time.Minute

// portsFrom is the first port of these tests: not in the range of a running settle dev, nor of these tests
// in another process, nor among the system's ephemeral ports.
var portsFrom = 20_000 + 100*rand.IntN(100)

// server is a dev server that runs in a directory, and a developer's actions there.
type server struct {
	*testing.T
	dir    string
	server dev.Server
	out    *screen
	stop   func()
}

func start(t *testing.T, dir string, change func(*dev.Config)) *server {
	t.Helper()
	s := &server{T: t, dir: dir, out: newScreen()}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan dev.Server, 1), make(chan error, 1)
	cfg := dev.Config{
		Programs: []string{dir}, Dir: dir, Version: "test", Out: s.out, Ready: func(p dev.Server) { ready <- p },
		NATSPort: portsFrom, HTTPPort: portsFrom + 50, Rehearsal: patience,
	}
	if change != nil {
		change(&cfg)
	}
	go func() { ended <- dev.Run(ctx, cfg) }() // ends with ctx
	s.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("settle dev ended with %v", err)
			}
		case <-time.After(patience):
			t.Error("settle dev does not end")
		}
	})
	t.Cleanup(s.stop)
	select {
	case s.server = <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("settle dev ended with %v\n%s", err, s.out)
	case <-time.After(patience):
		t.Fatalf("settle dev is not ready\n%s", s.out)
	}
	return s
}

// screen collects the printed text.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func newScreen() *screen { return &screen{more: make(chan struct{}, 1)} }

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
	select {
	case s.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits until all of these were printed.
func (s *server) await(parts ...string) {
	s.Helper()
	deadline := time.After(patience)
	for {
		missing := ""
		for _, p := range parts {
			if !strings.Contains(s.out.String(), p) {
				missing = p
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-s.out.more:
		case <-deadline:
			s.Fatalf("%q was not printed:\n%s", missing, s.out)
		}
	}
}

func (s *server) write(name, text string) {
	s.Helper()
	temporary := filepath.Join(s.dir, name+"~") // as editors do
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(s.dir, name)); err != nil {
		s.Fatal(err)
	}
}

// rollBack deploys the former version from another terminal.
func (s *server) rollBack() {
	s.Helper()
	s.decide(program.All, func(r program.Rule) (program.Choice, error) {
		to, _ := r.Before()
		return program.Choice{Target: to}, nil
	})
}

// decide makes a decision as ann, another client.
func (s *server) decide(spaces string, change func(program.Rule) (program.Choice, error)) {
	s.Helper()
	_, err := program.Decide(s.Context(), s.bus(), spaces, func(r program.Rule) (program.Choice, error) {
		c, err := change(r)
		c.By, c.At = "ann", time.Now()
		return c, err
	})
	if err != nil {
		s.Fatal(err)
	}
}

func (s *server) bus() *bus.Bus {
	s.Helper()
	b, err := bus.Connect(s.Context(), bus.Config{URL: s.server.NATS, Name: "client/test"})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(b.Close)
	if err := b.Check(s.Context()); err != nil {
		s.Fatal(err)
	}
	return b
}

func (s *server) client() *settle.Client {
	s.Helper()
	c, err := settle.NewClient(s.bus(), settle.ClientConfig{ID: "test"})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(c.Close)
	return c
}

func (s *server) call(c *settle.Client, space, stream string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	r, err := c.Call(ctx, settle.Outgoing{Space: space, Stream: stream, ID: settle.NewID()})
	if err != nil {
		s.Fatalf("%v\n%s", err, s.out)
	}
	return r.Result.String()
}

// until repeats a call until the answer is as wanted: a save takes effect once a worker has received it.
func (s *server) until(c *settle.Client, space, stream, want string) {
	s.Helper()
	deadline := time.Now().Add(patience)
	for got := ""; got != want; {
		if got = s.call(c, space, stream); time.Now().After(deadline) {
			s.Fatalf("%s/%s answers %s, want %s\n%s", space, stream, got, want, s.out)
		}
	}
}

// tally returns a program that counts, and derives a given text.
func tally(text, factor string) string {
	return fmt.Sprintf(`
count = cell("count", {"n": 0})

def add(e):
    count.n += 1
    return count.n

def look(e):
    return [%q, count.n]

def product():
    return %s * count.n

def constant():
    return 7

handle("add", add)
handle("look", look)
compute("product", product)
compute("constant", constant)
`, text, factor)
}

func quietHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	return home
}

func TestDev_ASaveIsDeployedAndDocumentsStay(t *testing.T) {
	quietHome(t)
	dir := t.TempDir()
	s := &server{T: t, dir: dir}
	s.write("tally.star", tally("one", "1"))
	s = start(t, dir, nil)
	s.await("all run", "tally.star (2 nodes, 2 streams)", "settle send tally add --wait", "No telemetry, no account.", "owner w", ", standby w")
	c := s.client()
	for range 3 {
		s.call(c, "tally", "add")
	}
	s.until(c, "tally", "look", `["one",3]`)

	s.write("tally.star", tally("two", "2"))
	s.await("tally.star: 1 of 2 nodes has new code and runs again; 1 unchanged")
	s.until(c, "tally", "look", `["two",3]`)

	s.write("tally.star", tally("three", "2")+"\ndef broken(:\n")
	s.await("tally.star: not deployed; the previous version keeps running", "tally.star:22:13")
	s.until(c, "tally", "look", `["two",3]`)
	s.write("tally.star", "") // an editor that was cut off
	s.await("tally.star: not deployed; the previous version keeps running\n  " + s.dir + "/tally.star registers nothing")
	s.until(c, "tally", "look", `["two",3]`)
	s.write("tally.star", tally("two", "2"))
	s.await("tally.star: the same as what runs; nothing deployed\n")
	s.write("tally.star", strings.ReplaceAll(tally("two", "2"), "handle(\"add\", add)\n", ""))
	s.await("no node has new code (2); 1 stream gone: add; its events will be refused")
	s.write("tally.star", tally("four", "2"))
	s.await("tally.star: no node has new code (2); the next event uses the new handlers")
	s.until(c, "tally", "look", `["four",3]`)

	s.write("tally.star", tally("four", "2")+"def wrong(e):\n    log(\"here\", n = count.n)\n    return e.nothing\nhandle(\"wrong\", wrong)\n")
	for !strings.Contains(s.out.String(), "here n=3") {
		_, _ = c.Call(t.Context(), settle.Outgoing{Space: "tally", Stream: "wrong", ID: settle.NewID()})
	}
	s.await("tally handler of wrong: here n=3", "tally handler of wrong (event ", "tally.star:23:13: ", "in wrong")
	s.rollBack()
	s.stop()

	s.write("tally.star", tally("five", "2")) // while nothing runs
	s = start(t, dir, nil)
	s.await("tally.star: ann deployed tally@", "; the file replaces it")
	c = s.client()
	s.until(c, "tally", "look", `["five",3]`)
}

func TestDev_AFileThatIsLoadedIsWatchedAndSeveralProgramsHaveSpacesOfTheirOwn(t *testing.T) {
	quietHome(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := &server{T: t, dir: dir}
	s.write("lib/text.star", `text = "one"`)
	s.write("a.star", "load(\"lib/text.star\", \"text\")\ndef look(e):\n    return text\nhandle(\"look\", look)\n")
	s.write("b.star", "def look(e):\n    return \"b\"\nhandle(\"look\", look)\n")
	s.write("a_test.star", "x = 1\n")
	s = start(t, dir, nil)
	s.await("a* run", "b* run")
	c := s.client()
	s.until(c, "a-1", "look", `"one"`)
	s.until(c, "b-1", "look", `"b"`)
	s.write("lib/text.star", `text = "two"`)
	s.until(c, "a-1", "look", `"two"`)
	s.write("c.star", "def look(e):\n    return \"c\"\nhandle(\"look\", look)\n")
	s.await("c.star is new: restart settle dev to run it")
}

func TestDev_StartsFullWithASampleIfThereIsNoProgram(t *testing.T) {
	home := quietHome(t)
	dir := t.TempDir()
	s := start(t, dir, nil)
	s.await("the sample fridge", "fridge: owner w", "settle send fridge temp", "what was acknowledged is on this disk")
	if strings.Contains(s.out.String(), "no program to run") {
		t.Errorf("workers were there before the sample:\n%s", s.out)
	}
	if n := strings.Count(s.out.String(), "  spaces "); n != 1 {
		t.Errorf("the label spaces is there %d times", n)
	}
	resp, err := http.Get(s.server.HTTP + "/v1/spaces/fridge/documents/verdict")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != http.StatusOK || strings.TrimSpace(string(body)) != `"fine"` {
		t.Errorf("the verdict: %s %s", resp.Status, body)
	}

	text, err := os.ReadFile(filepath.Join(home, "nats", "context", dev.ContextName+".json"))
	var saved struct{ URL string }
	if err != nil || json.Unmarshal(text, &saved) != nil || saved.URL != s.server.NATS {
		t.Errorf("the nats context: %s, %v", text, err)
	}
	b, err := bus.Connect(t.Context(), bus.Config{Context: dev.ContextName})
	if err != nil {
		t.Fatalf("connect by the context: %v", err)
	}
	b.Close()

	deep := filepath.Join(dir, "deep", "er")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if p, _, found := devserver.Find(deep); !found || p != s.server {
		t.Errorf("found from below: %v %v", p, found)
	}
	s.stop()
	if _, _, found := devserver.Find(deep); found {
		t.Error("it is found after it has ended")
	}
}

func TestDev_PortsThatAreTakenAreLeftAndTwoDirectoriesDoNotMeet(t *testing.T) {
	quietHome(t)
	one := start(t, t.TempDir(), nil)
	two := start(t, t.TempDir(), nil)
	if one.server.NATS == two.server.NATS || one.server.HTTP == two.server.HTTP {
		t.Errorf("one is at %v, two at %v", one.server, two.server)
	}
	if host, _, err := net.SplitHostPort(strings.TrimPrefix(two.server.HTTP, "http://")); err != nil || host != "127.0.0.1" {
		t.Errorf("it listens at %s", two.server.HTTP)
	}
}

// Both of two that start at the same moment find the first port free, and one has claimed it.
func TestDev_TwoThatStartAtTheSameMomentHavePortsOfTheirOwn(t *testing.T) {
	quietHome(t)
	ports, err := natstest.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range ports {
		release, ok := devserver.ClaimPort(port)
		if !ok {
			t.Fatalf("port %d is claimed", port)
		}
		t.Cleanup(release)
	}
	s := start(t, t.TempDir(), func(c *dev.Config) { c.NATSPort, c.HTTPPort = ports[0], ports[1] })
	if strings.HasSuffix(s.server.NATS, fmt.Sprint(":", ports[0])) || strings.HasSuffix(s.server.HTTP, fmt.Sprint(":", ports[1])) {
		t.Errorf("it is at %v, which another one has claimed", s.server)
	}
	release, ok := devserver.ClaimPort(portOf(t, s.server.HTTP))
	if release(); ok {
		t.Error("it has not claimed its own port")
	}
	s.stop()
	release, ok = devserver.ClaimPort(portOf(t, s.server.HTTP))
	if release(); !ok {
		t.Error("it keeps its claim when it has stopped")
	}
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestDev_AServerThatComesBackIsWhereItWas(t *testing.T) {
	quietHome(t)
	dir := t.TempDir()
	was, err := natstest.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, dev.Store), 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"nats":%d,"http":%d}`, was[0], was[1])
	if err := os.WriteFile(filepath.Join(dir, dev.Store, "ports.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := start(t, dir, nil)
		if p := s.server; p.NATS != fmt.Sprintf("nats://127.0.0.1:%d", was[0]) || p.HTTP != fmt.Sprintf("http://127.0.0.1:%d", was[1]) {
			t.Errorf("it was at %v and is at %v", was, p)
		}
		s.stop()
	}
}

func TestDev_ResetForgetsEverythingAndNeverWhatIsInUse(t *testing.T) {
	quietHome(t)
	dir := t.TempDir()
	s := &server{T: t, dir: dir}
	s.write("tally.star", tally("one", "1"))
	s = start(t, dir, nil)
	s.call(s.client(), "tally", "add")
	err := dev.Run(t.Context(), dev.Config{Programs: []string{dir}, Dir: dir, Reset: true, Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("reset while it runs: %v", err)
	}
	s.stop()
	s = start(t, dir, func(c *dev.Config) { c.Reset = true })
	s.await("removed")
	s.until(s.client(), "tally", "look", `["one",0]`)
}

// A space is not there before its first event, or the first read if its program has made_by_reads for it.
func TestDev_TellsWhatCreatesASpace(t *testing.T) {
	quietHome(t)
	dir := t.TempDir()
	s := &server{T: t, dir: dir}
	s.write("sent.star", "def add(e):\n    pass\n\nhandle(\"add\", add)\n")
	s.write("seen.star", "made_by_reads(\"seen\")\n\ndef home():\n    return 1\n\ncompute(\"home\", home)\n")
	s = start(t, dir, nil)
	for _, line := range []string{", once it has an event\n", ", once it has an event or is read\n"} {
		if !strings.Contains(s.out.String(), line) {
			t.Errorf("no line %q in\n%s", line, s.out)
		}
	}
	if got, err := s.client().Space("seen").GetCurrent(t.Context(), "home"); err != nil || got.Value.String() != "1" {
		t.Errorf("a read of space seen returns %+v, %v", got, err)
	}
	if there, err := s.bus().Spaces(t.Context()); err != nil || !slices.Contains(there, "seen") {
		t.Errorf("the spaces are %v, %v", there, err)
	}
}

func TestDev_TwoProgramsOfOneNameAreRefused(t *testing.T) {
	dir := t.TempDir()
	s := &server{T: t, dir: dir}
	for _, sub := range []string{"x", "y"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
		s.write(filepath.Join(sub, "a.star"), "x = 1\n")
	}
	err := dev.Run(t.Context(), dev.Config{Programs: []string{filepath.Join(dir, "x"), filepath.Join(dir, "y")}, Dir: dir, Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "both named a") {
		t.Errorf("%v", err)
	}
}

// A deployment from another terminal is reported in this one, and the next save is compared with it.
func TestDev_TellsOfWhatIsDecidedElsewhere(t *testing.T) {
	quietHome(t)
	dir := t.TempDir()
	s := &server{T: t, dir: dir}
	s.write("tally.star", tally("one", "1"))
	s = start(t, dir, nil)
	c := s.client()
	s.until(c, "tally", "look", `["one",0]`)
	s.write("tally.star", tally("two", "2"))
	s.await("tally.star: 1 of 2 nodes has new code")
	s.rollBack()
	s.await("  ann makes all spaces run tally@", " again\n          the next change of "+dir+"/tally.star replaces it\n")
	s.until(c, "tally", "look", `["one",0]`)
	s.decide("tally-1", func(program.Rule) (program.Choice, error) {
		table, err := program.Rules(t.Context(), s.bus())
		return program.Choice{Target: table.Exactly(program.All).Target, Pinned: true, Note: "look at this"}, err
	})
	s.await("  ann makes spaces tally-1 run tally@", " (pinned): look at this\n")
	s.decide("tally-1", func(program.Rule) (program.Choice, error) { return program.Choice{}, nil })
	s.await("  ann removed the rule about spaces tally-1\n")

	s.write("tally.star", tally("three", "2")) // the factor differs from what runs, not from what was saved last
	s.await("tally.star: ann deployed tally@", "; the file replaces it")
	s.await("tally.star: ann deployed", "tally.star: 1 of 2 nodes has new code")
	s.until(c, "tally", "look", `["three",0]`)
	if n := strings.Count(s.out.String(), "1 of 2 nodes has new code"); n != 2 {
		t.Errorf("it was said %d times that a node has new code:\n%s", n, s.out)
	}
	if n := strings.Count(s.out.String(), "makes all spaces run"); n != 1 {
		t.Errorf("%d decisions about all spaces were reported, not the one for ann:\n%s", n, s.out)
	}
}

// The first suggested command works when it is pasted.
func TestDev_SuggestsWhatAFreshSpaceHandles(t *testing.T) {
	quietHome(t)
	for name, c := range map[string]struct{ program, send, watch, post string }{
		"the first is refused": {
			"d = cell('d', {'n': 0})\ndef no():\n    fail('locked')\ndef yes(e):\n    d.n += len(e.by)\nhandle('no', no)\nhandle('yes', yes, payload = {'by': str})\n",
			`p yes '{"by":"x"}' --wait`, "p d", `curl --json '{"by":"x"}' http`,
		},
		"the first changes nothing": {
			"d = cell('d', {'n': 0})\ndef up():\n    d.n += 1\nhandle('ask', lambda: d.n)\nhandle('up', up)\ncompute('twice', lambda: 2 * d.n)\n",
			"p up --wait", "p twice", "curl -X POST http",
		},
		"none changes anything":  {"handle('first', lambda: 1)\nhandle('second', lambda: 2)\n", "p first --wait", "p DOCUMENT", "curl -X POST http"},
		"the first is an action": {"call = action('call')\ndef no(e):\n    fail('no')\nhandle('no', no)\n", "p no PAYLOAD --wait", "p DOCUMENT", ""},
		"none is handled":        {"def no(e):\n    fail('no')\nhandle('no', no)\n", "p no PAYLOAD --wait", "p DOCUMENT", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			(&server{T: t, dir: dir}).write("p.star", c.program)
			s := start(t, dir, nil)
			s.await("\n  settle send " + c.send + "\n  settle watch " + c.watch + "\n  settle get p\n")
			if _, post, _ := strings.Cut(s.out.String(), "\n           curl "); !strings.HasPrefix("curl "+post, c.post) || (post == "") != (c.post == "") {
				t.Errorf("it suggests the POST curl %s", post)
			}
		})
	}
}

// A program of workflows has no event of its own to suggest: what starts a run is suggested.
func TestDev_SuggestsTheStartOfAWorkflow(t *testing.T) {
	quietHome(t)
	dir := t.TempDir()
	(&server{T: t, dir: dir}).write("p.star", "ship = action('ship')\ndef run(files, n = 1):\n    return ship(files)\nworkflow('import', run)\n")
	s := start(t, dir, nil)
	s.await("\n  settle workflow start p import '{\"files\": ...}' --id r1\n  settle workflow watch p r1\n  settle workflow list p\n")
}

// A terminal has 80 columns.
func TestDev_WhatItPrintsFitsATerminal(t *testing.T) {
	quietHome(t)
	dir := t.TempDir()
	files, err := starter.Star(dir)
	if err != nil {
		t.Fatal(err, files)
	}
	t.Chdir(dir)
	s := start(t, "", func(c *dev.Config) { c.Programs = nil })
	s.await("\n  settle send door unlock --wait\n")
	_, err = s.client().Call(t.Context(), settle.Outgoing{Space: "door", Stream: "nosuch", ID: settle.ID("e1")})
	if err != nil {
		t.Fatal(err)
	}
	s.await("  event refused space=door stream=nosuch event=e1: program door has no handler for stream nosuch; it has:")
	_, head, _ := strings.Cut(s.out.String(), "settle dev")
	head, _, _ = strings.Cut(head, "no account")
	for line := range strings.Lines(head) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestDev_AFileWhoseNameNoProgramCanHaveIsNamed(t *testing.T) {
	dir := t.TempDir()
	(&server{T: t, dir: dir}).write("my door.star", "x = 1\n")
	err := dev.Run(t.Context(), dev.Config{Programs: []string{dir}, Dir: dir, Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), `program "my door": character ' '`) || !strings.Contains(err.Error(), "rename "+dir) {
		t.Errorf("%v", err)
	}
}

// With --trace, an event and what it causes can be read as a tree, over HTTP and on the page of the event in the console.
func TestDev_TraceShowsWhatAnEventCauses(t *testing.T) {
	quietHome(t)
	s := start(t, t.TempDir(), func(c *dev.Config) { c.Trace = true })
	at := regexp.MustCompile(`traces +curl (http://127\.0\.0\.1:\d+/traces)\n`).FindStringSubmatch(s.out.String())
	if at == nil {
		t.Fatalf("it does not print where the traces are:\n%s", s.out)
	}
	defer http.DefaultClient.CloseIdleConnections()
	get := func(url string) string {
		t.Helper()
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s, %v", url, resp.Status, body, err)
		}
		return string(body)
	}
	temp := settle.Outgoing{Space: "fridge", Stream: "temp", ID: settle.ID("traced-1"), Payload: map[string]any{"sensor": "top", "c": 3}}
	if _, err := s.client().Call(t.Context(), temp); err != nil { // a client without a tracer: the trace begins in the lane
		t.Fatal(err)
	}
	id := regexp.MustCompile(`(?m)^([0-9a-f]{32}) .* lane temp .*fridge$`)
	deadline := time.Now().Add(patience)
	for {
		if m := id.FindStringSubmatch(get(at[1] + "?n=500")); m != nil {
			if tree := get(at[1] + "/" + m[1]); regexp.MustCompile(`(?m)^lane temp fridge .*\n(?:.*\n)*  handle temp fridge handled .*\n(?:.*\n)*    commit fridge `).MatchString(tree) {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no trace of the event:\n%s", get(at[1]))
		}
	}
	page := s.server.HTTP + "/spaces/fridge/events/temp/traced-1"
	for text := get(page); !strings.Contains(text, "Its trace") || !strings.Contains(text, "handle temp fridge handled"); text = get(page) {
		if time.Now().After(deadline) {
			t.Fatalf("the page of the event has no trace:\n%s", text)
		}
	}
}
