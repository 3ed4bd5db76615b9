package settletest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

var (
	relay   = settle.NewStream[string]("relay")
	abroad  = settle.NewDerived[int64]("abroad")
	refused = settle.NewCell[string]("refused")
)

// links is a program whose spaces read and write to each other.
func links() *settle.Program {
	p := bumping(double, nil)
	relay.Handle(p, func(tx *settle.Tx, to string) error {
		bump.Send(tx, settle.To(to), struct{}{})
		return nil
	})
	abroad.Compute(p, func(v *settle.View) (int64, error) { return result.In("b").Get(v) + 1, nil })
	p.Handle("undelivered", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		to, _ := ev.Payload.Get("to").AsString()
		refused.Set(tx, to)
		return settle.Value{}, nil
	})
	return p
}

func TestSpaces_ReadAndSendToEachOther(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, links())
	a, b := w.Space("a"), w.Space("b")
	settletest.Expect(a, abroad, 1)
	b.ExpectRuns("result", 1)
	settletest.Call(b, bump)
	b.ExpectRuns("result", 1) // not observed
	settletest.Expect(a, abroad, 3)
	seen := settletest.Watch(a, abroad)
	a.Mark()
	settletest.Call(a, relay, "b")
	settletest.Expect(a, abroad, 5)
	a.ExpectRuns("abroad", 1)
	seen.Stop()
	settletest.Call(a, relay, "b")
	if got := fmt.Sprint(seen.Values()); got != "[3 5]" {
		t.Errorf("seen %s", got)
	}
	if got := result.In("b").Get(a); got != 6 {
		t.Errorf("result of b is %d", got)
	}
}

func TestSpaces_WithoutAProgramKeepTheirEvents(t *testing.T) {
	t.Parallel()
	p, q := links(), settle.NewProgram("mute")
	w := settletest.New(t, func(space string) *settle.Program {
		switch space {
		case "nobody":
			return nil
		case "mute":
			return q
		}
		return p
	}, settletest.AllowErrors("bump"), settletest.AllowUndelivered("bump"))
	a := w.Space("a")
	settletest.Call(a, relay, "nobody")
	if got := w.Undelivered(); len(got) != 1 || got[0].Space != "nobody" || got[0].Stream != "bump" {
		t.Errorf("undelivered %v", got)
	}
	settletest.Call(a, relay, "mute") // a stream without a handler: a is notified
	settletest.Expect(a, refused, "mute")
	failing(t, func(tb *recorder) {
		settletest.New(tb, func(string) *settle.Program { return nil }).Space("a")
	}).wantFailure("the space has no program")
}

// An event to a space without a program is never handled: a test that does not expect it fails.
func TestUndelivered_FailsTheTestUnlessItIsAllowed(t *testing.T) {
	t.Parallel()
	programs := func(space string) *settle.Program {
		if space == "absent" {
			return nil
		}
		return links()
	}
	run := func(opts ...settletest.Option) *recorder {
		return failing(t, func(tb *recorder) {
			w := settletest.New(tb, programs, opts...)
			settletest.Call(w.Space("a"), relay, "absent")
		})
	}
	run().wantFailure("space absent", "on bump", "event a:", "has no program")
	run(settletest.AllowUndelivered("relay")).wantFailure("space absent")
	run(settletest.AllowUndelivered("bump")).wantNone()
	run(settletest.AllowUndelivered()).wantNone()
}

// An event that is delivered twice takes effect once.
// Clients get an error for an id that is used with another payload, and so does a test.
func TestSendID_WithAnotherPayloadIsAnError(t *testing.T) {
	const want = "event e1 to s/add: an event of this id was sent before, with another payload"
	add := settle.NewStream[int]("add")
	p := settle.NewProgram("p")
	add.Handle(p, func(*settle.Tx, int) error { return nil })
	failing(t, func(tb *recorder) {
		s := settletest.New(tb, p).Space("s")
		settletest.SendID(s, add, settle.ID("e1"), 1)
		settletest.SendID(s, add, settle.ID("e1"), 1)
	}).wantNone()
	failing(t, func(tb *recorder) {
		s := settletest.New(tb, p).Space("s")
		settletest.SendID(s, add, settle.ID("e1"), 1)
		settletest.SendID(s, add, settle.ID("e1"), 2)
	}).wantFailure(want)
}

func TestSendID_RepeatedSendsAreOneEvent(t *testing.T) {
	t.Parallel()
	s := settletest.New(t, links()).Space("a")
	first := settletest.SendID(s, bump, settle.ID("e1"))
	again := settletest.SendID(s, bump, settle.ID("e1"))
	settletest.Expect(s, count, 1)
	if first.Lane != again.Lane || first.Outcome != model.Handled {
		t.Errorf("receipts %+v and %+v", first, again)
	}
	settletest.SendID(s, bump, settle.ID("e2"))
	settletest.Expect(s, count, 2)
}

func TestSendAt_WaitsForItsTime(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, links(), settletest.StartAt(time.Date(2030, 6, 1, 8, 0, 0, 0, time.UTC)))
	s := w.Space("a")
	if rc := settletest.SendAt(s, w.Now().Add(time.Hour), bump); rc.Outcome != "" {
		t.Errorf("receipt %+v", rc)
	}
	w.Advance(time.Hour - time.Millisecond)
	settletest.Expect(s, count, 0)
	if at := w.AdvanceToNext(); !at.Equal(time.Date(2030, 6, 1, 9, 0, 0, 0, time.UTC)) {
		t.Errorf("the next action was at %s", at)
	}
	settletest.Expect(s, count, 1)
	if rc, ok := s.Receipt("bump", settle.ID("sent-1")); !ok || rc.Outcome != model.Handled {
		t.Errorf("receipt %+v", rc)
	}
}

// I7: a node that is up to date does not run again, and timers and delayed events keep their times.
func TestRestart_RunsNothingThatIsUpToDate(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, links())
	a, b := w.Space("a"), w.Space("b")
	seen := settletest.Watch(a, abroad)
	settletest.Call(b, bump)
	settletest.SendAt(b, w.Now().Add(time.Hour), bump)
	a.Mark()
	b.Mark()
	w.Restart()
	settletest.Expect(a, abroad, 3)
	a.ExpectRuns("abroad", 0)
	b.ExpectRuns("result", 0)
	w.Restart() // a second time, from the state that the first one saved
	w.Advance(time.Hour)
	settletest.Expect(a, abroad, 5)
	if got := fmt.Sprint(seen.Values()); got != "[1 3 5]" {
		t.Errorf("the watch received %s", got)
	}
}

func TestCrash_KeepsWhatWasConfirmed(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, links())
	a := w.Space("a")
	settletest.Watch(a, result)
	for range 3 {
		settletest.Call(a, bump)
	}
	settletest.SendAt(a, w.Now().Add(time.Hour), bump)
	w.Crash()
	settletest.Expect(a, result, 6)
	settletest.SendID(a, bump, settle.ID("sent-1")) // already handled
	w.Advance(time.Hour)
	settletest.Expect(a, result, 8)
}

// A test is deterministic, including the order of runs.
func TestWorlds_AreDeterministic(t *testing.T) {
	t.Parallel()
	story := func() string {
		w := settletest.New(t, links())
		text := ""
		for i := range 20 {
			settletest.Watch(w.Space(fmt.Sprint("s", i%7)), abroad)
			settletest.Call(w.Space("b"), bump)
			settletest.Call(w.Space("a"), relay, "b")
		}
		for i := range 7 {
			text += fmt.Sprintln(w.Space(fmt.Sprint("s", i)).Ran(), abroad.Get(w.Space(fmt.Sprint("s", i))))
		}
		return text
	}
	first := story()
	for range 5 {
		if again := story(); again != first {
			t.Fatalf("first\n%sthen\n%s", first, again)
		}
	}
}

func TestSpace_SetPreparesTheState(t *testing.T) {
	t.Parallel()
	s := settletest.New(t, airport()).Space("HAM")
	stats.Set(s, Stats{Departures: 4, Late: 1})
	settletest.Expect(s, punctuality, Punctuality{75})
	stats.Delete(s)
	if _, ok := punctuality.Lookup(s); ok {
		t.Error("there is a punctuality of nothing")
	}
	failing(t, func(tb *recorder) {
		s := settletest.New(tb, airport()).Space("HAM")
		s.Set("punctuality", 1)
	}).wantFailure("output of computation punctuality")
}

// A function that computes for long does not count as blocked.
func TestAFunctionThatComputesForLongDoesNotBlock(t *testing.T) {
	t.Parallel()
	p := bumping(func(v *settle.View) (int64, error) {
		n := count.Get(v)
		for i := range int64(20_000_000) {
			n = n*31 + i
		}
		return n, nil
	}, nil)
	result.Get(settletest.New(t, p, settletest.WithoutValidator()).Space("a"))
}

func TestNew_RefusesAProgramThatIsBroken(t *testing.T) {
	t.Parallel()
	h := func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, nil }
	p := settle.NewProgram("broken").Handle("sign", h).Handle("sign", h)
	r := failing(t, func(tb *recorder) { settletest.New(tb, p) })
	r.wantFailure("program is broken", "stream sign")
	if !r.fatal {
		t.Error("the test continued")
	}
}

func TestWithLog_ShowsWhatTheProgramLogs(t *testing.T) {
	t.Parallel()
	p := bumping(nil, func(tx *settle.Tx) error { tx.Log("bumped", "by", 1); return nil })
	r := failing(t, func(tb *recorder) {
		settletest.Call(settletest.New(tb, p, settletest.WithLog()).Space("a"), bump)
	})
	if want := []string{"a: bump sent-1: bumped by=1"}; !slices.Equal(r.logs, want) {
		t.Errorf("logged %q, want %q", r.logs, want)
	}
}
