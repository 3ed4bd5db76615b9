package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
)

// contextOf returns the test's context, to be ended early. Its limit turns a hang into a failure, on a machine that may be heavily loaded.
func contextOf(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 5*time.Minute)
}

func mustAppend(t testing.TB, b *bus.Bus, space, id string, expect uint64) uint64 {
	t.Helper()
	seq, err := appendOne(b, model.Append{Space: space, ID: id, Expect: expect, Data: []byte(id)})
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func appendOne(b *bus.Bus, a model.Append) (uint64, error) {
	type result struct {
		seq uint64
		err error
	}
	answered := make(chan result, 1)
	b.Append(a, func(seq uint64, err error) { answered <- result{seq, err} })
	r := <-answered
	return r.seq, r.err
}

// following is a subscription in its own goroutine.
type following struct {
	t     testing.TB
	got   chan string
	ended chan error
}

func follow(t testing.TB, run func(ctx context.Context, got chan<- string) error) *following {
	ctx, cancel := context.WithCancel(context.Background())
	f := &following{t: t, got: make(chan string, 1000), ended: make(chan error, 1)}
	go func() { f.ended <- run(ctx, f.got) }() // ends with ctx
	t.Cleanup(cancel)
	return f
}

func (f *following) want(ids ...string) {
	f.t.Helper()
	for _, id := range ids {
		select {
		case got := <-f.got:
			if got != id {
				f.t.Fatalf("delivered %s, want %s", got, id)
			}
		case err := <-f.ended:
			f.t.Fatalf("the follow ended: %v", err)
		case <-time.After(5 * time.Minute):
			f.t.Fatalf("no answer to %s", id)
		}
	}
}

func followSpace(t testing.TB, b *bus.Bus, space string) *following {
	return follow(t, func(ctx context.Context, got chan<- string) error {
		return b.FollowSpace(ctx, space, 0, func(e model.LogEntry) { got <- e.ID })
	})
}

func followLog(t testing.TB, b *bus.Bus, partition int) *following {
	return follow(t, func(ctx context.Context, got chan<- string) error {
		return b.FollowLog(ctx, partition, 0, func(e model.LogEntry) { got <- e.ID })
	})
}

func followMembers(t testing.TB, b *bus.Bus) *following {
	return follow(t, func(ctx context.Context, got chan<- string) error {
		return b.FollowMembers(ctx, func(m model.Member) { got <- fmt.Sprint(m.ID, m.Beat) }, func() { got <- "ready" })
	})
}

// The server restarts under a client that appends and follows. Acknowledged data is still there, requests in
// flight are answered, and followers continue after their last delivery.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	cfg := embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	first := natstest.StartServer(t, cfg)
	b := connect(t, bus.Config{
		URL: first.ClientURL(), Partitions: 1,
		Options: []nats.Option{nats.ReconnectWait(10 * time.Millisecond), nats.ReconnectJitter(0, 0)},
	})
	b.HurryUp()
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, log, members := followSpace(t, b, "cart"), followLog(t, b, 0), followMembers(t, b)
	members.want("ready")
	head := mustAppend(t, b, "cart", "a/0/1", 0)
	if err := b.Announce(t.Context(), model.Member{ID: "w", Beat: 1}); err != nil {
		t.Fatal(err)
	}
	entries.want("a/0/1")
	log.want("a/0/1")
	members.want("w1")

	first.Shutdown()
	answered := make(chan error, 1)
	b.Append(model.Append{Space: "cart", ID: "a/0/2", Expect: head}, func(_ uint64, err error) { answered <- err })
	natstest.StartServer(t, cfg)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if err := b.Announce(t.Context(), model.Member{ID: "w", Beat: 2}); err != nil {
		t.Fatal(err)
	}
	entries.want("a/0/2")
	log.want("a/0/2")
	members.want("w2")
	if err := b.Check(t.Context()); err != nil {
		t.Error(err)
	}
	found, err := b.ReadLog(t.Context(), "cart", 0, 10)
	if err != nil || len(found) != 2 {
		t.Errorf("log %v, %v", found, err)
	}
}

// A feed message that is lost without a successor shows in the head. Here the feed is cut off completely.
func TestFollowSpaceWithoutAFeed(t *testing.T) {
	t.Parallel()
	b := provisioned(t, bus.Config{Partitions: 1})
	b.HurryUp()
	f := followSpace(t, b, "cart")
	head := mustAppend(t, b, "cart", "a/0/1", 0)
	f.want("a/0/1")
	cfg := stream(t, b, "SETTLE_LOG_0").CachedInfo().Config
	cfg.RePublish = nil
	update(t, b, cfg)
	for _, id := range []string{"a/0/2", "a/0/3"} {
		head = mustAppend(t, b, "cart", id, head)
		f.want(id)
	}
}

// A consumer that the server has lost sends no heartbeat.
func TestFollowOutlivesItsConsumer(t *testing.T) {
	t.Parallel()
	b := provisioned(t, bus.Config{Partitions: 1})
	b.HurryUp()
	f := followLog(t, b, 0)
	head := mustAppend(t, b, "cart", "a/0/1", 0)
	f.want("a/0/1")
	log := stream(t, b, "SETTLE_LOG_0")
	for name := range log.ConsumerNames(t.Context()).Name() {
		err := log.DeleteConsumer(t.Context(), name)
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) { // abandoned for another one in the meantime
			t.Fatal(err)
		}
	}
	mustAppend(t, b, "cart", "a/0/2", head)
	f.want("a/0/2")
}

// Subscriptions clean up after themselves: no consumer stays.
func TestFollowLeavesNoConsumer(t *testing.T) {
	t.Parallel()
	b := provisioned(t, bus.Config{Partitions: 1})
	mustAppend(t, b, "cart", "a/0/1", 0)
	for range 3 {
		ctx, cancel := contextOf(t)
		if err := b.FollowLog(ctx, 0, 0, func(model.LogEntry) { cancel() }); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	eventually(t, "no consumer is left", func() bool {
		return stream(t, b, "SETTLE_LOG_0").CachedInfo().State.Consumers == 0
	})
}

// eventually polls for a condition without a notification.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(5 * time.Minute)
	for !so() {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("timeout: %s", what)
		}
	}
}

// A stream that is gone for good ends the subscription, with advice.
func TestFollowEndsWithItsStream(t *testing.T) {
	t.Parallel()
	b := provisioned(t, bus.Config{Partitions: 1})
	b.HurryUp()
	f := followLog(t, b, 0)
	mustAppend(t, b, "cart", "a/0/1", 0)
	f.want("a/0/1")
	if err := b.JetStream().DeleteStream(t.Context(), "SETTLE_LOG_0"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-f.ended:
		if err == nil || !strings.Contains(err.Error(), "SETTLE_LOG_0") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(5 * time.Minute):
		t.Error("it does not end")
	}
}

// An append that was stored, put in doubt, superseded by another one and purged before it could be confirmed
// is refused with the reason, because its fate cannot be known.
func TestAppendInDoubtBehindAPurge(t *testing.T) {
	t.Parallel()
	held, proceed := make(chan struct{}), make(chan struct{})
	server := natstest.StartServer(t, embedded.Config{})
	b := connect(t, bus.Config{
		Server: server, Partitions: 1, AckTimeout: 100 * time.Millisecond,
		Faults: func(a faults.Attempt) faults.Fault {
			switch {
			case a.Op == faults.OpAppend && a.Try == 1:
				return faults.DropAck
			case a.Op == faults.OpAppend && a.Try == 2:
				close(held)
				<-proceed
			}
			return faults.Deliver
		},
	})
	other := provisioned(t, bus.Config{Server: server, Partitions: 1})
	answered := make(chan error, 1)
	b.Append(model.Append{Space: "cart", ID: "b/0/1", Data: []byte("1")}, func(_ uint64, err error) { answered <- err })
	<-held
	head, err := other.Head(t.Context(), "cart")
	if err != nil {
		t.Fatal(err)
	}
	last := mustAppend(t, other, "cart", "c/0/1", head)
	if err := stream(t, other, "SETTLE_LOG_0").Purge(t.Context(), jetstream.WithPurgeSequence(last)); err != nil {
		t.Fatal(err)
	}
	close(proceed)
	if err := <-answered; !errors.Is(err, model.ErrRefused) || !strings.Contains(err.Error(), "purged") {
		t.Errorf("got %v", err)
	}
}
