package backup_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/streamcopy"
	"github.com/settlehq/settle/internal/backup"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/parallel"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

func TestMain(m *testing.M) {
	parallel.Allow()
	leaks.VerifyTestMain(m)
}

// patience is when a test that hangs is ended. It is no measure of speed: a cluster of three servers has taken two minutes to restore
// a stream on a busy machine.
const patience = 10 * time.Minute

const (
	partitions = 4
	banks      = 6
	ledgers    = 3
)

var (
	seen = settle.NewRows[int]("seen")
	late = settle.NewRows[int]("late")
	pay  = settle.NewRequest[struct{}, int]("pay")
	note = settle.NewStream[string]("note")
	tick = settle.NewStream[string]("tick")
	soon = settle.NewTrigger("soon")
)

// bank counts how often each event was handled: in the space to which it was sent, in a ledger space to
// which that forwards it, and, a moment later, in the first space again.
func bank() *settle.Program {
	p := settle.NewProgram("bank")
	pay.Handle(p, func(tx *settle.Tx, _ struct{}) (int, error) {
		id, n := tx.Event().ID, 0
		seen.Update(tx, id, func(times *int) { *times++; n = *times })
		note.Send(tx, settle.To(ledgerOf(id)), id)
		tick.SendAfter(tx, settle.To(tx.Space()), 20*time.Millisecond, id)
		return n, nil
	})
	note.Handle(p, func(tx *settle.Tx, id string) error {
		seen.Update(tx, id, func(times *int) { *times++ })
		return nil
	})
	soon.Handle(p, func(tx *settle.Tx) error {
		tick.SendAfter(tx, settle.To(tx.Space()), 2*time.Second, tx.Event().ID)
		return nil
	})
	tick.Handle(p, func(tx *settle.Tx, id string) error {
		late.Update(tx, id, func(times *int) { *times++ })
		return nil
	})
	return p
}

func ledgerOf(id string) string { return fmt.Sprintf("ledger-%d", len(id)*7%ledgers) }

func config(dir string) settle.Config {
	return settle.Config{
		Programs: settle.Always(bank()), Workers: 2, Options: worker.Options{Heartbeat: 20 * time.Millisecond, MemberTTL: 750 * time.Millisecond, Checkpoint: 20 * time.Millisecond},
		Server: embedded.Config{StoreDir: dir, Fsync: embedded.FsyncInterval}, Bus: bus.Config{Partitions: partitions},
		Logger: slog.New(slog.DiscardHandler),
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, dir string) (d *settle.Deployment, stop func()) {
	t.Helper()
	d, err := settle.Start(within(t), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := d.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	t.Cleanup(stop)
	return d, stop
}

// load records the acknowledged events, with the times.
type load struct {
	mu    sync.Mutex
	acked map[string]time.Time // "bank-1/e5"
	count atomic.Int64
}

// send sends events until ctx ends. Every other one waits for its receipt.
func (l *load) send(ctx context.Context, t *testing.T, client *settle.Client, sender int) {
	for i := 0; ctx.Err() == nil; i++ {
		space, id := fmt.Sprintf("bank-%d", i%banks), fmt.Sprintf("e%d-%d", sender, i)
		var err error
		if i%2 == 0 {
			_, err = client.Send(ctx, settle.Outgoing{Space: space, Stream: "pay", ID: settle.ID(id)})
		} else {
			_, err = client.Call(ctx, settle.Outgoing{Space: space, Stream: "pay", ID: settle.ID(id)})
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.Errorf("send: %v", err)
			return
		}
		l.mu.Lock()
		l.acked[space+"/"+id] = time.Now()
		l.mu.Unlock()
		l.count.Add(1)
	}
}

func (l *load) await(ctx context.Context, t *testing.T, n int64) {
	t.Helper()
	for l.count.Load() < n {
		if err := pause.For(ctx, time.Millisecond); err != nil {
			t.Fatalf("%d of %d events were acknowledged: %v", l.count.Load(), n, err)
		}
	}
}

// restored restores a backup into a new server, and starts workers there.
func restored(t *testing.T, dir string) *settle.Deployment {
	t.Helper()
	store := t.TempDir()
	restoreInto(t, dir, store)
	d, _ := start(t, store)
	return d
}

func restoreInto(t *testing.T, dir, store string) {
	t.Helper()
	server := serve(t, store)
	if _, err := backup.Restore(within(t), bus.Config{Server: server, Prefix: "settle"}, dir, backup.Progress{}); err != nil {
		t.Fatal(err)
	}
	server.Shutdown()
}

func serve(t *testing.T, store string) *embedded.Server {
	t.Helper()
	return natstest.StartServer(t, embedded.Config{StoreDir: store, Fsync: embedded.FsyncInterval})
}

// rows returns the rows of a document, over several spaces.
func rows(ctx context.Context, t *testing.T, d *settle.Deployment, prefix string, n int, doc string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for i := range n {
		v, _, err := d.Client().Space(fmt.Sprintf("%s-%d", prefix, i)).Get(ctx, doc)
		if err != nil {
			t.Fatal(err)
		}
		for id, times := range v.All() {
			n, _ := times.AsInt()
			all[id] += int(n)
		}
	}
	return all
}

// atRest waits until every event was handled, in all three places.
func atRest(ctx context.Context, t *testing.T, d *settle.Deployment) (paid map[string]int) {
	t.Helper()
	for {
		paid, noted, ticked := rows(ctx, t, d, "bank", banks, "seen"), rows(ctx, t, d, "ledger", ledgers, "seen"), rows(ctx, t, d, "bank", banks, "late")
		if len(paid) == len(noted) && len(paid) == len(ticked) {
			for id, times := range paid {
				if times != 1 || noted[id] != 1 || ticked[id] != 1 {
					t.Errorf("event %s was handled %d times, noted %d times, and came back %d times", id, times, noted[id], ticked[id])
				}
			}
			return paid
		}
		if err := pause.For(ctx, 20*time.Millisecond); err != nil {
			t.Fatalf("%d were paid, %d noted, %d came back: %v", len(paid), len(noted), len(ticked), err)
		}
	}
}

// A backup taken under load, while a worker is killed, is one consistent state: after a restore, every
// event acknowledged before AsOf is handled once, with everything that follows from it, and so is any
// other event that the backup contains.
func TestBackup_UnderLoadIsOneState(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	d, stop := start(t, t.TempDir())
	l := &load{acked: map[string]time.Time{}}
	sending, end := context.WithCancel(ctx)
	var senders sync.WaitGroup
	for s := range 4 {
		senders.Go(func() { l.send(sending, t, d.Client(), s) })
	}
	var dirs []string
	var manifests []*backup.Manifest
	for round := range 3 {
		l.await(ctx, t, int64(300*(round+1)))
		killed := make(chan struct{})
		go func() { // ends when the deployment has a worker again
			defer close(killed)
			d.KillWorker(d.Workers()[0])
			if _, err := d.AddWorker(ctx); err != nil {
				t.Errorf("add a worker: %v", err)
			}
		}()
		dir := filepath.Join(t.TempDir(), "b")
		// Many events are handled between the moments at which the streams end in the backup.
		m, err := backup.Make(ctx, d.Bus(), dir, backup.Progress{Begin: func(what string, _ int64) {
			if what == backup.StepLogEnds || what == backup.StepBehind {
				l.await(ctx, t, l.count.Load()+50)
			}
		}})
		<-killed
		if err != nil {
			t.Fatal(err)
		}
		dirs, manifests = append(dirs, dir), append(manifests, m)
	}
	l.await(ctx, t, l.count.Load()+200)
	end()
	senders.Wait()
	stop()
	for i, dir := range dirs {
		ctx := within(t) // each has its own timeout: together they take long on a busy machine
		d := restored(t, dir)
		for n := range banks { // these events are new
			r, err := d.Client().Call(ctx, settle.Outgoing{Space: fmt.Sprintf("bank-%d", n), Stream: "pay", ID: settle.ID(fmt.Sprintf("new-%d", n))})
			if v, _ := r.Result.AsInt(); err != nil || v != 1 {
				t.Fatalf("backup %d: a new event: %v, %v", i, r, err)
			}
		}
		paid := atRest(ctx, t, d)
		before := 0
		for name, at := range l.acked {
			if _, id, _ := strings.Cut(name, "/"); at.Before(manifests[i].AsOf) {
				if before++; paid[id] != 1 {
					t.Errorf("backup %d: event %s was acknowledged %v before AsOf, and is handled %d times", i, name, manifests[i].AsOf.Sub(at), paid[id])
				}
			}
		}
		sent := resend(ctx, t, d, l)
		again := atRest(ctx, t, d)
		for _, id := range sent {
			if again[id] != 1 {
				t.Errorf("backup %d: event %s is handled %d times after it was sent again", i, id, again[id])
			}
		}
		if before == 0 || len(paid) < before+banks {
			t.Errorf("backup %d: %d events are handled, and %d were acknowledged before AsOf", i, len(paid), before)
		}
		t.Logf("backup %d: %d acknowledged before AsOf, %d in it, %d in all", i, before, len(paid)-banks, len(l.acked))
		stopAll(t, d)
	}
}

// resend sends some of the events again, some of which are in the backup, and returns their ids.
func resend(ctx context.Context, t *testing.T, d *settle.Deployment, l *load) (ids []string) {
	t.Helper()
	const most = 300
	var sent sync.WaitGroup
	window := make(chan struct{}, 64)
	for name := range l.acked { // any order: a sample
		space, id, _ := strings.Cut(name, "/")
		if ids = append(ids, id); len(ids) > most {
			break
		}
		window <- struct{}{}
		sent.Go(func() {
			defer func() { <-window }()
			if _, err := d.Client().Call(ctx, settle.Outgoing{Space: space, Stream: "pay", ID: settle.ID(id)}); err != nil {
				t.Errorf("send %s again: %v", name, err)
			}
		})
	}
	sent.Wait()
	return ids[:min(len(ids), most)]
}

func stopAll(t *testing.T, d *settle.Deployment) {
	t.Helper()
	if err := d.Stop(within(t)); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// small returns a backup of a deployment with a few events.
func small(t *testing.T) (dir string) {
	t.Helper()
	ctx := within(t)
	d, stop := start(t, t.TempDir())
	for i := range 20 {
		if _, err := d.Client().Call(ctx, settle.Outgoing{Space: fmt.Sprintf("bank-%d", i%banks), Stream: "pay", ID: settle.ID(fmt.Sprintf("e%d", i))}); err != nil {
			t.Fatal(err)
		}
	}
	atRest(ctx, t, d)
	dir = filepath.Join(t.TempDir(), "b")
	if _, err := backup.Make(ctx, d.Bus(), dir, backup.Progress{}); err != nil {
		t.Fatal(err)
	}
	stop()
	return dir
}

// Positions are sequences, so a restored stream has each message at its sequence, and events that are
// sent again are recognised.
func TestRestore_KeepsSequencesAndReceipts(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	dir := small(t)
	d := restored(t, dir)
	m, err := backup.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Files {
		if f.Component != provision.ComponentLane {
			continue
		}
		reach, err := streamcopy.Reach(ctx, d.Bus(), f.Stream)
		if err != nil || reach.Last != f.Last || reach.Messages != f.Messages {
			t.Errorf("%s reaches to %d with %d messages, and the backup to %d with %d: %v", f.Stream, reach.Last, reach.Messages, f.Last, f.Messages, err)
		}
	}
	for i := range 20 {
		r, err := d.Client().Call(ctx, settle.Outgoing{Space: fmt.Sprintf("bank-%d", i%banks), Stream: "pay", ID: settle.ID(fmt.Sprintf("e%d", i))})
		if v, _ := r.Result.AsInt(); err != nil || v != 1 {
			t.Errorf("event e%d, sent again: %v, %v", i, r, err)
		}
	}
	if n := len(atRest(ctx, t, d)); n != 20 {
		t.Errorf("%d events were handled", n)
	}
}

// Nothing is created from an incomplete backup, and the error describes the defect.
func TestRestore_RefusesWhatIsDamaged(t *testing.T) {
	t.Parallel()
	dir := small(t)
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		says  string
	}{
		"no manifest": {func(t *testing.T, dir string) { remove(t, dir, "manifest.json") }, "not a backup, or an interrupted one"},
		"a manifest that was changed": {func(t *testing.T, dir string) {
			change(t, dir, "manifest.json", func(b []byte) []byte {
				return []byte(strings.Replace(string(b), `"partitions": 4`, `"partitions": 3`, 1))
			})
		}, "manifest.json in " + "DIR is damaged"},
		"a manifest of nonsense": {func(t *testing.T, dir string) {
			change(t, dir, "manifest.json", func(b []byte) []byte { return b[:len(b)/2] })
		}, "is damaged"},
		"a newer format": {func(t *testing.T, dir string) {
			change(t, dir, "manifest.json", func(b []byte) []byte { return []byte(strings.Replace(string(b), `"version": 1`, `"version": 2`, 1)) })
		}, "has format 2, and this program reads 1"},
		"a missing file": {func(t *testing.T, dir string) { remove(t, dir, "SETTLE_LOG_1.s2") }, "file SETTLE_LOG_1.s2 is missing"},
		"a short file": {func(t *testing.T, dir string) {
			change(t, dir, "SETTLE_LANE_2.s2", func(b []byte) []byte { return b[:len(b)-1] })
		}, "file SETTLE_LANE_2.s2 has"},
		"a flipped bit": {func(t *testing.T, dir string) {
			change(t, dir, "KV_SETTLE_STATE_0.s2", func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		}, "file KV_SETTLE_STATE_0.s2 is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			spoilt := filepath.Join(t.TempDir(), "b")
			if err := os.CopyFS(spoilt, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, spoilt)
			// There is no server: the restore must fail before it connects.
			_, err := backup.Restore(within(t), bus.Config{URL: "nats://127.0.0.1:1", Prefix: "settle"}, spoilt, backup.Progress{})
			if err == nil || !strings.Contains(err.Error(), strings.Replace(c.says, "DIR", spoilt, 1)) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func change(t *testing.T, dir, name string, how func([]byte) []byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), how(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// stopping ends a restore after n streams have begun.
func stopping(after int, cancel func()) backup.Progress {
	return backup.Progress{Begin: func(string, int64) {
		if after--; after == 0 {
			cancel()
		}
	}}
}

// Wherever a restore is interrupted, no worker uses the partial result, and the restore can be run
// again.
func TestRestore_InterruptedIsRunAgain(t *testing.T) {
	t.Parallel()
	dir := small(t)
	for after := 2; after < 2+2+3*partitions; after += 4 {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			store := t.TempDir()
			server := serve(t, store)
			cfg := bus.Config{Server: server, Prefix: "settle"}
			ctx, cancel := context.WithCancel(within(t))
			defer cancel()
			if _, err := backup.Restore(ctx, cfg, dir, stopping(after, cancel)); err == nil {
				t.Fatal("the restore was not interrupted")
			}
			if _, err := bus.Connect(within(t), cfg); err == nil || after > 2 && !strings.Contains(err.Error(), "is being restored, or a restore of it was interrupted") {
				if after > 2 {
					t.Fatalf("a client may use it: %v", err)
				}
			}
			if _, err := backup.Restore(within(t), cfg, dir, backup.Progress{}); err != nil {
				t.Fatal(err)
			}
			server.Shutdown()
			d, _ := start(t, store)
			if n := len(atRest(within(t), t, d)); n != 20 {
				t.Errorf("%d events were handled", n)
			}
		})
	}
}

// A restore does not touch an existing deployment.
func TestRestore_RefusesADeploymentThatIsThere(t *testing.T) {
	t.Parallel()
	dir := small(t)
	d, _ := start(t, t.TempDir())
	_, err := backup.Restore(within(t), bus.Config{Server: d.Server(), Prefix: "settle"}, dir, backup.Progress{})
	if err == nil || !strings.Contains(err.Error(), "there is a deployment with prefix settle on this server already") {
		t.Errorf("error %v", err)
	}
	_, err = backup.Restore(within(t), bus.Config{Server: d.Server(), Prefix: "other"}, dir, backup.Progress{})
	if err == nil || !strings.Contains(err.Error(), "use --prefix settle") {
		t.Errorf("error %v", err)
	}
}

// A directory that is not empty is left unchanged, and the directory of a failed backup is emptied.
func TestBackup_TakesAnEmptyDirectory(t *testing.T) {
	t.Parallel()
	d, _ := start(t, t.TempDir())
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "mine"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Make(within(t), d.Bus(), used, backup.Progress{}); err == nil || !strings.Contains(err.Error(), "is not empty (mine)") {
		t.Errorf("error %v", err)
	}
	dir := filepath.Join(t.TempDir(), "b")
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	if _, err := backup.Make(ctx, d.Bus(), dir, stopping(3, cancel)); err == nil {
		t.Error("the backup was not interrupted")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// In a cluster, restored streams have three replicas.
func TestRestore_IntoACluster(t *testing.T) {
	t.Parallel()
	dir := small(t)
	c, err := natstest.StartCluster(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Shutdown)
	ctx := within(t)
	if _, err := backup.Restore(ctx, bus.Config{URL: c.URLs(), Prefix: "settle"}, dir, backup.Progress{}); err != nil {
		t.Fatal(err)
	}
	cfg := config("")
	cfg.Bus.URL, cfg.Heartbeat = c.URLs(), 100*time.Millisecond
	d, err := settle.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer stopAll(t, d)
	if n := len(atRest(ctx, t, d)); n != 20 {
		t.Errorf("%d events were handled", n)
	}
	for _, a := range d.Bus().Assets() {
		s, err := d.Bus().JetStream().Stream(ctx, a.Stream)
		if err != nil || s.CachedInfo().Config.Replicas != 3 {
			t.Errorf("stream %s: %+v, %v", a.Stream, s, err)
		}
	}
	// Restore from the cluster to a single server.
	back := filepath.Join(t.TempDir(), "b")
	if _, err := backup.Make(ctx, d.Bus(), back, backup.Progress{}); err != nil {
		t.Fatal(err)
	}
	if n := len(atRest(ctx, t, restored(t, back))); n != 20 {
		t.Errorf("%d events were handled", n)
	}
}

// If commits are purged between the copy of a checkpoint and the copy of the log after it, the copy
// would lack them, so it starts again.
func TestBackup_BeginsAgainIfTheLogWasPurgedMeanwhile(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	d, stop := start(t, t.TempDir())
	pays := 0
	call := func() {
		t.Helper()
		pays++
		if _, err := d.Client().Call(ctx, settle.Outgoing{Space: "bank-0", Stream: "pay", ID: settle.ID(fmt.Sprintf("p%d", pays))}); err != nil {
			t.Fatal(err)
		}
	}
	call()
	log := fmt.Sprintf("SETTLE_LOG_%d", model.PartitionOf("bank-0", partitions))
	begun := 0
	dir := filepath.Join(t.TempDir(), "b")
	_, err := backup.Make(ctx, d.Bus(), dir, backup.Progress{Begin: func(what string, _ int64) {
		if what != log {
			return
		}
		if begun++; begun > 1 {
			return
		}
		for range 3 {
			call()
		}
		head := rested(ctx, t, d)
		if err := d.Bus().PurgeLog(ctx, "bank-0", head); err != nil {
			t.Fatal(err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if begun != 4 {
		t.Errorf("the log was copied from its beginning, and to its end, in %d steps, want 4: 2 that failed, and 2 again", begun)
	}
	stop()
	if n := len(atRest(ctx, t, restored(t, dir))); n != pays {
		t.Errorf("%d events were handled, want %d", n, pays)
	}
}

// rested waits until bank-0 is idle and saved, and returns its head.
func rested(ctx context.Context, t *testing.T, d *settle.Deployment) uint64 {
	t.Helper()
	atRest(ctx, t, d)
	for {
		head, err := d.Bus().Head(ctx, "bank-0")
		if err != nil {
			t.Fatal(err)
		}
		mark, _, err := d.Bus().LoadMark(ctx, "bank-0")
		if err != nil {
			t.Fatal(err)
		}
		if mark.Seq == head {
			return head
		}
		if err := pause.For(ctx, time.Millisecond); err != nil {
			t.Fatalf("the head is %d, and saved is %d", head, mark.Seq)
		}
	}
}
