package deploy_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/settlehq/settle/bus/natstest"
)

// address returns the listen address of a server with the users of this directory, and a function that returns
// the environment of a role.
func address(t *testing.T) (listen string, as func(role string) map[string]string) {
	t.Helper()
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	listen = fmt.Sprintf("127.0.0.1:%d", ports[0])
	return listen, func(role string) map[string]string {
		return map[string]string{
			"NATS_URL": "nats://" + listen, "NATS_USER": role, "NATS_PASSWORD": password(role),
			"SETTLE_ID": role + "-1", "SETTLE_PROGRAM": "counter",
		}
	}
}

// says waits until a process has printed a text.
func (p *process) says(t *testing.T, what string) {
	t.Helper()
	eventually(t, "a process says "+what, func() bool { return strings.Contains(p.out.String(), what) })
}

// leave sends SIGTERM to a process, and returns its exit code.
func (p *process) leave(t *testing.T) (code int) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// Workers and coordinators that start first wait for the servers and then for the deployment, which they do not
// create. They report what they wait for.
func TestProcessesMayBeStartedInAnyOrder(t *testing.T) {
	t.Parallel()
	listen, as := address(t)
	worker, coordinator := begin(t, as("worker"), "spaceworker"), begin(t, as("coordinator"), "coordinator")
	for _, p := range []*process{worker, coordinator} {
		p.says(t, "waiting for a NATS server")
	}
	startAt(t, listen, t.TempDir())
	for _, p := range []*process{worker, coordinator} {
		p.says(t, "waiting for a deployment")
	}
	if out, code := once(t.Context(), t, as("administrator"), "settle", "provision", "--partitions", "3"); code != 0 {
		t.Fatalf("provision: code %d\n%s", code, out)
	}
	for _, p := range []*process{worker, coordinator} {
		p.says(t, "msg=running")
	}
	out, code := once(t.Context(), t, as("client"), "settle", "send", "s", "add", "--id", "e1", "--wait", "--timeout", patience.String())
	if code != 0 || !strings.Contains(out, "e1: handled") {
		t.Errorf("send: code %d\n%s", code, out)
	}
	for _, p := range []*process{worker, coordinator} {
		if code := p.leave(t); code != 0 {
			t.Errorf("the end: code %d\n%s", code, p.out)
		}
	}
}

// SIGTERM ends a wait, and a wrong password is an error at once.
func TestAWaitEndsCleanly(t *testing.T) {
	t.Parallel()
	listen, as := address(t)
	for role, name := range map[string]string{"worker": "spaceworker", "coordinator": "coordinator"} {
		p := begin(t, as(role), name)
		p.says(t, "waiting for a NATS server")
		if code := p.leave(t); code != 0 || !strings.Contains(p.out.String(), "stopped before it was running") {
			t.Errorf("%s ends with %d, and says\n%s", name, code, p.out)
		}
	}
	out, code := once(t.Context(), t, as("client"), "settle", "get", "s", "n")
	if code != 1 || !strings.Contains(out, "connect to NATS at nats://"+listen) || !strings.Contains(out, "no servers available") {
		t.Errorf("a command ends with %d, and says\n%s", code, out)
	}
	startAt(t, listen, t.TempDir())
	for role, name := range map[string]string{"worker": "spaceworker", "coordinator": "coordinator"} {
		p := begin(t, as(role), name)
		p.says(t, "waiting for a deployment")
		if code := p.leave(t); code != 0 || !strings.Contains(p.out.String(), "stopped before it was running") {
			t.Errorf("%s ends with %d, and says\n%s", name, code, p.out)
		}
		wrong := as(role)
		wrong["NATS_PASSWORD"] = "wrong"
		out, code := once(t.Context(), t, wrong, name)
		if code != 1 || !strings.Contains(out, "Authorization Violation") || strings.Contains(out, "waiting") {
			t.Errorf("%s with a wrong password ends with %d, and says\n%s", name, code, out)
		}
	}
}

// Processes that are stopped while the server is away end with status 1 and report what they could not finish;
// acknowledged events are there when the server returns.
func TestProcessesLeaveWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	listen, as := address(t)
	store := t.TempDir()
	server := startAt(t, listen, store)
	if out, code := once(t.Context(), t, as("administrator"), "settle", "provision", "--partitions", "2"); code != 0 {
		t.Fatalf("provision: code %d\n%s", code, out)
	}
	send := func(id, want string) {
		t.Helper()
		out, code := once(t.Context(), t, as("client"), "settle", "send", "s", "add", "--id", id, "--wait", "--json", "--timeout", patience.String())
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("send %s: code %d\n%s", id, code, out)
		}
	}
	worker, coordinator := begin(t, as("worker"), "spaceworker", "--checkpoint", "1h"), begin(t, as("coordinator"), "coordinator")
	send("e1", `"result":1`)
	server.Shutdown()
	worker.says(t, "disconnected from NATS")
	coordinator.says(t, "disconnected from NATS")
	if code := worker.leave(t); code != 1 || !strings.Contains(worker.out.String(), "no server could be reached for 5s; 1 space was not saved") {
		t.Errorf("the worker ends with %d, and says\n%s", code, worker.out)
	}
	if code := coordinator.leave(t); code != 1 || !strings.Contains(coordinator.out.String(), "no server could be reached; the next one releases what remains") {
		t.Errorf("the coordinator ends with %d, and says\n%s", code, coordinator.out)
	}
	startAt(t, listen, store)
	begin(t, as("worker"), "spaceworker")
	send("e1", `"result":1`)
	send("e2", `"result":2`)
}
