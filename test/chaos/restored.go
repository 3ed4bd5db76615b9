//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/backup"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/test/chaos/history"
)

// faultBackup is not a fault: a backup is made during the others.
const faultBackup = "backup under load"

// backupPatience is the time limit for a backup, with servers that stop and start.
const backupPatience = 2 * time.Minute

// copied is a backup that was made.
type copied struct {
	dir  string
	asOf time.Time
}

// makeBackup makes a backup, and keeps it if it is the newest.
func makeBackup(ctx context.Context, f *injury) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backupPatience) // a backup that has begun is completed
	defer cancel()
	b, err := bus.Connect(ctx, f.d.busConfig("client/backup"))
	if err != nil {
		return "", err
	}
	defer b.Close()
	f.mu.Lock()
	f.backups++
	dir := filepath.Join(f.d.dir, fmt.Sprint("backup-", f.backups))
	f.mu.Unlock()
	m, err := backup.Make(ctx, b, dir, backup.Progress{})
	if err != nil {
		return dir, errors.Join(err, os.RemoveAll(dir))
	}
	f.mu.Lock()
	last := f.backup
	f.backup = &copied{dir, m.AsOf}
	f.mu.Unlock()
	if last != nil {
		err = os.RemoveAll(last.dir)
	}
	return dir, err
}

// judgeRestored restores the newest backup into a separate deployment, waits until that is idle, and
// checks it like the run: it must contain everything that was acknowledged before the backup was made,
// and everything in it must have been handled once.
func (c *chaos) judgeRestored(ctx context.Context) error {
	if c.nem.backup == nil || c.o.Purge > 0 {
		return nil // without the log, the expected contents are not known
	}
	c.say("restoring the newest backup, and reading that")
	store := filepath.Join(c.dir, "restored")
	server, err := embedded.Start(context.Background(), embedded.Config{StoreDir: store, Fsync: embedded.FsyncInterval})
	if err != nil {
		return err
	}
	defer server.Shutdown()
	if _, err := backup.Restore(ctx, bus.Config{Server: server, Prefix: bus.DefaultPrefix}, c.nem.backup.dir, backup.Progress{}); err != nil {
		return fmt.Errorf("restore %s: %w", c.nem.backup.dir, err)
	}
	return c.judgeAnew(ctx, server)
}

// judgeAnew waits until a restored deployment is idle, and judges it.
func (c *chaos) judgeAnew(ctx context.Context, server *embedded.Server) error {
	b, err := bus.Connect(ctx, bus.Config{Server: server, Name: "client/restored"})
	if err != nil {
		return err
	}
	defer b.Close()
	w := c.o.workload()
	co := coordinator.New(b, coordinator.Config{})
	co.Start()
	defer co.Stop()
	wk, err := settle.StartWorker(ctx, b, settle.WorkerConfig{ID: "restored", Programs: programs(w), Hosted: true})
	if err != nil {
		return err
	}
	resting, cancel := context.WithTimeout(ctx, c.o.Patience)
	defer cancel()
	mon := &monitor{b: b}
	for p := range c.o.Partitions {
		go mon.follow(resting, p) // ends with resting
	}
	err = c.restRestored(resting, b, mon)
	if err2 := wk.Stop(ctx); err != nil || err2 != nil {
		return errors.Join(err, err2)
	}
	r := reading{c: c, bus: b, mon: mon, before: c.nem.backup.asOf}
	check, err := r.judge(ctx)
	if err != nil {
		return err
	}
	for rule, n := range check.Violations { // any order: sums
		for i := range n {
			example := "as above"
			if i < len(check.Examples[rule]) {
				example = check.Examples[rule][i]
			}
			c.check.Fail(rule, "restored: %s", example)
		}
	}
	c.restored = check.Counts.Handled
	return nil
}

// restRestored waits until every event of a restored deployment is handled.
func (c *chaos) restRestored(ctx context.Context, b *bus.Bus, mon *monitor) error {
	sent := 0
	for p := range c.o.Partitions {
		r := reading{c: c, bus: b, check: history.New(c.o.workload(), c.o.Partitions)}
		err := r.stream(ctx, laneName(p), func(m jetstream.Msg, _ uint64, _ time.Time) {
			at := strings.Split(m.Subject(), ".")
			if _, _, ofClient := history.ParseEventID(at[len(at)-1]); ofClient {
				sent++
			}
		})
		if err != nil {
			return err
		}
	}
	for pause.For(ctx, 200*time.Millisecond) == nil {
		if p, _ := mon.now(); p.handled >= sent+p.due {
			return nil
		}
	}
	p, err := mon.now()
	c.check.Fail(history.Unsettled, "restored: %d of %d events have a receipt", p.handled, sent+p.due)
	return err
}
