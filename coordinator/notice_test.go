package coordinator_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// refusing is a bus that never accepts an event with that position, except a tombstone.
type refusing struct {
	*membus.Bus
	position uint64
}

func (b refusing) Send(m model.Message, done func(model.SendResult, error)) {
	if m.Position == b.position && m.Invalid == "" {
		go done(model.SendResult{}, model.ErrTooLarge) // ends when done returns
		return
	}
	b.Bus.Send(m, done)
}

// A send that no server will ever accept is replaced by a tombstone, so that later ones need not wait for it.
func TestRelease_ASendThatIsRefusedForGoodLeavesATombstone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := w.Connect("coordinator")
		w.CoordinatorOn(refusing{b, 2}, coordinator.Config{})
		w.commit("a", to("b"))
		w.commit("a", to("b"))
		last := w.commit("a", to("b"))
		time.Sleep(2 * time.Second)
		w.wantReleased()
		for _, m := range w.Server.ReadLane("b", 0, 10) {
			if grave := m.Invalid != ""; grave != (m.Position == 2) || grave && !strings.Contains(m.Invalid, "max_payload") {
				t.Errorf("event at position %d: %q", m.Position, m.Invalid)
			}
		}
		if w.position(0) != last {
			t.Errorf("position %d, want %d", w.position(0), last)
		}
		if w.Log.Count("a:1:2:0") == 0 {
			t.Errorf("nothing was logged:\n%s", w.Log)
		}
	})
}

// A refused tombstone is retried forever: skipping it would leave a gap.
func TestRelease_ATombstoneIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := w.Connect("coordinator")
		s := &stubborn{Bus: b}
		s.refuses.Store(true)
		w.CoordinatorOn(s, coordinator.Config{})
		w.commit("a", to("b"))
		time.Sleep(time.Hour)
		if got := w.position(0); got != 0 {
			t.Errorf("position %d: the tombstone was skipped", got)
		}
		if n := w.Log.Count("not even a tombstone"); n < 5 || n > 9 {
			t.Errorf("reported %d times in an hour", n)
		}
		s.refuses.Store(false)
		time.Sleep(time.Minute)
		w.wantReleased()
	})
}

// stubborn is a bus that refuses everything for now.
type stubborn struct {
	*membus.Bus
	refuses atomic.Bool
}

func (b *stubborn) Send(m model.Message, done func(model.SendResult, error)) {
	if b.refuses.Load() {
		go done(model.SendResult{}, model.ErrTooLarge) // ends when done returns
		return
	}
	b.Bus.Send(m, done)
}

// A send to an invalid space has no lane for a tombstone. Its origin still gets a notice.
func TestNotice_ASendToAnInvalidSpaceIsReportedToItsOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.coordinator(coordinator.Config{})
		last := w.commit("a", to("no.space"))
		time.Sleep(2 * time.Second)
		n := w.notice("a", "a:1:1:0")
		if n["event"] != "a:1:1:0" || n["to"] != "no.space" || n["stream"] != "add" || n["outcome"] != "refused" || !strings.Contains(n["reason"], "'.'") {
			t.Errorf("the notice is %v", n)
		}
		if w.position(0) != last {
			t.Errorf("position %d, want %d", w.position(0), last)
		}
	})
}

// notice returns the payload of the one notice about an event.
func (w *world) notice(origin, event string) map[string]string {
	w.Helper()
	var found []map[string]string
	for _, m := range w.Server.ReadLane(origin, 0, 1<<20) {
		if m.Stream == model.Undelivered && m.ID == model.NoticeID(event) {
			var n map[string]string
			if err := json.Unmarshal(m.Payload, &n); err != nil || m.Position != 0 {
				w.Errorf("notice %+v: %v", m, err)
			}
			found = append(found, n)
		}
	}
	if len(found) != 1 {
		w.Fatalf("%d notices about %s, want 1", len(found), event)
	}
	return found[0]
}

// serve starts a worker that runs these programs.
func (w *world) serve(programs map[string]*space.Program) {
	w.Helper()
	w.Worker(worker.Config{ID: "w1", Programs: func(name string) (*space.Program, error) { return programs[name], nil }})
}

// program makes a program of handlers.
func (w *world) program(handlers map[string]space.Handler) *space.Program {
	w.Helper()
	p := space.NewProgram("test")
	for stream, h := range handlers {
		if err := p.Handle(stream, h); err != nil {
			w.Fatal(err)
		}
	}
	return p
}

// ended lists the ended events of a space: "stream id outcome".
func (w *world) ended(name string) (list []string) {
	w.Helper()
	for _, c := range w.Commits(name) {
		for _, tx := range c.Txs {
			if tx.Receipt != nil {
				stream, _ := receipts.Stream(tx.By)
				list = append(list, fmt.Sprintf("%s %s %s", stream, tx.Receipt.Event[strings.LastIndexByte(tx.Receipt.Event, ':')+1:], tx.Receipt.Outcome))
			}
		}
	}
	return list
}

// sends returns a handler that sends to these streams of a space.
func sends(to string, streams ...string) space.Handler {
	return func(tx *space.Tx, _ *model.Event) (model.Value, error) {
		for _, stream := range streams {
			tx.Send(to, stream, nil)
		}
		return model.Value{}, nil
	}
}

func nothing(*space.Tx, *model.Event) (model.Value, error) { return model.Value{}, nil }

// A gap in the positions would block the target: it would hold all later events forever.
func TestNotice_AGapNoLongerWedgesTheTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		b := w.Connect("coordinator")
		c := w.CoordinatorOn(refusing{b, 2}, coordinator.Config{})
		w.serve(map[string]*space.Program{
			"a": w.program(map[string]space.Handler{
				"go": sends("b", "add", "add", "add"),
				model.Undelivered: func(tx *space.Tx, ev *model.Event) (model.Value, error) {
					tx.Set("undelivered", ev.Payload.Get("event"))
					return model.Value{}, nil
				},
			}),
			"b": w.program(map[string]space.Handler{"add": nothing}),
		})
		w.Send("a", "go", "g1")
		time.Sleep(10 * time.Second)
		if got, want := w.ended("b"), []string{"add 0 handled", "add 1 refused", "add 2 handled"}; !slices.Equal(got, want) {
			t.Errorf("the target's events ended as %v, want %v", got, want)
		}
		if got, want := w.ended("a"), []string{"go g1 handled", "undelivered undelivered handled"}; !slices.Equal(got, want) {
			t.Errorf("the origin's events ended as %v, want %v", got, want)
		}
		if noted := w.Doc("a", "undelivered"); !strings.HasSuffix(noted, `:1"`) {
			t.Errorf("the origin's handler recorded %s", noted)
		}
		if c.Noticed() != 1 {
			t.Errorf("%d notices, want 1", c.Noticed())
		}
	})
}

// An event without a handler is refused, and its origin gets a notice. If the origin has no handler for that,
// no notice about the notice follows.
func TestNotice_ARefusedEventCausesOneNoticeAndNoFurtherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.serve(map[string]*space.Program{
			"a": w.program(map[string]space.Handler{"go": sends("b", "unknown", "add")}),
			"b": w.program(map[string]space.Handler{"add": nothing}),
		})
		first, _ := w.coordinator(coordinator.Config{})
		w.Send("a", "go", "g1")
		w.Send("b", "unknown", "from-outside") // a client outside reads the receipt
		time.Sleep(10 * time.Second)
		first.Stop()
		b := w.Connect("forgetful")
		second := w.CoordinatorOn(forgetful{b}, coordinator.Config{})
		time.Sleep(10 * time.Second)
		if got, want := w.ended("a"), []string{"go g1 handled", "undelivered undelivered handled"}; !slices.Equal(got, want) {
			t.Errorf("the origin's events ended as %v, want %v", got, want)
		}
		var notices int
		for _, m := range append(w.Server.ReadLane("a", 0, 100), w.Server.ReadLane("b", 0, 100)...) {
			if m.Stream == model.Undelivered {
				notices++
			}
		}
		if notices != 1 || first.Noticed() != 1 || second.Noticed() != 1 {
			t.Errorf("%d notices in the lanes, %d and %d sent; want 1 of each", notices, first.Noticed(), second.Noticed())
		}
	})
}

// A failed event reached its handler, so its sender needs no notice. It is a dead letter, not undelivered.
func TestNotice_AFailedEventIsNotUndelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.serve(map[string]*space.Program{
			"a": w.program(map[string]space.Handler{"go": sends("b", "add")}),
			"b": w.program(map[string]space.Handler{"add": func(*space.Tx, *model.Event) (model.Value, error) {
				return model.Value{}, fmt.Errorf("no")
			}}),
		})
		c, _ := w.coordinator(coordinator.Config{})
		w.Send("a", "go", "g1")
		time.Sleep(10 * time.Second)
		if got := w.ended("b"); !slices.Equal(got, []string{"add 0 failed"}) || c.Noticed() != 0 {
			t.Errorf("ended %v, %d notices", got, c.Noticed())
		}
	})
}

// A letter that is not stored yet holds the position back, so that the next coordinator writes it.
func TestDeadLetter_TheNextCoordinatorWritesUnwrittenLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.serve(map[string]*space.Program{"a": w.program(map[string]space.Handler{"add": nothing})})
		b := w.Connect("first")
		b.Inject(worldtest.Only("bury", membus.Delay))
		first := w.CoordinatorOn(b, coordinator.Config{})
		for i := range 10 {
			w.Send("a", "unknown", fmt.Sprint("e", i))
			w.Send("a", "add", fmt.Sprint("g", i))
		}
		time.Sleep(10 * time.Second)
		if got := w.position(0); got > 2 {
			t.Errorf("position %d before any letter was written", got)
		}
		b.Kill()
		first.Stop()
		if n := len(w.Server.ReadDead("", 0, 100)); n != 0 {
			t.Fatalf("%d letters were stored", n)
		}
		w.coordinator(coordinator.Config{})
		time.Sleep(10 * time.Second)
		if n := len(w.Server.ReadDead("", 0, 100)); n != 10 {
			t.Errorf("%d letters, want 10", n)
		}
		if head := w.logEnd(0); w.position(0) != head {
			t.Errorf("position %d, the log ends at %d", w.position(0), head)
		}
	})
}
