package ordered_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
	"github.com/settlehq/settle/port"
)

// look returns the fleet as `settle fleet` reads it.
func (w *world) look() *fleet.Fleet {
	w.Helper()
	f, err := fleet.Look(context.Background(), w.Client)
	if err != nil {
		w.Fatal(err)
	}
	return f
}

// eventuallyStuck waits until the fleet reports exactly these stuck keys, each given by a prefix.
func (w *world) eventuallyStuck(want ...string) (f *fleet.Fleet) {
	w.Helper()
	var lines []string
	for range 20 {
		f, lines = w.look(), nil
		for _, s := range f.Stuck {
			lines = append(lines, fmt.Sprintf("%s %s/%s %s: %s", s.Space, s.Stream, s.Event, s.Cause, s.Reason))
		}
		slices.Sort(lines)
		if slices.EqualFunc(lines, want, strings.HasPrefix) {
			return f
		}
		w.Pass(time.Second)
	}
	w.Fatalf("stuck keys: %q, want %q", lines, want)
	return nil
}

// Servers are listed with what they have done and what waits, and stuck keys with their event, since when
// they are stuck, and why. Keys that make progress beside them are not listed.
func TestFigures_ReportServersAndStuckKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		u := newUnending()
		defer u.release()
		u.handlers["flaky"] = func(*ordered.Tx, *model.Event) (any, error) {
			return nil, ordered.Transient(errors.New("not now"))
		}
		p := w.serve(ordered.Config{Name: "o1", Handlers: u.handlers, RetryMin: time.Hour, RetryMax: time.Hour}, nil)
		w.sendAll("well", 10)
		w.EventuallyEnded("well", 10)
		if f := w.eventuallyStuck(); f.Workers[0].Figures == nil || f.Workers[0].Figures.Abandoned != 0 {
			t.Fatalf("figures: %+v", f.Workers[0].Figures)
		}
		began := time.Now().UTC()
		w.Send("hung", "hang", "bad")
		w.Send("tried", "flaky", "f1")
		for i := range 12 {
			w.Send("hung", "pay", fmt.Sprint("e", i), `{"cents":1}`)
		}
		w.Pass(6 * time.Second)
		f := w.eventuallyStuck("hung hang/bad running: its handler has been running since ", "tried flaky/f1 retry: an error that may pass has ended 1 of at most 5 attempts")
		for _, s := range f.Stuck {
			if !s.Stored.Equal(began) {
				t.Errorf("the event of %s is reported as stored at %s, want %s", s.Space, s.Stored, began)
			}
			if late := s.Since.Sub(began); late < 0 || late > time.Second {
				t.Errorf("%s counts as stuck since %v after it began", s.Space, late)
			}
		}
		g := f.Workers[0].Figures
		if g.Receipts != 10 || g.Commits == 0 || g.Awake != 3 || len(g.Partitions) != 2 || g.Worker != f.Workers[0].ID {
			t.Errorf("figures: %+v", g)
		}
		hot := slices.IndexFunc(f.Partitions, func(p fleet.Partition) bool { return p.Busiest == "hung" })
		if hot < 0 || f.Partitions[hot].BusiestEvents != 13 || f.Partitions[hot].Waiting < 13 || f.Partitions[hot].Unsaved == 0 {
			t.Errorf("partitions: %+v", f.Partitions)
		}
		w.Eventually("the handler is given up", func() bool { return u.called.Load() == 2 })
		if n := w.look().Workers[0].Figures.Abandoned; n != 1 {
			t.Errorf("%d goroutines count as given up", n)
		}
		u.release()
		w.EventuallyEnded("hung", 13)
		w.Pass(10 * time.Second)
		if f := w.eventuallyStuck("tried flaky/f1 retry: "); f.Workers[0].Figures.Abandoned != 0 {
			t.Error("goroutines count as given up after all have returned")
		}
		w.stop(p)
		if f := w.look(); len(f.Workers) != 0 {
			t.Errorf("the server is listed after it has left: %+v", f.Workers)
		}
	})
}

// A key with a backlog makes progress while one group of transactions handles many events: the start of each
// handler is progress. The age of a stuck key begins when it gets stuck.
func TestFigures_AKeyWithABacklogIsNotReportedAsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		release := make(chan struct{})
		p := w.serve(ordered.Config{Name: "o1", RunLimit: -1, Handlers: map[string]ordered.Handler{
			"work": func(*ordered.Tx, *model.Event) (any, error) { w.Pass(50 * time.Millisecond); return nil, nil },
			"hang": func(*ordered.Tx, *model.Event) (any, error) { <-release; return nil, nil },
		}}, nil)
		const n = 1000
		sent := time.Now()
		for i := range n {
			w.Send("hot", "work", fmt.Sprint("e", i))
		}
		w.Send("hot", "hang", "last")
		for begun := 0; begun < 4*55 && len(w.Receipts("hot")) < n; begun++ {
			if f := w.look(); f.StuckCount > 0 && time.Since(sent) < n*50*time.Millisecond {
				t.Errorf("stuck after %d receipts: %+v", len(w.Receipts("hot")), f.Stuck)
			}
			w.Pass(250 * time.Millisecond)
		}
		f := w.eventuallyStuck("hot hang/last running: its handler has been running since ")
		if s := f.Stuck[0]; s.Since.Sub(sent) < n*50*time.Millisecond || s.Stored.Sub(sent) > time.Second {
			t.Errorf("the key counts as stuck since %v after all were sent, and its event as stored %v after", s.Since.Sub(sent), s.Stored.Sub(sent))
		}
		close(release)
		w.EventuallyEnded("hot", n+1)
		w.stop(p)
	})
}

// Changes that cannot be saved are reported, with the reason.
func TestFigures_ReportUnsavedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := &failing{Bus: w.Server.Connect("o1")}
		b.on.Store(true)
		p := w.serveOn(b, b.Bus, ordered.Config{Name: "o1"})
		w.Send("alice", "pay", "e1", `{"cents":1}`)
		w.eventuallyStuck("alice / unsaved: what it has done cannot be saved: the store is out of order")
		b.on.Store(false)
		w.eventuallyStuck()
		w.stop(p)
	})
}

// away is a bus that reports whether it reaches a server.
type away struct {
	ordered.Bus
	gone *atomic.Bool
}

func (a away) Reachable() bool { return !a.gone.Load() }

// While no server can be reached, Serve still ends, and reports what it could not save. Acknowledged events
// are handled once a server is back.
func TestLeaving_WithoutAServerEndsAndLosesNothing(t *testing.T) {
	for _, unsaved := range []bool{true, false} {
		t.Run(fmt.Sprint("with something to save: ", unsaved), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2)
				b := w.Server.Connect("o1")
				cfg := ordered.Config{Name: "o1"}
				if unsaved {
					cfg.Checkpoint = time.Hour
				}
				var gone atomic.Bool
				p := w.serveOn(away{b, &gone}, b, cfg)
				w.sendAll("alice", 3)
				w.EventuallyEnded("alice", 3)
				w.Pass(5 * time.Second)
				b.Disconnect()
				gone.Store(true)
				w.Pass(700 * time.Millisecond) // in the middle of an announcement
				began := time.Now()
				p.cancel()
				err := <-p.ended
				if took := time.Since(began); took > 8*time.Second {
					t.Errorf("Serve took %s to end", took)
				}
				if !errors.Is(err, port.ErrNoServer) {
					t.Fatalf("serve: %v", err)
				}
				said := "every key was saved before"
				if unsaved {
					said = "1 key was not saved, of partition "
				}
				for _, part := range []string{"server o1-", "no server could be reached", said, "nothing that was acknowledged is lost"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("the error does not contain %q: %v", part, err)
					}
				}
				b.Kill()
				p2 := w.serve(ordered.Config{Name: "o2"}, nil)
				w.Send("alice", "pay", "e4", `{"cents":1}`)
				w.EventuallyEnded("alice", 4)
				w.wantDoc("alice", "balance", "4")
				w.stop(p2)
			})
		})
	}
}
