package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/internal/devserver"
	"github.com/settlehq/settle/model"
)

// An event that was published to the lane of a wrong partition is reported in the workers' logs, and not by
// commands.
func TestCommands_DoNotPrintWhatTheBusNotices(t *testing.T) {
	t.Parallel()
	d := running(t)
	wrong := "settle.send." + []string{"1", "0"}[model.PartitionOf("shop", 2)] + ".shop.order.astray"
	if _, err := d.Bus().JetStream().Publish(t.Context(), wrong, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"fleet"}, {"where", "shop"}, {"send", "shop", "order", "--wait"}, {"receipts", "shop"}} {
		if code, _, stderr := command(t.Context(), t, args...); code != 0 || strings.Contains(stderr, "level=") {
			t.Errorf("settle %s: code %d\n%s", strings.Join(args, " "), code, stderr)
		}
	}
	want(t, 1, "there is no event nosuch in any lane; check the id and the space", "tree", "nosuch")
}

func TestCommands_AnEmptyPrefixIsTheDefault(t *testing.T) {
	running(t)
	want(t, 0, "settle.send. | settle.log. | settle.feed. | bucket SETTLE_STATE_", "where", "shop", "--prefix", "")
	want(t, 0, "SETTLE_WORKER: {", "permissions", "--prefix", "")
	t.Setenv("SETTLE_PREFIX", "")
	want(t, 0, "settle.send. | settle.log. | settle.feed. | bucket SETTLE_STATE_", "where", "shop")
	wantSoon(t, 0, "settle  1 worker", "fleet")
	want(t, 0, "deployment settle: ", "provision")
	want(t, 0, "SETTLE_WORKER: {", "permissions")
}

func TestSend_ATimeInThePastIsAMistake(t *testing.T) {
	t.Parallel()
	want(t, 2, "--after -5s lies in the past; use a positive duration", "send", "shop", "order", "--after=-5s")
	want(t, 2, "--at | use a time such as 2026-11-21T09:00:00Z", "send", "shop", "order", "--at", "tomorrow")
}

func TestTree_HelpExplainsTheMarks(t *testing.T) {
	t.Parallel()
	want(t, 0, "✓ handled | w waits for its time", "tree", "--help")
}

// A command finds the server of this directory, and an error says which address it has tried and where
// the address comes from.
func TestCommands_FindTheServerOfThisDirectory(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("NATS_URL", "")
	t.Chdir(t.TempDir())
	p := settle.NewProgram("shop")
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(p), Server: embedded.Config{Fsync: embedded.FsyncInterval, Listen: ":0"}, Bus: bus.Config{Partitions: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, 0, "settle.send.0.shop", "where", "shop")
	if err := d.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, found := devserver.Find("."); found {
		t.Error("it is found after it has ended")
	}

	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := (devserver.Server{NATS: "nats://127.0.0.1:1", PID: ended.Process.Pid}).Announce(devserver.Store); err != nil {
		t.Fatal(err)
	}
	want(t, 1, "dev.json names (nats://127.0.0.1:1, process | ) has exited; start it again (settle dev, or go run .), or name another one (--nats)\n", "where", "shop")
	t.Setenv("NATS_URL", "nats://127.0.0.1:2")
	want(t, 1, "at nats://127.0.0.1:2 (NATS_URL)", "where", "shop")
}
