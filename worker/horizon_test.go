package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// horizon is that of the deployments of this file: short, so that a test can span several.
const horizon = time.Hour

// forgotten is the age at which stored events are purged.
const forgotten = horizon + model.MaxClockSkew + 2*time.Minute

func newShortWorld(t *testing.T) *world {
	return newWorldOf(t, membus.Config{Partitions: 1, Horizon: horizon})
}

// inLane returns the ids of the events in the lane, of all spaces.
func (w *world) inLane() (ids []string) {
	events, _ := w.Server.FollowLane(0, 0, 1<<20)
	for i := range events {
		ids = append(ids, events[i].ID)
	}
	return ids
}

func (w *world) wantInLane(ids ...string) {
	w.Helper()
	if got := strings.Join(w.inLane(), " "); got != strings.Join(ids, " ") {
		w.Errorf("the lane holds %s, want %s", got, strings.Join(ids, " "))
	}
}

func TestHorizon_AHandledEventIsRememberedForAboutTheHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newShortWorld(t)
		w.worker("w1")
		w.sendMany("s", "add", 3)
		w.Pass(horizon)
		w.wantInLane("e1", "e2", "e3")
		if seq := w.Send("s", "add", "e1").Seq; seq != 0 {
			t.Errorf("a late duplicate is stored at %d", seq)
		}
		w.Pass(model.MaxClockSkew + 2*time.Minute)
		w.wantInLane("e3") // the last event stays
		w.wantHandled("s", "e1", "e2", "e3")
	})
}

// Whatever the time at which an id is sent or events are purged, a handled id is refused or recognized as
// long as it may be repeated. The ids come from clocks with tolerated and with larger errors.
func TestHorizon_NoTimedIDIsAcceptedTwice(t *testing.T) {
	var twice, refused, purged int
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		server := membus.NewServer(membus.Config{Partitions: 1, Horizon: horizon, Now: func() time.Time { return now }})
		minutes := func(from, to int, what string) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(t, what)) * time.Minute
		}
		var ids []string
		for i := range 4 {
			ids = append(ids, model.TimedEventID(now.Add(minutes(-90, 150, "made")), string(rune('a'+i))))
		}
		handled := map[string]bool{}
		for range 40 {
			now = now.Add(minutes(0, 20, "pass"))
			if rapid.IntRange(0, 2).Draw(t, "purge") == 0 {
				before := len(server.ReadLane("s", 0, 1000))
				server.PurgeLane(0, server.LaneEnd(0), horizon+model.MaxClockSkew)
				purged += before - len(server.ReadLane("s", 0, 1000))
			}
			id := rapid.SampledFrom(ids).Draw(t, "send")
			r, err := server.Send(model.Message{Space: "s", Stream: "add", ID: id})
			if err != nil || r.Duplicate {
				twice++
				continue
			}
			m, _ := server.FindEvent("s", "add", id)
			if model.CheckEventAge(id, m.Stored, horizon) != nil {
				refused++
				continue
			}
			if handled[id] {
				t.Fatalf("%s was accepted twice, the second time at %v", id, now)
			}
			handled[id] = true
		}
	})
	if twice == 0 || refused == 0 || purged == 0 {
		t.Errorf("%d duplicates, %d refusals, %d purged: the test needs each of them", twice, refused, purged)
	}
}

// A large purge is done in steps, one after the other.
func TestHorizon_AFullLaneIsPurgedInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newShortWorld(t)
		p := w.worker("w1")
		var purges atomic.Int64
		p.Bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "purge-lane" && len(w.inLane()) > 1 {
				purges.Add(1)
			}
			return membus.Deliver
		})
		w.sendMany("s", "add", 3500) // a step is 1000
		w.EventuallyEnded("s", 3500)
		w.Pass(horizon + model.MaxClockSkew - time.Second)
		purges.Store(0)
		w.Pass(time.Minute + 10*time.Second)
		w.wantInLane("e3500")
		if n := purges.Load(); n < 4 || n > 6 {
			t.Errorf("%d purges", n)
		}
	})
}

// A plain id has no time, so that a repetition after the horizon cannot be recognized.
func TestHorizon_APlainIDIsNewAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newShortWorld(t)
		w.worker("w1")
		w.sendMany("s", "add", 2)
		w.Pass(forgotten)
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 3)
		w.wantHandled("s", "e1", "e2", "e1")
	})
}

func TestHorizon_ATimedIDTakesEffectOnceHoweverLateItIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newShortWorld(t)
		w.worker("w1")
		id := model.TimedEventID(time.Now(), "order-17")
		ahead := model.TimedEventID(time.Now().Add(model.MaxClockSkew), "order-18") // by a clock that is ahead
		for range 200 {                                                             // from long before the horizon to long after it
			w.Send("s", "add", id)
			w.Send("s", "add", ahead)
			w.Send("s", "add", "other-"+time.Now().Format("150405"))
			w.Pass(time.Minute)
		}
		count := map[string]map[model.Outcome]int{id: {}, ahead: {}}
		for _, rc := range w.Receipts("s") {
			if count[rc.Event] != nil {
				count[rc.Event][rc.Outcome]++
			}
			if rc.Outcome == model.Refused && !strings.Contains(rc.Error, "events are remembered for 1h0m0s") {
				t.Errorf("%s was refused: %s", rc.Event, rc.Error)
			}
		}
		for id, n := range count {
			if n[model.Handled] != 1 || n[model.Refused] == 0 {
				t.Errorf("%s has the receipts %v, want one handled and then refusals", id, n)
			}
		}
	})
}

func TestHorizon_AnIDFromTheFutureIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newShortWorld(t)
		w.worker("w1")
		w.Send("s", "add", model.TimedEventID(time.Now().Add(model.MaxClockSkew+time.Minute), "x"))
		w.EventuallyEnded("s", 1)
		if rc := w.Receipts("s")[0]; rc.Outcome != model.Refused || !strings.Contains(rc.Error, "in the future") {
			t.Errorf("receipt %+v", rc)
		}
	})
}

// An event that was not handled holds back everything after it, however old it is.
func TestHorizon_APurgeNeverPassesAnEventThatIsNotHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newShortWorld(t)
		program := book(t)
		w.process(worker.Config{ID: "w1", Programs: func(name string) (*space.Program, error) {
			if name == "unknown" {
				return nil, errors.New("no such program")
			}
			return program, nil
		}}, nil)
		w.sendMany("s", "add", 2)
		w.Send("unknown", "add", "waits")
		w.Send("s", "add", "e3")
		w.Send("s", "add", "e4")
		w.Pass(3 * forgotten)
		w.wantInLane("waits", "e3", "e4")
		w.wantHandled("s", "e1", "e2", "e3", "e4")
		if seq := w.Send("s", "add", "e3").Seq; seq != 0 {
			t.Errorf("a duplicate is stored at %d", seq)
		}
	})
}

// A worker that was cut off for days reconnects, and purges by its old knowledge.
func TestHorizon_AWorkerThatReconnectsLatePurgesNothingThatIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newShortWorld(t)
		asleep := make(chan struct{})
		zombie := w.worker("w1")
		w.adds("s", 5)
		w.Pass(5 * time.Second) // until the position is saved
		zombie.Bus.Inject(func(membus.Op) membus.Fate { <-asleep; return membus.Deliver })
		w.worker("w2")
		w.Pass(time.Minute) // until the other worker counts as gone
		for i := range 5 {
			w.Send("s", "add", "later-"+string(rune('a'+i)))
		}
		w.EventuallyEnded("s", 10)
		w.Pass(forgotten)
		w.Send("s", "add", "last")
		w.EventuallyEnded("s", 11)
		w.Send("s", "add", "young")
		w.Pass(2 * time.Minute)
		w.wantInLane("last", "young")
		close(asleep)
		w.Pass(2 * time.Minute)
		w.wantInLane("last", "young")
		w.wantHandled("s", "e1", "e2", "e3", "e4", "e5", "later-a", "later-b", "later-c", "later-d", "later-e", "last", "young")
	})
}

// An owner that comes after a purge finds the space as it was, and continues.
func TestHorizon_ANewOwnerNeedsNothingOfWhatWasPurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newShortWorld(t)
		first := w.worker("w1")
		w.Coordinator()
		w.sendMany("s", "add", 5)
		w.Send("s", "forward", "f1", `"other"`)
		w.EventuallyEnded("other", 1)
		w.Pass(forgotten)
		w.wantInLane(w.inLane()[0])
		first.Crash()
		w.worker("w2")
		w.Send("s", "forward", "f2", `"other"`)
		w.Send("s", "add", "e6")
		w.EventuallyEnded("s", 8)
		w.EventuallyEnded("other", 2)
		if got := w.Doc("s", "n") + " " + w.Doc("other", "n"); got != "8 2" {
			t.Errorf("the counts are %s, want 8 2", got)
		}
	})
}

// FindReceipt reports an event that is neither in the lane nor can be expected there.
func TestHorizon_FindReceiptKnowsATimedIDThatIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newShortWorld(t)
		w.worker("w1")
		id := model.TimedEventID(time.Now(), "x")
		find := func(want error) *history.Handling {
			t.Helper()
			h, err := history.FindReceipt(context.Background(), w.Client, "s", "add", id)
			if !errors.Is(err, want) {
				t.Errorf("%+v, %v; want %v", h, err, want)
			}
			return h
		}
		if h := find(nil); h != nil {
			t.Errorf("before it is sent: %+v", h)
		}
		w.Send("s", "add", id)
		w.Send("s", "add", "another")
		w.EventuallyEnded("s", 2)
		if h := find(nil); h == nil || h.Tx.Receipt.Event != id {
			t.Errorf("once it is handled: %+v", h)
		}
		w.Pass(forgotten)
		find(history.ErrForgotten)
	})
}
