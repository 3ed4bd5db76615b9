package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/status"
)

// impostor announces a worker with given figures, but serves nothing, until the end of the test.
func impostor(t *testing.T, url string, figures status.Figures) {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.AnswerPings(t.Context(), figures.Worker); err != nil {
		t.Fatal(err)
	}
	err = b.Serve(t.Context(), model.Service{Name: status.ServiceName, Description: "test", Endpoints: []model.Endpoint{{
		Name: status.Endpoint(figures.Worker), Description: "test",
		Answer: func([]byte) ([]byte, error) {
			f := figures
			f.Now = time.Now().Add(time.Until(figures.Now))
			if figures.Now.IsZero() {
				f.Now = time.Now()
			}
			return json.Marshal(f)
		},
	}}})
	if err == nil {
		err = b.Announce(t.Context(), model.Member{ID: figures.Worker, Beat: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The doctor judges the figures that workers report, and `settle fleet` shows them.
func TestDoctor_WorkersOfOtherFilesAndOtherClocks(t *testing.T) {
	t.Parallel()
	d := running(t)
	out := wantSoon(t, 1, "1 worker: ", "doctor")
	for _, not := range []string{"program files", "the clock of worker", "stand still"} {
		if strings.Contains(out, not) {
			t.Errorf("of a deployment that is well the doctor says %q", not)
		}
	}
	impostor(t, d.Server().ClientURL(), status.Figures{Worker: "x1", Binary: "another"})
	wantSoon(t, 1, `"check": "versions" | workers run different program files: | another (x1)`, "doctor", "--json")
	wantSoon(t, 0, "! workers of different program files: | another (x1)", "fleet")
	impostor(t, d.Server().ClientURL(), status.Figures{Worker: "x2", Now: time.Now().Add(-10 * time.Minute)})
	wantSoon(t, 2, `"check": "clock" | the clock of worker x2 is | behind this machine's`, "doctor", "--json")
	wantSoon(t, 0, "! the clock of x2 differs from this machine's by", "fleet")
}

// A suspended worker keeps its connection, and does not answer.
func TestDoctor_AWorkerThatHangsIsNamedAndNoneBesideIt(t *testing.T) {
	t.Parallel()
	d := running(t)
	b, err := bus.Connect(t.Context(), bus.Config{URL: d.Server().ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	nc := b.JetStream().Conn()
	for _, id := range []string{"a1", "hung"} {
		if err := b.Announce(t.Context(), model.Member{ID: id, Beat: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := nc.SubscribeSync("settle.ping.hung"); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	out := wantSoon(t, 1, "! workers | listens and does not answer: hung | they are killed: a1", "doctor")
	if !strings.Contains(out, "1 worker: w1") {
		t.Errorf("the worker that is there is not seen:\n%s", out)
	}
	wantSoon(t, 0, "! hung does not answer: it hangs", "fleet")
}

// A suspended coordinator keeps its connection, and does not answer. Another one does the work.
func TestDoctor_ACoordinatorThatHangsIsNamedAndNoneBesideIt(t *testing.T) {
	t.Parallel()
	d := running(t)
	b, err := bus.Connect(t.Context(), bus.Config{URL: d.Server().ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	nc := b.JetStream().Conn()
	if err := b.Announce(t.Context(), model.Member{ID: "frozen", Role: model.RoleCoordinator, Since: time.Now(), Beat: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.SubscribeSync("settle.api." + coordinator.Endpoint("frozen")); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	out := wantSoon(t, 1, "coordinators   one: | listens and does not answer: frozen | those that answer do its work", "doctor")
	if strings.Count(out, "listens and does not answer") != 1 {
		t.Errorf("others are said to hang:\n%s", out)
	}
	out = wantSoon(t, 0, "! frozen does not answer: it hangs, or its machine is cut off. Another coordinator does its work", "fleet")
	if strings.Contains(out, "takes its partitions over") {
		t.Errorf("a coordinator is said to have partitions:\n%s", out)
	}
}

// The doctor names a space that has events but no program, among healthy ones.
func TestDoctor_ASpaceWithoutAProgramIsNamed(t *testing.T) {
	t.Parallel()
	program := shop()
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: func(space string) *settle.Program {
			if space == "orphan" {
				return nil
			}
			return program
		},
		Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0"}, Bus: bus.Config{Partitions: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	pointAt(t, d.Server().ClientURL())
	want(t, 0, "o1: stored", "send", "orphan", "order", "--id", "o1", "--wait=none")
	want(t, 0, "o2: handled", "send", "shop", "order", "--id", "o2", "--wait")
	out := wantSoon(t, 0, "STUCK SPACE | orphan | order/o1 | there is no program that it is to run", "fleet")
	if strings.Contains(out, "\nshop ") {
		t.Errorf("a space that is well is said to stand still:\n%s", out)
	}
	wantSoon(t, 0, `"space": "orphan" | "cause": "no program"`, "fleet", "--json")
	out = wantSoon(t, 1, `"check": "stuck spaces" | space orphan at event o1 of stream order, on | there is no program that it is to run`, "doctor", "--json")
	if strings.Contains(out, "space shop") {
		t.Errorf("a space that is well is said to stand still:\n%s", out)
	}
}

// Processes that write detect a full store, without a monitoring port.
func TestDoctor_AFullStoreIsSeenWithoutAMonitoringPort(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "nats.conf")
	text := "listen: \"127.0.0.1:-1\"\njetstream { max_file_store: 8MB }\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server := natstest.StartServer(t, embedded.Config{ConfigFile: file})
	pointAt(t, server.ClientURL())
	d, err := settle.Start(t.Context(), settle.Config{Programs: settle.Always(shop()), Bus: bus.Config{URL: server.ClientURL(), Partitions: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = d.Stop(ctx) // it may have unsaved work
	})
	out := wantSoon(t, 1, "1 worker: ", "doctor")
	if strings.Contains(out, "could not store") {
		t.Errorf("with room, the doctor says\n%s", out)
	}
	fill(t, server.ClientURL())
	wantSoon(t, 2, `"check": "storage" | could not store something within the last minute: | insufficient`, "doctor", "--json")
	wantSoon(t, 0, "the store has no room, or fails;", "fleet")
}

// fill stores messages until the server has no room for more.
func fill(t *testing.T, url string) {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "BALLAST", Subjects: []string{"ballast"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	for size := 512 << 10; size > 0; size /= 2 {
		for err = error(nil); err == nil; {
			_, err = js.Publish(t.Context(), "ballast", make([]byte, size))
		}
	}
}

// --watch prints findings that appear and disappear, and ends when it is interrupted.
func TestDoctor_WatchPrintsWhatHasChanged(t *testing.T) {
	t.Parallel()
	d := running(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var said strings.Builder
	sent := false
	out := writerFunc(func(p []byte) (int, error) {
		said.Write(p)
		switch {
		case !sent && strings.Contains(said.String(), `"check":"permissions"`): // the last of the first look
			impostor(t, d.Server().ClientURL(), status.Figures{Worker: "x2", Now: time.Now().Add(-10 * time.Minute)})
			sent = true
		case sent && strings.Contains(said.String(), "the clock of worker x2"):
			cancel()
		}
		return len(p), nil
	})
	if code := runAt(ctx, []string{"doctor", "--watch", "--every", "10ms", "--json"}, streams{out: out, err: io.Discard, now: time.Now}, deploymentOf(t)); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(said.String(), "the clock of worker x2") || strings.Count(said.String(), `"check":"permissions"`) != 1 {
		t.Errorf("it said\n%s", &said)
	}
	want(t, 2, "use a positive duration", "doctor", "--watch", "--every", "0s")
}
