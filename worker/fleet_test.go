package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
	"github.com/settlehq/settle/worker/roster"
)

// pretend announces a member that is no worker, and keeps answering for it until
// the end of the test. With beats it is well, without it hangs.
func (w *world) pretend(id string, beats bool) (leave func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b := w.Server.Connect(id)
	if err := b.AnswerPings(ctx, id); err != nil {
		w.Fatal(err)
	}
	var running sync.WaitGroup
	say := func(beat uint64, left bool) {
		_ = b.Announce(context.Background(), model.Member{ID: id, Beat: beat, Left: left})
	}
	say(1, false)
	if beats {
		running.Go(func() {
			tick := time.NewTicker(500 * time.Millisecond)
			defer tick.Stop()
			for beat := uint64(2); ; beat++ {
				select {
				case <-tick.C:
					say(beat, false)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	end := sync.OnceFunc(func() { cancel(); running.Wait(); say(1<<40, true); b.Close() })
	w.Cleanup(end)
	return end
}

// memberFor is an id that takes partition p, of n, away from the others.
func memberFor(p, n int, others ...string) string {
	var list []model.Member
	for _, id := range others {
		list = append(list, model.Member{ID: id})
	}
	for i := 0; ; i++ {
		id := "x" + strconv.Itoa(i)
		if roster.Divide(n, append(slices.Clone(list), model.Member{ID: id}))[p] == id {
			return id
		}
	}
}

func TestFleet_EveryPartitionIsServedByExactlyOneWorkerOnceAllKnowOfEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 12)
		fleet := []*process{w.worker("w1"), w.worker("w2"), w.worker("w3")}
		time.Sleep(2 * time.Second)
		served := map[int]string{}
		for i, p := range fleet {
			for _, n := range p.Partitions() {
				if served[n] != "" {
					t.Errorf("partition %d is served twice", n)
				}
				served[n] = "w" + strconv.Itoa(i+1)
			}
		}
		if len(served) != 12 {
			t.Errorf("%d of 12 partitions are served", len(served))
		}
	})
}

// A dead process has nobody listening on its ping subject; that is known within
// two heartbeats, and not only after the TTL.
func TestFleet_ADeadProcessIsReplacedWithinTwoHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w1 := w.worker("w1")
		w.worker("w2")
		time.Sleep(2 * time.Second)
		of := worldtest.SpacesIn(w1.Partitions()[0], 2, 1)[0]
		w1.Crash()
		w.Send(of, "add", "e1")
		time.Sleep(1100 * time.Millisecond) // and a moment for the work itself
		w.wantHandled(of, "e1")
		if got := w.Takeovers(of); !slices.Equal(got, []string{"w2"}) {
			t.Errorf("taken over by %v", got)
		}
	})
}

// A process that hangs answers pings, perhaps, and says nothing any more.
func TestFleet_AHungProcessLosesItsPartitionsAfterTheTTLAndGetsThemBackWhenItSpeaksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w1, w2 := w.worker("w1"), w.worker("w2")
		time.Sleep(2 * time.Second)
		var hangs atomic.Bool
		hangs.Store(true)
		w1.Bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "announce" && hangs.Load() {
				return membus.Delay
			}
			return membus.Deliver
		})
		time.Sleep(14 * time.Second)
		if n := len(w2.Partitions()); n != 1 {
			t.Fatalf("before the TTL w2 serves %d partitions", n)
		}
		time.Sleep(2 * time.Second)
		if n := len(w2.Partitions()); n != 2 {
			t.Errorf("after the TTL w2 serves %d partitions", n)
		}
		hangs.Store(false)
		w1.Bus.Release()
		time.Sleep(2 * time.Second)
		if a, b := len(w1.Partitions()), len(w2.Partitions()); a != 1 || b != 1 {
			t.Errorf("in the end w1 serves %d partitions and w2 %d", a, b)
		}
	})
}

// While the store is away nobody can be heard. When it is back, all are still
// there, and nothing moves.
func TestFleet_AnOutageOfTheStoreMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		w1, w2 := w.worker("w1"), w.worker("w2")
		time.Sleep(2 * time.Second)
		var spaces []string
		for p := range 4 {
			spaces = append(spaces, worldtest.SpacesIn(p, 4, 1)[0])
			w.Send(spaces[p], "add", "e1")
		}
		time.Sleep(2 * time.Second)
		w.Server.Disconnect()
		w2.Bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "announce" {
				return membus.Delay
			}
			return membus.Deliver
		})
		time.Sleep(45 * time.Second) // less than it takes an idle space to leave
		w1.Bus.Reconnect()
		w.Client.Reconnect()
		for _, s := range spaces {
			w.Send(s, "add", "e2")
		}
		time.Sleep(2 * time.Second) // one of them is back a little later
		w2.Bus.Reconnect()
		time.Sleep(2 * time.Second) // and heard of again later still
		w2.Bus.Inject(nil)
		w2.Bus.Release()
		time.Sleep(20 * time.Second)
		for _, s := range spaces {
			w.wantHandled(s, "e1", "e2")
			if n := len(w.Takeovers(s)); n != 1 {
				t.Errorf("space %s was taken over %d times", s, n)
			}
		}
	})
}

// A process that did not survive the outage is replaced soon after it.
func TestFleet_AProcessThatDiedInAnOutageIsReplacedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w1 := w.worker("w1")
		w.worker("w2")
		time.Sleep(2 * time.Second)
		of := worldtest.SpacesIn(w1.Partitions()[0], 2, 1)[0]
		w.Server.Disconnect()
		time.Sleep(time.Minute)
		w1.Crash()
		w.Server.Reconnect()
		w.Send(of, "add", "e1")
		time.Sleep(7 * time.Second)
		w.wantHandled(of, "e1")
	})
}

// Members whose pings are not answered at all must not keep a worker from saying
// that it is there itself.
func TestFleet_ManyHungMembersDoNotSlowTheHeartbeatDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w1 := w.worker("w1")
		w1.Bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "ping" {
				return membus.Delay
			}
			return membus.Deliver
		})
		for i := range 40 {
			w.pretend("h"+strconv.Itoa(i), false)
		}
		var first, last atomic.Uint64
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() {
			_ = w.Client.FollowMembers(ctx, func(m model.Member) {
				if m.ID == "w1" {
					first.CompareAndSwap(0, m.Beat)
					last.Store(m.Beat)
				}
			}, func() {})
		})
		time.Sleep(10 * time.Second)
		cancel()
		following.Wait()
		if n := last.Load() - first.Load(); n < 8 {
			t.Errorf("%d heartbeats in ten seconds, want one every half second or second", n)
		}
	})
}

// A partition that leaves and comes back, before it has been handed over, would
// otherwise be served twice by one worker.
func TestFleet_APartitionThatComesBackWaitsForItsHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Handover: time.Minute}}, nil)
		w.Send("s", "add", "e1")
		time.Sleep(100 * time.Millisecond) // handled, and not saved
		w1.Bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "save" {
				return membus.Delay
			}
			return membus.Deliver
		})
		leave := w.pretend(memberFor(0, 1, "w1"), true)
		time.Sleep(2 * time.Second)
		if n := len(w1.Partitions()); n != 0 {
			t.Fatalf("w1 still serves %d partitions", n)
		}
		leave()
		w.Send("s", "add", "e2")
		time.Sleep(5 * time.Second)
		if n := len(w.Takeovers("s")); n != 1 {
			t.Errorf("the space was taken over %d times before its first host had ended", n)
		}
		w1.Bus.Inject(nil)
		w1.Bus.Release()
		time.Sleep(5 * time.Second)
		w.wantHandled("s", "e1", "e2")
		w.wantSaved("s", map[string]string{"n": "2"})
	})
}

// One handler that never returns must not cost its whole partition, should that come
// back to the worker.
func TestFleet_AStuckHandlerDoesNotKeepItsPartitionFromComingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		stuck := make(chan struct{})
		p := book(t)
		if err := p.Handle("stick", func(*space.Tx, *model.Event) (model.Value, error) {
			<-stuck
			return model.Value{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		w.Send("bad", "stick", "e1")
		w.Send("good", "add", "e1")
		time.Sleep(time.Second)
		leave := w.pretend(memberFor(0, 1, "w1"), true)
		time.Sleep(2 * time.Second)
		if n := len(w1.Partitions()); n != 0 {
			t.Fatalf("w1 still serves %d partitions", n)
		}
		leave()
		w.Send("good", "add", "e2")
		time.Sleep(20 * time.Second)
		w.wantHandled("good", "e1", "e2")
		close(stuck)
		time.Sleep(5 * time.Second)
		w.wantHandled("bad", "e1")
		w1.Shutdown()
		w.WantPosition(0, 3)
	})
}

// Stop waits for the partitions that are just leaving, too.
func TestFleet_StopFinishesTheHandoversThatAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.worker("w1")
		w.Send("s", "add", "e1")
		time.Sleep(100 * time.Millisecond)
		w1.Bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "save" {
				return membus.Delay
			}
			return membus.Deliver
		})
		w.pretend(memberFor(0, 1, "w1"), true)
		time.Sleep(2 * time.Second)
		time.AfterFunc(time.Second, func() { w1.Bus.Inject(nil); w1.Bus.Release() })
		w1.Shutdown()
		w.wantSaved("s", map[string]string{"n": "1"})
	})
}

// The fleet changes all the time while events come in for spaces everywhere.
func TestFleet_NothingIsLostOrRepeatedWhileWorkersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const partitions, rounds = 6, 12
		w := newWorld(t, partitions)
		var spaces []string
		for p := range partitions {
			spaces = append(spaces, worldtest.SpacesIn(p, partitions, 2)...)
		}
		running := []*process{w.worker("w0")}
		sent := 0
		for round := range rounds {
			for range 20 {
				sent++
				for _, s := range spaces {
					w.Send(s, "add", fmt.Sprintf("e%d", sent))
				}
			}
			switch round % 3 {
			case 0:
				running = append(running, w.worker(fmt.Sprintf("w%d", round+1)))
			case 1:
				running = append(running, w.worker(fmt.Sprintf("w%d", round+1)))
				running[0].Crash()
				running = running[1:]
			default:
				running[0].Shutdown()
				running = running[1:]
			}
			time.Sleep(time.Duration(round*97) * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		for _, s := range spaces {
			w.wantHandled(s, worldtest.Numbered(sent)...)
		}
		for _, p := range running {
			p.Shutdown()
		}
		for p, s := range spaces {
			w.wantSaved(s, map[string]string{"n": strconv.Itoa(sent)})
			w.WantPosition(p/2, w.Server.LaneEnd(p/2))
		}
	})
}

// A worker that is started again under its name may read an old state of the log
// from a replica that is behind. It must not take its former self's commits for
// its own.
func TestFleet_AWorkerThatRestartsUnderItsNameIsNotItsFormerSelf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Checkpoint: time.Hour}}, nil)
		w.Send("s", "add", "e1")
		time.Sleep(time.Second)
		w1.Crash()
		w.Send("s", "add", "e2")
		w.Send("s", "add", "e3")
		w.process(worker.Config{ID: "w1", Options: worker.Options{Checkpoint: time.Hour}}, func(b *membus.Bus) port.Bus { return &forgetfulReplica{Bus: b} })
		time.Sleep(5 * time.Second)
		w.wantHandled("s", worldtest.Numbered(3)...)
	})
}

// forgetfulReplica answers the first reading of a log from a replica that has
// nothing yet.
type forgetfulReplica struct {
	*membus.Bus
	asked atomic.Bool
}

func (b *forgetfulReplica) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	if !b.asked.Swap(true) {
		return nil, nil
	}
	return b.Bus.ReadLog(ctx, space, after, limit)
}

func TestWorker_StartGivesUpWhenTheWorkerIsStoppedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := w.Server.Connect("w1")
		defer b.Close()
		b.Inject(func(membus.Op) membus.Fate { return membus.Delay })
		p, err := worker.New(b, worker.Config{ID: "w1", Programs: worldtest.Always(book(t))})
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan error, 1)
		go func() { started <- p.Start(context.Background()) }() // ends with the worker
		time.Sleep(time.Second)
		p.Kill()
		select {
		case err := <-started:
			if err == nil {
				t.Error("started, though it was killed")
			}
		case <-time.After(time.Minute):
			t.Error("start still waits")
			b.Kill()
			if err := <-started; err == nil {
				t.Error("started, though its bus was killed")
			}
		}
	})
}

func TestWorker_StopAndKillMayComeInAnyOrderAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.worker("w1")
		w.Send("s", "add", "e1")
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { _ = w1.Stop(context.Background()) })
		}
		all.Wait()
		w1.Kill()
		_ = w1.Stop(context.Background())
		w1.Bus.Close()
		_ = w1.Stop(context.Background())
		if n := len(w1.Partitions()); n != 0 {
			t.Errorf("%d partitions after the end", n)
		}
	})
}

// Stop is bounded by its context even if the store does not answer.
func TestWorker_StopReturnsWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.worker("w1")
		w.Send("s", "add", "e1")
		time.Sleep(100 * time.Millisecond)
		w1.Bus.Disconnect()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if err := w1.Stop(ctx); err == nil {
			t.Error("stopped without an error, though nothing could be saved")
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Another worker took this one for dead and serves its partition, too: it is left alone until it has
// handed the partition back.
func TestFleet_APartitionThatAnotherHasTakenIsLeftToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w1 := w.worker("w1")
		other := memberFor(1, 2, "w1")
		b := w.Server.Connect(other)
		t.Cleanup(b.Close)
		if err := b.AnswerPings(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		beat := uint64(0)
		say := func(holds ...int) { // for ten seconds
			for range 20 {
				beat++
				if err := b.Announce(t.Context(), model.Member{ID: other, Life: "x", Beat: beat, Holds: holds}); err != nil {
					t.Error(err)
				}
				w.Pass(500 * time.Millisecond)
			}
		}
		say(1)
		if got := w1.Partitions(); !slices.Equal(got, []int{0}) {
			t.Fatalf("it serves %v, and its share is 0", got)
		}
		say(0, 1)
		if got := w1.Partitions(); len(got) != 0 {
			t.Errorf("it serves %v, which the other does", got)
		}
		say(1)
		if got := w1.Partitions(); !slices.Equal(got, []int{0}) {
			t.Errorf("it serves %v, and 0 was handed back", got)
		}
	})
}
