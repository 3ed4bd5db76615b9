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

// pretend announces a member that is no worker, and answers its pings until the end of the test. With beats
// it looks alive, without them it looks hung.
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

// memberFor returns an id that takes partition p, of n, away from the others.
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

// A ping to a dead process has no responder, so its death is known within two heartbeats rather than after
// the TTL.
func TestFleet_ADeadProcessIsReplacedWithinTwoHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w1 := w.worker("w1")
		w.worker("w2")
		time.Sleep(2 * time.Second)
		of := worldtest.SpacesIn(w1.Partitions()[0], 2, 1)[0]
		w1.Crash()
		w.Send(of, "add", "e1")
		time.Sleep(1100 * time.Millisecond) // and a moment for the takeover itself
		w.wantHandled(of, "e1")
		if got := w.Takeovers(of); !slices.Equal(got, []string{"w2"}) {
			t.Errorf("takeovers by %v", got)
		}
	})
}

// A process that hangs may still answer pings, but sends no heartbeats.
func TestFleet_AHungProcessLosesItsPartitionsAfterTheTTLUntilItContinues(t *testing.T) {
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

// During an outage of the store no member is heard. After it all members are still there, and no partition
// moves.
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
		w2.Bus.Inject(worldtest.Only("announce", membus.Delay))
		time.Sleep(45 * time.Second) // less than it takes to evict an idle space
		w1.Bus.Reconnect()
		w.Client.Reconnect()
		for _, s := range spaces {
			w.Send(s, "add", "e2")
		}
		time.Sleep(2 * time.Second) // one worker reconnects a little later
		w2.Bus.Reconnect()
		time.Sleep(2 * time.Second) // and its heartbeats arrive even later
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

// A process that died during an outage is replaced soon after it.
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

// Members whose pings get no answer at all must not delay a worker's own heartbeats.
func TestFleet_ManyHungMembersDoNotSlowTheHeartbeatDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w1 := w.worker("w1")
		w1.Bus.Inject(worldtest.Only("ping", membus.Delay))
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

// A partition may leave a worker and come back before it has been handed over: the worker must not serve it
// twice.
func TestFleet_APartitionThatComesBackWaitsForItsHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Handover: time.Minute}}, nil)
		w.Send("s", "add", "e1")
		time.Sleep(100 * time.Millisecond) // handled, but not saved
		w1.Bus.Inject(worldtest.Only("save", membus.Delay))
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

// One handler that never returns must not block its whole partition when that comes back to the worker.
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

// Stop also waits for the partitions that are being handed over.
func TestFleet_StopFinishesHandovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.worker("w1")
		w.Send("s", "add", "e1")
		time.Sleep(100 * time.Millisecond)
		w1.Bus.Inject(worldtest.Only("save", membus.Delay))
		w.pretend(memberFor(0, 1, "w1"), true)
		time.Sleep(2 * time.Second)
		time.AfterFunc(time.Second, func() { w1.Bus.Inject(nil); w1.Bus.Release() })
		w1.Shutdown()
		w.wantSaved("s", map[string]string{"n": "1"})
	})
}

// The fleet keeps changing while events arrive for spaces of all partitions.
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

// A worker that restarts under its id may read an old state of the log from a lagging replica. It must not
// take the commits of its previous process for its own.
func TestFleet_ARestartedWorkerDoesNotOwnItsFormerCommits(t *testing.T) {
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

// forgetfulReplica answers the first read of a log from an empty replica.
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

func TestWorker_StartGivesUpWhenTheWorkerIsStopped(t *testing.T) {
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
				t.Error("Start succeeded although the worker was killed")
			}
		case <-time.After(time.Minute):
			t.Error("Start still waits")
			b.Kill()
			if err := <-started; err == nil {
				t.Error("Start succeeded although its bus was killed")
			}
		}
	})
}

func TestWorker_StopAndKillAreIdempotentInAnyOrder(t *testing.T) {
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

// The context of Stop bounds it even if the store does not answer.
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
			t.Error("Stop returned no error although nothing could be saved")
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Another worker took this one for dead and serves its partition. This worker leaves the partition alone
// until it is handed back.
func TestFleet_APartitionThatAnotherWorkerHasTakenIsLeftAlone(t *testing.T) {
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
			t.Fatalf("the worker serves %v, and its share is 0", got)
		}
		say(0, 1)
		if got := w1.Partitions(); len(got) != 0 {
			t.Errorf("the worker serves %v, which the other one serves", got)
		}
		say(1)
		if got := w1.Partitions(); !slices.Equal(got, []int{0}) {
			t.Errorf("the worker serves %v, and 0 was handed back", got)
		}
	})
}
