// Package deploy_test checks the files of deploy/ by running them.
package deploy_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/parallel"
)

// patience bounds every wait; only a failing test reaches it.
const patience = 5 * time.Minute

func TestMain(m *testing.M) {
	for name, value := range secrets { // of users.conf, in any order: it is a set
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	parallel.Allow()
	leaks.VerifyTestMain(withBinaries{m})
}

// withBinaries removes the built programs.
type withBinaries struct{ *testing.M }

func (m withBinaries) Run() int {
	defer func() { _ = os.RemoveAll(built.dir) }()
	return m.M.Run()
}

// built has the programs of a release, and the server in the version that go.mod names.
var built struct {
	sync.Once
	dir string
	err error
}

// binary returns the path of a program.
func binary(t *testing.T, name string) string {
	t.Helper()
	built.Do(func() {
		//nolint:usetesting // it outlives the test that happens to be the first
		if built.dir, built.err = os.MkdirTemp("", "settle-deploy-"); built.err != nil {
			return
		}
		build := exec.Command("go", "build", "-tags", "grpcnotrace", "-ldflags", "-s -w -X github.com/settlehq/settle/internal/process.Version=v9.8.7 -X main.version=v9.8.7", "-o", built.dir, "../cmd/...", "github.com/nats-io/nats-server/v2")
		if out, err := build.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	if name == "nats-server" { // the package is named after its major version
		if _, err := os.Stat(filepath.Join(built.dir, name)); err != nil {
			name = "v2"
		}
	}
	return filepath.Join(built.dir, name)
}

// secrets are the passwords of users.conf.
var secrets = map[string]string{
	"NATS_ROUTE_PASSWORD": "route1", "SETTLE_WORKER_PASSWORD": "worker1", "SETTLE_COORDINATOR_PASSWORD": "coordinator1",
	"SETTLE_CLIENT_PASSWORD": "client1", "SETTLE_READER_PASSWORD": "reader1", "SETTLE_BACKUP_PASSWORD": "backup1", "SETTLE_OPERATOR_PASSWORD": "operator1", "SETTLE_PERFORMER_PASSWORD": "performer1",
	"SETTLE_ADMINISTRATOR_PASSWORD": "administrator1",
	"SETTLE_SYSTEM_PASSWORD":        "system1",
}

// password returns the password of a role.
func password(role string) string { return role + "1" }

// read returns the contents of a file of this directory.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// eventually waits until ok returns true, and fails the test if it never does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	within(t, patience, what, ok)
}

// soon waits at most a minute, the time in which an incident must be visible to an operator.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	within(t, time.Minute, what, ok)
}

// within waits for ok at most for a time.
func within(t *testing.T, most time.Duration, what string, ok func() bool) {
	t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	limit := time.NewTimer(most)
	defer limit.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-limit.C:
			t.Fatalf("never: %s", what)
		}
	}
}

// process is a running program.
type process struct {
	cmd *exec.Cmd
	out *text
}

// text collects the output of a process.
type text struct {
	mu sync.Mutex
	b  strings.Builder
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// begin starts a program with exactly this environment; it runs until the test ends.
func begin(t *testing.T, env map[string]string, name string, args ...string) *process {
	t.Helper()
	p := &process{out: &text{}, cmd: exec.Command(binary(t, name), args...)}
	p.cmd.Env = environment(t, env)
	p.cmd.Stdout, p.cmd.Stderr = io.Writer(p.out), p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s %v:\n%s", name, args, p.out)
		}
	})
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func environment(t *testing.T, env map[string]string) []string {
	t.Helper()
	all := []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	for k, v := range env { // any order: it is a set
		all = append(all, k+"="+v)
	}
	return all
}

// once runs a program to its end, and returns its output and exit code.
func once(ctx context.Context, t *testing.T, env map[string]string, name string, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(ctx, binary(t, name), args...)
	cmd.Env = environment(t, env)
	b, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}
