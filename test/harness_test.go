package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/parallel"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/worker"
)

// patience is a safety net: no test waits for it unless it fails. It bounds some tests as a whole, on a
// machine that may be heavily loaded.
const patience = 5 * time.Minute

const (
	deployHeartbeat = 20 * time.Millisecond
	// memberTTL is short. A worker that has missed its own heartbeat, which happens easily on a loaded machine,
	// suspects no other member for a third of it.
	memberTTL = 750 * time.Millisecond
)

func TestMain(m *testing.M) {
	parallel.Allow()
	leaks.VerifyTestMain(withCluster{m})
}

// withCluster runs the tests, and then stops the cluster if a test has started it.
type withCluster struct{ *testing.M }

func (m withCluster) Run() int {
	defer cluster.end()
	return m.M.Run()
}

// cluster is shared by all tests, because it takes a second to elect a leader. Each deployment in it has
// a prefix of its own.
var cluster sharedCluster

type sharedCluster struct {
	once        sync.Once
	c           *natstest.Cluster
	dir         string
	err         error
	deployments atomic.Int64
}

func (s *sharedCluster) start(t *testing.T) *natstest.Cluster {
	t.Helper()
	s.once.Do(func() {
		//nolint:usetesting // it outlives the test that happens to be the first
		if s.dir, s.err = os.MkdirTemp("", "settle-cluster-"); s.err == nil {
			s.c, s.err = natstest.StartCluster(s.dir)
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.c
}

func (s *sharedCluster) end() {
	if s.c != nil {
		s.c.Shutdown()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// onBothServers runs a test on a single server, and on a cluster of three that keeps everything three times: not under the race detector, since the
// servers are in this process and take most of its time then. base says where; the test fills in the rest.
func onBothServers(t *testing.T, test func(t *testing.T, base settle.Config)) {
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		test(t, settle.Config{})
	})
	if raced.On {
		return
	}
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		test(t, onCluster(t))
	})
}

func onCluster(t *testing.T) settle.Config {
	t.Helper()
	c := cluster.start(t)
	return settle.Config{
		Options: worker.Options{Heartbeat: 5 * deployHeartbeat}, // every one is stored three times
		Bus: bus.Config{
			URL: c.URLs(), Prefix: fmt.Sprintf("d%d", cluster.deployments.Add(1)), AckTimeout: 2 * time.Second,
			Options: []nats.Option{nats.ReconnectWait(10 * time.Millisecond), nats.ReconnectJitter(0, 0), nats.Timeout(patience)},
		},
	}
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// deployment is a settle.Deployment with the configuration of its server's connections.
type deployment struct {
	*settle.Deployment
	cfg settle.Config
}

// deploy starts a deployment that is stopped with the test.
func deploy(t *testing.T, cfg settle.Config) *deployment {
	t.Helper()
	own := cfg.Bus.URL == "" && cfg.Bus.Server == nil
	if own && cfg.Server.StoreDir == "" {
		cfg.Server.StoreDir = t.TempDir()
		cfg.Server.Fsync = embedded.FsyncInterval
	}
	if cfg.Bus.Partitions == 0 {
		cfg.Bus.Partitions = 2
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = deployHeartbeat
	}
	if cfg.MemberTTL == 0 {
		cfg.MemberTTL = memberTTL
	}
	cfg.Checkpoint = cfg.Heartbeat
	d, err := settle.Start(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if own {
		cfg.Bus.Server = d.Server()
	}
	out := &deployment{d, cfg}
	t.Cleanup(func() { out.end(t) })
	return out
}

// end stops the deployment. In the cluster, which stays, its streams are deleted.
func (d *deployment) end(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := d.StopWorkers(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
	if d.Server() == nil {
		defer d.deleteStreams(ctx, t)
	}
	if err := d.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func (d *deployment) deleteStreams(ctx context.Context, t *testing.T) {
	cfg := d.cfg.Bus
	cfg.Name = "client/broom"
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		t.Error(err)
		return
	}
	defer b.Close()
	var mine []string
	persistently(ctx, t, "list the streams", func(ctx context.Context) error {
		mine = nil
		streams := b.JetStream().StreamNames(ctx)
		for name := range streams.Name() {
			if strings.Contains(name, strings.ToUpper(cfg.Prefix)+"_") {
				mine = append(mine, name)
			}
		}
		return streams.Err()
	})
	if len(mine) == 0 {
		t.Errorf("no stream of deployment %s is found", cfg.Prefix)
	}
	for _, name := range mine {
		persistently(ctx, t, "delete stream "+name, func(ctx context.Context) error {
			if err := b.JetStream().DeleteStream(ctx, name); !errors.Is(err, jetstream.ErrStreamNotFound) {
				return err
			}
			return nil // it was deleted, and the answer was lost
		})
	}
}

// answerTime bounds one request to a cluster. A request to a leader that was just replaced gets lost, and is
// repeated.
const answerTime = 5 * time.Second

// persistently makes a request until it is answered with success.
func persistently(ctx context.Context, t *testing.T, what string, request func(context.Context) error) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for ; ; <-again.C {
		try, end := context.WithTimeout(ctx, answerTime)
		err := request(try)
		end()
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
	}
}

// publish stores an event as any NATS client does.
func publish(ctx context.Context, t *testing.T, b *bus.Bus, space, stream, id string) {
	t.Helper()
	persistently(ctx, t, "publish event "+id, func(ctx context.Context) error {
		_, err := b.JetStream().Publish(ctx, b.LaneSubject(space, stream, id), nil)
		if err == nil {
			return nil
		}
		if _, there, findErr := b.FindEvent(ctx, space, stream, id); there && findErr == nil {
			return nil // it was stored, and the answer was lost
		}
		return err
	})
}

// connect opens another connection to a deployment.
func connect(t *testing.T, d *deployment, options ...func(*bus.Config)) *bus.Bus {
	t.Helper()
	cfg := d.cfg.Bus
	cfg.Name = "worker/rival"
	for _, o := range options {
		o(&cfg)
	}
	b, err := bus.Connect(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// stop stops a process cleanly, at the end of a test.
func stop(t *testing.T, stop func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// attach has a runtime take part in a space over a bus.
func attach(t *testing.T, b port.Bus, space string, cfg settle.AttachConfig) *worker.Attachment {
	t.Helper()
	c, err := settle.NewClient(b, settle.ClientConfig{ID: cfg.ID})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	a, err := c.Space(space).Attach(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
