package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
)

// counter returns a program that counts, and derives from that.
func counter() *settle.Program {
	return settle.NewProgram("counter").
		Handle("add", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			n, _ := tx.Get("n").AsInt()
			tx.Set("n", n+1)
			tx.Set("deep", map[string]any{"a": []any{n + 1}})
			return settle.Value{}, nil
		}).
		Compute("double", func(v *settle.View) (settle.Value, error) {
			n, _ := v.Get("n").AsInt()
			return settle.ValueOf(2 * n)
		})
}

// counting starts a deployment of it.
func counting(t *testing.T, workers int) *settle.Deployment {
	t.Helper()
	return started(t, settle.Config{Programs: settle.Always(counter()), Workers: workers})
}

// started returns a deployment that the commands find.
func started(t *testing.T, cfg settle.Config) *settle.Deployment {
	t.Helper()
	cfg.Server = embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0"}
	cfg.Bus = bus.Config{Partitions: 2}
	d, err := settle.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	pointAt(t, d.Server().ClientURL())
	return d
}

func TestGet_ReadsAtTheHeadAndComputes(t *testing.T) {
	t.Parallel()
	counting(t, 1)
	want(t, 0, "handled", "send", "alice", "add", "--wait")
	want(t, 1, "has no document double | is computed", "get", "alice", "double", "--confirmed")
	if out := want(t, 0, "", "get", "alice", "double"); out != "2\n" {
		t.Errorf("output %q", out)
	}
	want(t, 0, "\t2\n", "get", "alice", "double", "-v")
	want(t, 0, "2\n", "get", "alice", "double", "--confirmed")
	if out := want(t, 0, "", "get", "alice", "deep", "a", "0"); out != "1\n" {
		t.Errorf("output %q", out)
	}
	want(t, 1, "space alice has no document deep/b", "get", "alice", "deep", "b")
	want(t, 2, "not allowed", "get", "alice", "a.b")
}

func TestGetAndWatch_WithoutAWorkerSaySo(t *testing.T) {
	t.Parallel()
	counting(t, -1)
	want(t, 0, "stored", "send", "alice", "add") // which waits: alice is not misspelt
	want(t, 1, "no worker answers | spaceworker | --confirmed", "get", "alice", "double")
	want(t, 1, "no worker answers", "watch", "alice", "double")
	want(t, 1, "there is no space alcie yet; its first event creates it | no worker answers", "watch", "alcie", "double")
}

// output collects the output of a running command.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// says waits until the output has a part.
func (o *output) says(t *testing.T, part string) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for begun := time.Now(); time.Since(begun) < patience; {
		if strings.Contains(o.String(), part) {
			return
		}
		<-again.C
	}
	t.Fatalf("it never said %q:\n%s", part, o)
}

// A watch of the command line continues through a handover and a crash, and reports both.
func TestWatch_GoesOnFromWorkerToWorker(t *testing.T) {
	t.Parallel()
	d := counting(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs output
	var running sync.WaitGroup
	var code int
	running.Go(func() { // ends with ctx
		code = runAt(ctx, []string{"watch", "alice", "double", "n", "--json"}, streams{out: &out, err: &errs, now: time.Now}, deploymentOf(t))
	})
	defer func() {
		cancel()
		if running.Wait(); code != 0 {
			t.Errorf("code %d", code)
		}
	}()
	out.says(t, `"document":"double","revision":`)
	want(t, 0, "handled", "send", "alice", "add", "--wait")
	out.says(t, `"value":2`)
	if _, err := d.AddWorker(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.KillWorker(d.Workers()[0])
	want(t, 0, "handled", "send", "alice", "add", "--wait")
	out.says(t, `"value":4`)
	if strings.Contains(out.String(), `"revision":0,"value"`) {
		t.Errorf("a value without a revision:\n%s", out.String())
	}
	t.Logf("%s\n%s", out.String(), errs.String())
}

// A derived document whose computation has never succeeded is not reported as misspelt.
func TestGet_SaysWhyADocumentWasNeverComputed(t *testing.T) {
	t.Parallel()
	program := counter().Compute("wr", func(v *settle.View) (settle.Value, error) {
		v.Get("n")
		return settle.Value{}, errors.New("it divides by zero")
	})
	started(t, settle.Config{Programs: settle.Always(program)})
	want(t, 0, "handled", "send", "alice", "add", "--wait")
	_, wrong := try(t, 1, "document wr of space alice is not computed yet: wr could not be computed: it divides by zero", "get", "alice", "wr")
	if len(wrong) > 0 {
		t.Error(wrong)
	}
	want(t, 1, "space alice has no document rw; `settle get alice` lists", "get", "alice", "rw")
}

// The reported time is the given one.
func TestGet_SaysOnceHowLongItHasWaited(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	program := counter().Handle("stick", func(*settle.Tx, *settle.Event) (settle.Value, error) {
		<-stuck
		return settle.Value{}, nil
	})
	started(t, settle.Config{Programs: settle.Always(program)})
	t.Cleanup(func() { close(stuck) }) // before it is stopped
	want(t, 0, "stored", "send", "alice", "stick")
	wantInVain(t, "no answer within TIMEOUT: worker w1 serves space alice and answers | document n of space alice could not be read in time: the space has not answered yet (504)", "get", "alice", "n")
}
