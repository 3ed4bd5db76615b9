package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/model"
)

// provisioned returns a bus on its own server, with all streams.
func provisioned(t testing.TB, cfg bus.Config) *bus.Bus {
	t.Helper()
	if cfg.Server == nil {
		cfg.Server = natstest.StartServer(t, embedded.Config{})
	}
	if cfg.Partitions == 0 {
		cfg.Partitions = 2
	}
	b := connect(t, cfg)
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestProvisionTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	b := provisioned(t, bus.Config{})
	before := configs(t, b)
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := configs(t, b); before != after {
		t.Errorf("assets changed\nfrom %s\nto   %s", before, after)
	}
}

func configs(t *testing.T, b *bus.Bus) string {
	var all strings.Builder
	for _, c := range b.Wanted() {
		text, err := json.Marshal(stream(t, b, c.Name).CachedInfo().Config)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s\n", text)
	}
	return all.String()
}

func stream(t *testing.T, b *bus.Bus, name string) jetstream.Stream {
	t.Helper()
	ctx, cancel := contextOf(t)
	defer cancel()
	for {
		try, end := context.WithTimeout(ctx, time.Second) // a newly elected leader may not have the event yet
		s, err := b.JetStream().Stream(try, name)
		end()
		switch {
		case err == nil:
			return s
		case ctx.Err() != nil, errors.Is(err, jetstream.ErrStreamNotFound) && b.Conn().ConnectedClusterName() == "":
			t.Fatalf("stream %s: %v", name, err)
		}
	}
}

// Several workers start at once on an empty server, with different versions and without a required number of
// partitions.
func TestProvisionAtOnce(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	var all sync.WaitGroup
	for i := range 6 {
		b := connect(t, bus.Config{Server: server, Version: fmt.Sprint("v", i)})
		all.Go(func() {
			if err := b.Provision(t.Context()); err != nil {
				t.Error(err)
			}
			if b.Partitions() != provision.DefaultPartitions {
				t.Errorf("%d partitions", b.Partitions())
			}
		})
	}
	all.Wait()
}

// Two deployments are not mixed: the first number of partitions is stored, and a process that requires another
// gets an error.
func TestProvisionAtOnceWithDifferentNumbers(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	numbers := []int{2, 3, 0, 5}
	results := make([]error, len(numbers))
	buses := make([]*bus.Bus, len(numbers))
	var all sync.WaitGroup
	for i, n := range numbers {
		buses[i] = connect(t, bus.Config{Server: server, Partitions: n})
	}
	for i := range numbers {
		all.Go(func() { results[i] = buses[i].Provision(t.Context()) })
	}
	all.Wait()
	stored := connect(t, bus.Config{Server: server}).Partitions()
	for i, n := range numbers {
		wins := n == stored || n == 0
		if (results[i] == nil) != wins {
			t.Errorf("%d partitions where %d are stored: %v", n, stored, results[i])
		}
		if wins && buses[i].Partitions() != stored {
			t.Errorf("a bus counts %d partitions, %d are stored", buses[i].Partitions(), stored)
		}
	}
}

func TestAnotherNumberOfPartitionsIsRefused(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	provisioned(t, bus.Config{Server: server, Partitions: 2})
	_, err := bus.Connect(t.Context(), bus.Config{Server: server, Partitions: 3})
	var asset *provision.AssetError
	if !errors.As(err, &asset) || asset.Found != "2" || asset.Wanted != "3" {
		t.Fatalf("got %v", err)
	}
	if taken := connect(t, bus.Config{Server: server}); taken.Partitions() != 2 {
		t.Errorf("0 takes %d partitions, want the 2 that are stored", taken.Partitions())
	}
}

// The horizon is fixed with the deployment: a process that requires another gets an error, and one that does
// not uses the stored one.
func TestAnotherHorizonIsRefused(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	if h := connect(t, bus.Config{Server: server}).Horizon(); h != model.DefaultHorizon {
		t.Errorf("before there is a deployment the horizon is %v", h)
	}
	late := connect(t, bus.Config{Server: server}) // connects before it is decided
	provisioned(t, bus.Config{Server: server, Horizon: 48 * time.Hour})
	_, err := bus.Connect(t.Context(), bus.Config{Server: server, Horizon: 24 * time.Hour})
	var asset *provision.AssetError
	if !errors.As(err, &asset) || asset.Found != "48h0m0s" || asset.Wanted != "24h0m0s" {
		t.Fatalf("got %v", err)
	}
	if err := late.Provision(t.Context()); err != nil || late.Horizon() != 48*time.Hour {
		t.Errorf("0 takes %v, %v; want the 48h that are stored", late.Horizon(), err)
	}
	for _, wrong := range []time.Duration{-time.Hour, time.Second} {
		if _, err := bus.Connect(t.Context(), bus.Config{Server: server, Horizon: wrong}); err == nil || !strings.Contains(err.Error(), "horizon") {
			t.Errorf("horizon %v: %v", wrong, err)
		}
	}
}

// A deployment from before the setting existed has the default horizon.
func TestADeploymentWithoutAHorizonHasTheDefault(t *testing.T) {
	t.Parallel()
	b := provisioned(t, bus.Config{})
	cfg := stream(t, b, "KV_SETTLE_WORKERS").CachedInfo().Config
	delete(cfg.Metadata, "settle.io/horizon")
	update(t, b, cfg)
	if err := b.Check(t.Context()); err != nil {
		t.Error(err)
	}
	cfg.Metadata["settle.io/horizon"] = "1h0m0s" // and this one was chosen by hand
	update(t, b, cfg)
	wantSettings(t, b.Check(t.Context()), "KV_SETTLE_WORKERS", "horizon (metadata settle.io/horizon)")
}

// The settings were altered on the server with `nats stream edit`.
func TestEditedStreamsAreRefused(t *testing.T) {
	t.Parallel()
	edits := []struct {
		stream, setting string
		edit            func(*jetstream.StreamConfig)
	}{
		{"SETTLE_LANE_0", "maximum age", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{"SETTLE_LANE_0", "messages per subject", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 2 }},
		{"SETTLE_LANE_0", "discard per subject", func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject = false }},
		{"SETTLE_LANE_1", "discard policy", func(c *jetstream.StreamConfig) {
			c.Discard, c.DiscardNewPerSubject = jetstream.DiscardOld, false
		}},
		{"SETTLE_LANE_1", "subjects", func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "more.>") }},
		{"SETTLE_LOG_0", "roll-up", func(c *jetstream.StreamConfig) { c.AllowRollup = true }},
		{"SETTLE_LOG_0", "republish", func(c *jetstream.StreamConfig) { c.RePublish = nil }},
		{"SETTLE_LOG_0", "maximum messages", func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 }},
		{"SETTLE_LOG_1", "maximum bytes", func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 }},
		{"SETTLE_LOG_1", "messages per subject", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 10 }},
		{"SETTLE_LOG_1", "message TTL", func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }},
		{"KV_SETTLE_STATE_0", "maximum age", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{"KV_SETTLE_STATE_1", "direct get", func(c *jetstream.StreamConfig) { c.AllowDirect = false }},
		{"SETTLE_DEAD", "discard per subject", func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject = false }},
		{"KV_SETTLE_WORKERS", "messages per subject", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 }},
		{"KV_SETTLE_WORKERS", "schema (metadata settle.io/schema)", func(c *jetstream.StreamConfig) { c.Metadata["settle.io/schema"] = "2" }},
	}
	server := natstest.StartServer(t, embedded.Config{})
	b := provisioned(t, bus.Config{Server: server})
	for _, e := range edits {
		t.Run(e.stream+"/"+e.setting, func(t *testing.T) {
			cfg := stream(t, b, e.stream).CachedInfo().Config
			altered := cfg
			altered.Metadata = map[string]string{}
			for key, value := range cfg.Metadata { // any order: a copy
				altered.Metadata[key] = value
			}
			e.edit(&altered)
			update(t, b, altered)
			defer func() { recreate(t, b, cfg) }()
			for _, err := range []error{b.Check(t.Context()), b.Provision(t.Context())} {
				wantSettings(t, err, e.stream, e.setting)
			}
		})
	}
	if err := b.Check(t.Context()); err != nil {
		t.Errorf("after all was set back: %v", err)
	}
}

// A deployment of an earlier version goes on, and clients can send to it once it is provisioned again; what they had sent is
// where it was.
func TestProvision_AddsTheSubjectsOfClients(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	b := provisioned(t, bus.Config{Server: server, Partitions: 1})
	cfg := stream(t, b, "SETTLE_LANE_0").CachedInfo().Config
	earlier := cfg
	earlier.Subjects, earlier.MaxBytes = []string{"settle.lane.0.*.*.*"}, 1<<20
	update(t, b, earlier)
	if _, err := b.JetStream().Publish(t.Context(), "settle.lane.0.cart.add.e1", nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context()); err != nil {
		t.Errorf("programs refuse a lane of an earlier version: %v", err)
	}
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := stream(t, b, "SETTLE_LANE_0").CachedInfo().Config
	if !slices.Equal(now.Subjects, cfg.Subjects) || now.MaxBytes != earlier.MaxBytes {
		t.Errorf("the lane has %v and room for %d bytes", now.Subjects, now.MaxBytes)
	}
	for _, id := range []string{"e2", "alice=e1"} {
		sent := make(chan error, 1)
		b.Send(model.Message{Space: "cart", Stream: "add", ID: id}, func(_ model.SendResult, err error) { sent <- err })
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	events, err := b.ReadLane(t.Context(), "cart", 0, 10)
	var ids []string
	for i := range events {
		ids = append(ids, events[i].ID)
	}
	if found, is, _ := b.FindEvent(t.Context(), "cart", "add", "e1"); !is || found.Seq != 1 || !slices.Equal(ids, []string{"e1", "e2", "alice=e1"}) {
		t.Errorf("the lane has %v (%v), and e1 at %d", ids, err, found.Seq)
	}
}

func update(t *testing.T, b *bus.Bus, c jetstream.StreamConfig) {
	t.Helper()
	if _, err := b.JetStream().UpdateStream(t.Context(), c); err != nil {
		t.Fatalf("update: %v", err)
	}
}

// recreate restores a stream, even from settings that cannot be changed back.
func recreate(t *testing.T, b *bus.Bus, c jetstream.StreamConfig) {
	t.Helper()
	if err := b.JetStream().DeleteStream(t.Context(), c.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := b.JetStream().CreateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// wantSettings checks that the error names the setting of that stream, among others that the edit may have
// changed with it.
func wantSettings(t *testing.T, err error, stream, setting string) {
	t.Helper()
	var asset *provision.AssetError
	if !errors.As(err, &asset) {
		t.Fatalf("got %v, want an AssetError", err)
	}
	for _, part := range []string{"stream " + stream, setting + " is"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not contain %q", err, part)
		}
	}
}

func TestCheckNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := provisioned(t, bus.Config{})
	if err := b.JetStream().DeleteStream(t.Context(), "SETTLE_LOG_1"); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "SETTLE_LOG_1") || errors.Is(err, provision.ErrNoDeployment) {
		t.Errorf("got %v", err)
	}
}

func TestCheckReportsAMissingDeploymentInOneLine(t *testing.T) {
	t.Parallel()
	b := connect(t, bus.Config{Server: natstest.StartServer(t, embedded.Config{})})
	if err := b.Check(t.Context()); !errors.Is(err, provision.ErrNoDeployment) {
		t.Errorf("got %v, want ErrNoDeployment", err)
	}
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReplicasOnASingleServerAreRefused(t *testing.T) {
	t.Parallel()
	b := connect(t, bus.Config{Server: natstest.StartServer(t, embedded.Config{}), Replicas: 3})
	if err := b.Provision(t.Context()); err == nil || !strings.Contains(err.Error(), "not part of a cluster") {
		t.Errorf("got %v", err)
	}
}

func TestPrefixesShareAnAccount(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	one := provisioned(t, bus.Config{Server: server, Partitions: 1})
	two := provisioned(t, bus.Config{Server: server, Partitions: 2, Prefix: "staging"})
	for i, b := range []*bus.Bus{one, two} {
		if err := b.SavePosition(t.Context(), 0, "p", uint64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := one.LoadPosition(t.Context(), 0, "p"); n != 1 || err != nil {
		t.Errorf("position %d, %v", n, err)
	}
	stream(t, two, "STAGING_LANE_1")
}

func TestNoJetStreamIsReported(t *testing.T) {
	t.Parallel()
	url := startPlainServer(t)
	_, err := bus.Connect(t.Context(), bus.Config{URL: url})
	if err == nil || !strings.Contains(err.Error(), "JetStream") {
		t.Errorf("got %v", err)
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if b, err := bus.Connect(ctx, bus.Config{Server: server}); err == nil {
		b.Close()
		t.Error("connected with a context that had ended")
	}
}

func TestProvision_DeadLettersAreKeptForeverUnlessAnAgeIsChosen(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	for prefix, age := range map[string]time.Duration{"forever": 0, "month": 30 * 24 * time.Hour} {
		b := provisioned(t, bus.Config{Server: server, Prefix: prefix, DeadLetterMaxAge: age})
		if got := stream(t, b, strings.ToUpper(prefix)+"_DEAD").CachedInfo().Config.MaxAge; got != age {
			t.Errorf("%s: kept for %v, want %v", prefix, got, age)
		}
		if err := b.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", prefix, err)
		}
	}
	if _, err := bus.Connect(t.Context(), bus.Config{Server: server, DeadLetterMaxAge: -1}); err == nil {
		t.Error("a negative age was accepted")
	}
}

// startPlainServer starts a server without JetStream.
func startPlainServer(t *testing.T) string {
	t.Helper()
	ns, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	go ns.Start() // ends when the server has started
	if !ns.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	return ns.ClientURL()
}
