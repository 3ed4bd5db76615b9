package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/process"
)

// workerProcess is the variable with the id of the worker as which TestMain runs this file.
const workerProcess = "SETTLE_TEST_WORKER"

// serveAsProcess is the worker of a process of its own, with a counter whose stream end ends the process.
func serveAsProcess(id string) {
	programs := settle.Always(counter().Handle("end", func(*settle.Tx, *settle.Event) (settle.Value, error) {
		os.Exit(3)
		return settle.Value{}, nil
	}))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := process.Flags{ID: id, Prefix: "settle", Log: "info"}.Run(ctx, "worker", os.Stderr, func(p process.Process) (func(context.Context) error, error) {
		w, err := settle.StartWorker(ctx, p.Bus, settle.WorkerConfig{ID: p.ID, Programs: programs, Heartbeat: 100 * time.Millisecond, Logger: p.Logger})
		if err != nil {
			return nil, err
		}
		return w.Stop, nil
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// workerOf is a process that runs as a worker.
type workerOf struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// newWorkerProcess starts a worker as a process of its own, from a program file that is this one or a copy. It is
// killed at the end of the test.
func newWorkerProcess(t *testing.T, file, id string) *workerOf {
	t.Helper()
	w := &workerOf{cmd: exec.Command(file), ended: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), workerProcess+"="+id)
	var out processText
	w.cmd.Stdout, w.cmd.Stderr = &out, &out
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		_ = w.cmd.Wait()
		close(w.ended)
	}()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // it may have ended
		<-w.ended
		if t.Failed() {
			t.Logf("worker %s:\n%s", id, &out)
		}
	})
	return w
}

// processText is what a process writes.
type processText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *processText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *processText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A handler that ends its process is seldom there to be asked. The space, the event and the attempt are named all the
// same while processes end, and in the dead letter that the third attempt leaves. Others of the space are handled.
func TestIncident_AHandlerEndsItsProcess(t *testing.T) {
	d := started(t, settle.Config{Programs: settle.Always(counter()), Workers: -1})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkerProcess(t, self, "w-ends")
	want(t, 0, "handled", "send", "cart", "add", "--id", "a1", "--wait")
	saysNot(t, wantSoon(t, 0, "1 worker", "fleet"), "attempt", "STUCK")
	saysNot(t, wantSoon(t, 1, "1 worker: w-ends", "doctor"), "! stuck spaces", "open")
	want(t, 0, "stored", "send", "cart", "end", "--id", "bad", "--wait=none")
	want(t, 0, "stored", "send", "cart", "add", "--id", "a2", "--wait=none")
	<-w.ended
	wantSoon(t, 0, "no worker is here | w-ends has ended without leaving", "fleet")

	attempt := 0
	for died := 1; attempt < 3; died++ {
		if died > 6 {
			t.Fatalf("%d processes have ended", died)
		}
		w = newWorkerProcess(t, self, "w-ends")
		<-w.ended
		f := wantSoon(t, 0, "no worker is here", "fleet")
		if next := fmt.Sprintf("attempt %d has begun", attempt+1); strings.Contains(f, next) {
			attempt++
			says(t, f, "STUCK SPACE", "cart", "end/bad")
			wantSoon(t, 2, fmt.Sprintf(`"check": "stuck spaces" | space cart at event bad of stream end, on | attempt %d has begun`, attempt), "doctor", "--json")
		}
	}
	newWorkerProcess(t, self, "w-ends")
	want(t, 0, "handled", "send", "cart", "add", "--id", "a2", "--wait")
	wantSoon(t, 1, "1 open | 1 of these of stream end, the first because: the handler never came back: the process ended, or it was given up, in each of 3 attempts (event bad of space cart)", "doctor", "--json")
	goneSoon(t, "attempt")
	_ = d
}
