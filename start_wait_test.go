package settle_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/provision"
)

// noted is a log that can be read while it is written.
type noted struct {
	mu   sync.Mutex
	text bytes.Buffer
	// came is closed when the first line has been written.
	came chan struct{}
	once sync.Once
}

func (n *noted) Write(line []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.once.Do(func() { close(n.came) })
	return n.text.Write(line)
}

func (n *noted) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// emptyServer is a server without a deployment, and connections to it whose warnings are noted.
func emptyServer(t *testing.T) (connect func(bus.Config) *bus.Bus, log *noted) {
	t.Helper()
	server := natstest.StartServer(t, embedded.Config{})
	log = &noted{came: make(chan struct{})}
	return func(cfg bus.Config) *bus.Bus {
		t.Helper()
		cfg.Server, cfg.Logger = server, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		b, err := bus.Connect(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}, log
}

// Where there is no deployment, a worker says what it waits for, and so does the error.
func TestStartWorker_SaysThatItWaitsForADeployment(t *testing.T) {
	connect, log := emptyServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	b := connect(bus.Config{})
	go func() { // ends when the worker has said that it waits
		<-log.came
		cancel()
	}()
	within, end := context.WithTimeout(ctx, 5*time.Minute)
	defer end()
	w, err := settle.StartWorker(within, b, settle.WorkerConfig{ID: "w1", Programs: settle.Always(counter())})
	if w != nil || !errors.Is(err, context.Canceled) || !errors.Is(err, provision.ErrNoDeployment) || !strings.Contains(err.Error(), "waited for the deployment "+b.Prefix()) {
		t.Errorf("got %v, %v", w, err)
	}
	if text := log.String(); !strings.Contains(text, "waiting for a deployment") || !strings.Contains(text, "prefix="+b.Prefix()) {
		t.Errorf("the log says:\n%s", text)
	}
}

// A deployment that comes later is served, with the partitions that it has.
func TestStartWorker_ServesADeploymentThatComesLater(t *testing.T) {
	connect, log := emptyServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := connect(bus.Config{})
	provisioned := make(chan error, 1)
	go func() { // ends when the deployment is there
		<-log.came
		provisioned <- connect(bus.Config{Partitions: 3}).Provision(ctx)
	}()
	w, err := settle.StartWorker(ctx, b, settle.WorkerConfig{ID: "w1", Programs: settle.Always(counter())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Stop(ctx) })
	if err := <-provisioned; err != nil {
		t.Fatal(err)
	}
	if b.Partitions() != 3 {
		t.Errorf("the worker serves %d partitions", b.Partitions())
	}
	client, err := settle.NewClient(connect(bus.Config{}), settle.ClientConfig{ID: "c1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(ctx, settle.Outgoing{Space: "s", Stream: "add", ID: settle.ID("e1")}); err != nil {
		t.Errorf("an event: %v", err)
	}
}
