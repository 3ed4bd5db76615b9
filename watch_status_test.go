package settle_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// watchState is what a watch has told: values and statuses, as text.
type watchState struct {
	mu   sync.Mutex
	told []string
	// status is that of the last update.
	status string
}

func (s *watchState) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, fmt.Sprintf(format, args...))
}

// watch ranges over a document and its status until ctx ends.
func (s *watchState) watch(ctx context.Context, in settle.Space, doc string, options ...settle.WatchOption) error {
	for u, err := range in.Watch(ctx, doc, append(options, settle.WithStatus())...) {
		if err != nil {
			return err
		}
		take(s, u)
	}
	return ctx.Err()
}

// take notes the value of an update, if that is new, and its status, likewise.
func take[T any](s *watchState, u settle.Update[T]) {
	if u.Changed {
		s.add("%v", u.Value)
	}
	status := fmt.Sprintf("connected: %v, current: %v", u.Connected, u.Current)
	if u.Reason != "" {
		status += ", because " + u.Reason
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if status != s.status && (s.status != "" || status != unknown) {
		s.told = append(s.told, status)
	}
	s.status = status
}

// want compares what was reported since the last call, after d, in any order: values are delivered
// separately.
func (s *watchState) want(t *testing.T, d time.Duration, want ...string) {
	t.Helper()
	_ = pause.For(t.Context(), d)
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.told)
	slices.Sort(want)
	if !slices.Equal(s.told, want) {
		t.Errorf("told %q, want %q", s.told, want)
	}
	s.told = nil
}

const (
	unknown   = "connected: false, current: false"
	connected = "connected: true, current: false"
	current   = "connected: true, current: true"
	nobody    = "connected: false, current: false, because no worker answers"
	silent    = "connected: false, current: false, because no message arrived for 3s"
	tooMany   = "connected: true, current: false, because mood could not be computed: two is too many"
)

// Values are delivered with and without a worker; a status reports whether they are current.
func TestWatchStatus_TellsWhetherWhatWasDeliveredIsWhatIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, b := w.client("c", nil)
		var s watchState
		w.follow(func(ctx context.Context) error {
			return s.watch(ctx, c.Space("s"), "mood")
		})
		s.want(t, 10*time.Second, "absent", nobody)

		crash := w.start("w1", counter().MadeByReads(), nil)
		s.want(t, 10*time.Second, connected, `"fine"`, current)
		for i := range 3 { // what it is computed from fails, and then comes to the same again
			if _, err := c.Call(t.Context(), add("s", fmt.Sprint("e", i))); err != nil {
				t.Fatal(err)
			}
			s.want(t, 10*time.Second, [][]string{nil, {tooMany}, {current}}[i]...)
		}
		crash()
		s.want(t, 10*time.Second, silent)
		w.worker("w2")
		s.want(t, 20*time.Second, connected, current)

		b.Disconnect()
		s.want(t, 10*time.Second, silent)
		b.Reconnect()
		s.want(t, 20*time.Second, connected, current)
	})
}

// The typed forms take the option, too, and so does one that goes on from a revision.
func TestWatchStatus_OfEveryForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		c, _ := w.client("c", nil)
		if _, err := c.Call(t.Context(), add("s", "e1")); err != nil {
			t.Fatal(err)
		}
		_, revision, err := c.Space("s").Get(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		var cell, derived, from watchState
		w.follow(func(ctx context.Context) error {
			for u, err := range settle.NewCell[int]("n").Watch(ctx, c.Space("s"), settle.WithStatus()) {
				if err != nil {
					return err
				}
				if u.Current && u.Revision != revision {
					t.Errorf("update %+v, and the revision is %d", u, revision)
				}
				take(&cell, u)
			}
			return ctx.Err()
		})
		w.follow(func(ctx context.Context) error {
			for u, err := range settle.NewDerived[string]("mood").Watch(ctx, c.Space("s"), settle.WithStatus()) {
				if err != nil {
					return err
				}
				take(&derived, u)
			}
			return ctx.Err()
		})
		w.follow(func(ctx context.Context) error {
			return from.watch(ctx, c.Space("s"), "n", settle.From(revision))
		})
		cell.want(t, 10*time.Second, "1", connected, current)
		from.want(t, 0, connected, current)
		derived.want(t, 0, connected, "fine", current)
	})
}

// late is a connection on which the log comes late.
type late struct {
	port.Bus
	by time.Duration
}

func (b late) FollowSpace(ctx context.Context, space string, after uint64, deliver func(e model.LogEntry)) error {
	return b.Bus.FollowSpace(ctx, space, after, func(e model.LogEntry) { _ = pause.For(ctx, b.by); deliver(e) })
}

// The word that a value is what it should be may come before the value.
func TestWatchStatus_IsCurrentWhenTheValueHasBeenDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, _ := w.client("c", func(b *membus.Bus) port.Bus { return late{b, 20 * time.Second} })
		var s watchState
		w.follow(func(ctx context.Context) error {
			return s.watch(ctx, c.Space("s"), "mood")
		})
		s.want(t, 10*time.Second, "absent", nobody)
		w.start("w1", counter().MadeByReads(), nil)
		s.want(t, 10*time.Second, connected)
		s.want(t, time.Minute, `"fine"`, current)
	})
}

// One update of a document may carry a value and a status. A part that has not changed has the status all the same,
// and no update if the status is not new either.
func TestWatchStatus_ArrivesWithAChangeThatIsNotOfThePart(t *testing.T) {
	n := settle.Field[int](settle.NewCell[struct{ N, M int }]("doc"), "N")
	object := func(n, m int) settle.Value {
		v, err := settle.ValueOf(map[string]any{"N": n, "M": m})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	document := func(yield func(settle.Update[settle.Value], error) bool) {
		for _, u := range []settle.Update[settle.Value]{
			{Value: object(1, 1), Revision: 1, Exists: true, Changed: true, Connected: true},
			{Value: object(1, 2), Revision: 2, Exists: true, Changed: true, Connected: true, Current: true},
			{Value: object(1, 3), Revision: 3, Exists: true, Changed: true, Connected: true, Current: true},
			{Value: object(2, 3), Revision: 4, Exists: true, Changed: true, Connected: true, Current: true},
		} {
			if !yield(u, nil) {
				return
			}
		}
	}
	var got []settle.Update[int]
	for u, err := range settle.PartOf(n, document) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, u)
	}
	want := []settle.Update[int]{
		{Value: 1, Revision: 1, Exists: true, Changed: true, Connected: true},
		{Value: 1, Revision: 2, Exists: true, Connected: true, Current: true},
		{Value: 2, Revision: 4, Exists: true, Changed: true, Connected: true, Current: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// A status is delivered while a watcher takes long over a value: the worker answers meanwhile.
func TestWatchStatus_OneThatIsSlowIsNotTakenForCutOff(t *testing.T) {
	for _, slow := range []string{"value", "status"} {
		t.Run(slow, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.worker("w1")
				c, _ := w.client("c", nil)
				var s watchState
				pause := func(what string) {
					if what == slow {
						w.Pass(6 * time.Second)
					}
				}
				w.follow(func(ctx context.Context) error {
					for u, err := range c.Space("s").Watch(ctx, "n", settle.WithStatus()) {
						if err != nil {
							return err
						}
						take(&s, u)
						if u.Changed {
							pause("value")
						} else {
							pause("status")
						}
					}
					return ctx.Err()
				})
				s.want(t, 30*time.Second, "absent", connected, current)
				if _, err := c.Call(t.Context(), add("s", "e1")); err != nil {
					t.Fatal(err)
				}
				s.want(t, 30*time.Second, "1")
			})
		})
	}
}

// A loop may use the client, and ends with its context, without an error, or by itself.
func TestWatch_ALoopMayCallAndEnd(t *testing.T) {
	for _, by := range []string{"context", "break"} {
		t.Run(by, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.worker("w1")
				c, _ := w.client("c", nil)
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				for u, err := range c.Space("s").Watch(ctx, "n", settle.WithStatus()) {
					if err != nil || ctx.Err() != nil {
						t.Fatalf("%+v, %v", u, err)
					}
					w.Pass(time.Second)
					if _, err := c.Call(ctx, add("s", fmt.Sprint("e", u.Revision))); err != nil {
						t.Error(err)
					}
					if u.Exists && u.Current {
						if by == "break" {
							break
						}
						stop()
					}
				}
				if ended := ctx.Err() != nil; ended != (by == "context") {
					t.Errorf("the context has ended: %v", ctx.Err())
				}
			})
		})
	}
}

// That a document was deleted is forgotten in the end, but not by a worker that saw it.
func TestWatchStatus_IsCurrentThoughADeletionIsForgotten(t *testing.T) {
	for _, seen := range []string{"n", "other"} { // what another one watched meanwhile
		t.Run(seen, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start("w1", dropper(), nil)
				c, _ := w.client("c", nil)
				w.follow(func(ctx context.Context) error {
					return new(watchState).watch(ctx, c.Space("s"), seen)
				})
				for _, stream := range []string{"add", "drop"} {
					if _, err := c.Call(t.Context(), settle.Outgoing{Space: "s", Stream: stream, ID: settle.ID(stream)}); err != nil {
						t.Fatal(err)
					}
				}
				w.Pass(30 * time.Minute)
				late, _ := w.client("late", nil)
				var s watchState
				w.follow(func(ctx context.Context) error {
					return s.watch(ctx, late.Space("s"), "n")
				})
				s.want(t, time.Minute, "absent", connected, current)
			})
		})
	}
}

// dropper makes a document and deletes it.
func dropper() *settle.Program {
	return settle.NewProgram("dropper").
		Handle("add", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) { tx.Set("n", 1); return settle.Value{}, nil }).
		Handle("drop", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			tx.Set("n", settle.Value{})
			return settle.Value{}, nil
		})
}
