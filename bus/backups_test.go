package bus_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
)

// The deployment knows its newest backup, in whatever order backups are recorded. An unreadable record is
// reported as such, and replaced by the next.
func TestNoteBackup_KeepsTheNewest(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval})
	b := connect(t, bus.Config{Server: server, Partitions: 1})
	ctx, cancel := contextOf(t)
	defer cancel()
	if err := b.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	newest := func() *bus.BackupNote {
		t.Helper()
		n, err := b.LastBackup(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := newest(); n != nil {
		t.Errorf("before any backup there is %+v", n)
	}
	now := time.Now()
	var noting sync.WaitGroup
	for i := range 4 {
		noting.Go(func() {
			err := b.NoteBackup(ctx, &bus.BackupNote{ID: "b", AsOf: now.Add(-time.Duration(i+1) * time.Hour), Ends: map[string]uint64{"SETTLE_LOG_0": uint64(i)}})
			if err != nil {
				t.Errorf("note %d: %v", i, err)
			}
		})
	}
	noting.Wait()
	if n := newest(); !n.AsOf.Equal(now.Add(-time.Hour)) || n.Ends["SETTLE_LOG_0"] != 0 || n.Noted.Before(now.Add(-time.Minute)) {
		t.Errorf("the newest is %+v", n)
	}
	// A record from a clock that is a year ahead does not stay the newest for a year.
	for _, n := range []bus.BackupNote{{ID: "ahead", AsOf: now.Add(365 * 24 * time.Hour)}, {ID: "next", AsOf: now.Add(time.Hour)}} {
		if err := b.NoteBackup(ctx, &n); err != nil {
			t.Fatal(err)
		}
		if got := newest(); got.ID != n.ID || !got.Made().Equal(got.Noted) {
			t.Errorf("after %s it is %+v", n.ID, got)
		}
	}
	for _, damaged := range []string{"{", `{"id":"x"}`} {
		rev := uint64(0)
		if r, err := b.LoadRecord(ctx, "backup.newest"); err == nil {
			rev = r.Rev
		}
		if _, err := b.SaveRecord(ctx, model.Record{Key: "backup.newest", Data: []byte(damaged), Rev: rev}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.LastBackup(ctx); err == nil || !strings.Contains(err.Error(), "the note of the newest backup") {
			t.Errorf("%s is read: %v", damaged, err)
		}
		if err := b.NoteBackup(ctx, &bus.BackupNote{ID: "over " + damaged, AsOf: now}); err != nil || newest().ID != "over "+damaged {
			t.Errorf("over %s: %v", damaged, err)
		}
	}
}
