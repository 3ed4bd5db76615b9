//go:build performers

// Package performers tests the performers in other languages. They need node and npm, jq, and the nats command line tool;
// `.ci/run performers` has them, and builds what is to be tested.
package performers

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/runs"
)

// patience bounds every wait; only a failing test reaches it.
const patience = time.Minute

// shop is a deployment with the program shop.star.
type shop struct {
	t    *testing.T
	d    *settle.Deployment
	runs flow.Runs
}

func newShop(t *testing.T) *shop {
	t.Helper()
	source, err := os.ReadFile("shop.star")
	if err != nil {
		t.Fatal(err)
	}
	p, err := settle.Starlark(star.Source{Name: "shop", Entry: "shop.star", Files: map[string]string{"shop.star": string(source)}}, star.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(p), Bus: bus.Config{Partitions: 1},
		Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return &shop{t, d, flow.In(d.Client().Space("shop"))}
}

// process is a performer in another language.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed when there is another line
}

// start starts a program, in a group of processes of its own, until the test ends.
func (s *shop) start(dir string, args ...string) *process {
	s.t.Helper()
	p := &process{t: s.t, cmd: exec.CommandContext(context.WithoutCancel(s.t.Context()), args[0], args[1:]...), more: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stderr = dir, os.Stderr
	p.cmd.Env = append(os.Environ(), "NATS_URL="+s.d.Server().ClientURL(), "XDG_CONFIG_HOME="+s.t.TempDir())
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		s.t.Fatalf("%v; `.ci/run performers` builds what is needed", err)
	}
	read := make(chan struct{})
	go func() { // ends with the program
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.add(lines.Text())
		}
	}()
	s.t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM) // it may have ended
		<-read
		_ = p.cmd.Wait()
	})
	return p
}

func (p *process) add(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, line)
	close(p.more)
	p.more = make(chan struct{})
}

// prints waits for a line that contains a text.
func (p *process) prints(part string) {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		p.mu.Lock()
		all, more := strings.Join(p.lines, "\n"), p.more
		p.mu.Unlock()
		if strings.Contains(all, part) {
			return
		}
		select {
		case <-more:
		case <-timeout:
			p.t.Fatalf("%s has not printed %q:\n%s", p.cmd.Path, part, all)
		}
	}
}

func (s *shop) begin(workflow, id string, args any) {
	s.t.Helper()
	if _, err := s.runs.Start(s.t.Context(), workflow, id, args); err != nil {
		s.t.Fatal(err)
	}
}

// result waits for the end of a run, and compares its result.
func (s *shop) result(id, want string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	st, err := s.runs.Wait(ctx, id)
	if err != nil {
		s.t.Fatal(err)
	}
	if st.State != runs.Done || st.Result.String() != want {
		s.t.Errorf("run %s is %s with %s, %v; want %s", id, st.State, st.Result, st.Error, want)
	}
}

type fields = map[string]any

func TestTypeScript(t *testing.T) {
	s := newShop(t)
	p := s.start("typescript", "node", "dist/main.js")
	p.prints("ready")
	s.begin("picture", "p1", fields{"name": "cat", "width": 5, "pages": 3})
	s.result("p1", `{"resized":{"pages":3,"width":5},"upload":"cat by shop/p1/4/0, attempt 1"}`)
	s.begin("picture", "p2", fields{"name": "cat", "width": -1})
	s.result("p2", `{"refused":"-1 is not positive"}`)

	// It is seen while it is at work, and is notified that it can stop.
	s.begin("picture", "p3", fields{"name": "cat", "width": 5, "pages": 1 << 30})
	within(t, "p3 has progress", func() bool { return s.hasProgress("p3") })
	if err := s.runs.Cancel(t.Context(), "p3", "enough"); err != nil {
		t.Fatal(err)
	}
	p.prints("stopped")

	// Interrupted, it hands its task to another one.
	s.begin("picture", "p4", fields{"name": "cat", "width": 5, "pages": 200})
	within(t, "p4 has progress", func() bool { return s.hasProgress("p4") })
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.prints("p4/0/0: stopped")
	s.start("typescript", "node", "dist/main.js")
	s.result("p4", `{"resized":{"pages":200,"width":5},"upload":"cat by shop/p4/4/0, attempt 1"}`)
}

// hasProgress reports whether a performer has reported a page for a call of a run.
func (s *shop) hasProgress(id string) bool {
	s.t.Helper()
	st, err := s.runs.Status(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range st.Waiting {
		v, err := s.runs.Progress(s.t.Context(), st, &st.Waiting[i])
		if err != nil {
			s.t.Fatal(err)
		}
		if !v.Get("page").IsAbsent() {
			return true
		}
	}
	return false
}

func TestShell(t *testing.T) {
	s := newShop(t)
	s.start("shell", "./performer.sh", "label", "sh", "-c", `
		name=$(jq -r .kwargs.name)
		test "$name" = torn && echo "Torn: no paper" >&2 && exit 1
		test "$name" = slow && sleep 1
		echo "\"$name for $SETTLE_KEY\""`)
	s.begin("labels", "l1", fields{"names": []string{"a", "torn", "slow"}})
	s.result("l1", `["a for shop/l1/2[0]/0","Torn no paper","slow for shop/l1/2[2]/0"]`)

	// Cancelled, its command is killed at the next heartbeat, and there is room for the next task.
	began := t.TempDir() + "/began"
	long := newShop(t)
	long.start("shell", "./performer.sh", "label", "sh", "-c", `touch `+began+`; sleep 1000`)
	long.begin("labels", "l2", fields{"names": []string{"a"}})
	within(t, "the command runs", func() bool { _, err := os.Stat(began); return err == nil })
	if err := long.runs.Cancel(t.Context(), "l2", "enough"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(began); err != nil {
		t.Fatal(err)
	}
	long.begin("labels", "l3", fields{"names": []string{"a"}})
	within(t, "the next command runs", func() bool { _, err := os.Stat(began); return err == nil })
}

// within waits for a condition.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	timeout := time.After(patience)
	for !ok() {
		select {
		case <-again.C:
		case <-timeout:
			t.Fatal("not within a minute: " + what)
		}
	}
}
