package bus_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/model"
)

// startCluster starts three servers as one cluster, until the test ends.
func startCluster(t testing.TB) *natstest.Cluster {
	t.Helper()
	c, err := natstest.StartCluster(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Shutdown)
	return c
}

// A cluster gets three replicas of every stream, refuses one, and keeps all promises while the leaders of its
// streams change.
func TestCluster(t *testing.T) {
	urls := startCluster(t).URLs()
	quick := []nats.Option{nats.ReconnectWait(10 * time.Millisecond), nats.ReconnectJitter(0, 0), nats.Timeout(time.Minute)}

	alone := connect(t, bus.Config{URL: urls, Replicas: 1, Partitions: 1})
	var asset *provision.AssetError
	if err := alone.Provision(t.Context()); !errors.As(err, &asset) || asset.Setting != "replicas" {
		t.Fatalf("one replica: %v", err)
	}
	many := connect(t, bus.Config{URL: urls, Replicas: 5, Partitions: 1})
	if err := many.Provision(t.Context()); err == nil || !strings.Contains(err.Error(), "no such number of servers") {
		t.Fatalf("five replicas: %v", err)
	}

	b := connect(t, bus.Config{URL: urls, Partitions: 1, AckTimeout: time.Second, Options: quick})
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range b.Wanted() {
		if n := stream(t, b, c.Name).CachedInfo().Config.Replicas; n != 3 {
			t.Errorf("%s has %d replicas", c.Name, n)
		}
	}
	useEverything(t, b)
	t.Run("leaders step down", func(t *testing.T) { appendWhileLeadersChange(t, b) })
	t.Run("a leader that knows nothing yet", func(t *testing.T) { leaderThatKnowsNothingYet(t, urls) })
	t.Run("duplicates at once", func(t *testing.T) { sendDuplicatesAtOnce(t, b, urls) })
}

// appendWhileLeadersChange appends and sends while the leaders of the streams are made to resign. Every
// answer is definite and true.
func appendWhileLeadersChange(t *testing.T, b *bus.Bus) {
	f := followSpace(t, b, "busy")
	head := uint64(0)
	var want []string
	for round := range 4 {
		for _, name := range []string{"SETTLE_LOG_0", "SETTLE_LANE_0"} {
			if err := natstest.StepDown(b.Conn(), name); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 25 {
			id := fmt.Sprintf("a/%d/%d", round, i)
			sent := make(chan error, 1)
			b.Send(model.Message{Space: "busy", Stream: "add", ID: fmt.Sprintf("e-%d-%d", round, i)}, func(_ model.SendResult, err error) { sent <- err })
			head = mustAppend(t, b, "busy", id, head)
			want = append(want, id)
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
		}
	}
	f.want(want...)
	eventually(t, "every replica shows all events", func() bool {
		events, err := b.ReadLane(t.Context(), "busy", 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return len(events) == len(want)
	})
}

// sendDuplicatesAtOnce sends one event from several clients concurrently. On R3 some of them meet the others
// in flight; an event that is reported as a duplicate is stored.
func sendDuplicatesAtOnce(t *testing.T, b *bus.Bus, urls string) {
	other := connect(t, bus.Config{URL: urls})
	for i := range 30 {
		m := model.Message{Space: "twice", Stream: "add", ID: fmt.Sprintf("e%d", i)}
		results := make(chan model.SendResult, 4)
		for _, c := range []*bus.Bus{b, other, b, other} {
			c.Send(m, func(r model.SendResult, err error) {
				if err != nil {
					t.Error(err)
				}
				results <- r
			})
		}
		stored := 0
		for range cap(results) {
			if r := <-results; !r.Duplicate {
				stored++
			}
		}
		// If the successful answer was lost with a leader, no client reports a success.
		_, there, err := b.FindEvent(t.Context(), m.Space, m.Stream, m.ID)
		if stored > 1 || !there || err != nil {
			t.Errorf("event %d was stored %d times, and is there: %v, %v", i, stored, there, err)
		}
	}
}
