package dev_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/internal/dev"
)

func TestDev_TheContextOfAnotherThatRunsIsLeftAlone(t *testing.T) {
	quietHome(t)
	one := start(t, t.TempDir(), nil)
	two := start(t, t.TempDir(), nil)
	if got := bus.ContextURL(dev.ContextName); got != one.server.NATS {
		t.Errorf("the context names %s, not %s", got, one.server.NATS)
	}
	if !strings.Contains(two.out.String(), "nats --context settle-dev-") {
		t.Errorf("the second says nothing of its context:\n%s", two.out)
	}
}

// A settle dev that is killed leaves its context behind. The next one removes it, wherever it starts, and no other context.
func TestDev_RemovesTheContextsOfOnesThatWereKilled(t *testing.T) {
	dir := filepath.Join(quietHome(t), "nats", "context")
	ports, err := natstest.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	gone, runs, own := fmt.Sprint("nats://127.0.0.1:", ports[0]), "nats://"+l.Addr().String(), fmt.Sprint("nats://127.0.0.1:", ports[1])
	for _, c := range []struct{ name, url, description string }{
		{"settle-dev", runs, "settle dev"},
		{"settle-dev-1", gone, "settle dev"},
		{"settle-dev-2", own, "settle dev"},
		{"settle-dev-3", gone, "mine"},
		{"settle-dev-mine", gone, "settle dev"},
		{"mine", gone, "settle dev"},
		{"settle-dev-4", "nats://nats.example:4222", "settle dev"},
		{"settle-dev-5", "nats://127.0.0.1", "settle dev"},
		{"settle-dev-6", "", "settle dev"},
	} {
		if _, err := bus.SaveContext(c.name, c.url, c.description); err != nil {
			t.Fatal(err)
		}
	}
	edited := fmt.Sprintf(`{"url":%q,"description":"settle dev","user":"ann"}`, gone)
	for name, text := range map[string]string{"settle-dev-7.json": edited, "settle-dev-8.json": "{"} { // any order: each is a file
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, t.TempDir(), func(c *dev.Config) { c.NATSPort = ports[1] })
	if s.server.NATS != own {
		t.Fatalf("it is at %s", s.server.NATS)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, strings.TrimSuffix(e.Name(), ".json"))
	}
	want := []string{"mine", "settle-dev", "settle-dev-3", "settle-dev-4", "settle-dev-5", "settle-dev-6", "settle-dev-7", "settle-dev-8", "settle-dev-mine", fmt.Sprint("settle-dev-", ports[1])}
	slices.Sort(want)
	if slices.Sort(left); !slices.Equal(left, want) {
		t.Errorf("the contexts are %v, not %v", left, want)
	}
	if got := bus.ContextURL("settle-dev"); got != runs {
		t.Errorf("the context of the one that runs names %s", got)
	}
}
