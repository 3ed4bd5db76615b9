package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
	"github.com/settlehq/settle/questions"
	"github.com/settlehq/settle/worker"
)

// refusals is a log handler that keeps the server's permission errors.
type refusals struct {
	role string
	mu   *sync.Mutex
	all  *[]string
}

func (refusals) Enabled(context.Context, slog.Level) bool { return true }

func (r refusals) Handle(_ context.Context, rec slog.Record) error {
	text := r.role + ": " + rec.Message
	rec.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	if strings.Contains(strings.ToLower(text), "permissions violation") {
		r.mu.Lock()
		defer r.mu.Unlock()
		*r.all = append(*r.all, text)
	}
	return nil
}

func (r refusals) WithAttrs([]slog.Attr) slog.Handler { return r }
func (r refusals) WithGroup(string) slog.Handler      { return r }

// cast is a deployment in which each process has its own role.
type cast struct {
	t       *testing.T
	server  *embedded.Server
	mu      sync.Mutex
	refused []string
}

func (c *cast) as(role, name string) *bus.Bus {
	c.t.Helper()
	b, err := bus.Connect(c.t.Context(), bus.Config{
		URL: c.server.ClientURL(), User: role, Password: password(role), Name: role + "/" + name,
		Partitions: provision.DefaultPartitions, Logger: slog.New(refusals{role, &c.mu, &c.refused}),
		Options: []nats.Option{nats.Timeout(patience)},
	})
	if err != nil {
		c.t.Fatalf("%s: %v", role, err)
	}
	c.t.Cleanup(b.Kill)
	return b
}

func (c *cast) worker(id string) *worker.Worker {
	c.t.Helper()
	b := c.as(roles.Worker, id)
	c.must(b.Provision(c.t.Context())) // as cmd/spaceworker does
	w, err := settle.StartWorker(c.t.Context(), b, settle.WorkerConfig{
		ID: id, Programs: settle.Always(shop()), Options: worker.Options{Heartbeat: 50 * time.Millisecond, Checkpoint: 50 * time.Millisecond},
		Logger: slog.New(refusals{roles.Worker, &c.mu, &c.refused}),
	})
	c.must(err)
	c.t.Cleanup(w.Kill)
	return w
}

func (c *cast) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

var mail = settle.NewAction[string, string]("mail")

// shop returns a program that crosses every border: it sends to another space, reads another space, derives,
// fails, and works outside.
func shop() *settle.Program {
	p := settle.NewProgram("shop")
	mail.Perform(p, func(_ context.Context, _, text string) (string, error) { return text + " sent", nil })
	mail.Done(p, func(tx *settle.Tx, t settle.Task[string, string]) error {
		tx.Set("mailed", t.Out)
		return t.Err
	})
	return p.
		Handle("pack", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			mail.Start(tx, ev.ID, "packed")
			return settle.Value{}, nil
		}).
		Handle("order", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			n, _ := tx.Get("orders").AsInt()
			tx.Set("orders", n+1)
			tx.Send("depot", "ship", nil)
			return tx.Get("orders"), nil
		}).
		Handle("ship", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			n, _ := tx.Get("shipped").AsInt()
			tx.Set("shipped", n+1)
			return settle.Value{}, nil
		}).
		Handle("fill", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			for i := range 500 {
				tx.Set(fmt.Sprintf("%s-%d", strings.TrimPrefix(ev.ID, "m"), i), i)
			}
			return settle.Value{}, nil
		}).
		Handle("fail", func(*settle.Tx, *settle.Event) (settle.Value, error) {
			return settle.Value{}, errors.New("it always does")
		}).
		Compute("elsewhere", func(v *settle.View) (settle.Value, error) {
			return v.GetFrom("depot", "shipped"), nil
		})
}

// Each role can do all of its work with its own permissions, and no process tries an operation that is not
// permitted.
func TestEveryRoleCanDoItsWork(t *testing.T) {
	t.Parallel()
	c := &cast{t: t, server: startWithUsers(t)}
	c.must(c.as(roles.Administrator, "provision").Provision(t.Context()))
	first := c.worker("w1")
	coord := coordinator.New(c.as(roles.Coordinator, "c1"), coordinator.Config{Save: 50 * time.Millisecond, Logger: slog.New(refusals{roles.Coordinator, &c.mu, &c.refused})})
	coord.Start()
	t.Cleanup(coord.Stop)
	client, err := settle.NewClient(c.as(roles.Client, "app"), settle.ClientConfig{ID: "app"})
	c.must(err)
	t.Cleanup(client.Close)
	readerBus := c.as(roles.Reader, "board")
	reader, err := settle.NewClient(readerBus, settle.ClientConfig{ID: "board"})
	c.must(err)
	t.Cleanup(reader.Close)

	watching, stop := context.WithCancel(t.Context())
	seen := make(chan int64, 100)
	var watch sync.WaitGroup
	watch.Go(func() { // ends with watching
		for u, err := range reader.Space("shop").Watch(watching, "elsewhere") {
			if err != nil {
				t.Error(err)
				return
			}
			n, _ := u.Value.AsInt()
			seen <- n
		}
	})
	defer watch.Wait()
	defer stop()

	order := func(from, to int) {
		t.Helper()
		for i := from; i <= to; i++ {
			r, err := client.Call(t.Context(), settle.Outgoing{Space: "shop", Stream: "order", ID: settle.ID(fmt.Sprintf("o%d", i))})
			c.must(err)
			if r.Outcome != model.Handled {
				t.Fatalf("order %d: %+v", i, r)
			}
			_, err = reader.Space("shop").WaitTree(t.Context(), "order", settle.ID(fmt.Sprintf("o%d", i)))
			c.must(err)
		}
	}
	order(1, 3)
	second := c.worker("w2")
	first.Kill() // the other one takes over
	order(4, 6)
	for n := int64(0); n < 6; n = <-seen {
		t.Logf("the reader sees %d", n)
	}

	// An event that a client has stored in the lane of another partition, and work outside.
	wrong := (model.PartitionOf("shop", provision.DefaultPartitions) + 1) % provision.DefaultPartitions
	stray := connectAs(t, c.server, roles.Client)
	if !stray.mayPublish(fmt.Sprintf("settle.send.%d.shop.pack.p1", wrong)) {
		t.Fatal("a client may not send")
	}
	soon, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	packed, err := reader.Space("shop").Await(soon, "pack", settle.ID("p1"))
	c.must(err)
	if packed.Outcome != model.Handled {
		t.Errorf("what went astray: %+v", packed)
	}
	eventually(t, "the mail is sent", func() bool {
		v, _, err := reader.Space("shop").Get(t.Context(), "mailed")
		c.must(err)
		text, _ := v.AsString()
		return text == "packed sent"
	})

	r, err := client.Call(t.Context(), settle.Outgoing{Space: "shop", Stream: "fail", ID: settle.ID("f1")})
	c.must(err)
	if r.Outcome != model.Failed {
		t.Fatalf("%+v", r)
	}
	eventually(t, "there is a dead letter", func() bool {
		for _, err := range reader.Space("shop").DeadLetters(t.Context()) {
			c.must(err)
			return true
		}
		return false
	})
	operator, err := settle.NewClient(c.as(roles.Operator, "person"), settle.ClientConfig{ID: "person"})
	c.must(err)
	t.Cleanup(operator.Close)
	_, _, err = operator.Space("shop").Redrive(t.Context(), "fail", settle.ID("f1"))
	c.must(err)
	receipts := 0
	for _, err := range reader.Space("shop").Receipts(t.Context(), history.ReceiptFilter{Last: 6}) {
		c.must(err)
		receipts++
	}
	if receipts != 6 {
		t.Errorf("%d receipts", receipts)
	}
	if _, err := reader.Space("shop").FindReceipt(t.Context(), "order", settle.ID("o1")); err != nil {
		t.Error(err)
	}
	if _, err := readerBus.Ask(t.Context(), "tree", []byte(`{"event":"o1"}`)); err != nil {
		t.Error(err)
	}

	// A user outside asks why, and reads the log of a space.
	why, err := reader.Space("shop").Why(t.Context(), "o1", questions.Query{})
	c.must(err)
	if why.Event == nil || why.Event.State != string(model.Handled) {
		t.Errorf("%+v", why)
	}
	page, err := reader.Space("shop").Log(t.Context(), history.LogQuery{})
	c.must(err)
	if len(page.Entries) == 0 {
		t.Error("the log is empty")
	}
	if _, err := operator.Top(t.Context(), why.Worker, 1); err != nil {
		t.Error(err)
	}

	// A user outside reads a space with more documents than one answer of the servers has.
	for i := range 3 {
		many, err := client.Call(t.Context(), settle.Outgoing{Space: "full", Stream: "fill", ID: settle.ID(fmt.Sprintf("m%d", i))})
		c.must(err)
		if many.Outcome != model.Handled {
			t.Fatalf("%+v", many)
		}
	}
	eventually(t, "all documents of a large space are saved, and seen", func() bool {
		st, err := readerBus.LoadState(t.Context(), "full")
		c.must(err)
		return len(st.Docs) == 1500
	})

	worker := c.as(roles.Worker, "purger")
	p := model.PartitionOf("shop", provision.DefaultPartitions)
	if _, err := worker.PurgeLane(t.Context(), p, 1, 0); err != nil {
		t.Errorf("purge a lane: %v", err)
	}
	if _, err := worker.LogState(t.Context(), p, 0); err != nil {
		t.Errorf("look at a log: %v", err)
	}
	if _, err := worker.LogSpaces(t.Context(), p); err != nil {
		t.Errorf("list the spaces of a log: %v", err)
	}
	if err := worker.PurgeLog(t.Context(), "shop", 2); err != nil {
		t.Errorf("purge a log: %v", err)
	}

	c.must(second.Stop(t.Context()))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, refused := range c.refused {
		t.Error(refused)
	}
}

// A client may not append to a log: only processes that host spaces may.
func TestAClientCannotCommit(t *testing.T) {
	t.Parallel()
	c := &cast{t: t, server: startWithUsers(t)}
	c.must(c.as(roles.Administrator, "provision").Provision(t.Context()))
	b := c.as(roles.Client, "app")
	done := make(chan error, 1)
	b.Append(model.Append{Space: "shop", ID: "x/0/1", Data: []byte(`{"v":1,"sp":"shop"}`)}, func(_ uint64, err error) { done <- err })
	eventually(t, "the server refuses", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.refused) > 0
	})
	b.Kill()
	if err := <-done; !errors.Is(err, model.ErrStopped) {
		t.Errorf("the append ended with %v", err)
	}
	if head, err := c.as(roles.Reader, "r").Head(t.Context(), "shop"); err != nil || head != 0 {
		t.Errorf("head %d, %v", head, err)
	}
}

// A server of package ordered works with the role of a worker, if a coordinator with a role of its own runs
// beside it.
func TestAnOrderedServerDoesItsWorkAsAWorker(t *testing.T) {
	t.Parallel()
	c := &cast{t: t, server: startWithUsers(t)}
	c.must(c.as(roles.Administrator, "provision").Provision(t.Context()))
	coord := coordinator.New(c.as(roles.Coordinator, "c1"), coordinator.Config{Save: 50 * time.Millisecond})
	coord.Start()
	t.Cleanup(coord.Stop)
	serving, stop := context.WithCancel(t.Context())
	var server sync.WaitGroup
	server.Go(func() { // ends with serving
		err := ordered.Serve(serving, c.as(roles.Worker, "o1"), ordered.Config{Coordinated: true, Handlers: map[string]ordered.Handler{
			"pay":  ordered.On(func(tx *ordered.Tx, to string) (string, error) { tx.Send(ordered.To(to), "take", 1); return to, nil }),
			"take": ordered.On(func(tx *ordered.Tx, n int) (int, error) { tx.Set("balance", n); return n, nil }),
		}})
		if err != nil && serving.Err() == nil {
			t.Error(err)
		}
	})
	defer server.Wait()
	defer stop()
	client, err := settle.NewClient(c.as(roles.Client, "app"), settle.ClientConfig{ID: "app"})
	c.must(err)
	t.Cleanup(client.Close)
	bob, err := settle.ValueOf("bob")
	c.must(err)
	r, err := client.Call(t.Context(), settle.Outgoing{Space: "ann", Stream: "pay", ID: settle.ID("p1"), Payload: bob})
	c.must(err)
	if r.Outcome != model.Handled {
		t.Fatalf("%+v", r)
	}
	_, err = client.Space("ann").WaitTree(t.Context(), "pay", settle.ID("p1"))
	c.must(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, refused := range c.refused {
		t.Error(refused)
	}
}
