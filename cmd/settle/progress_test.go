package main

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
)

// Without a terminal, a command prints a line of progress at most every five seconds.
func TestBars_WithoutATerminalALineAtMostEveryFiveSeconds(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var out strings.Builder
	p := newBars(streams{err: &out, now: func() time.Time { return at }}).progress()
	p.Begin("SETTLE_LOG_0", 100)
	for range 12 {
		at = at.Add(time.Second)
		p.Add(2)
	}
	p.Begin("the ends of the logs", 0)
	for range 4 {
		at = at.Add(time.Second)
		p.Add(3)
	}
	if want := "SETTLE_LOG_0: 10 of 100\nSETTLE_LOG_0: 20 of 100\nthe ends of the logs: 9\n"; out.String() != want {
		t.Errorf("it prints %q, want %q", &out, want)
	}
}

// Each long command prints its progress if it takes long, and nothing otherwise.
func TestProgress_OfBackupRestoreExportImportAndClone(t *testing.T) {
	t.Parallel()
	counting(t, 1)
	for _, space := range []string{"alice", "bob", "carol"} {
		want(t, 0, "handled", "send", space, "add", "--wait")
	}
	other := natstest.StartServer(t, embedded.Config{Listen: ":0"})
	dir := filepath.Join(t.TempDir(), "backup")
	file := filepath.Join(t.TempDir(), "export")
	for _, c := range []struct {
		says string
		args []string
	}{
		{"SETTLE_LOG_", []string{"backup", dir}},
		{"checksums: ", []string{"restore", dir, "--check"}},
		{"SETTLE_LOG_", []string{"restore", dir, "--nats", other.ClientURL()}},
		{"spaces: 2 of 3\n", []string{"export", "--all", "--output", file}},
		{"spaces: 2 of 3\n", []string{"import", file, "--nats", other.ClientURL()}},
		{"spaces: 2 of 3\n", []string{"clone", "third", "--partitions", "3"}},
	} {
		var clock atomic.Int64 // each read is 6 s after the previous one
		out := &output{}
		slow := func() time.Time { return time.Unix(clock.Add(6), 0) }
		if code := runAt(t.Context(), c.args, streams{out: out, err: out, now: slow}, deploymentOf(t)); code != 0 || !strings.Contains(out.String(), c.says) {
			t.Errorf("settle %s: code %d, want %q in\n%s", strings.Join(c.args, " "), code, c.says, out)
		}
	}
}
