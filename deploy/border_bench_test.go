package deploy_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/model"
)

// BenchmarkBorder stores events: by a user in the account of the streams, by one of an account that imports them, and over HTTP. They take
// turns, on the same server. It reports the median of the times of single events, and events per second with 64 senders, and prints
// each as a multiple of the first.
//
// docs/adr/0048 has what it printed.
func BenchmarkBorder(b *testing.B) {
	s := benchServer(b)
	connect := func(role string) *bus.Bus {
		c, err := bus.Connect(b.Context(), bus.Config{URL: s.ClientURL(), User: role, Password: password(role)})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(c.Close)
		return c
	}
	admin := connect(roles.Administrator)
	if err := admin.Provision(b.Context()); err != nil {
		b.Fatal(err)
	}
	inside, outside := connect(roles.Operator), connect(roles.Client)
	ways := []struct {
		name string
		send func(id string)
	}{
		{"inside", sendOver(b, inside)},
		{"imported", sendOver(b, outside)},
		{"http", sendHTTP(b, s)},
	}
	next := 0
	id := func() string { next++; return "e" + strconv.Itoa(next) }
	const senders, rounds = 64, 10
	alone, together := make([][]time.Duration, len(ways)), make([]time.Duration, len(ways))
	b.ResetTimer()
	for range b.N {
		for i, w := range ways {
			for range rounds {
				one := id()
				began := time.Now()
				w.send(one)
				alone[i] = append(alone[i], time.Since(began))
			}
			ids := make([]string, senders*rounds)
			for k := range ids {
				ids[k] = id()
			}
			began := time.Now()
			var all sync.WaitGroup
			for k := range senders {
				all.Go(func() { // ends when all are sent
					for _, one := range ids[k*rounds : (k+1)*rounds] {
						w.send(one)
					}
				})
			}
			all.Wait()
			together[i] += time.Since(began)
		}
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2])
	}
	for i, w := range ways {
		rate := float64(b.N*senders*rounds) / together[i].Seconds()
		b.ReportMetric(rate, w.name+"-events/s")
		b.ReportMetric(median(alone[i])/1e3, w.name+"-p50-us")
		b.Logf("%-8s one at a time %.2f, with %d senders %.2f times as long as inside", w.name,
			median(alone[i])/median(alone[0]), senders, together[i].Seconds()/together[0].Seconds())
	}
}

// benchServer is startWithUsers for a benchmark.
func benchServer(b *testing.B) *embedded.Server {
	b.Helper()
	users, err := filepath.Abs("nats/users.conf")
	if err != nil {
		b.Fatal(err)
	}
	conf := filepath.Join(b.TempDir(), "server.conf")
	path, err := filepath.Rel(filepath.Dir(conf), users)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(conf, fmt.Appendf(nil, "include %q\n", path), 0o600); err != nil {
		b.Fatal(err)
	}
	return natstest.StartServer(b, embedded.Config{StoreDir: b.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0", ConfigFile: conf})
}

// sendOver stores an event over a bus.
func sendOver(b *testing.B, c *bus.Bus) func(string) {
	return func(id string) {
		done := make(chan error, 1)
		c.Send(model.Message{Space: "shop", Stream: "add", ID: id, Payload: []byte(`{"by":1}`)}, func(_ model.SendResult, err error) { done <- err })
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}

// sendHTTP stores an event at a worker's HTTP address.
func sendHTTP(b *testing.B, s *embedded.Server) func(string) {
	b.Helper()
	ports, err := natstest.FreePorts(1)
	if err != nil {
		b.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
	own, err := bus.Connect(b.Context(), bus.Config{URL: s.ClientURL(), User: roles.Worker, Password: password(roles.Worker)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(own.Kill)
	w, err := settle.StartWorker(b.Context(), own, settle.WorkerConfig{
		ID: "w1", HTTP: gateway.Config{Addr: addr},
		Programs: settle.Always(settle.NewProgram("shop").Handle("add", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, nil })),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.Kill)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.Cleanup(client.CloseIdleConnections)
	url := "http://" + addr + "/v1/spaces/shop/streams/add"
	return func(id string) {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader([]byte(`{"by":1}`)))
		if err != nil {
			b.Error(err)
			return
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", id)
		resp, err := client.Do(req)
		if err != nil {
			b.Error(err)
			return
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusAccepted {
			b.Errorf("status %s", resp.Status)
		}
	}
}
