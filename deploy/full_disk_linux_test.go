package deploy_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/settlehq/settle/bus/natstest"
)

// limitFiles makes all writes of a process past a file size fail, as on a full disk.
func limitFiles(t *testing.T, p *process, size uint64) {
	t.Helper()
	limit := syscall.Rlimit{Cur: size, Max: 1 << 63}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(p.cmd.Process.Pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0) //nolint:gosec // the kernel reads it during the call
	if errno != 0 {
		t.Fatal(errno)
	}
}

// A NATS server that cannot write does not answer requests to store. The fleet and the doctor report that
// within a minute. When there is room again, the server keeps refusing, as the documentation says, until it is
// restarted; then work continues, and nothing is lost.
func TestIncident_TheDiskTakesNothingMore(t *testing.T) {
	t.Parallel()
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	dir, env := t.TempDir(), map[string]string{"NATS_URL": fmt.Sprintf("nats://127.0.0.1:%d", ports[0]), "SETTLE_PROGRAM": "counter", "SETTLE_ID": "w-1"}
	serve := func() *process {
		return begin(t, nil, "nats-server", "-js", "-sd", dir, "-a", "127.0.0.1", "-p", fmt.Sprint(ports[0]))
	}
	runs := func(says string, args ...string) bool {
		out, _ := once(t.Context(), t, env, "settle", args...)
		return strings.Contains(strings.Join(strings.Fields(out), " "), says)
	}
	stores := func(id string) bool {
		_, code := once(t.Context(), t, env, "settle", "send", "alice", "add", "1", "--id", id, "--wait=none", "--timeout", "3s")
		return code == 0
	}
	server := serve()
	eventually(t, "there is a deployment", func() bool {
		_, code := once(t.Context(), t, env, "settle", "provision", "--partitions", "1")
		return code == 0
	})
	begin(t, env, "spaceworker").says(t, "msg=running")
	eventually(t, "an event is handled", func() bool { return runs("handled", "send", "alice", "add", "1", "--id", "a1", "--wait") })
	const noRoom, silent = "the store has no room, or fails; w-1 reports: ", "is there and does not store, and does not say why"
	if runs(noRoom, "fleet") || runs("could not store something", "doctor") {
		t.Error("with room, the store is said to have none")
	}

	limitFiles(t, server, 1)
	if stores("a2") {
		t.Error("an event is stored, and there is no room")
	}
	soon(t, "the fleet says that the store has no room", func() bool { return runs(noRoom, "fleet") && runs(silent, "fleet") })
	soon(t, "the doctor reports it, with a remedy", func() bool {
		return runs("worker w-1 could not store something within the last minute: ", "doctor") && runs("restart the NATS server as well when there is room", "doctor")
	})

	limitFiles(t, server, 1<<62)
	if stores("a2") {
		t.Error("the server stores again without having been started again: the documents say otherwise")
	}
	eventually(t, "the store is still said to have no room", func() bool { return runs(silent, "fleet") })
	server.leave(t)
	serve()
	eventually(t, "the event is handled now", func() bool { return runs("handled", "send", "alice", "add", "1", "--id", "a2", "--wait") })
	if out, _ := once(t.Context(), t, env, "settle", "receipts", "alice"); !strings.Contains(out, "a1") || !strings.Contains(out, "a2") {
		t.Errorf("receipts are missing:\n%s", out)
	}
}
