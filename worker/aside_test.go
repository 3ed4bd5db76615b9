package worker_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// staged is a deployment in which spaces named stuck... have no program, or a handler that does not return,
// until they are released. Its older workers do not support setting spaces aside.
type staged struct {
	*world
	orphans bool // the stuck spaces have no program; otherwise the handler of block does not return
	mu      sync.Mutex
	free    bool
	release chan struct{}
}

func newStaged(t *testing.T, orphans bool) *staged {
	s := &staged{world: newWorld(t, 1), orphans: orphans, release: make(chan struct{})}
	t.Cleanup(s.unblock)
	return s
}

func (s *staged) unblock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.free {
		s.free = true
		close(s.release)
	}
}

func (s *staged) isStuck(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orphans && !s.free && len(name) >= 5 && name[:5] == "stuck"
}

// programs returns the programs of one worker.
func (s *staged) programs() func(string) (*space.Program, error) {
	s.Helper()
	p := book(s.T)
	if err := p.Handle("block", func(tx *space.Tx, _ *model.Event) (model.Value, error) {
		<-s.release
		n, _ := tx.Get("n").AsInt()
		tx.Set("n", n+1)
		return model.Value{}, nil
	}); err != nil {
		s.Fatal(err)
	}
	return func(name string) (*space.Program, error) {
		if s.isStuck(name) {
			return nil, nil
		}
		return p, nil
	}
}

// life starts a worker, and returns the number of lane events that it has read.
func (s *staged) life(id string, wrap func(*membus.Bus) port.Bus) (*process, *atomic.Int64) {
	s.Helper()
	read := &atomic.Int64{}
	return s.process(worker.Config{ID: id, Programs: s.programs()}, func(b *membus.Bus) port.Bus {
		if wrap != nil {
			return worldtest.LaneCount{Bus: wrap(b), Read: read}
		}
		return worldtest.LaneCount{Bus: b, Read: read}
	}), read
}

// stream is the stream whose event a stuck space stands still at.
func (s *staged) stream() string {
	if s.orphans {
		return "add"
	}
	return "block"
}

func (s *staged) wantRead(what string, got, low, high int64) {
	s.Helper()
	if got < low || got > high {
		s.Errorf("%s read %d events of the lane, want %d to %d", what, got, low, high)
	}
}

// A takeover reads again only the stuck space's own events, however many events of other spaces were handled
// after them. Once the space continues, each of its events is handled once, in order.
func TestAside_ATakeoverReadsOnlyTheStuckSpacesEventsAgain(t *testing.T) {
	for _, orphans := range []bool{true, false} {
		t.Run(fmt.Sprintf("no program %v", orphans), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStaged(t, orphans)
				first, _ := s.life("w1", nil)
				s.Send("stuck", s.stream(), "e1")
				s.Send("stuck", "add", "e2")
				const n = 500
				for i := range n {
					s.Send(fmt.Sprintf("well%d", i%7), "add", fmt.Sprintf("e%d", i))
				}
				s.Send("stuck", "add", "e3")
				s.Pass(15 * time.Second)
				if at := s.Server.LoadPosition(0, "lane"); at != 0 {
					t.Fatalf("the saved position is %d: the test needs a stuck space to hold it back", at)
				}
				first.Crash()
				for life := range 2 { // a third would give the handler up
					p, read := s.life(fmt.Sprintf("w%d", life+2), nil)
					s.Send("well0", "add", fmt.Sprintf("life%d", life))
					s.Eventually("another space continues", func() bool { return len(s.Receipts("well0")) == n/7+1+life+1 })
					s.Pass(10 * time.Second)
					s.wantRead(fmt.Sprintf("life %d", life), read.Load(), 1, 5)
					p.Crash()
				}
				s.unblock()
				last, _ := s.life("last", nil)
				s.EventuallyEnded("stuck", 3)
				s.Send("stuck", "add", "e4")
				s.EventuallyEnded("stuck", 4)
				s.wantHandled("stuck", "e1", "e2", "e3", "e4")
				s.Eventually("the saved position reaches the end of the lane", func() bool { return s.Server.LoadPosition(0, "lane") == s.Server.LaneEnd(0) })
				last.Shutdown()
				_, read := s.life("after", nil)
				s.Pass(10 * time.Second)
				s.wantRead("the successor", read.Load(), 0, 0)
			})
		})
	}
}

// asideRun is a run in which the first worker sets a space aside. The second is killed at one of its requests
// while it takes over, continues, or learns that the space can be served, and the third finishes.
func asideRun(t *testing.T, orphans bool, at crashAt, wrap func(*membus.Bus) port.Bus) (labels []string) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, orphans)
		stuck, well := 0, 0
		work := func() {
			for range 3 {
				well++
				s.Send(fmt.Sprintf("well%d", well%2), "add", fmt.Sprintf("w%d", well))
			}
			stuck++
			s.Send("stuck", "add", fmt.Sprintf("e%d", stuck))
		}
		stuck++
		s.Send("stuck", s.stream(), "e1")
		work()
		first, _ := s.life("w1", nil)
		s.Pass(8 * time.Second)
		work()
		s.Pass(3 * time.Second)
		if len(s.Server.LoadAhead(0).Aside) != 1 {
			t.Fatalf("no space is set aside: %+v", s.Server.LoadAhead(0))
		}
		first.Crash()
		d := newDying(at)
		read := &atomic.Int64{}
		d.startOn(s.world, worker.Config{ID: "w2", Programs: s.programs()}, func(b *membus.Bus) port.Bus {
			if wrap != nil {
				return worldtest.LaneCount{Bus: wrap(b), Read: read}
			}
			return worldtest.LaneCount{Bus: hermit{b}, Read: read}
		})
		s.Pass(1200 * time.Millisecond)
		work()
		s.Pass(6 * time.Second)
		work()
		s.Pass(1500 * time.Millisecond)
		s.unblock()
		d.p.Load().Refresh()
		s.Pass(1300 * time.Millisecond)
		work()
		s.Pass(2 * time.Second)
		d.die()
		last, _ := s.life("w3", hermits)
		work()
		s.EventuallyEnded("stuck", stuck)
		s.Eventually("the saved position reaches the end of the lane", func() bool { return s.Server.LoadPosition(0, "lane") == s.Server.LaneEnd(0) })
		s.Send("stuck", "add", "last")
		s.EventuallyEnded("stuck", stuck+1)
		s.Pass(3 * time.Second)
		s.wantHandled("stuck", append(worldtest.Numbered(stuck), "last")...)
		if n := len(s.Receipts("well0")) + len(s.Receipts("well1")); n != well {
			t.Errorf("%d events of the other spaces were handled, want %d", n, well)
		}
		last.Shutdown()
		labels = d.labels
	})
	return labels
}

// A process may die at any request while it takes over a space that is set aside, continues it, or sets it
// aside again: no event is lost, handled twice, or out of order.
func TestAside_CrashAtEveryRequestOfATakeover(t *testing.T) {
	for _, orphans := range []bool{true, false} {
		whole := asideRun(t, orphans, crashAt{}, nil)
		if n := len(whole); n < 40 || n > 600 {
			t.Fatalf("%d requests: %v", n, whole)
		}
		for n := range len(whole) + 1 {
			asideRun(t, orphans, crashAt{int64(n + 1), n%2 == 0}, nil)
			if t.Failed() {
				t.Fatalf("killed at request %d of %v (no program %v)", n+1, whole, orphans)
			}
		}
	}
}

// A worker of an older version, which does not support setting spaces aside, loses none of their events,
// wherever it ends. Neither does its successor.
func TestAside_AnOlderWorkerInBetweenLosesNothing(t *testing.T) {
	elders := func(b *membus.Bus) port.Bus { return worldtest.Elder{Bus: hermit{b}} }
	for _, orphans := range []bool{true, false} {
		whole := asideRun(t, orphans, crashAt{}, elders)
		for n := 0; n <= len(whole); n += 3 {
			asideRun(t, orphans, crashAt{int64(n + 1), n%2 == 0}, elders)
			if t.Failed() {
				t.Fatalf("killed at request %d of %v (no program %v)", n+1, whole, orphans)
			}
		}
	}
}

// stuckFor makes a worker set a space aside with these events, and stops the worker.
func (s *staged) stuckFor(events ...string) {
	s.Helper()
	p, _ := s.life("before", nil)
	for _, id := range events {
		s.Send("stuck", "add", id)
		s.Send("well", "add", "beside-"+id)
	}
	s.Pass(12 * time.Second)
	if a := s.Server.LoadAhead(0); len(a.Aside) != 1 || a.UpTo != s.Server.LaneEnd(0) {
		s.Fatalf("no space is set aside: %+v", a)
	}
	p.Shutdown()
}

// A space that is requested before the partition knows its read position still finds its events.
func TestAside_ASpaceRequestedBeforeThePositionIsKnownMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, true)
		s.stuckFor("e1", "e2", "e3")
		s.unblock()
		v := s.watch("stuck", "double")
		late := only{label: "load-position", fate: membus.Delay}
		late.on.Store(true)
		b := s.Server.Connect("w2")
		b.Inject(late.hook)
		w2 := s.start(worker.Config{ID: "w2", Programs: s.programs()}, b, nil)
		s.Eventually("the space is requested", func() bool { return w2.Stats().Awake == 1 })
		late.on.Store(false)
		b.Release()
		s.Send("stuck", "add", "e4")
		s.EventuallyEnded("stuck", 4)
		s.wantHandled("stuck", "e1", "e2", "e3", "e4")
		s.Eventually("the watcher sees the value", func() bool { return v.last() == "8" })
		v.end()
	})
}

// tardy is a bus whose subscriptions deliver a moment later.
type tardy struct{ port.Bus }

func (l tardy) FollowLane(ctx context.Context, partition int, after uint64, deliver func(model.Message)) error {
	_ = pause.For(ctx, 300*time.Millisecond)
	return l.Bus.FollowLane(ctx, partition, after, deliver)
}

// Some unhandled events of a space that is set aside may lie after the position from which the lane is read.
// They are delivered again, and must not overtake earlier events.
func TestAside_RedeliveredEventsDoNotOvertakeEarlierOnes(t *testing.T) {
	for upTo := range uint64(6) {
		for _, early := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := newStaged(t, true)
				s.stuckFor("e1", "e2", "e3") // at 1, 3 and 5
				s.Server.MovePosition(0, model.AheadPosition, 0)
				s.Server.SaveAhead(0, model.Ahead{UpTo: upTo, Aside: []model.Aside{{Space: "stuck", Last: 5}}})
				s.unblock()
				b := s.Server.Connect("w2")
				late := only{label: "load-position", fate: membus.Delay}
				late.on.Store(early)
				b.Inject(late.hook)
				if early {
					s.watch("stuck", "double")
				}
				s.start(worker.Config{ID: "w2", Programs: s.programs()}, b, func(b *membus.Bus) port.Bus { return tardy{b} })
				s.Pass(time.Second)
				slow := only{label: "read-lane", fate: membus.Delay}
				slow.on.Store(true)
				b.Inject(slow.hook)
				b.Release()
				s.Pass(time.Second)
				slow.on.Store(false)
				b.Release()
				s.Send("stuck", "add", "e4")
				s.EventuallyEnded("stuck", 4)
				s.wantHandled("stuck", "e1", "e2", "e3", "e4")
				s.wantHandled("well", "beside-e1", "beside-e2", "beside-e3")
			})
		}
	}
}

// The partition does not wait for an event that was removed from the lane.
func TestAside_ARemovedEventIsNotWaitedFor(t *testing.T) {
	for gone := range uint64(4) {
		t.Run(fmt.Sprintf("up to %d", gone), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStaged(t, true)
				s.stuckFor("e1", "e2") // at 1 and 3
				s.Server.PurgeLane(0, gone, 0)
				s.unblock()
				s.life("w2", nil)
				want := []string{"e1", "e2"}[(gone+1)/2:]
				s.Send("stuck", "add", "e3")
				s.EventuallyEnded("stuck", len(want)+1)
				s.wantHandled("stuck", append(want, "e3")...)
				s.Eventually("the saved position reaches the end of the lane", func() bool { return s.Server.LoadPosition(0, "lane") == s.Server.LaneEnd(0) })
			})
		})
	}
}

// A lane that has lost its end is read from the position up to which all spaces were done: later sequences
// are assigned again, and do not say anything about spaces that are set aside.
func TestAside_ATruncatedLaneIsReadFromThePositionOfAllSpaces(t *testing.T) {
	for end := range uint64(7) {
		t.Run(fmt.Sprintf("the lane ends at %d", end), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStaged(t, true)
				s.stuckFor("e1", "e2", "e3") // at 1, 3 and 5
				s.Server.LoseLane(0, end)
				s.unblock()
				s.life("w2", nil)
				want := []string{"e1", "e2", "e3"}[:(end+1)/2]
				for _, id := range []string{"n1", "n2", "n3", "n4", "n5", "n6"} {
					s.Send("stuck", "add", id)
					want = append(want, id)
				}
				s.EventuallyEnded("stuck", len(want))
				s.Pass(20 * time.Second)
				s.wantHandled("stuck", want...)
				s.wantHandled("well", "beside-e1", "beside-e2", "beside-e3")
				if a := s.Server.LoadAhead(0); end < 6 && len(a.Aside) > 0 {
					t.Errorf("the outdated second position is still used: %+v", a)
				}
			})
		})
	}
}

// The unhandled count includes what a stuck space has left, but not the events of others that were handled
// after those.
func TestAside_UnhandledCountsOnlyEventsOfStuckSpaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, true)
		p, _ := s.life("w1", nil)
		s.Send("stuck", "add", "e1")
		s.sendMany("well", "add", 50)
		s.Send("stuck", "add", "e2")
		s.sendMany("good", "add", 20)
		s.Pass(15 * time.Second)
		want := func(events uint64, aside int) {
			t.Helper()
			f, err := fleet.Look(t.Context(), s.Client)
			if err != nil {
				t.Fatal(err)
			}
			if f.Partitions[0].Events != events || p.Figures().Partitions[0].Aside != aside {
				t.Errorf("%d events are unhandled and %d spaces set aside, want %d and %d", f.Partitions[0].Events, p.Figures().Partitions[0].Aside, events, aside)
			}
		}
		want(2, 1)
		s.Send("stuck", "add", "e3")
		s.Pass(15 * time.Second)
		want(3, 1)
		s.unblock()
		p.Refresh()
		s.Pass(5 * time.Second)
		want(0, 0)
	})
}

// If there are too many, the spaces that hold the position back most are set aside, and the others lose
// nothing.
func TestAside_MoreStuckSpacesThanThereIsRoomFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, true)
		s.life("w1", nil)
		const n = model.MaxAside + 20
		for i := range n {
			s.Send(fmt.Sprintf("stuck%d", i), "add", "e1")
		}
		s.Send("well", "add", "e1")
		s.Pass(15 * time.Second)
		a := s.Server.LoadAhead(0)
		if len(a.Aside) != model.MaxAside || a.UpTo != model.MaxAside {
			t.Errorf("%d spaces are set aside, up to %d", len(a.Aside), a.UpTo)
		}
		s.unblock()
		s.life("w2", hermits)
		s.Eventually("all spaces continue", func() bool { return s.Server.LoadPosition(0, "lane") == s.Server.LaneEnd(0) })
		for i := range n {
			s.wantHandled(fmt.Sprintf("stuck%d", i), "e1")
		}
	})
}

// A space that is busy but makes progress is not set aside, nor is one that has just begun to wait.
func TestAside_OnlySpacesThatHoldThePositionBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, true)
		s.life("w1", nil)
		for i := range 200 {
			s.Send("hot", "add", fmt.Sprintf("e%d", i))
			s.Pass(100 * time.Millisecond)
			if a := s.Server.LoadAhead(0); a.UpTo != 0 {
				t.Fatalf("set aside: %+v", a)
			}
		}
		s.Send("stuck", "add", "e1")
		for i := range 40 {
			s.Send("hot", "add", fmt.Sprintf("f%d", i))
			s.Pass(100 * time.Millisecond)
		}
		if a := s.Server.LoadAhead(0); a.UpTo != 0 {
			t.Errorf("set aside after four seconds: %+v", a)
		}
		s.Pass(3 * time.Second)
		if a := s.Server.LoadAhead(0); len(a.Aside) != 1 || a.Aside[0].Space != "stuck" {
			t.Errorf("set aside: %+v", a)
		}
	})
}

// An application that attaches to another space than the stuck one reads nothing again; one that attaches to
// the stuck space gets all of its events.
func TestAside_AnAttachmentReadsWhatIsLeftOfItsSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaged(t, true)
		s.stuckFor("e1", "e2", "e3", "e4")
		s.unblock()
		for space, want := range map[string]int64{"well": 0, "stuck": 7} { // any order: each on its own
			read := &atomic.Int64{}
			b := s.Server.Connect("app-" + space)
			a, err := worker.Attach(t.Context(), worldtest.LaneCount{Bus: b, Read: read}, worker.AttachConfig{ID: "app-" + space, Space: space, Program: book(t), Events: true})
			if err != nil {
				t.Fatal(err)
			}
			s.Pass(time.Second)
			s.wantRead("the attachment to "+space, read.Load(), want, want+1)
			_ = a.Close(t.Context())
			b.Close()
		}
		s.EventuallyEnded("stuck", 4)
		s.wantHandled("stuck", "e1", "e2", "e3", "e4")
	})
}
