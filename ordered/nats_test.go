package ordered_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

func startNATS(t testing.TB, fsync embedded.Fsync) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Config{StoreDir: t.TempDir(), Fsync: fsync})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

func connectNATS(t testing.TB, s *embedded.Server, partitions int) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(context.Background(), bus.Config{Server: s, Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Provision(context.Background()); err != nil {
		t.Fatal(err)
	}
	return b
}

// run starts a server; end stops it in good order.
func run(t testing.TB, b ordered.Bus, cfg ordered.Config) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- ordered.Serve(ctx, b, cfg) }() // ends with ctx
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return end
}

// ends follows the log of a key until n of its events have ended, and returns their ids.
func ends(t testing.TB, b *bus.Bus, key string, n int) (ids []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	_ = b.FollowSpace(ctx, key, 0, func(e model.LogEntry) {
		c, err := model.DecodeCommit(e.Data)
		if err != nil {
			t.Error(err)
			return
		}
		for i := range c.Txs {
			ids = append(ids, c.Txs[i].Receipt.Event)
		}
		if len(ids) >= n {
			cancel()
		}
	})
	return ids
}

func TestNATS_PlainPublishersTwoServersAndARestart(t *testing.T) {
	s := startNATS(t, embedded.FsyncInterval)
	a, b, plain := connectNATS(t, s, 4), connectNATS(t, s, 4), connectNATS(t, s, 4)
	end := run(t, a, ordered.Config{Name: "o1", Handlers: accounts()})
	run(t, b, ordered.Config{Name: "o2", Handlers: accounts()})
	publish := func(key, id, payload string) error {
		subject := fmt.Sprintf("settle.send.%d.%s.pay.%s", model.PartitionOf(key, 4), key, id)
		_, err := plain.JetStream().Publish(t.Context(), subject, []byte(payload))
		return err
	}
	const n = 60
	for i := range n {
		for _, key := range []string{"alice", "bob", "carol", "dave"} {
			if err := publish(key, fmt.Sprint("e", i+1), `{"cents":1,"to":"bank"}`); err != nil {
				t.Fatal(err)
			}
		}
		if i == n/2 {
			end() // the other server takes over
		}
	}
	if err := publish("alice", "e1", `{"cents":1}`); err == nil {
		t.Error("the second message of an id was stored")
	}
	for _, key := range []string{"alice", "bob", "carol", "dave"} {
		if got, want := fmt.Sprint(ends(t, plain, key, n)), fmt.Sprint(worldtest.Numbered(n)); got != want {
			t.Errorf("%s: %s", key, got)
		}
	}
	if got := len(ends(t, plain, "bank", 4*n)); got != 4*n {
		t.Errorf("the bank handled %d transfers", got)
	}
	d, err := history.Read(t.Context(), plain, "bank", "balance")
	if err != nil || d.Value.String() != fmt.Sprint(4*n) {
		t.Errorf("the bank has %v (%v)", d, err)
	}
	if rc, err := history.FindReceipt(t.Context(), plain, "carol", "pay", "e7"); err != nil || rc == nil || rc.Tx.Receipt.Result.String() != "7" {
		t.Errorf("the receipt of carol's e7: %+v, %v", rc, err)
	}
}

// The state is an ordinary bucket, which any NATS program can read.
func TestNATS_TheStateIsABucket(t *testing.T) {
	s := startNATS(t, embedded.FsyncInterval)
	b := connectNATS(t, s, 1)
	end := run(t, b, ordered.Config{Handlers: accounts()})
	if _, err := b.JetStream().Publish(t.Context(), "settle.send.0.alice.pay.e1", []byte(`{"cents":42}`)); err != nil {
		t.Fatal(err)
	}
	ends(t, b, "alice", 1)
	if _, err := b.JetStream().Publish(t.Context(), "settle.send.0.alice.pay.e2", []byte(`{"cents":0}`)); err != nil {
		t.Fatal(err)
	}
	ends(t, b, "alice", 2) // the server has received the acknowledgement of the first commit by then, and saves it when it stops
	end()
	kv, err := b.JetStream().KeyValue(t.Context(), "SETTLE_STATE_0")
	if err != nil {
		t.Fatal(err)
	}
	if e, err := kv.Get(t.Context(), "alice.balance"); err != nil || string(e.Value()) != "42" {
		t.Errorf("%v, %v", e, err)
	}
}
