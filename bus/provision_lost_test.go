package bus_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus"
)

// creations decides what becomes of the n-th request to create a stream, counted from 1:
// the server gets it, or this is the answer, which for "" never comes.
type creations func(n int64) (answer string, ask bool)

// behind is a bus, not yet provisioned, that reaches its server through these creations.
func behind(t *testing.T, fate creations) *bus.Bus {
	t.Helper()
	server := startServer(t, bus.ServerConfig{ConfigFile: configFile(t, `
		listen: "127.0.0.1:-1"
		jetstream {}
	`)})
	nc, err := nats.Connect(server.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	var asked atomic.Int64
	_, err = nc.Subscribe("between.API.>", func(m *nats.Msg) {
		request := strings.TrimPrefix(m.Subject, "between.API.")
		if strings.HasPrefix(request, "STREAM.CREATE.") {
			if answer, ask := fate(asked.Add(1)); !ask {
				if answer != "" {
					_ = m.Respond([]byte(answer))
				}
				return
			}
		}
		_ = nc.PublishRequest("$JS.API."+request, m.Reply, m.Data)
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	clearEnvironment(t)
	writeContext(t, "between", map[string]string{"url": server.ClientURL(), "jetstream_api_prefix": "between.API"})
	return connect(t, bus.Config{Partitions: 1, AckTimeout: 100 * time.Millisecond})
}

// While a cluster comes up, a request to create a stream may reach no server that
// answers: it is made again, instead of being waited for as long as the caller can.
func TestProvision_AsksAgainForAStreamWhoseCreationWasLost(t *testing.T) {
	var lost int
	b := behind(t, func(n int64) (string, bool) {
		if n%3 == 1 {
			lost++
			return "", false
		}
		return "", true
	})
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context()); err != nil || lost < 2 {
		t.Errorf("%d requests were lost; check: %v", lost, err)
	}
}

const peerOffline = `{"type":"io.nats.jetstream.api.v1.stream_create_response",` +
	`"error":{"code":400,"err_code":10005,"description":"no suitable peers for placement, peer offline"}}`

// A server of the cluster that the others have not heard from yet is waited for, for a
// while, and then named as the reason.
func TestProvision_WaitsForAServerOfTheClusterThatIsNotHeardOf(t *testing.T) {
	b := behind(t, func(n int64) (string, bool) { return peerOffline, n > 3 })
	if err := b.Provision(t.Context()); err != nil {
		t.Errorf("the server is heard of after a while: %v", err)
	}
	b = behind(t, func(int64) (string, bool) { return peerOffline, false })
	b.HurryUp()
	if err := b.Provision(t.Context()); err == nil || !strings.Contains(err.Error(), "peer offline") {
		t.Errorf("the server is never heard of: %v", err)
	}
}
