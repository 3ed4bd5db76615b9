package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/worker"
)

// The process ends at one of its appends, the first of which is the takeover. The append is lost, or stored
// without an acknowledgement, or lands long after the next owner has taken over.
func TestTakeover_AfterACrashAtAnyAppend(t *testing.T) {
	for _, c := range []struct {
		name string
		fate membus.Fate
	}{{"lost", membus.DropRequest}, {"stored", membus.DropAck}, {"late", membus.Late}} {
		for at := int64(1); at <= 4; at++ {
			t.Run(fmt.Sprintf("%s/%d", c.name, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, 1)
					w1 := w.worker("w1")
					var appends atomic.Int64
					w1.Bus.Inject(func(op membus.Op) membus.Fate {
						if op.Label != "append" || appends.Add(1) != at {
							return membus.Deliver
						}
						w1.Crash()
						return c.fate
					})
					for i := range 5 {
						w.Send("s", "chain", fmt.Sprintf("e%d", i+1), "2")
						time.Sleep(10 * time.Millisecond)
					}
					w.Eventually("it died", func() bool { return appends.Load() >= at })
					w.worker("w2")
					w.Eventually("the next owner has taken over", func() bool {
						owners := w.Takeovers("s")
						return len(owners) > 0 && owners[len(owners)-1] == "w2"
					})
					w1.Bus.Release()
					w.Send("s", "chain", "e6", "2")
					w.EventuallyEnded("s", 18)
					time.Sleep(5 * time.Second)
					w.wantChains("s", 6, 2)
					w.wantSaved("s", map[string]string{"n": "18"})
					w.WantPosition(0, 6)
				})
			})
		}
	}
}

// A runtime that has read a space but not yet taken it over saves nothing: it may have read an old state with
// a document that the owner has since deleted, and whose marker was purged.
func TestTakeover_NothingIsSavedBeforeItIsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Checkpoint: time.Hour}}, nil)
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		w1.Crash() // its unsaved changes are left to the next owner
		b := w.Connect("w2")
		var appends, saves atomic.Int64
		b.Inject(func(op membus.Op) membus.Fate {
			switch op.Label {
			case "append":
				appends.Add(1)
				return membus.Delay
			case "save":
				saves.Add(1)
			}
			return membus.Deliver
		})
		w.start(worker.Config{ID: "w2", Options: worker.Options{Checkpoint: 50 * time.Millisecond}}, b, nil)
		w.Eventually("the next owner is about to take over", func() bool { return appends.Load() > 0 })
		w.Pass(5 * time.Second)
		if n := saves.Load(); n != 0 {
			t.Errorf("a worker that does not own the space saved %d items", n)
		}
		b.Inject(nil)
		b.Release()
		w.Eventually("the owner saves the space", func() bool {
			d, there := w.Server.Saved("s", "n")
			return there && string(d.Data) == "1"
		})
	})
}

// wantChains checks that the chains e1 to en were handled completely: each link once, and the heads in order.
func (w *world) wantChains(space string, n, links int) {
	w.Helper()
	seen, heads := map[string]bool{}, 0
	for _, rc := range w.Receipts(space) {
		if seen[rc.Event] {
			w.Errorf("event %s has two receipts", rc.Event)
		}
		seen[rc.Event] = true
		if rc.Outcome != model.Handled {
			w.Errorf("event %s: %s", rc.Event, rc.Outcome)
		}
		if rc.Lane == 0 {
			continue
		}
		if heads++; rc.Event != fmt.Sprintf("e%d", heads) {
			w.Errorf("head %s was handled as number %d", rc.Event, heads)
		}
	}
	if heads != n || len(seen) != n*(links+1) {
		w.Errorf("%d heads and %d links in all, want %d and %d", heads, len(seen), n, n*(links+1))
	}
}

// Two workers that do not know of each other both claim a space. Each steps down when it finds the other's
// takeover, and returns as long as there is work.
func TestTakeover_ADeposedHostStepsDownAndReturnsForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1"}, hermits)
		w.Send("s", "add", "e1")
		time.Sleep(2 * time.Second)
		w2 := w.process(worker.Config{ID: "w2"}, hermits)
		w.Send("s", "add", "e2")
		time.Sleep(2 * time.Second)
		w.Send("s", "add", "e3")
		time.Sleep(2 * time.Second)
		w2.Shutdown()
		w.Send("s", "add", "e4")
		time.Sleep(5 * time.Second)
		w.wantHandled("s", worldtest.Numbered(4)...)
		if owners := w.Takeovers("s"); owners[0] != "w1" || owners[len(owners)-1] != "w1" || len(owners) < 3 {
			t.Errorf("owners were %v", owners)
		}
		if w1.Counts().Refused+w2.Counts().Refused == 0 {
			t.Error("no append was refused: the two never met")
		}
		w.wantSaved("s", map[string]string{"n": "4"})
		w.WantPosition(0, 4)
	})
}

// An owner that could not save for a while, and has nothing to append, misses that another worker has taken
// the space over, saved it and died. It detects that when its own save is outdated.
func TestTakeover_AnOwnerWithNothingToAppendLearnsThatItIsDeposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := w.Server.Connect("w1")
		lost := &only{label: "save", fate: membus.DropRequest}
		lost.on.Store(true)
		b.Inject(func(op membus.Op) membus.Fate {
			if op.Label == lost.label && lost.on.Load() {
				time.Sleep(50 * time.Millisecond)
			}
			return lost.hook(op)
		})
		w.start(worker.Config{ID: "w1"}, b, hermits)
		w.Send("s", "add", "e1")
		time.Sleep(2 * time.Second)
		w2 := w.process(worker.Config{ID: "w2"}, hermits)
		time.Sleep(2 * time.Second)
		w2.Crash()
		lost.on.Store(false)
		time.Sleep(10 * time.Second)
		if owners := w.Takeovers("s"); len(owners) < 3 {
			t.Errorf("the owners are %v; want w1, w2 and w1 again", owners)
		}
		w.wantHandled("s", worldtest.Numbered(1)...)
		w.WantPosition(0, 1)
	})
}

// Two workers that both believe they own a space cause some refused appends, but do not take it over from
// each other again and again.
func TestTakeover_OwnersWithNothingToDoDoNotTakeASpaceFromEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.process(worker.Config{ID: "w1"}, hermits)
		w.process(worker.Config{ID: "w2"}, hermits)
		for i := range 5 {
			w.Send("s", "add", fmt.Sprintf("e%d", i+1))
			time.Sleep(time.Second)
		}
		time.Sleep(5 * time.Second)
		before := len(w.Commits("s"))
		time.Sleep(time.Minute)
		if more := len(w.Commits("s")) - before; more > 0 {
			t.Errorf("%d commits in a minute without work", more)
		}
		w.wantHandled("s", worldtest.Numbered(5)...)
	})
}

// laggingLog answers reads of a space's log from a lagging replica.
type laggingLog struct {
	*membus.Bus
	behind atomic.Bool
	reads  atomic.Int64
}

func (b *laggingLog) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	b.reads.Add(1)
	if b.behind.Load() {
		return nil, nil
	}
	return b.Bus.ReadLog(ctx, space, after, limit)
}

// A refused append implies that there is something to read. A replica that does not have it yet is asked
// again at a moderate pace.
func TestTakeover_WaitsForALaggingReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var log *laggingLog
		w.process(worker.Config{ID: "w1"}, func(b *membus.Bus) port.Bus {
			log = &laggingLog{Bus: b}
			return log
		})
		w.Send("s", "add", "e1")
		time.Sleep(time.Second)
		w.Append(&model.Commit{Space: "s", Runtime: "other", Cursor: model.Cursor{Floor: 1}, Txs: []model.Tx{{
			N: 1, By: "another writer", Writes: []model.Write{{Doc: "n", Value: model.Int(10)}},
		}}})
		log.behind.Store(true)
		log.reads.Store(0)
		w.Send("s", "add", "e2")
		time.Sleep(10 * time.Second)
		if n := log.reads.Load(); n < 3 || n > 30 {
			t.Errorf("the log was read %d times in ten seconds", n)
		}
		log.behind.Store(false)
		time.Sleep(2 * time.Second)
		w.wantHandled("s", worldtest.Numbered(2)...)
		if got := w.Doc("s", "n"); got != "11" {
			t.Errorf("n is %s, want 11: ten of the other runtime and one", got)
		}
		if n := len(w.Takeovers("s")); n != 1 {
			t.Errorf("%d takeovers: a commit of another runtime is no reason for one", n)
		}
	})
}

// brokenLane delivers one event of a lane, and then fails reads of it.
type brokenLane struct {
	*membus.Bus
	broken atomic.Bool
	reads  atomic.Int64
}

func (b *brokenLane) ReadLane(ctx context.Context, space string, after uint64, limit int) ([]model.Message, error) {
	switch n := b.reads.Add(1); {
	case n == 1:
		limit = 1
	case b.broken.Load():
		return nil, errors.New("the store does not like it")
	}
	return b.Bus.ReadLane(ctx, space, after, limit)
}

func TestRefill_FailedReadsAreRetriedAtIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		lane := &brokenLane{}
		lane.broken.Store(true)
		program := &deployed{program: book(t)}
		w.process(worker.Config{ID: "w1", Programs: program.programs}, func(b *membus.Bus) port.Bus { lane.Bus = b; return lane })
		w.sendMany("s", "add", 19)
		time.Sleep(time.Second)
		program.is.Store(true)
		w.Send("s", "add", "e20")
		time.Sleep(30 * time.Second)
		if n := lane.reads.Load(); n < 20 || n > 60 {
			t.Errorf("the lane was read %d times in half a minute", n)
		}
		w.wantHandled("s", "e1")
		lane.broken.Store(false)
		time.Sleep(5 * time.Second)
		w.wantHandled("s", worldtest.Numbered(20)...)
	})
}

// A space whose log has commits of a newer format is left alone: nothing is appended, and its lane position
// does not move.
func TestTakeover_ALogOfANewerFormatIsNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		if _, err := w.Server.Append(model.Append{Space: "s", ID: "future", Data: []byte(`{"v":99,"s":"s"}`)}); err != nil {
			t.Fatal(err)
		}
		w.worker("w1")
		w.Send("s", "add", "e1")
		w.Send("other", "add", "e1")
		time.Sleep(10 * time.Second)
		if head := w.Server.Head("s"); head != 1 {
			t.Errorf("the log of the space ends at %d", head)
		}
		w.wantHandled("other", "e1")
		w.WantPosition(0, 0)
		if n := w.Log.Count(setAside); n < 1 || n > 2 {
			t.Errorf("logged %d times in ten seconds", n)
		}
	})
}

// uncompared is a bus that does not reveal how a log ends yet, so that a worker cannot know whether the lane
// is whole.
type uncompared struct {
	*membus.Bus
	compare chan struct{}
}

func (b *uncompared) LogTail(ctx context.Context, partition, n int) ([]model.LogEntry, error) {
	select {
	case <-b.compare:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return b.Bus.LogTail(ctx, partition, n)
}

// Comparing the lane with the log decides whether the cursor of a space is reliable. Until then the space is
// not served, even if it is observed.
func TestTakeover_NotBeforeTheLaneIsComparedWithTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		first := w.worker("w1")
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		first.Shutdown()
		bus := &uncompared{compare: make(chan struct{})}
		w.process(worker.Config{ID: "w2"}, func(b *membus.Bus) port.Bus {
			bus.Bus = b
			return bus
		})
		v := w.watch("s", "double")
		w.Pass(10 * time.Second)
		if got := w.Takeovers("s"); len(got) != 1 {
			t.Errorf("takeovers before the comparison: %v", got)
		}
		close(bus.compare)
		w.Eventually("the space is served", func() bool { return v.last() == "2" })
	})
}
