package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/natstest"
)

// A partition whose log is gone is named, and nobody is told to put an empty one in its place.
func TestIncident_APartitionWithoutItsLog(t *testing.T) {
	d := running(t)
	if err := d.Bus().JetStream().DeleteStream(t.Context(), "SETTLE_LOG_1"); err != nil {
		t.Fatal(err)
	}
	wantSoon(t, 2, "stream SETTLE_LOG_1 (log) is missing | an empty one in its place has forgotten", "doctor", "--json")
	want(t, 1, "stream SETTLE_LOG_1 (log): no such stream; | `settle doctor` says what to do", "fleet")
}

// What fails, and what grows beyond what can be kept, is a dead letter that says why; the rest of the
// space goes on.
func TestIncident_AHandlerThatFailsAndADocumentThatIsTooLarge(t *testing.T) {
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(settle.NewProgram("fragile").
			Handle("fail", func(*settle.Tx, *settle.Event) (settle.Value, error) {
				return settle.Value{}, errors.New("the shelf is empty")
			}).
			Handle("grow", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
				tx.Set("all", strings.Repeat("x", 2<<20))
				return settle.Value{}, nil
			}).
			Handle("add", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) { return settle.ValueOf("added") })),
		Server: bus.ServerConfig{StoreDir: t.TempDir(), Fsync: bus.FsyncInterval, Listen: ":0"}, Bus: bus.Config{Partitions: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("NATS_URL", d.Server().ClientURL())
	want(t, 0, "stored", "send", "cart", "fail", "--id", "f1", "--wait=none")
	want(t, 0, "stored", "send", "cart", "grow", "--id", "g1", "--wait=none")
	want(t, 0, "handled", "send", "cart", "add", "--id", "a1", "--wait")
	wantSoon(t, 1, "2 events, ever; 2 open, the oldest for", "doctor", "--json")
	want(t, 0, "the shelf is empty | the document would have | split it into several documents", "dead", "cart", "--full")
	out := wantSoon(t, 0, "1 worker, 1 coordinator, 1 partition", "fleet")
	if strings.Contains(out, "STUCK") {
		t.Errorf("the space is said to stand still:\n%s", out)
	}
}

// A worker that has known more than the store has goes on with what there is, and says so.
func TestIncident_AStoreThatHasGoneBack(t *testing.T) {
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	start := func(files string) *bus.Server {
		s, err := bus.StartServer(bus.ServerConfig{StoreDir: filepath.Join(dir, files), Fsync: bus.FsyncInterval, Listen: fmt.Sprintf("127.0.0.1:%d", ports[0])})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	again := func(s *bus.Server, files, now string) *bus.Server {
		s.Shutdown()
		if err := os.CopyFS(filepath.Join(dir, now), os.DirFS(filepath.Join(dir, files))); err != nil {
			t.Fatal(err)
		}
		return start(now)
	}
	s := start("old")
	defer func() { s.Shutdown() }()
	t.Setenv("NATS_URL", s.ClientURL())
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(settle.NewProgram("counter").Handle("add", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.ValueOf("added") })),
		Bus:      bus.Config{URL: s.ClientURL(), Partitions: 1, Options: []nats.Option{nats.ReconnectWait(10 * time.Millisecond)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	want(t, 0, "handled", "send", "cart", "add", "--id", "a1", "--wait")
	s = again(s, "old", "new")
	want(t, 0, "handled", "send", "cart", "add", "--id", "a2", "--wait")
	s = again(s, "old", "older")
	wantSoon(t, 0, "the store has gone back, as | was known up to", "fleet")
	wantSoon(t, 1, "the store has gone back, as worker | Senders that have the events can send them again", "doctor", "--json")
	want(t, 0, "handled", "send", "cart", "add", "--id", "a2", "--wait")
}
