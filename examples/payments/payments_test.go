package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// patience is a safety net: no test waits for it unless it fails.
const patience = 2 * time.Minute

func startServer(t *testing.T) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

func connect(t *testing.T, s *embedded.Server, faults faults.Func) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Config{Server: s, Partitions: 1, Faults: faults})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

func client(t *testing.T, b *bus.Bus) *settle.Client {
	t.Helper()
	c, err := settle.NewClient(b, settle.ClientConfig{ID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// begin runs serve concurrently with the test.
func begin(t *testing.T, serve func(context.Context) error) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx) }() // ends with ctx
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return end
}

func call(t *testing.T, c *settle.Client, account, id string, p Payment) *model.Receipt {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	rc, err := c.Call(ctx, settle.Outgoing{Space: account, Stream: "pay", ID: settle.ID(id), Payload: p})
	if err != nil {
		t.Fatal(err)
	}
	return rc
}

func wantReceipt(t *testing.T, rc *model.Receipt, outcome model.Outcome, result string) {
	t.Helper()
	if rc.Outcome != outcome || rc.Result.String() != result {
		t.Errorf("%s: %s %s (%s), want %s %s", rc.Event, rc.Outcome, rc.Result, rc.Error, outcome, result)
	}
}

// The commands of the README, with the general clients and queries of Settle.
func TestPayments_AreHandledOnceAndEverybodySeesWhatBecameOfThem(t *testing.T) {
	s := startServer(t)
	begin(t, func(ctx context.Context) error { return serve(ctx, bus.Config{URL: s.ClientURL(), Partitions: 1}) })
	b := connect(t, s, nil)
	c := client(t, b)
	wantReceipt(t, call(t, c, "alice", "invoice-1", Payment{Cents: 500}), model.Handled, `{"cents":500,"payments":1}`)
	wantReceipt(t, call(t, c, "alice", "invoice-1", Payment{Cents: 500}), model.Handled, `{"cents":500,"payments":1}`)
	wantReceipt(t, call(t, c, "alice", "rent", Payment{Cents: -200, To: "bob"}), model.Handled, `{"cents":300,"payments":2}`)
	wantReceipt(t, call(t, c, "alice", "yacht", Payment{Cents: -90_000, To: "bob"}), model.Failed, `absent`)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tree, err := c.Space("alice").WaitTree(ctx, "pay", settle.ID("rent"))
	if err != nil || len(tree.Root.Caused) != 1 || tree.Root.Caused[0].Space != "bob" {
		t.Errorf("the tree of the rent: %+v, %v", tree, err)
	}
	a, err := (&live.Client{Bus: b}).Get(ctx, live.Get{Space: "bob", Document: "account", Timeout: live.Duration(patience)})
	if err != nil || string(a.Value) != `{"cents":200,"payments":1}` {
		t.Errorf("bob's account: %s, %v", a.Value, err)
	}
	var events []string
	for h, err := range c.Space("alice").Receipts(ctx, history.ReceiptFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, h.Tx.Receipt.Event)
	}
	if !slices.Equal(events, []string{"invoice-1", "rent", "yacht"}) {
		t.Errorf("alice's receipts are of %v", events)
	}
	letters := deadLetters(t, c)
	for len(letters) == 0 && ctx.Err() == nil {
		letters = deadLetters(t, c) // it is written behind the commit
	}
	if len(letters) != 1 || letters[0].Error != "alice is short of 89700 cents" || string(letters[0].Bytes()) != `{"cents":-90000,"to":"bob"}` {
		t.Errorf("dead letters: %+v", letters)
	}
}

func deadLetters(t *testing.T, c *settle.Client) (list []history.Dead) {
	t.Helper()
	for d, err := range c.DeadLetters(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	return list
}

// A process that dies after its commit is stored, before it receives the answer, corresponds to one that
// dies between the put and the acknowledgement: see byhand_test.go for the latter.
func TestPayments_ACrashBehindTheCommitAppliesOnce(t *testing.T) {
	s := startServer(t)
	stored := make(chan struct{})
	die := sync.OnceFunc(func() { close(stored) })
	var appends atomic.Int64
	dying := connect(t, s, func(a faults.Attempt) faults.Fault {
		if a.Op != faults.OpAppend || a.Try > 1 || appends.Add(1) < 2 {
			return faults.Deliver // also of the commit that takes the account over
		}
		die()
		return faults.DropAck
	})
	first, kill := context.WithCancel(context.Background())
	go func() { // ends with its bus
		_ = ordered.Serve(first, dying, ordered.Config{Handlers: map[string]ordered.Handler{"pay": ordered.On(pay)}})
	}()
	b := connect(t, s, nil)
	c := client(t, b)
	if _, err := c.Send(t.Context(), settle.Outgoing{Space: "alice", Stream: "pay", ID: settle.ID("invoice-1"), Payload: Payment{Cents: 500}}); err != nil {
		t.Fatal(err)
	}
	<-stored
	dying.Kill()
	kill()

	begin(t, func(ctx context.Context) error { return serve(ctx, bus.Config{URL: s.ClientURL(), Partitions: 1}) })
	wantReceipt(t, call(t, c, "alice", "invoice-1", Payment{Cents: 500}), model.Handled, `{"cents":500,"payments":1}`)
	wantReceipt(t, call(t, c, "alice", "invoice-2", Payment{Cents: 1}), model.Handled, `{"cents":501,"payments":2}`)
}
