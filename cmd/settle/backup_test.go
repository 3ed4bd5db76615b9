package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/internal/backup"
	"github.com/settlehq/settle/worker"
)

func checksum(t *testing.T, dir string) string {
	t.Helper()
	m, err := backup.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m.Checksum
}

func TestBackup_IsCheckedAndRestored(t *testing.T) {
	t.Parallel()
	d := counting(t, 1)
	want(t, 0, "handled", "send", "alice", "add", "--wait", "--id", "a1")
	dir, store := filepath.Join(t.TempDir(), "b"), t.TempDir()
	wantSoon(t, 1, "✓ backup | none was ever made", "doctor") // a warning, because every user may do everything
	wantSoon(t, 1, `"check": "backup" | none was ever made with`, "doctor", "--backup-age", "1ns", "--json")
	want(t, 0, "deployment settle, 2 partitions, | as of 20 | everything that was acknowledged before is in it", "backup", dir)
	wantSoon(t, 1, "✓ backup | the newest was made", "doctor")
	wantSoon(t, 1, "! backup | the newest was made", "doctor", "--backup-age", "1ns")
	want(t, 1, "nothing was backed up | is not empty", "backup", dir)
	want(t, 0, "deployment settle, 2 partitions, | as of 20", "restore", dir, "--check")
	want(t, 1, "is not a backup, or an interrupted one", "restore", store, "--check")
	want(t, 1, "there is a deployment with prefix settle on this server already", "restore", dir)
	want(t, 1, "use --prefix settle", "restore", dir, "--prefix", "other")
	want(t, 2, "give --store or a server to connect to, not both", "restore", dir, "--store", store, "--nats", "nats://127.0.0.1:1")
	want(t, 0, "restored; workers and coordinators may start", "restore", dir, "--store", store)

	cfg := settle.Config{Programs: settle.Always(counter()), Server: embedded.Config{StoreDir: store, Fsync: embedded.FsyncInterval}}
	again, err := settle.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := again.Client().Call(t.Context(), settle.Outgoing{Space: "alice", Stream: "add", ID: settle.ID("a1")})
	if err != nil || r.Outcome != "handled" {
		t.Errorf("sent again: %v, %v", r, err)
	}
	was, _, err := d.Client().Space("alice").Get(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	if is, _, err := again.Client().Space("alice").Get(t.Context(), "n"); err != nil || is.String() != was.String() {
		t.Errorf("n is %v, and was %v: %v", is, was, err)
	}
	if note, err := again.Bus().LastBackup(t.Context()); err != nil || note == nil || note.Manifest != checksum(t, dir) {
		t.Errorf("the restored deployment knows of backup %+v, %v", note, err)
	}
	if err := again.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// One stream is restored under live workers. The command reports the consequences for the others: what workers
// refuse, and how to proceed.
func TestRestore_OneStream(t *testing.T) {
	t.Parallel()
	d := started(t, settle.Config{Programs: settle.Always(counter()), Bus: bus.Config{Partitions: 2}, Options: worker.Options{Checkpoint: 20 * time.Millisecond, Idle: 50 * time.Millisecond}})
	here, there := spaceIn(0), spaceIn(1)
	add := func(space, id string) {
		t.Helper()
		want(t, 0, "handled", "send", space, "add", "--id", id, "--wait")
	}
	add(here, "a1")
	add(there, "a1")
	dir := filepath.Join(t.TempDir(), "b")
	want(t, 0, "deployment settle", "backup", dir)
	add(here, "a2")
	add(there, "a2")
	saved(t, d, here)
	want(t, 1, "there is a stream SETTLE_LOG_0 with messages up to", "restore", dir, "--stream", "SETTLE_LOG_0")
	want(t, 1, "deployment settle with 2 partitions has no stream SETTLE_LOG_7", "restore", dir, "--stream", "SETTLE_LOG_7")
	gone := func(stream string) {
		t.Helper()
		if err := d.Bus().JetStream().DeleteStream(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
	}
	gone("SETTLE_LOG_0")
	wantSoon(t, 2, "stream SETTLE_LOG_0 (log) is missing | `settle restore DIR --stream SETTLE_LOG_0`", "doctor", "--json")
	want(t, 0, "SETTLE_LOG_0: restored with | lost: commits of the partition since then | space "+here+" (partition 0) is refused | settle accept-loss --partition 0 --yes",
		"restore", dir, "--stream", "SETTLE_LOG_0")
	add(there, "a3")
	want(t, 0, "stored", "send", here, "add", "--id", "a3", "--wait=none")
	wantSoon(t, 0, "space "+here+" is refused by", "fleet")
	wantSoon(t, 2, "refuses space "+here, "doctor", "--json")
	want(t, 0, "space "+here+" (partition 0): accepted", "accept-loss", "--partition", "0", "--yes")
	add(here, "a3")
	if v, _, err := d.Client().Space(here).Get(t.Context(), "n"); err != nil || v.String() != "3" {
		t.Errorf("n is %v, %v", v, err)
	}
	gone("KV_SETTLE_STATE_1")
	want(t, 0, "KV_SETTLE_STATE_1: restored with | nothing of partition 1 is refused", "restore", dir, "--stream", "KV_SETTLE_STATE_1")
	add(there, "a4")
	gone("KV_SETTLE_PROGRAMS")
	want(t, 0, "KV_SETTLE_PROGRAMS: restored with | lost: deployments, rollbacks", "restore", dir, "--stream", "KV_SETTLE_PROGRAMS")
	gone("SETTLE_LANE_1")
	want(t, 0, "SETTLE_LANE_1: restored with | lost: events that arrived since then", "restore", dir, "--stream", "SETTLE_LANE_1")
	add(there, "a4") // it was handled
	add(there, "a5")
	if v, _, err := d.Client().Space(there).Get(t.Context(), "n"); err != nil || v.String() != "5" {
		t.Errorf("n is %v, %v", v, err)
	}
}

// A data directory belongs to a server with a configuration: what is restored lies in the account, and
// under the encryption, that it names.
func TestRestore_TakesTheConfigurationOfTheServer(t *testing.T) {
	d := counting(t, 1)
	want(t, 0, "handled", "send", "alice", "add", "--wait", "--id", "a1")
	dir := filepath.Join(t.TempDir(), "b")
	want(t, 0, "deployment settle", "backup", dir)
	was, _, err := d.Client().Space("alice").Get(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "nats.conf")
	text := `listen: "127.0.0.1:-1"
accounts { SHOP: { jetstream: enabled, users: [ { user: keeper, password: secret } ] } }
jetstream { cipher: chachapoly, key: "of these files" }
`
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	want(t, 2, "--config is of the server of --store", "restore", dir, "--config", conf)
	want(t, 1, "set NATS_USER and NATS_PASSWORD, or give --creds", "restore", dir, "--store", store, "--config", conf)
	t.Setenv("NATS_USER", "keeper")
	t.Setenv("NATS_PASSWORD", "secret")
	want(t, 0, "restored; workers and coordinators may start", "restore", dir, "--store", store, "--config", conf)

	again, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(counter()), Server: embedded.Config{StoreDir: store, ConfigFile: conf, Fsync: embedded.FsyncInterval},
		Bus: bus.Config{User: "keeper", Password: "secret"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := again.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	if is, _, err := again.Client().Space("alice").Get(t.Context(), "n"); err != nil || is.String() != was.String() {
		t.Errorf("n is %v, and was %v: %v", is, was, err)
	}
}
