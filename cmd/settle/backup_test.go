package main

import (
	"path/filepath"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
)

func TestBackup_IsCheckedAndRestored(t *testing.T) {
	d := counting(t, 1)
	want(t, 0, "handled", "send", "alice", "add", "--wait", "--id", "a1")
	dir, store := filepath.Join(t.TempDir(), "b"), t.TempDir()
	want(t, 0, "deployment settle, 2 partitions, | as of 20 | everything that was acknowledged before is in it", "backup", dir)
	want(t, 1, "nothing was backed up | is not empty", "backup", dir)
	want(t, 0, "deployment settle, 2 partitions, | as of 20", "restore", dir, "--check")
	want(t, 1, "is no backup, or one that was interrupted", "restore", store, "--check")
	want(t, 1, "there is a deployment with prefix settle on this server already", "restore", dir)
	want(t, 1, "use --prefix settle", "restore", dir, "--prefix", "other")
	want(t, 2, "give --store or a server to connect to, not both", "restore", dir, "--store", store, "--nats", "nats://127.0.0.1:1")
	want(t, 0, "restored; workers and coordinators may start", "restore", dir, "--store", store)

	cfg := settle.Config{Programs: settle.Always(counter()), Server: bus.ServerConfig{StoreDir: store, Fsync: bus.FsyncInterval}}
	again, err := settle.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := again.Client().Call(t.Context(), settle.Outgoing{Space: "alice", Stream: "add", ID: "a1"})
	if err != nil || r.Outcome != "handled" {
		t.Errorf("sent again: %v, %v", r, err)
	}
	was, _, err := d.Client().Get(t.Context(), "alice", "n")
	if err != nil {
		t.Fatal(err)
	}
	if is, _, err := again.Client().Get(t.Context(), "alice", "n"); err != nil || is.String() != was.String() {
		t.Errorf("n is %v, and was %v: %v", is, was, err)
	}
	if err := again.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
