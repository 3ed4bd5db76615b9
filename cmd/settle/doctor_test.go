package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
)

// The doctor examines a healthy deployment, and then after one damage after the other.
func TestDoctor_OfALiveDeployment(t *testing.T) {
	t.Parallel()
	d := running(t)
	want(t, 0, "o1: handled", "send", "shop", "order", "--id", "o1", "--wait")
	wantSoon(t, 1, "nats-server 2. | JetStream API level | durability     settle writes to the disk every 2 minutes | embedded.FsyncAlways | 9 of 9 streams have every setting | 1 worker: w1 | coordinators   one | What can be lost | a client without a user | 0 failures",
		"doctor")
	wantSoon(t, 1, `"level": "warning" | "check": "durability"`, "doctor", "--json")
	wantSoon(t, 1, "connection refused", "doctor", "--monitor", "127.0.0.1:1")
	wantSoon(t, 2, "there is no deployment with prefix other", "doctor", "--prefix", "other")

	js := d.Bus().JetStream()
	stream := func(name string) jetstream.Stream {
		t.Helper()
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if _, err := stream("SETTLE_LOG_0").CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "audit"}); err != nil {
		t.Fatal(err)
	}
	wantSoon(t, 1, "stream SETTLE_LOG_0 has consumers that are none of Settle's:", "doctor")

	altered := stream("SETTLE_LANE_1").CachedInfo().Config
	altered.MaxAge = time.Hour
	if _, err := js.UpdateStream(t.Context(), altered); err != nil {
		t.Fatal(err)
	}
	wantSoon(t, 2, "✗ streams | SETTLE_LANE_1: maximum age is 1h0m0s, must be unlimited | would disappear | nats stream edit", "doctor")

	if err := d.Bus().SavePosition(t.Context(), 1, "released", 1000); err != nil {
		t.Fatal(err)
	}
	wantSoon(t, 2, "✗ log and lanes | SETTLE_LOG_1 ends at | known to have reached 1000", "doctor")

	if err := js.DeleteStream(t.Context(), "SETTLE_DEAD"); err != nil {
		t.Fatal(err)
	}
	wantSoon(t, 2, "stream SETTLE_DEAD (dead) is missing", "doctor")

	// Without the bucket that describes it, it is still the same deployment.
	if err := js.DeleteStream(t.Context(), "KV_SETTLE_WORKERS"); err != nil {
		t.Fatal(err)
	}
	wantSoon(t, 2, "stream KV_SETTLE_WORKERS (workers) is missing", "doctor")
	want(t, 1, "stream KV_SETTLE_WORKERS is missing | --horizon", "provision")
	want(t, 1, "SETTLE_LANE_1: maximum age is 1h0m0s", "provision", "--horizon", "24h") // and the bucket is there again
}

// Coordinators and workers of another deployment in the same account do not belong to this one. A server
// does not report its sync interval to clients. The process that embeds it does.
func TestDoctor_KnowsWhenAnEmbeddedServerWritesToItsDisk(t *testing.T) {
	t.Parallel()
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(shop()), Server: embedded.Config{StoreDir: t.TempDir(), Listen: ":0"}, Bus: bus.Config{Partitions: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	wantSoon(t, 1, "settle writes to the disk before it acknowledges, | process that embeds it | 1 warning,", "doctor", "--nats", d.Server().ClientURL())
}

func TestDoctor_CountsOnlyWhoBelongsToTheDeployment(t *testing.T) {
	t.Parallel()
	running(t)
	want(t, 0, "deployment second", "provision", "--prefix", "second", "--partitions", "2")
	wantSoon(t, 2, "no coordinator answers | no worker answers", "doctor", "--prefix", "second")
	saysNot(t, wantSoon(t, 0, "second  0 workers, 0 coordinators, 2 partitions | no worker runs | no coordinator runs", "fleet", "--prefix", "second"), "w1")
	saysNot(t, wantSoon(t, 0, "settle  1 worker, 1 coordinator, 2 partitions", "fleet"), "second")
	wantSoon(t, 1, "coordinators   one", "doctor")
}

// A command with an unknown prefix lists the existing ones.
func TestDoctor_NamesTheDeploymentsThatThereAre(t *testing.T) {
	t.Parallel()
	running(t)
	want(t, 0, "deployment second", "provision", "--prefix", "second", "--partitions", "2")
	want(t, 2, "there is no deployment with prefix third in this account, but | there are deployments with prefix second, settle", "doctor", "--prefix", "third")
	want(t, 1, "there is no deployment with prefix third on this server; the account has deployments with --prefix second, settle", "fleet", "--prefix", "third")
	out := want(t, 0, "settle", "fleet")
	if strings.Contains(out, "second") {
		t.Errorf("another deployment is shown:\n%s", out)
	}
}

func TestDoctor_SaysThatNothingCanBeReached(t *testing.T) {
	t.Parallel()
	want(t, 2, "connect to NATS at nats://127.0.0.1:1", "doctor", "--nats", "nats://127.0.0.1:1")
}

func TestProvision_CreatesAndThenChecks(t *testing.T) {
	t.Parallel()
	running(t)
	want(t, 0, "deployment settle: 2 partitions, horizon 168h0m0s", "provision")
	want(t, 0, "deployment second: 3 partitions, horizon 1h0m0s", "provision", "--prefix", "second", "--partitions", "3", "--horizon", "1h")
	want(t, 1, "partition count", "provision", "--prefix", "second", "--partitions", "4", "--wait", "1m")
}

// The limits of a deployment can be set in Go, by flag and by environment variable.
func TestProvision_SetsEveryLimit(t *testing.T) {
	d := running(t)
	check := func(way, prefix string) {
		t.Helper()
		b, err := bus.Connect(t.Context(), bus.Config{URL: d.Server().ClientURL(), Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if b.Partitions() != 3 || b.Horizon() != 48*time.Hour {
			t.Errorf("%s: %d partitions, horizon %v", way, b.Partitions(), b.Horizon())
		}
		lane, err := b.JetStream().Stream(t.Context(), strings.ToUpper(prefix)+"_LANE_2")
		if err != nil || lane.CachedInfo().Config.MaxBytes != 1<<26 {
			t.Errorf("%s: the lane has %+v, %v", way, lane, err)
		}
		dead, err := b.JetStream().Stream(t.Context(), strings.ToUpper(prefix)+"_DEAD")
		if err != nil || dead.CachedInfo().Config.MaxAge != 72*time.Hour {
			t.Errorf("%s: the stream of dead letters has %+v, %v", way, dead, err)
		}
	}
	b, err := bus.Connect(t.Context(), bus.Config{
		URL: d.Server().ClientURL(), Prefix: "go", Partitions: 3, Horizon: 48 * time.Hour, LaneMaxBytes: 1 << 26, DeadLetterMaxAge: 72 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("in Go", "go")
	want(t, 0, "deployment flag", "provision", "--prefix", "flag", "--partitions", "3", "--horizon", "48h", "--lane-max-bytes", "67108864", "--dead-letter-max-age", "72h")
	check("by flag", "flag")
	for name, value := range map[string]string{"PARTITIONS": "3", "HORIZON": "48h", "LANE_MAX_BYTES": "67108864", "DEAD_LETTER_MAX_AGE": "72h"} {
		t.Setenv("SETTLE_"+name, value)
	}
	want(t, 0, "deployment env", "provision", "--prefix", "env")
	check("by environment variable", "env")
}

func TestPermissions_AreOfSoManyPartitions(t *testing.T) {
	t.Parallel()
	want(t, 0, "SHOP_WORKER: { | $KV.SHOP_STATE_1.> | $JS.API.STREAM.PURGE.SHOP_LOG_1", "permissions", "--prefix", "shop", "--partitions", "2")
}
