package backup_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/streamcopy"
	"github.com/settlehq/settle/bus/survey"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/backup"
	"github.com/settlehq/settle/internal/doctor"
	"github.com/settlehq/settle/internal/loss"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// payAll sends the events numbered from first to last, each to the bank of its number, and waits until
// they are handled.
func payAll(ctx context.Context, t *testing.T, d *settle.Deployment, first, last int) {
	t.Helper()
	for i := first; i <= last; i++ {
		if _, err := d.Client().Call(ctx, payment(i)); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
}

func payment(i int) settle.Outgoing {
	return settle.Outgoing{Space: fmt.Sprintf("bank-%d", i%banks), Stream: "pay", ID: settle.ID(fmt.Sprintf("e%d", i))}
}

// home is the partition of the first bank.
var home = model.PartitionOf("bank-0", partitions)

func streamOf(kind string) string {
	if kind == "STATE" {
		return fmt.Sprintf("KV_SETTLE_STATE_%d", home)
	}
	return fmt.Sprintf("SETTLE_%s_%d", kind, home)
}

// backedUp returns a backup of a deployment.
func backedUp(ctx context.Context, t *testing.T, d *settle.Deployment) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "b")
	if _, err := backup.Make(ctx, d.Bus(), dir, backup.Progress{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func lose(ctx context.Context, t *testing.T, d *settle.Deployment, stream string) {
	t.Helper()
	if err := d.Bus().JetStream().DeleteStream(ctx, stream); err != nil {
		t.Fatal(err)
	}
}

// here returns the configuration of another connection to a deployment.
func here(d *settle.Deployment) bus.Config { return bus.Config{Server: d.Server(), Prefix: "settle"} }

func restoreStream(ctx context.Context, t *testing.T, d *settle.Deployment, dir, stream string) {
	t.Helper()
	if _, _, err := backup.RestoreStream(ctx, here(d), dir, stream, backup.Progress{}); err != nil {
		t.Fatal(err)
	}
}

// savedAll waits until the saved state of every bank agrees with its log.
func savedAll(ctx context.Context, t *testing.T, d *settle.Deployment) {
	t.Helper()
	for i := range banks {
		space := fmt.Sprintf("bank-%d", i)
		for {
			head, err := d.Bus().Head(ctx, space)
			if err != nil {
				t.Fatal(err)
			}
			mark, _, err := d.Bus().LoadMark(ctx, space)
			if err != nil {
				t.Fatal(err)
			}
			if mark.Seq == head {
				break
			}
			if err := pause.For(ctx, time.Millisecond); err != nil {
				t.Fatalf("the head of %s is %d, and saved is %d", space, head, mark.Seq)
			}
		}
	}
}

// untilHandled waits until n events were handled, each once.
func untilHandled(ctx context.Context, t *testing.T, d *settle.Deployment, want int) {
	t.Helper()
	for {
		n := len(atRest(ctx, t, d))
		if n == want {
			return
		}
		if err := pause.For(ctx, 10*time.Millisecond); err != nil {
			t.Fatalf("%d events are handled, want %d", n, want)
		}
	}
}

func refusedOf(ctx context.Context, t *testing.T, d *settle.Deployment) []*loss.Loss {
	t.Helper()
	list, err := loss.InPartition(ctx, d.Bus(), home)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A lane that is restored under live workers contains the events that were unhandled when the backup was
// made, and no event that was handled since is handled twice. Unhandled events from after the backup are
// lost, and are new when they are sent again.
func TestRestoreStream_ALane(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	d, _ := start(t, t.TempDir())
	payAll(ctx, t, d, 1, 20)
	atRest(ctx, t, d)
	for _, id := range d.Workers() {
		d.KillWorker(id)
	}
	send := func(first, last int) {
		t.Helper()
		for i := first; i <= last; i++ {
			if _, err := d.Client().Send(ctx, payment(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(21, 40) // in the backup, and not handled
	dir := backedUp(ctx, t, d)
	if _, err := d.AddWorker(ctx); err != nil {
		t.Fatal(err)
	}
	atRest(ctx, t, d)
	payAll(ctx, t, d, 41, 60) // handled since
	atRest(ctx, t, d)
	savedAll(ctx, t, d)
	for _, id := range d.Workers() {
		d.KillWorker(id)
	}
	send(61, 80)
	lose(ctx, t, d, streamOf("LANE"))
	restoreStream(ctx, t, d, dir, streamOf("LANE"))
	if _, err := d.AddWorker(ctx); err != nil {
		t.Fatal(err)
	}
	lost := 0
	for i := 61; i <= 80; i++ {
		if model.PartitionOf(payment(i).Space, partitions) == home {
			lost++
		}
	}
	if lost == 0 {
		t.Fatal("nothing was lost")
	}
	untilHandled(ctx, t, d, 80-lost)
	for i := 1; i <= 80; i++ { // all are known, except the lost ones
		if _, err := d.Client().Send(ctx, payment(i)); err != nil {
			t.Fatal(err)
		}
	}
	payAll(ctx, t, d, 81, 90)
	untilHandled(ctx, t, d, 90)
	for _, id := range d.Workers() {
		d.KillWorker(id)
	}
	send(91, 100) // in this backup, and not handled when the lane is lost
	dir = backedUp(ctx, t, d)
	lose(ctx, t, d, streamOf("LANE"))
	restoreStream(ctx, t, d, dir, streamOf("LANE"))
	if _, err := d.AddWorker(ctx); err != nil {
		t.Fatal(err)
	}
	untilHandled(ctx, t, d, 100)
	if list := refusedOf(ctx, t, d); len(list) > 0 {
		t.Errorf("%v is refused", list)
	}
}

// A log that is restored under live workers lacks later commits. Spaces whose saved state reflects those
// are refused until an operator accepts the loss; then they continue from their documents, and handle
// each event once.
func TestRestoreStream_ALog(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	d, _ := start(t, t.TempDir())
	payAll(ctx, t, d, 1, 20)
	atRest(ctx, t, d)
	dir := backedUp(ctx, t, d)
	payAll(ctx, t, d, 21, 40)
	atRest(ctx, t, d)
	savedAll(ctx, t, d)
	lose(ctx, t, d, streamOf("LOG"))
	restoreStream(ctx, t, d, dir, streamOf("LOG"))
	refused := refusedOf(ctx, t, d)
	names := map[string]bool{}
	for _, l := range refused {
		names[l.Space] = true
		if l.Kind != model.LossOfLog {
			t.Errorf("refused is %+v", l)
		}
	}
	if !names["bank-0"] {
		t.Errorf("what was committed since is lost, and refused is only %v", names)
	}
	for i := 41; i < 41+banks; i++ { // other spaces continue
		if model.PartitionOf(payment(i).Space, partitions) != home {
			payAll(ctx, t, d, i, i)
		}
	}
	for _, l := range refused {
		if err := l.Accept(ctx, d.Bus(), nil); err != nil {
			t.Fatal(err)
		}
	}
	payAll(ctx, t, d, 41, 60)
	paid := atRest(ctx, t, d)
	if len(paid) != 60 {
		t.Errorf("%d events are handled, want 60", len(paid))
	}
	r, err := d.Client().Call(ctx, payment(6)) // of bank-0, in the backup
	if n, _ := r.Result.AsInt(); err != nil || n != 1 {
		t.Errorf("the receipt of what was handled before the backup: %v, %v", r, err)
	}
	if _, err := d.Client().Call(ctx, payment(24)); !errors.Is(err, history.ErrForgotten) {
		t.Errorf("the receipt of what was handled since: %v", err)
	}
	if list := refusedOf(ctx, t, d); len(list) > 0 {
		t.Errorf("%v is still refused", list)
	}
}

// A STATE bucket that is restored under live workers is brought up to date from the log: nothing is
// lost, and delayed events are handled although the bucket does not have them.
func TestRestoreStream_AState(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	d, _ := start(t, t.TempDir())
	payAll(ctx, t, d, 1, 20)
	atRest(ctx, t, d)
	savedAll(ctx, t, d)
	dir := backedUp(ctx, t, d)
	payAll(ctx, t, d, 21, 40)
	atRest(ctx, t, d)
	if _, err := d.Client().Call(ctx, settle.Outgoing{Space: "bank-0", Stream: "soon", ID: settle.ID("l1")}); err != nil {
		t.Fatal(err)
	}
	savedAll(ctx, t, d)
	lose(ctx, t, d, streamOf("STATE"))
	restoreStream(ctx, t, d, dir, streamOf("STATE"))
	if list := refusedOf(ctx, t, d); len(list) > 0 {
		t.Errorf("%v is refused", list)
	}
	for rows(ctx, t, d, "bank", 1, "late")["l1"] != 1 {
		if err := pause.For(ctx, 10*time.Millisecond); err != nil {
			t.Fatal("the timer that was set after the backup has not woken its space")
		}
	}
	payAll(ctx, t, d, 30, 50) // some of them were handled
	paid := rows(ctx, t, d, "bank", banks, "seen")
	for id, times := range paid {
		if times != 1 {
			t.Errorf("event %s was handled %d times", id, times)
		}
	}
	if len(paid) != 50 {
		t.Errorf("%d events are handled, want 50", len(paid))
	}
}

// A space whose log was purged since the backup has permanently lost state if its STATE bucket is
// restored. The space is refused, and the others continue.
func TestRestoreStream_AStateWhoseLogWasPurgedSince(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	d, _ := start(t, t.TempDir())
	payAll(ctx, t, d, 1, 20)
	atRest(ctx, t, d)
	savedAll(ctx, t, d)
	dir := backedUp(ctx, t, d)
	payAll(ctx, t, d, 21, 40)
	head := rested(ctx, t, d)
	if err := d.Bus().PurgeLog(ctx, "bank-0", head); err != nil {
		t.Fatal(err)
	}
	lose(ctx, t, d, streamOf("STATE"))
	restoreStream(ctx, t, d, dir, streamOf("STATE"))
	list := refusedOf(ctx, t, d)
	if len(list) != 1 || list[0].Space != "bank-0" || list[0].Kind != model.LossOfState {
		t.Fatalf("refused is %+v", list)
	}
	for i := 41; i < 41+banks; i++ {
		if payment(i).Space != "bank-0" {
			payAll(ctx, t, d, i, i)
		}
	}
}

// Only a missing stream is restored, and only if the other streams belong to the same deployment.
func TestRestoreStream_Refuses(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	d, _ := start(t, t.TempDir())
	payAll(ctx, t, d, 1, 20)
	atRest(ctx, t, d)
	dir := backedUp(ctx, t, d)
	log, lane, state := streamOf("LOG"), streamOf("LANE"), streamOf("STATE")
	refuse := func(stream, says string) {
		t.Helper()
		_, _, err := backup.RestoreStream(ctx, here(d), dir, stream, backup.Progress{})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("restoring %s: %v, want %q", stream, err, says)
		}
	}
	refuse(log, "there is a stream "+log+" with messages up to")
	refuse("SETTLE_LOG_99", "has no stream SETTLE_LOG_99")
	refuse("KV_SETTLE_WORKERS", "is in no backup")
	lose(ctx, t, d, log)
	lose(ctx, t, d, state)
	refuse(state, "stream "+log+" is missing too")
	if err := d.Bus().Provision(ctx); err != nil {
		t.Fatal(err)
	}
	refuse(log, "never had a message: one that was made in place of the lost one has to be deleted first")
	lose(ctx, t, d, log)
	lose(ctx, t, d, lane)
	if err := d.Bus().Provision(ctx); err != nil { // the lane is another one now
		t.Fatal(err)
	}
	lose(ctx, t, d, log)
	refuse(log, "stream "+lane+" differs from the backup up to")

	other, _ := start(t, t.TempDir()) // another deployment of that name, with more data
	payAll(ctx, t, other, 101, 160)
	atRest(ctx, t, other)
	lose(ctx, t, other, log)
	_, _, err := backup.RestoreStream(ctx, here(other), dir, log, backup.Progress{})
	if err == nil || !strings.Contains(err.Error(), "it belongs to another deployment of that name") {
		t.Errorf("into another deployment: %v", err)
	}
	if _, err := streamcopy.Reach(ctx, other.Bus(), log); !errors.Is(err, model.ErrNoStream) {
		t.Errorf("something was made there: %v", err)
	}
}

// Nothing can be stored in a partially restored stream, and a worker that starts waits. The restore is
// run again.
func TestRestoreStream_InterruptedIsRunAgain(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	store := t.TempDir()
	d, stop := start(t, store)
	payAll(ctx, t, d, 1, 20)
	atRest(ctx, t, d)
	dir := backedUp(ctx, t, d)
	stop()
	server := serve(t, store)
	cfg := bus.Config{Server: server, Prefix: "settle"}
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	lane := streamOf("LANE")
	if err := b.JetStream().DeleteStream(ctx, lane); err != nil {
		t.Fatal(err)
	}
	copyOnly(ctx, t, cfg, dir, lane)
	if err := b.Check(ctx); !errors.Is(err, provision.ErrRestoring) {
		t.Errorf("what is there is said to be %v", err)
	}
	survey, err := survey.New(ctx, cfg, survey.Config{})
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, f := range doctor.Judge(survey, nil, nil, 0).Findings {
		if f.Check == doctor.CheckStreams && f.Level == doctor.Failure {
			said += f.Found
		}
	}
	if said != "stream "+lane+" (lane) is being restored, or a restore of it was interrupted" {
		t.Errorf("the doctor says %q", said)
	}
	if _, err := b.JetStream().Publish(ctx, "settle.lane."+fmt.Sprint(home)+".x.y.z", nil); err == nil {
		t.Error("something can be stored in it")
	}
	if err := b.Complete(ctx); err != nil { // as a worker that starts, and serves the other partitions
		t.Error(err)
	}
	if _, _, err := backup.RestoreStream(ctx, cfg, dir, lane, backup.Progress{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(ctx); err != nil {
		t.Error(err)
	}
	if err := b.JetStream().DeleteStream(ctx, "SETTLE_DEAD"); err != nil {
		t.Fatal(err)
	}
	copyOnly(ctx, t, cfg, dir, "SETTLE_DEAD")
	waits := make(waiting, 1)
	logged := cfg
	logged.Logger = slog.New(waits)
	starting, err := bus.Connect(ctx, logged)
	if err != nil {
		t.Fatal(err)
	}
	defer starting.Close()
	complete := make(chan error, 1)
	go func() { complete <- starting.Complete(ctx) }() // a worker needs that one; ends when the restore has, or with ctx
	select {
	case <-waits:
	case <-ctx.Done():
		t.Fatal("a worker that starts does not wait")
	}
	if _, _, err := backup.RestoreStream(ctx, cfg, dir, "SETTLE_DEAD", backup.Progress{}); err != nil {
		t.Fatal(err)
	}
	if err := <-complete; err != nil {
		t.Errorf("a worker that starts: %v", err)
	}
	b.Close()
	server.Shutdown()
	again, _ := start(t, store)
	payAll(ctx, t, again, 1, 30)
	if n := len(atRest(ctx, t, again)); n != 30 {
		t.Errorf("%d events were handled", n)
	}
}

// waiting is a log handler that signals a message about a stream for which the process waits.
type waiting chan struct{}

func (waiting) Enabled(context.Context, slog.Level) bool { return true }
func (w waiting) WithAttrs([]slog.Attr) slog.Handler     { return w }
func (w waiting) WithGroup(string) slog.Handler          { return w }

func (w waiting) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "waiting for a stream that is being restored" {
		select {
		case w <- struct{}{}:
		default:
		}
	}
	return nil
}

// copyOnly restores a stream, but ends before the stream is opened.
func copyOnly(ctx context.Context, t *testing.T, cfg bus.Config, dir, stream string) {
	t.Helper()
	m, err := backup.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Partitions, cfg.Horizon = m.Partitions, m.Horizon
	r, err := streamcopy.BeginStreamRestore(ctx, cfg, m.ID, stream)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, f := range m.Files {
		if f.Stream != stream {
			continue
		}
		in, err := os.Open(filepath.Join(dir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = in.Close() }() // it was only read
		s := streamcopy.Restored{Asset: f.Asset, First: f.First, Last: f.Last, Messages: f.Messages, Bytes: f.Bytes, MaxBytes: f.MaxBytes, MaxAge: f.MaxAge}
		if err := r.Copy(ctx, &s, bufio.NewReader(in)); err != nil {
			t.Fatal(err)
		}
	}
}

// In a cluster, a restored stream gets as many replicas as the others have. Streams that exist once per
// deployment are restored as well.
func TestRestoreStream_InACluster(t *testing.T) {
	t.Parallel()
	c, err := natstest.StartCluster(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Shutdown)
	ctx := within(t)
	cfg := config("")
	cfg.Bus.URL, cfg.Heartbeat = c.URLs(), 100*time.Millisecond
	d, err := settle.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer stopAll(t, d)
	payAll(ctx, t, d, 1, 10)
	if r, err := d.Client().Call(ctx, settle.Outgoing{Space: "bank-0", Stream: "nothing", ID: settle.ID("x")}); err != nil || r.Outcome != model.Refused {
		t.Fatalf("it was %v, %v", r, err)
	}
	dead := func() (n int) {
		t.Helper()
		for ; n == 0; _ = pause.For(ctx, 10*time.Millisecond) {
			counts, err := d.Client().CountDead(ctx)
			if err != nil {
				t.Fatal(err)
			}
			n = counts.Open
		}
		return n
	}
	dead()
	atRest(ctx, t, d)
	dir := backedUp(ctx, t, d)
	lose(ctx, t, d, "SETTLE_DEAD")
	if _, _, err := backup.RestoreStream(ctx, bus.Config{URL: c.URLs(), Prefix: "settle"}, dir, "SETTLE_DEAD", backup.Progress{}); err != nil {
		t.Fatal(err)
	}
	if n := dead(); n != 1 {
		t.Errorf("%d letters are open", n)
	}
	s, err := d.Bus().JetStream().Stream(ctx, "SETTLE_DEAD")
	if err != nil || s.CachedInfo().Config.Replicas != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	payAll(ctx, t, d, 11, 20)
	if n := len(atRest(ctx, t, d)); n != 20 {
		t.Errorf("%d events are handled", n)
	}
}
