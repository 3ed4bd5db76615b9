package spaceworker_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/examples/counter"
	"github.com/settlehq/settle/spaceworker"
)

// asWorker makes this test binary the program of examples/worker.
const asWorker = "SETTLE_TEST_AS_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		spaceworker.Main(settle.Always(counter.Program()))
		return
	}
	os.Exit(m.Run())
}

// A process with one call is a worker of a fleet, with the flags and variables of spaceworker: it creates the
// deployment, handles events, and ends cleanly on SIGTERM.
func TestMain_IsAWorkerOfAFleet(t *testing.T) {
	s, err := embedded.Start(t.Context(), embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	worker := exec.Command(os.Args[0], "--nats", s.ClientURL(), "--id", "w-7")
	worker.Env = append(os.Environ(), asWorker+"=1", "SETTLE_PARTITIONS=2")
	var out bytes.Buffer
	worker.Stdout, worker.Stderr = &out, &out
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = worker.Process.Kill() })()
	b, err := bus.Connect(ctx, bus.Config{URL: s.ClientURL(), Name: "client/test"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := errors.Join(b.AwaitDeployment(ctx), b.AwaitProvision(ctx)); err != nil { // the worker creates its streams
		t.Fatal(err)
	}
	c, err := settle.NewClient(b, settle.ClientConfig{ID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := c.Call(ctx, settle.Outgoing{Space: "alice", Stream: "add", ID: settle.ID("a-1"), Payload: 2})
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := worker.Wait(); err != nil || !strings.Contains(out.String(), "w-7") {
		t.Errorf("the event is %s: %s; the worker ended with %v\n%s", r.Outcome, r.Error, err, &out)
	}
}

func TestMain_RefusesABadCommandLine(t *testing.T) {
	worker := exec.Command(os.Args[0], "--no-such-flag")
	worker.Env = append(os.Environ(), asWorker+"=1")
	out, err := worker.CombinedOutput()
	if worker.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "no-such-flag") {
		t.Errorf("%v\n%s", err, out)
	}
}
