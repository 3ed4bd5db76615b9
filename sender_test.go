package settle_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint("e", i)
	}
	return ids
}

// faults loses, repeats and delays sends.
func faults(b *membus.Bus, seed uint64) membus.Hook {
	rng := rand.New(rand.NewPCG(seed, 3))
	return func(op membus.Op) membus.Fate {
		if op.Label != "send" || op.Try > 3 {
			return membus.Deliver
		}
		switch rng.IntN(8) {
		case 0:
			return membus.DropRequest
		case 1:
			return membus.DropAck
		case 2:
			return membus.Duplicate
		case 3:
			time.AfterFunc(time.Duration(rng.IntN(20))*time.Millisecond, b.Release)
			return membus.Delay
		case 4:
			if op.Try == 1 {
				time.AfterFunc(time.Duration(rng.IntN(20))*time.Millisecond, b.Release)
				return membus.Late
			}
		}
		return membus.Deliver
	}
}

// The events of a space are stored in the order of the calls, even if requests and
// answers are lost, and the lane is sometimes full.
func TestSender_KeepsTheOrderOfEachSpaceWhateverIsLost(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				c, b := w.client("c", nil)
				b.Inject(faults(b, seed))
				w.Server.LimitLanes(30)
				time.AfterFunc(time.Second, func() { w.Server.LimitLanes(60) })
				time.AfterFunc(2*time.Second, func() { w.Server.LimitLanes(0) })
				s := c.Sender()
				spaces := []string{"a", "b", "c", "d"}
				var answers atomic.Int64
				const n = 50
				for i := range n {
					for _, space := range spaces {
						if err := s.Send(t.Context(), add(space, fmt.Sprint("e", i)), func(_ model.SendResult, err error) {
							answers.Add(1)
							if err != nil {
								t.Error(err)
							}
						}); err != nil {
							t.Fatal(err)
						}
					}
				}
				if err := s.Flush(t.Context()); err != nil {
					t.Error(err)
				}
				for _, space := range spaces {
					if got := w.Lane(space); !slices.Equal(got, numbered(n)) {
						t.Errorf("the lane of %s is %v", space, got)
					}
				}
				if answers.Load() != n*4 {
					t.Errorf("%d of %d events were answered", answers.Load(), n*4)
				}
				if n := s.Queues(); n != 0 {
					t.Errorf("%d spaces are kept in memory", n)
				}
			})
		})
	}
}

// scattering is a bus that calls back from many goroutines, and notes in which order
// it is asked.
type scattering struct {
	*membus.Bus
	mu    sync.Mutex
	asked map[string][]string
}

func (b *scattering) Send(m model.Message, done func(model.SendResult, error)) {
	b.mu.Lock()
	b.asked[m.Space] = append(b.asked[m.Space], m.ID)
	b.mu.Unlock()
	b.Bus.Send(m, func(r model.SendResult, err error) { go done(r, err) }) // ends when done returns
}

// As long as nothing has to be repeated, a pipeline keeps the order too, from
// whichever goroutines the bus calls back.
func TestPipeline_AsksInTheOrderOfTheCalls(t *testing.T) {
	for _, width := range []int{1, 2, 3, 16} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			w := newWorld(t)
			var bus *scattering
			c, _ := w.client("c", func(b *membus.Bus) port.Bus {
				bus = &scattering{Bus: b, asked: map[string][]string{}}
				return bus
			})
			s := c.Pipeline(width)
			const n = 3000
			for i := range n {
				for _, space := range []string{"a", "b"} {
					if err := s.Send(t.Context(), add(space, fmt.Sprint("e", i)), nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := s.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, space := range []string{"a", "b"} {
				if !slices.Equal(bus.asked[space], numbered(n)) {
					t.Errorf("the events of %s were not sent in order", space)
				}
			}
			if n := s.Queues(); n != 0 {
				t.Errorf("%d spaces are kept in memory", n)
			}
		})
	}
}

// full makes a sender wait: its window is full of events without an answer.
func full(t *testing.T, w *world) (*settle.Sender, *membus.Bus) {
	t.Helper()
	c, b := w.client("c", nil)
	b.Inject(worldtest.Only("send", membus.Delay))
	s := c.Sender()
	const window = 4096
	for i := range window {
		if err := s.Send(t.Context(), add("s", fmt.Sprint("e", i)), nil); err != nil {
			t.Fatal(err)
		}
	}
	return s, b
}

func TestSender_HonoursTheContextWhileItsWindowIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, b := full(t, w)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := s.Send(ctx, add("s", "late"), func(model.SendResult, error) { t.Error("an event that was not sent was answered") })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("send: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flush: %v", err)
		}
		b.Inject(nil)
		b.Release()
		if err := s.Flush(t.Context()); err != nil {
			t.Errorf("flush: %v", err)
		}
		if got := w.Lane("s"); !slices.Equal(got, numbered(4096)) {
			t.Errorf("%d events, or in another order", len(got))
		}
	})
}

func TestSender_GoesOnWhenItsWindowHasRoomAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, b := full(t, w)
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if err := s.Send(t.Context(), add("other", fmt.Sprint("e", i)), nil); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		b.Inject(nil)
		b.Release()
		all.Wait()
		if err := s.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if got := w.Lane("other"); len(got) != 10 {
			t.Errorf("%d events of ten", len(got))
		}
	})
}

func TestSender_ACancelledContextSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, _ := w.client("c", nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s := c.Sender()
		if err := s.Send(ctx, add("s", "e1"), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("send: %v", err)
		}
		if err := s.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if got := w.Lane("s"); len(got) != 0 {
			t.Errorf("%v were sent", got)
		}
	})
}

// erring is a bus that refuses some events, each for its own reason.
type erring struct {
	*membus.Bus
	errs map[string]error
}

func (b erring) Send(m model.Message, done func(model.SendResult, error)) {
	if err := b.errs[m.ID]; err != nil {
		go done(model.SendResult{}, err) // ends when done returns
		return
	}
	b.Bus.Send(m, done)
}

func TestFlush_ReturnsTheFirstErrorAndTheOthersGoToTheirCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		one, two := errors.New("one"), errors.New("two")
		c, _ := w.client("c", func(b *membus.Bus) port.Bus {
			return erring{b, map[string]error{"e3": one, "e5": two}}
		})
		s := c.Sender()
		if err := s.Flush(t.Context()); err != nil {
			t.Errorf("nothing was sent: %v", err)
		}
		got := make([]error, 8)
		for i := range got {
			if err := s.Send(t.Context(), add("s", fmt.Sprint("e", i)), func(_ model.SendResult, err error) { got[i] = err }); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Flush(t.Context()); !errors.Is(err, one) {
			t.Errorf("flush: %v, want the first error", err)
		}
		for i, err := range got {
			want := map[int]error{3: one, 5: two}[i]
			if !errors.Is(err, want) {
				t.Errorf("event %d: %v, want %v", i, err, want)
			}
		}
		if lane := w.Lane("s"); len(lane) != 6 {
			t.Errorf("the lane has %v: the others must go on", lane)
		}
	})
}

func TestSender_EverythingIsAnsweredWhenItsBusIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, b := w.client("c", nil)
		w.Server.LimitLanes(2)
		s := c.Sender()
		var stored, stopped atomic.Int64
		for i := range 20 {
			if err := s.Send(t.Context(), add("s", fmt.Sprint("e", i)), func(_ model.SendResult, err error) {
				switch {
				case err == nil:
					stored.Add(1)
				case errors.Is(err, model.ErrStopped):
					stopped.Add(1)
				default:
					t.Error(err)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		b.Close()
		if err := s.Flush(t.Context()); !errors.Is(err, model.ErrStopped) {
			t.Errorf("flush: %v", err)
		}
		if stored.Load() != 2 || stopped.Load() != 18 {
			t.Errorf("%d stored and %d stopped, want 2 and 18", stored.Load(), stopped.Load())
		}
	})
}

func TestSender_AnEventThatIsThereAlreadyIsASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, _ := w.client("c", nil)
		s := c.Sender()
		var duplicates atomic.Int64
		for range 3 {
			if err := s.Send(t.Context(), add("s", "e0"), func(r model.SendResult, err error) {
				if r.Duplicate {
					duplicates.Add(1)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if duplicates.Load() != 2 || len(w.Lane("s")) != 1 {
			t.Errorf("%d duplicates, the lane has %v", duplicates.Load(), w.Lane("s"))
		}
	})
}
