package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// fixed is a server that restarts at the same address with the same files.
type fixed struct {
	t   *testing.T
	cfg embedded.Config
	*embedded.Server
}

func startFixed(t *testing.T) *fixed {
	t.Helper()
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixed{t: t, cfg: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: fmt.Sprintf("127.0.0.1:%d", ports[0])}}
	f.start()
	t.Cleanup(func() { f.Shutdown() })
	return f
}

func (f *fixed) start() {
	f.t.Helper()
	s, err := embedded.Start(f.t.Context(), f.cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	f.Server = s
}

func (f *fixed) connect(name string) *bus.Bus {
	f.t.Helper()
	b, err := bus.Connect(f.t.Context(), bus.Config{
		URL: "nats://" + f.cfg.Listen, Name: name, Partitions: 2, AckTimeout: 100 * time.Millisecond,
		Options: []nats.Option{nats.ReconnectWait(10 * time.Millisecond), nats.ReconnectJitter(0, 0), nats.Timeout(patience)},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(b.Kill)
	return b
}

// adding returns a program that counts events.
func adding() *settle.Program {
	return settle.NewProgram("adding").Handle("add", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		n, _ := tx.Get("n").AsInt()
		tx.Set("n", n+1)
		return settle.ValueOf(n + 1)
	})
}

// While no server can be reached, every process stops on request, although its context has no deadline,
// and reports what it could not do. Acknowledged events exist when the server returns.
func TestLeaving_WhileNoServerIsThereEndsAndLosesNothing(t *testing.T) {
	t.Parallel()
	f := startFixed(t)
	ctx := testContext(t)
	b := f.connect("worker/w1")
	if err := b.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	start := func(b *bus.Bus, id string) *worker.Worker {
		t.Helper()
		w, err := settle.StartWorker(ctx, b, settle.WorkerConfig{
			ID: id, Programs: settle.Always(adding()), Options: worker.Options{Handover: 200 * time.Millisecond, Checkpoint: time.Hour, Heartbeat: deployHeartbeat},
		})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := start(b, "w1")
	coordBus := f.connect("coordinator/c1")
	coord := coordinator.New(coordBus, coordinator.Config{ID: "c1", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	coord.Start()
	attachBus := f.connect("attached/a1")
	attached, err := worker.Attach(ctx, attachBus, worker.AttachConfig{ID: "a1", Space: "cart", Handover: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	clientBus := f.connect("client/app")
	client, err := settle.NewClient(clientBus, settle.ClientConfig{ID: "app"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := client.Call(ctx, settle.Outgoing{Space: "cart", Stream: "add", ID: settle.ID(fmt.Sprint("e", i))}); err != nil {
			t.Fatal(err)
		}
	}

	f.Shutdown()
	err = w.Stop(context.Background()) //nolint:usetesting // it must end by itself
	if !errors.Is(err, port.ErrNoServer) {
		t.Errorf("the worker: %v", err)
	}
	for _, part := range []string{"worker w1", "no server could be reached", "1 space was not saved", "nothing that was acknowledged is lost"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the worker does not say %q: %v", part, err)
		}
	}
	// A transaction that cannot be confirmed, and then the Close.
	attempt, made := make(chan error, 1), make(chan struct{})
	go func() { // ends with the attachment
		attempt <- attached.Transact(ctx, "test", func(tx *space.Tx) error {
			defer close(made)
			tx.Set("m", model.Int(1))
			return nil
		})
	}()
	<-made
	if err := attached.Close(context.Background()); !errors.Is(err, port.ErrNoServer) || !strings.Contains(err.Error(), "space cart") { //nolint:usetesting // likewise
		t.Errorf("the attachment: %v", err)
	}
	if err := <-attempt; err == nil {
		t.Error("a transaction was confirmed without a server")
	}
	coord.Stop()
	client.Close()
	for _, b := range []*bus.Bus{b, coordBus, attachBus, clientBus} {
		b.Close()
	}

	f.start()
	w2 := start(f.connect("worker/w2"), "w2")
	later, err := settle.NewClient(f.connect("client/later"), settle.ClientConfig{ID: "later"})
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()
	r, err := later.Call(ctx, settle.Outgoing{Space: "cart", Stream: "add", ID: settle.ID("e3")})
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := r.Result.AsInt(); n != 4 {
		t.Errorf("after three events that were handled before and one since, n is %d", n)
	}
	if err := w2.Stop(ctx); err != nil {
		t.Errorf("with a server, the worker ends with %v", err)
	}
}

// A server of package ordered ends without a NATS server, too.
func TestLeaving_AServerOfOrderedEndsWithoutANATSServer(t *testing.T) {
	t.Parallel()
	f := startFixed(t)
	b := f.connect("ordered")
	if err := b.Provision(testContext(t)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background()) //nolint:usetesting // it is stopped before the test ends
	defer stop()
	ended := make(chan error, 1)
	go func() { // ends with ctx
		ended <- ordered.Serve(ctx, b, ordered.Config{
			Handlers: map[string]ordered.Handler{"add": func(tx *ordered.Tx, ev *model.Event) (any, error) {
				tx.Set("last", ev.ID)
				return "added", nil
			}},
			Handover: 200 * time.Millisecond, Checkpoint: time.Hour, Heartbeat: deployHeartbeat,
		})
	}()
	client, err := settle.NewClient(f.connect("client"), settle.ClientConfig{ID: "app"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(testContext(t), settle.Outgoing{Space: "cart", Stream: "add", ID: settle.ID("e1")}); err != nil {
		t.Fatal(err)
	}
	f.Shutdown()
	stop()
	err = <-ended
	for _, part := range []string{"no server could be reached", "1 key was not saved", "nothing that was acknowledged is lost"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("it does not say %q: %v", part, err)
		}
	}
	client.Close()
}
