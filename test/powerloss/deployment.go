package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

const partitions = 2

// deployment is the processes that use the servers: a worker, a coordinator and clients.
type deployment struct {
	c      *cluster
	spaces int
	book   *book
	log    *complaints

	life   int
	lossy  bool // data has been lost
	buses  []*bus.Bus
	worker *worker.Worker
	coord  *coordinator.Coordinator
	client *settle.Client

	stopClients context.CancelFunc
	clients     sync.WaitGroup
	sent        []atomic.Int64 // per space
}

func newDeployment(c *cluster, spaces int) *deployment {
	return &deployment{c: c, spaces: spaces, book: newBook(), log: &complaints{}, sent: make([]atomic.Int64, spaces)}
}

// program counts orders, and sends each to another space, which counts them, too.
func program() *settle.Program {
	count := func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		n, _ := tx.Get("count").AsInt()
		tx.Set("count", n+1)
		return tx.Get("count"), nil
	}
	return settle.NewProgram("power").
		Handle("tally", count).
		Handle("order", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			tx.Send(other(ev.Space), "tally", nil)
			return count(tx, ev)
		})
}

func other(space string) string { return "of-" + space }

func spaceName(i int) string { return fmt.Sprintf("s%d", i) }

// start creates the streams and starts the processes.
func (d *deployment) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	for ctx.Err() == nil {
		if err = d.provision(ctx); err == nil {
			break
		}
		pause(ctx, 200*time.Millisecond)
	}
	if err != nil {
		return err
	}
	if err := d.c.wait(ctx); err != nil {
		return err
	}
	return d.begin(ctx)
}

// provision retries until all servers of a cluster know each other.
func (d *deployment) provision(ctx context.Context) error {
	b, err := d.connect(ctx, "client/provision")
	if err != nil {
		return err
	}
	defer b.Close()
	return b.Provision(ctx)
}

func (d *deployment) connect(ctx context.Context, name string) (*bus.Bus, error) {
	return bus.Connect(ctx, bus.Config{
		URL: d.c.urls(), Name: name, Partitions: partitions, AckTimeout: time.Second, Logger: slog.New(d.log),
		Options: []nats.Option{nats.ReconnectWait(50 * time.Millisecond), nats.ReconnectJitter(0, 0)},
	})
}

// begin starts the worker, the coordinator and a client.
func (d *deployment) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d.life++
	buses := make([]*bus.Bus, 0, 3)
	for _, role := range []string{"worker", "coordinator", "client"} {
		b, err := d.connect(ctx, fmt.Sprintf("%s/%s%d", role, role, d.life))
		if err != nil {
			return err
		}
		buses = append(buses, b)
		d.buses = buses
	}
	var err error
	if d.client, err = settle.NewClient(buses[2], settle.ClientConfig{ID: "power"}); err != nil {
		return err
	}
	d.coord = coordinator.New(buses[1], coordinator.Config{Logger: slog.New(d.log)})
	d.coord.Start()
	started := make(chan error, 1)
	go func() { // ends when the worker serves, or the context
		w, err := settle.StartWorker(ctx, buses[0], settle.WorkerConfig{
			ID: fmt.Sprintf("w%d", d.life), Programs: settle.Always(program()), Options: worker.Options{Heartbeat: 100 * time.Millisecond, Checkpoint: 200 * time.Millisecond},
			Logger: slog.New(d.log),
		})
		d.worker = w
		started <- err
	}()
	return <-started
}

// freeze ends everything at once, like the failure of all machines.
func (d *deployment) freeze() {
	if d.stopClients != nil {
		d.stopClients()
	}
	for _, b := range d.buses {
		b.Kill()
	}
	if d.worker != nil {
		d.worker.Kill()
		d.worker = nil
	}
	if d.coord != nil {
		d.coord.Stop()
		d.coord = nil
	}
	if d.client != nil {
		d.client.Close()
		d.client = nil
	}
	d.rest()
}

func (d *deployment) kill() { d.freeze() }

// work lets every client send for a while. The clients continue until rest is called.
func (d *deployment) work(ctx context.Context, while time.Duration) {
	clients, cancel := context.WithCancel(ctx)
	d.stopClients = cancel
	if d.client != nil {
		client := d.client
		for i := range d.spaces {
			d.clients.Go(func() { d.send(clients, client, i) }) // ends with its context
		}
	}
	pause(ctx, while)
}

// rest stops the clients.
func (d *deployment) rest() {
	if d.stopClients != nil {
		d.stopClients()
		d.clients.Wait()
		d.stopClients = nil
	}
}

// send sends one event after the other, and waits for the receipt of each.
func (d *deployment) send(ctx context.Context, client *settle.Client, i int) {
	space := spaceName(i)
	for ctx.Err() == nil {
		e := settle.Outgoing{Space: space, Stream: "order", ID: settle.ID(fmt.Sprintf("e%d", d.sent[i].Add(1)))}
		if _, err := client.Send(ctx, e); err != nil {
			continue
		}
		d.book.acked(space, e.ID.String())
		if r, err := client.Space(space).Await(ctx, "order", e.ID); err == nil && r.Outcome == model.Handled {
			d.book.shown(space, e.ID.String())
		}
	}
}

// complaints is a log handler that keeps the messages about streams that have lost messages.
type complaints struct {
	mu    sync.Mutex
	texts []string
}

func (*complaints) Enabled(context.Context, slog.Level) bool { return true }

func (c *complaints) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	if strings.Contains(text, "lost messages") {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.texts = append(c.texts, text)
	}
	return nil
}

func (c *complaints) WithAttrs([]slog.Attr) slog.Handler { return c }
func (c *complaints) WithGroup(string) slog.Handler      { return c }

func (d *deployment) complaints() int {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	return len(d.log.texts)
}

var errUnsettled = errors.New("events that were acknowledged have no receipt")
