package bus_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
)

// creations decides the fate of the n-th request to create a stream, counted from 1: it reaches the server,
// or gets this answer, or no answer if that is "".
type creations func(n int64) (answer string, ask bool)

// behind returns a bus, not yet provisioned, whose requests to create streams go through creations.
func behind(t *testing.T, fate creations) *bus.Bus {
	t.Helper()
	var asked atomic.Int64
	return through(t, func(request string, m *nats.Msg) (pass bool) {
		if !strings.HasPrefix(request, "STREAM.CREATE.") {
			return true
		}
		answer, ask := fate(asked.Add(1))
		if !ask && answer != "" {
			_ = m.Respond([]byte(answer))
		}
		return ask
	})
}

// through returns a bus, not yet provisioned, whose requests to the JetStream API reach the server if gate
// lets them pass. gate is called for one request at a time.
func through(t *testing.T, gate func(request string, m *nats.Msg) (pass bool)) *bus.Bus {
	t.Helper()
	server := natstest.StartServer(t, embedded.Config{ConfigFile: configFile(t, `
		listen: "127.0.0.1:-1"
		jetstream {}
	`)})
	return throughTo(t, server.ClientURL(), gate)
}

// throughTo is through for an existing server, or for the first one of a cluster: all connections use one
// server, since the others learn of a subscription later.
func throughTo(t *testing.T, url string, gate func(request string, m *nats.Msg) (pass bool)) *bus.Bus {
	t.Helper()
	url, _, _ = strings.Cut(url, ",")
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	_, err = nc.Subscribe("between.API.>", func(m *nats.Msg) {
		request := strings.TrimPrefix(m.Subject, "between.API.")
		if !gate(request, m) {
			return
		}
		to := "$JS.API." + request
		if strings.HasPrefix(request, "$KV.") {
			to = request
		}
		_ = nc.PublishMsg(&nats.Msg{Subject: to, Reply: m.Reply, Header: m.Header, Data: m.Data})
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	clearEnvironment(t)
	writeContext(t, "between", map[string]string{"url": url, "jetstream_api_prefix": "between.API"})
	return connect(t, bus.Config{Partitions: 1, AckTimeout: 100 * time.Millisecond})
}

const noStream = `{"type":"io.nats.jetstream.api.v1.stream_info_response",` +
	`"error":{"code":404,"err_code":10059,"description":"stream not found"}}`

// A new leader of its cluster reports that a stream does not exist, because it has not applied the earlier
// decisions yet. The request is repeated.
func leaderThatKnowsNothingYet(t *testing.T, urls string) {
	asked := map[string]int{}
	b := throughTo(t, urls, func(request string, m *nats.Msg) bool {
		name, found := strings.CutPrefix(request, "STREAM.INFO.")
		if !found || name == "KV_SETTLE_WORKERS" {
			return true
		}
		if asked[name]++; asked[name]%3 == 0 {
			return true
		}
		_ = m.Respond([]byte(noStream))
		return false
	})
	ctx, cancel := contextOf(t)
	defer cancel()
	if err := b.Provision(ctx); err != nil {
		t.Errorf("provision: %v", err)
	}
	if err := b.Check(ctx); err != nil {
		t.Errorf("check: %v", err)
	}
}

// While a cluster starts, a request to create a stream may reach no server that answers: it is repeated,
// instead of being waited for as long as the caller can.
func TestProvision_RepeatsALostCreation(t *testing.T) {
	var lost atomic.Int64
	b := behind(t, func(n int64) (string, bool) {
		if n%3 == 1 {
			lost.Add(1)
			return "", false
		}
		return "", true
	})
	ctx, cancel := contextOf(t)
	defer cancel()
	if err := b.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(ctx); err != nil || lost.Load() < 2 {
		t.Errorf("%d requests were lost; check: %v", lost.Load(), err)
	}
}

const peerOffline = `{"type":"io.nats.jetstream.api.v1.stream_create_response",` +
	`"error":{"code":400,"err_code":10005,"description":"no suitable peers for placement, peer offline"}}`

// Provision waits for a server of the cluster that the others do not know yet, for a while, and then names it
// as the reason.
func TestProvision_WaitsForASilentServerOfTheCluster(t *testing.T) {
	b := behind(t, func(n int64) (string, bool) { return peerOffline, n > 3 })
	if err := b.Provision(t.Context()); err != nil {
		t.Errorf("the server responds after a while: %v", err)
	}
	b = behind(t, func(int64) (string, bool) { return peerOffline, false })
	b.HurryUp()
	if err := b.Provision(t.Context()); err == nil || !strings.Contains(err.Error(), "peer offline") {
		t.Errorf("the server never responds: %v", err)
	}
	b = behind(t, func(n int64) (string, bool) { return peerOffline, n == 1 }) // the first stream existed before
	b.HurryUp()
	if err := b.Provision(t.Context()); strings.Count(fmt.Sprint(err), "peer offline") != 1 {
		t.Errorf("it is waited for once, and not again for each stream: %v", err)
	}
}

// A slow server creates a single consumer, however often it is requested, and no delivery before the answer is
// lost.
func TestFollow_AnUnansweredCreationOfAConsumerIsRepeated(t *testing.T) {
	names, asked := make(chan string, 100), map[string]int{}
	b := through(t, func(request string, m *nats.Msg) bool {
		words := strings.Split(request, ".")
		if !strings.HasPrefix(request, "CONSUMER.CREATE.") {
			return true
		}
		names <- words[3]
		if asked[words[2]]++; asked[words[2]] == 1 {
			m.Reply = "" // the server performs the request, and its answer is lost
		}
		return true
	})
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	head := mustAppend(t, b, "cart", "a/0/1", 0)
	mustAppend(t, b, "cart", "a/0/2", head)
	if err := b.Announce(t.Context(), model.Member{ID: "w", Beat: 1}); err != nil {
		t.Fatal(err)
	}
	followLog(t, b, 0).want("a/0/1", "a/0/2")
	followMembers(t, b).want("w1", "ready")
	times := map[string]int{}
	for range 4 {
		times[<-names]++
	}
	if len(times) != 2 {
		t.Errorf("for two subscriptions with two requests each, the requests per consumer were: %v", times)
	}
}

// One program looks for the bucket that is created first, before another program creates it, and then for the
// other streams: it must not take this for a deployment that has lost its first bucket.
func TestProvision_BesideAFasterProgram(t *testing.T) {
	server := natstest.StartServer(t, embedded.Config{ConfigFile: configFile(t, `
		listen: "127.0.0.1:-1"
		jetstream {}
	`)})
	other := connect(t, bus.Config{Server: server, Partitions: 1})
	var provisions atomic.Bool
	var once sync.Once
	b := throughTo(t, server.ClientURL(), func(request string, _ *nats.Msg) bool {
		if provisions.Load() && request == "STREAM.INFO.SETTLE_LOG_0" {
			once.Do(func() {
				if err := other.Provision(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		return true
	})
	provisions.Store(true)
	if err := b.Provision(t.Context()); err != nil {
		t.Error(err)
	}
}
