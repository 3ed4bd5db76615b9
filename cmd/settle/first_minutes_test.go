package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle/internal/devserver"
)

// visitor is a user that follows docs/getting-started.md.
type visitor struct {
	*testing.T
	page string // the section that is read
	http string
}

// terminal collects what a command prints.
type terminal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *terminal) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *terminal) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

var singleQuoted = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)

// line returns the words of a command, which the page must have as a line.
func (u *visitor) line(command string) (args []string) {
	u.Helper()
	if !strings.Contains(u.page, "\n"+command+"\n") {
		u.Fatalf("the page does not have the line %s", command)
	}
	for _, word := range singleQuoted.FindAllString(command, -1) {
		args = append(args, strings.Trim(word, `'`))
	}
	for i := range args {
		args[i] = strings.TrimSuffix(strings.TrimPrefix(args[i], `"`), `"`)
	}
	return args[1:]
}

// does runs a command of the page, and checks its code and output.
func (u *visitor) does(code int, parts, command string) string {
	u.Helper()
	return want(u.T, code, parts, u.line(command)...)
}

// begins runs a command of the page in a terminal of its own, until the end of the test.
func (u *visitor) begins(command string) (out *terminal, ended <-chan int) {
	u.Helper()
	out = &terminal{}
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	var running sync.WaitGroup
	args := u.line(command)
	running.Go(func() { code <- run(ctx, args, out, out) }) // ends with ctx
	u.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return out, code
}

// shows waits until a terminal shows a text.
func (u *visitor) shows(out *terminal, text string) {
	u.Helper()
	u.until(fmt.Sprintf("%q is shown", text), func() bool { return strings.Contains(out.String(), text) }, out)
}

// until waits for a condition. If it does not come true, the terminals are printed.
func (u *visitor) until(what string, is func() bool, terminals ...*terminal) {
	u.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for begun := time.Now(); !is(); <-again.C {
		if time.Since(begun) > 2*time.Minute {
			u.Fatalf("not within two minutes: %s\n%s", what, terminals)
		}
	}
}

// stream reads values of a watch over HTTP, beyond the one with that id, until one is as wanted. It returns the ids and values.
func (u *visitor) stream(after string, enough func(values []string) bool) (ids, values []string) {
	u.Helper()
	ctx, cancel := context.WithTimeout(u.Context(), 2*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.http+"/v1/spaces/fridge/documents/status/watch", http.NoBody)
	if err != nil {
		u.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", after)
	client := http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	a, err := client.Do(r)
	if err != nil {
		u.Fatal(err)
	}
	defer a.Body.Close()
	for lines := bufio.NewScanner(a.Body); lines.Scan(); {
		if id, is := strings.CutPrefix(lines.Text(), "id: "); is {
			ids = append(ids, id)
		}
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is && data != "null" {
			if values = append(values, data); enough(values) {
				return ids, values
			}
		}
	}
	u.Fatalf("the stream has ended after %q", values)
	return nil, nil
}

// process runs a command of the page as a process of its own. The function kills it, as kill -9 does.
func (u *visitor) process(command string) (out *terminal, kill func()) {
	u.Helper()
	file, err := os.Executable()
	if err != nil {
		u.Fatal(err)
	}
	return u.starts(exec.Command(file, u.line(command)...))
}

// starts starts a process. The function kills it, as kill -9 does.
func (u *visitor) starts(cmd *exec.Cmd) (out *terminal, kill func()) {
	u.Helper()
	out = &terminal{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		u.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it may have ended by itself, which the test notices
		_ = cmd.Wait()
	})
	u.Cleanup(kill)
	return out, kill
}

// replaces edits a file, as the page says.
func (u *visitor) replaces(name, former, text string) {
	u.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		u.Fatal(err)
	}
	if strings.Count(string(data), former) != 1 {
		u.Fatalf("%s is not once in %s:\n%s", former, name, data)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(data), former, text, 1)), 0o600); err != nil {
		u.Fatal(err)
	}
}

// visit returns a user in an empty directory, that reads a section of the page, or all of it.
func visit(t *testing.T, section string) *visitor {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "getting-started.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, page, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatalf("the page has no section %s", section)
	}
	page, _, _ = strings.Cut(page, "\n## ")
	for _, name := range []string{"NATS_URL", "NATS_CONTEXT"} {
		t.Setenv(name, "")
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	return &visitor{T: t, page: page}
}

// Each step of the first section of docs/getting-started.md does what the page says, from an empty directory and without a flag.
func TestFirstMinutes_EachStepOfTheTourWorks(t *testing.T) {
	u := visit(t, "A look")
	dev, _ := u.begins("settle dev")
	u.shows(dev, "Try, in another terminal, in this directory:")
	u.shows(dev, "No telemetry, no account.")
	at, _, _ := devserver.Find(".")
	u.http = at.HTTP

	one, _ := u.begins("settle watch fridge status")
	other, _ := u.begins("settle watch fridge status")
	u.shows(one, "°C, fine")
	u.shows(other, "°C, fine")
	u.does(0, "handled", `settle send fridge temp '{"sensor": "top", "c": 19.5}' --wait`)
	u.shows(one, "°C, warm")
	u.shows(other, "°C, warm")
	u.does(0, "verdict | why it ran last | because | mean", "settle why fridge verdict")
	u.does(0, "verdict | dormant | observed", "settle graph fridge")

	// The sensors report by themselves: the stream goes on, and continues behind what was received.
	ids, values := u.stream("", func(v []string) bool { return len(v) >= 2 })
	last := ids[len(ids)-1]
	again, next := u.stream(last, func(v []string) bool { return len(v) >= 1 })
	if again[0] == last || next[0] == values[len(values)-1] {
		t.Errorf("the stream has continued with %s %s, which was received before", again[0], next[0])
	}

	u.line("settle load --rate 50 --for 20s")
	load := &terminal{}
	loaded := make(chan int, 1)
	go func() {
		loaded <- run(context.Background(), []string{"load", "--rate", "50", "--for", "6s", "--json"}, load, load)
	}() // ends by itself
	u.shows(load, `"second":1`)
	u.does(0, "was killed, without leaving the fleet | takes over", "settle chaos kill --owner fridge")
	if code := <-loaded; code != 0 {
		t.Errorf("settle load: code %d\n%s", code, load)
	}
	lines := strings.Split(strings.TrimSpace(load.String()), "\n")
	var r loadResult
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
		t.Fatalf("%v: %s", err, load)
	}
	if r.Sent < 200 || r.Stored != r.Sent || r.Handled != r.Sent || r.Failed+r.Twice+r.Lost+r.Disorder != 0 || len(r.Workers) != 2 {
		t.Errorf("the result is %+v; want all handled once and in order, by two workers", r)
	}
	u.shows(dev, "is back")

	u.does(1, "failed | lies between -60 and 60", `settle send fridge temp '{"sensor": "top", "c": 451}' --id bad-1 --wait`)
	u.until("the dead letter is listed", func() bool {
		_, wrong := try(t, 0, "bad-1 | failed", u.line("settle dead fridge")...)
		return len(wrong) == 0
	})
	u.does(0, "bad-1", "settle redrive fridge bad-1")
	u.until("the letter of the second attempt is listed", func() bool {
		_, wrong := try(t, 0, "bad-1:r1 | 1 open", u.line("settle dead fridge")...)
		return len(wrong) == 0
	})
	u.does(0, "dismissed", `settle dismiss fridge bad-1:r1 --reason "a broken sensor"`)
}

// The door of the page is created and tested, and a node that reads the clock is named, with its place, as the page shows it.
func TestFirstMinutes_AProgramIsTestedAndANodeThatReadsTheClockIsNamed(t *testing.T) {
	u := visit(t, "A file")
	u.does(0, "door.star | settle dev", "settle init star door")
	t.Chdir("door")
	u.does(0, "4 tests | in which 24h1m went by", "settle test")
	const former, bad = `"open" if door.open else "locked" if door.locked else "closed"`, `rfc3339(now())`
	if !strings.Contains(u.page, "`compute(\"status\", lambda: "+bad+")`") {
		t.Fatal("the page does not replace the last line")
	}
	u.replaces("door.star", former, bad)
	_, named, _ := strings.Cut(u.page, "names the node and the place:\n\n```\n")
	named, _, _ = strings.Cut(named, "\n")
	u.does(1, named, "settle test")
}

// What the page sends to the door.
const (
	unlock = `settle send home unlock --wait`
	enter  = `settle send home open '{"by": "ann"}' --id visit-1 --wait`
)

// opensTheDoor watches the door, whose space does not exist yet, and opens and closes it.
func (u *visitor) opensTheDoor() *terminal {
	u.Helper()
	watch, _ := u.begins("settle watch home status")
	u.shows(watch, "its first event creates it")
	u.does(0, "handled", unlock)
	u.does(0, "visit-1: handled, result 1", enter)
	u.does(0, "handled", "settle send home close --wait")
	for _, value := range []string{"open", "closed"} {
		u.shows(watch, "\t\""+value+"\"\n")
	}
	return watch
}

// The door of the page is used, killed and changed: each command does what the page says.
func TestFirstMinutes_TheDoorIsUsedKilledAndChanged(t *testing.T) {
	u := visit(t, "A file")
	u.does(0, "door.star", "settle init star door")
	t.Chdir("door")
	first, kill := u.process("settle dev")
	u.shows(first, "Save a file to deploy it")

	watch := u.opensTheDoor()
	u.does(0, "visit-1 had been sent before | visit-1: handled, result 1", enter)
	u.does(0, `"visits":1`, "settle get home door")
	u.does(1, "door.star:28:7: stream open: payload.by must be a string, not an int", `settle send home open '{"by": 7}' --wait`)

	u.does(0, "handled", unlock)
	u.does(0, "lock", "settle timers home")
	kill()
	again, _ := u.process("settle dev")
	u.shows(again, "Save a file to deploy it")
	u.shows(watch, "disconnected")
	u.shows(watch, "connected again")
	u.does(0, "visit-1: handled, result 1", enter)
	u.shows(watch, "\t\"locked\"\n")

	u.replaces("door.star", `else "closed")`, `else "not locked")`)
	const report = "door.star: 1 of 1 nodes has new code and runs again; 0 unchanged\n"
	if !strings.Contains(u.page, report) {
		t.Errorf("the page does not have %s", report)
	}
	u.shows(again, report)
	u.does(0, "handled", unlock)
	u.shows(watch, "\t\"not locked\"\n")
	want(t, 0, "door", "versions")
	want(t, 0, "door", "rollback", "door")
	u.does(1, `document status is "not locked"; "closed" was expected | 1 of 4 tests failed`, "settle test")
}

// The same door in Go is created, tested, run, watched, used, killed and changed: each command does what the page says. The program listens at a port that is free.
func TestFirstMinutes_TheProgramInGo(t *testing.T) {
	u := visit(t, "A program in Go")
	u.does(0, "door.go | go test", "settle init go door-go")
	t.Chdir("door-go")
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	u.builds("go test ./...", "test", "-vet=off", "./...")
	first, kill := u.process("settle dev")
	u.shows(first, "Save a file to build it and run it again")

	watch := u.opensTheDoor()
	u.does(0, "visit-1: handled, result 1", enter)
	want(t, 0, `"visits":1`, "get", "home", "door")
	want(t, 0, "✓ coordinators   one | 28 ok, 0 warnings", "doctor")
	u.replaces("door.go", `return "closed", nil`, `return "not locked", nil`)
	u.shows(watch, "\t\"not locked\"\n")

	u.does(0, "handled", unlock)
	kill()
	u.shows(watch, "disconnected")
	again, end := u.process("settle dev")
	u.shows(again, "Save a file to build it and run it again")
	u.shows(watch, "connected again")
	u.does(0, "visit-1: handled, result 1", enter)
	if strings.Contains(again.String(), "it has ended") {
		t.Errorf("the process of the settle dev that was killed is in the way of the next one:\n%s", again)
	}

	end()
	u.replaces("main.go", "Programs:", `Server: embedded.Config{Listen: "`+freePort(t)+`"}, Programs:`)
	u.replaces("main.go", `import "github.com/settlehq/settle"`, "import (\n\t\"github.com/settlehq/settle\"\n\t\"github.com/settlehq/settle/bus/embedded\"\n)")
	alone, _ := u.runsGo("go run .")
	u.shows(alone, "Ctrl-C ends it")
	u.does(0, "visit-1: handled, result 1", enter)
	console := &terminal{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"console", "--http", "127.0.0.1:0"}, console, console) }() // ends with ctx
	u.shows(console, "http://127.0.0.1:")
	u.until("the console shows the door", func() bool { return strings.Contains(u.served(console, "/spaces/home"), "visits") }, console)
	cancel()
	<-ended
}

// freePort returns an address that is free now, and again after a process that has listened there is killed.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// builds runs the go command, in place of a line of the page.
func (u *visitor) builds(line string, args ...string) {
	u.Helper()
	u.line(line)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		u.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// runsGo builds the program in this directory and runs it, in place of a line of the page. The function kills it.
func (u *visitor) runsGo(line string) (out *terminal, kill func()) {
	u.Helper()
	program := filepath.Join(u.TempDir(), "door")
	u.builds(line, "build", "-o", program, ".")
	return u.starts(exec.Command(program))
}

// served returns a page of a console, whose address a terminal shows.
func (u *visitor) served(console *terminal, path string) string {
	u.Helper()
	at := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(console.String())
	r, err := http.NewRequestWithContext(u.Context(), http.MethodGet, at+path, http.NoBody)
	if err != nil {
		u.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	a, err := client.Do(r)
	if err != nil {
		return ""
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body) // a page that ends early is asked for again
	return string(text)
}
