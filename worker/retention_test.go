package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// frugal is a worker that keeps nothing in the log that a restart does not need.
func frugal(id string) worker.Config {
	return worker.Config{ID: id, LeastMarkers: 1, Options: worker.Options{HistoryBytes: 1, PurgeDelay: 1, Checkpoint: 50 * time.Millisecond}}
}

// left returns how many commits of a space are in the log.
func (w *world) left(space string) int { return len(w.Server.ReadLog(space, 0, 1<<30)) }

// wantWhole checks that no commit of a space's log is gone.
func (w *world) wantWhole(space string) {
	w.Helper()
	if left, all := w.left(space), len(w.Commits(space)); left != all {
		w.Errorf("the log of %s has %d of %d commits", space, left, all)
	}
}

// readings counts the commits that a worker reads from logs.
type readings struct {
	*membus.Bus
	n *atomic.Int64
}

func (b readings) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	entries, err := b.Bus.ReadLog(ctx, space, after, limit)
	b.n.Add(int64(len(entries)))
	return entries, err
}

// However many events there were, the log and what a restart reads of it are bounded.
func TestRetention_LogAndRestartAreBoundedUnderEndlessEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		const rounds, each = 20, 100
		const bound = each // a few checkpoints' worth
		for round := range rounds {
			cfg := frugal(fmt.Sprint("w", round))
			var read atomic.Int64
			p := w.process(cfg, func(b *membus.Bus) port.Bus { return readings{b, &read} })
			for i := range each {
				w.Send("s", "add", fmt.Sprintf("e%d", round*each+i+1))
				w.Pass(10 * time.Millisecond) // one commit each
			}
			w.EventuallyEnded("s", (round+1)*each)
			w.Pass(3 * time.Second)
			if n := w.left("s"); n > bound {
				t.Fatalf("after %d events the log has %d commits", (round+1)*each, n)
			}
			if n := read.Load(); n > bound {
				t.Fatalf("after %d events a restart read %d commits", round*each, n)
			}
			p.Crash()
		}
		w.wantHandled("s", worldtest.Numbered(rounds*each)...)
		if got := w.Doc("s", "n"); got != fmt.Sprint(rounds*each) {
			t.Errorf("n is %s", got)
		}
		if n := len(w.Commits("s")); n < each*rounds {
			t.Errorf("%d commits in all are too few", n)
		}
	})
}

func TestRetention_PurgesOnlyWhatACheckpointCovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		p := w.process(frugal("w1"), nil)
		full := &only{label: "save", fate: membus.DropRequest}
		full.on.Store(true)
		p.Bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "save" && full.on.Load() {
				return membus.Delay // while nothing can be saved
			}
			return membus.Deliver
		})
		w.adds("s", 5)
		w.Pass(10 * time.Minute)
		w.wantWhole("s")
		full.on.Store(false)
		p.Bus.Release()
		w.Pass(2 * time.Minute)
		if n := w.left("s"); n != 1 {
			t.Errorf("the log has %d commits, want the last one", n)
		}
	})
}

// replaced is a bus whose bucket was replaced by an older one, without any process having noticed.
type replaced struct {
	*membus.Bus
	on atomic.Bool
}

func (b *replaced) LoadMark(ctx context.Context, space string) (model.StateDoc, time.Time, error) {
	mark, stored, err := b.Bus.LoadMark(ctx, space)
	if b.on.Load() {
		mark.Seq = 1
	}
	return mark, stored, err
}

// A commit that only a remembered checkpoint covers stays in the log if that checkpoint is lost: the older
// stored one needs it.
func TestRetention_PurgesOnlyWhatAnExistingCheckpointCovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		bus := &replaced{}
		bus.on.Store(true)
		cfg := frugal("w1")
		cfg.Idle = time.Hour // so that the space stays in memory
		w.process(cfg, func(b *membus.Bus) port.Bus {
			bus.Bus = b
			return bus
		})
		w.adds("s", 5)
		w.Pass(10 * time.Minute)
		w.wantWhole("s")
		bus.on.Store(false)
		w.Pass(2 * time.Minute)
		if n := w.left("s"); n != 1 {
			t.Errorf("the log has %d commits, want the last one", n)
		}
	})
}

func TestRetention_PurgesOnlyWhatCoordinatorsHaveReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.process(frugal("w1"), nil)
		w.Send("s", "forward", "e1", `"t"`)
		w.sendMany("s", "add", 5)
		w.Pass(10 * time.Minute)
		w.wantWhole("s")
		w.Coordinator()
		w.EventuallyEnded("t", 1)
		w.Pass(15 * time.Minute)
		if n := w.left("s"); n != 1 {
			t.Errorf("the log has %d commits, want the last one", n)
		}
	})
}

func TestRetention_CommitsAreKeptForAsLongAsIsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		w.process(worker.Config{ID: "w1", Options: worker.Options{History: time.Hour}}, nil)
		w.sendMany("s", "add", 5)
		w.Pass(time.Hour - 10*time.Minute)
		w.sendMany("s", "get", 2)
		w.EventuallyEnded("s", 7) // wantWhole reads the log twice: it must not grow in between
		w.wantWhole("s")
		w.Pass(15 * time.Minute)
		if n := w.left("s"); n == len(w.Commits("s")) || n < 2 {
			t.Errorf("the log has %d of %d commits, want those of the last hour", n, len(w.Commits("s")))
		}
		if h, err := history.FindReceipt(t.Context(), w.Client, "s", "get", "e2"); err != nil || h == nil {
			t.Errorf("the receipt of an event of the last hour: %v, %v", h, err)
		}
	})
}

// By default a receipt is kept as long as the lane remembers its event.
func TestRetention_AReceiptIsThereAsLongAsItsEventByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newShortWorld(t)
		w.Coordinator()
		w.worker("w1")
		w.sendMany("s", "add", 3)
		for range 20 {
			w.Pass(7 * time.Minute)
			_, there := w.Server.FindEvent("s", "add", "e2")
			h, err := history.FindReceipt(t.Context(), w.Client, "s", "add", "e2")
			if there && (err != nil || h == nil) {
				t.Fatalf("the event is in the lane, and its receipt: %v, %v", h, err)
			}
		}
		w.Pass(time.Hour)
		if n := w.left("s"); n != 1 {
			t.Errorf("the log has %d commits, want the last one", n)
		}
	})
}

// A server that does not sync at once may lose an acknowledged checkpoint, while the purge that relied on it
// is permanent.
func TestRetention_ACheckpointMustBeOldEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		cfg := frugal("w1")
		cfg.PurgeDelay = 10 * time.Minute
		w.process(cfg, nil)
		w.sendMany("s", "add", 5)
		w.Pass(9 * time.Minute)
		w.wantWhole("s")
		w.Pass(3 * time.Minute)
		if n := w.left("s"); n != 1 {
			t.Errorf("the log has %d commits, want the last one", n)
		}
	})
}

func TestRetention_TheLogsOfEvictedSpacesArePurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		cfg := frugal("w1")
		cfg.HistoryBytes, cfg.History, cfg.Idle = 0, 30*time.Minute, time.Second
		p := w.process(cfg, nil)
		const spaces = 300 // more than are checked at a time
		for i := range spaces {
			w.sendMany(fmt.Sprint("s", i), "add", 3)
		}
		w.Pass(25 * time.Minute)
		if n := p.Held().Hosts; n != 0 {
			t.Fatalf("%d spaces are in memory", n)
		}
		for i := range spaces {
			w.wantWhole(fmt.Sprint("s", i))
		}
		w.Pass(30 * time.Minute)
		for i := range spaces {
			if n := w.left(fmt.Sprint("s", i)); n != 1 {
				t.Fatalf("the log of space %d has %d commits, want the last one", i, n)
			}
		}
		w.Send("s7", "add", "e4")
		w.EventuallyEnded("s7", 4)
		if got := w.Doc("s7", "n"); got != "4" {
			t.Errorf("n is %s after the purge", got)
		}
	})
}

// A document that is computed for a watcher is committed without an event. If the owner dies before it has
// saved that, no event would wake the space.
func TestRetention_ASpaceWhoseOwnerDiedBeforeItSavedIsSavedByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		first := w.worker("w1")
		w.Send("s", "add", "e1")
		w.Pass(5 * time.Second)
		full := &only{label: "save", fate: membus.Delay}
		full.on.Store(true)
		first.Bus.Inject(full.hook)
		v := w.watch("s", "double")
		w.Eventually("the document is computed", func() bool { return v.last() == "2" })
		v.end()
		first.Crash()
		cfg := frugal("w2")
		cfg.Idle = time.Second
		w.process(cfg, nil)
		w.Pass(30 * time.Minute)
		w.wantSaved("s", map[string]string{"n": "1", "double": "2"})
		if n := len(w.Takeovers("s")); n != 2 {
			t.Errorf("the space was taken over %d times, want once more", n)
		}
	})
}

// A follower that is slower than the purge misses changes, but never sees an older value after a newer one,
// nor a value that never existed.
func TestGap_AFollowerContinuesFromTheNewerCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		w.process(frugal("w1"), nil)
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		stuck := make(chan struct{})
		var values []string
		var revisions []uint64
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { // ends with ctx
			watch := history.Watch{Bus: w.Client, Space: "s", Doc: "n"}
			done <- watch.Changes(ctx, func(c history.Change) {
				v, rev := c.Value, c.Revision
				values, revisions = append(values, v.String()), append(revisions, rev)
				if len(values) == 1 {
					<-stuck
				}
			})
		}()
		synctest.Wait()
		for i := range 600 {
			w.Send("s", "add", fmt.Sprint("e", i+2))
			w.Pass(60 * time.Millisecond) // one commit each
		}
		w.Pass(2 * time.Minute)
		close(stuck)
		w.Pass(5 * time.Second)
		w.Send("s", "add", "last")
		w.Pass(5 * time.Second)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the subscription ended with %v", err)
		}
		if n := len(values); n < 3 || n > 300 || values[n-1] != "602" || values[n-2] != "601" {
			t.Errorf("%d values: %v", n, values)
		}
		for i := 1; i < len(revisions); i++ {
			if revisions[i] <= revisions[i-1] {
				t.Fatalf("revisions %v", revisions)
			}
		}
		for i, v := range values { // n is the number of adds up to that revision
			if want := fmt.Sprint(w.addsUpTo("s", revisions[i])); v != want {
				t.Fatalf("at %d the watcher saw %s, want %s", revisions[i], v, want)
			}
		}
	})
}

// addsUpTo counts the events that were handled up to a log sequence.
func (w *world) addsUpTo(space string, seq uint64) (n int) {
	for _, e := range w.Server.History(space) {
		c, err := model.DecodeCommit(e.Data)
		if err != nil {
			w.Fatal(err)
		}
		for i := range c.Txs {
			if e.Seq <= seq && c.Txs[i].Receipt != nil {
				n++
			}
		}
	}
	return n
}

// A commit in flight is refused, and the commit that replaced it was purged: the deposed owner cannot know
// what it has missed.
func TestGap_AnOwnerReloadsTheSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		old := w.process(frugal("w1"), hermits)
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		w.Pass(time.Second)
		held := &only{label: "append", fate: membus.Delay}
		held.on.Store(true)
		old.Bus.Inject(held.hook)
		w.Send("s", "add", "e2")
		w.Eventually("an append is in flight", func() bool { return held.hits.Load() == 1 })
		fresh := w.process(frugal("w2"), hermits)
		w.EventuallyEnded("s", 2)
		w.Pass(2 * time.Second)
		w.Send("s", "add", "e3")
		w.EventuallyEnded("s", 3)
		w.Pass(2 * time.Minute)
		if n := w.left("s"); n != 1 {
			t.Fatalf("the log has %d commits", n)
		}
		fresh.Crash()
		held.on.Store(false)
		old.Bus.Release()
		w.Send("s", "add", "e4")
		w.EventuallyEnded("s", 4)
		w.Pass(5 * time.Second)
		w.wantHandled("s", worldtest.Numbered(4)...)
		w.wantSaved("s", map[string]string{"n": "4"})
		if w.Log.Count("purged") == 0 {
			t.Errorf("no process has detected the gap:\n%s", w.Log)
		}
	})
}

// The rest of the log need not show the takeover: the last commit is of an attached runtime.
func TestGap_AnOwnerDoesNotMistakeTheRestForAllMissedCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		old := w.process(frugal("w1"), hermits)
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		w.Pass(time.Second)
		held := &only{label: "append", fate: membus.Delay}
		held.on.Store(true)
		old.Bus.Inject(held.hook)
		w.Send("s", "add", "e2")
		w.Eventually("an append is in flight", func() bool { return held.hits.Load() == 1 })
		fresh := w.process(frugal("w2"), hermits)
		w.EventuallyEnded("s", 2)
		w.Send("s", "add", "e3")
		w.EventuallyEnded("s", 3)
		a := w.attach("a1")
		elsewhere := func(tx *space.Tx) error { tx.Set("elsewhere", 1); return nil }
		if err := a.Transact(t.Context(), "app", elsewhere); err != nil {
			t.Fatal(err)
		}
		w.Pass(3 * time.Second)
		fresh.Crash()
		if n := w.left("s"); n != 1 {
			t.Fatalf("the log has %d commits", n)
		}
		a.close()
		held.on.Store(false)
		old.Bus.Release()
		w.Send("s", "add", "e4")
		w.EventuallyEnded("s", 4)
		w.Pass(5 * time.Second)
		w.wantHandled("s", worldtest.Numbered(4)...)
		w.wantSaved("s", map[string]string{"n": "4", "elsewhere": "1"})
	})
}

func TestGap_AnAttachmentEndsWithAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		w.process(frugal("w1"), nil)
		a := w.attach("a1")
		a.add()
		held := &only{label: "append", fate: membus.Delay}
		held.on.Store(true)
		a.bus.Inject(held.hook)
		done := make(chan error, 1)
		go func() { done <- a.Transact(t.Context(), "app", increment) }() // ends when the attachment does
		w.Eventually("its append is in flight", func() bool { return held.hits.Load() == 1 })
		for i := range 5 {
			w.Send("s", "add", fmt.Sprint("e", i+1))
			w.Pass(100 * time.Millisecond)
		}
		w.Pass(2 * time.Minute)
		held.on.Store(false)
		a.bus.Release()
		if err := <-done; !errors.Is(err, model.ErrPurged) {
			t.Errorf("the transaction ended with %v", err)
		}
		<-a.Done()
		if got := w.Doc("s", "n"); got != "6" {
			t.Errorf("n is %s", got)
		}
		b := w.attach("a2") // it can be attached again
		b.add()
		if got := w.Doc("s", "n"); got != "7" {
			t.Errorf("n is %s", got)
		}
	})
}

// A log that begins after every checkpoint has lost commits for good. That is reported, and no state is made
// up. Stopping a worker does not wait for a space that the worker keeps trying to load.
func TestStop_ASpaceThatIsRefusedDoesNotHoldUpTheWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		p := w.worker("w1")
		for i := range 5 {
			w.Send("s", "add", fmt.Sprint("e", i+1))
			w.Pass(2 * time.Second)
		}
		p.Crash()
		commits := w.Server.History("s")
		w.Server.PurgeLog("s", commits[len(commits)-1].Seq)
		w.Server.ForgetState("s")
		first, second := w.worker("w2"), w.worker("w3")
		w.Send("s", "add", "e6")
		w.Eventually("the space is refused", func() bool { return w.Log.Count("refused: the store has lost") > 0 })
		w.Pass(3 * time.Second) // it is being loaded again, which takes ten seconds
		began := time.Now()
		first.Shutdown()
		second.Shutdown()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestGap_AStateOlderThanTheLogIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		p := w.worker("w1")
		for i := range 5 {
			w.Send("s", "add", fmt.Sprint("e", i+1))
			w.Pass(2 * time.Second)
		}
		p.Crash()
		commits := w.Server.History("s")
		w.Server.PurgeLog("s", commits[len(commits)-1].Seq) // a purge by mistake
		w.Server.ForgetState("s")
		if _, err := history.Read(t.Context(), w.Client, "s", "n"); !errors.Is(err, model.ErrPurged) || !strings.Contains(err.Error(), "lost") {
			t.Errorf("reading says %v", err)
		}
		w.worker("w2")
		w.Send("s", "add", "e6")
		w.Pass(time.Minute)
		if n := len(w.Commits("s")); n != len(commits) {
			t.Errorf("%d commits were made on top of an unknown state", n-len(commits))
		}
		if w.Log.Count("no checkpoint reaches to where the log begins") == 0 {
			t.Errorf("the logger wrote:\n%s", w.Log)
		}
	})
}

func TestGap_PurgedReceiptsAreReportedAsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		p := w.process(frugal("w1"), nil)
		for i := range 10 {
			w.Send("s", "add", fmt.Sprint("e", i+1))
			w.Send("s", "chain", fmt.Sprint("c", i+1), "1")
			w.Pass(100 * time.Millisecond)
		}
		w.Pass(2 * time.Minute)
		p.Shutdown()
		w.Send("s", "add", "new")
		w.worker("w2") // keeps everything
		w.EventuallyEnded("s", 31)
		var own string // the follow-up of c5
		for _, rc := range w.Receipts("s") {
			if tx, minted := model.OriginOf(rc.Event); minted && tx.Space == "s" && own == "" {
				own = rc.Event
			}
		}
		for id, stream := range map[string]string{"e5": "add", "c5": "chain", own: "chain"} {
			if h, err := history.FindReceipt(t.Context(), w.Client, "s", stream, id); !errors.Is(err, history.ErrForgotten) {
				t.Errorf("the receipt of %s: %v, %v, want ErrForgotten", id, h, err)
			}
		}
		if _, err := history.FindOrigin(t.Context(), w.Client, own); !errors.Is(err, history.ErrForgotten) {
			t.Errorf("the origin of %s: %v, want ErrForgotten", own, err)
		}
		if h, err := history.FindReceipt(t.Context(), w.Client, "s", "add", "new"); err != nil || h == nil {
			t.Errorf("the receipt that is not purged: %v, %v", h, err)
		}
		var listed []string
		for h, err := range history.Receipts(t.Context(), w.Client, "s", history.ReceiptFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			listed = append(listed, h.Tx.Receipt.Event)
		}
		if len(listed) == 0 || listed[len(listed)-1] != "new" || len(listed) > 5 {
			t.Errorf("listed: %v", listed)
		}
	})
}

// A transaction of an application in a space without an owner is in no lane, and was never saved. The next
// owner of the partition finds it in the log.
func TestRetention_ASpaceThatWasNeverSavedIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		a := w.attach("app")
		a.add()
		a.add()
		a.close()
		w.Pass(model.LeaseTTL)
		cfg := frugal("w1")
		cfg.Idle = time.Second
		w.process(cfg, nil)
		w.Pass(30 * time.Minute)
		w.wantSaved("s", map[string]string{"n": "2"})
	})
}
