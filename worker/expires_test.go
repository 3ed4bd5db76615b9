package worker_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// Events that a handler sends can expire, as those of a client do: sent to its own space and to another, at
// once, delayed and as a timer, and across a crash. Events that are handled in time are handled.
func TestExpires_EventsOfHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		p := reading(t)
		if err := p.Handle("post", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			to, _ := ev.Payload.AsString()
			soon, late := space.ExpiresAt(tx.Now().Add(time.Minute)), space.ExpiresAt(tx.Now().Add(time.Hour))
			tx.Send(to, "add", 1, soon)
			tx.Send(to, "add", 2, late)
			tx.SendAfter(to, "add", 30*time.Second, 3, soon)
			tx.SendAfter(to, "add", 30*time.Second, 4, late)
			if to == tx.Space() {
				tx.SetTimer("t", "add", tx.Now().Add(40*time.Second), 5, soon)
			}
			return model.Value{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		cut := func(b *membus.Bus) port.Bus { return unheardOf{b, "elsewhere"} }
		first := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, cut)
		w.Send("other", "direct", "e1") // waits for five minutes
		w.Send("s", "post", "p1", `"other"`)
		w.Send("s", "direct", "e2") // likewise, so that e3 is there when p2 is handled
		w.Send("s", "post", "p2", `"s"`)
		w.Send("s", "direct", "e3") // what p2 sends waits after it
		w.Pass(10 * time.Second)
		first.Crash()
		second := w.process(worker.Config{ID: "w2", Programs: worldtest.Always(p)}, cut)
		w.eventuallyWithin(10*time.Minute, "p2 is handled", func() bool { return slices.Contains(w.Ends("s"), "p2 handled 0") })
		second.Crash()
		w.process(worker.Config{ID: "w3", Programs: worldtest.Always(p)}, cut)
		w.Pass(7 * time.Minute)
		for name, want := range map[string]string{
			"other": "map[expired:2 failed:1 handled:2]",
			"s":     "map[expired:3 failed:2 handled:6]",
		} {
			outcomes := map[model.Outcome]int{}
			for _, rc := range w.Receipts(name) {
				outcomes[rc.Outcome]++
			}
			if got := fmt.Sprint(outcomes); got != want {
				t.Errorf("the events of %s: %s, want %s: %v", name, got, want, w.Ends(name))
			}
		}
	})
}

// An event that would expire before its time is an error, and fails its transaction.
func TestExpires_NotBeforeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := book(t)
		err := errors.Join(
			p.Handle("post", func(tx *space.Tx, _ *model.Event) (model.Value, error) {
				tx.SendAfter("s", "add", time.Hour, nil, space.ExpiresAt(tx.Now().Add(time.Minute)))
				return model.Value{}, nil
			}),
			p.Handle("plain", func(tx *space.Tx, _ *model.Event) (model.Value, error) {
				tx.SendAfter("s", "add", time.Second, nil, space.ExpiresAt(time.Time{}))
				return model.Value{}, nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		w.Send("s", "post", "p1")
		w.Send("s", "plain", "p2")
		w.Pass(10 * time.Second)
		if got := w.Receipts("s"); len(got) != 3 || got[0].Error != "send to s/add: it expires before its time" || !slices.Equal(w.Ends("s")[:2], []string{"p1 failed 0", "p2 handled 0"}) {
			t.Errorf("the outcomes are %v: %s", w.Ends("s"), got[0].Error)
		}
	})
}
