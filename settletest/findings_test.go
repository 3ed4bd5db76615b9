package settletest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
	"github.com/settlehq/settle/space"
)

// These tests cover the findings that fail a test automatically, and their messages.

var (
	count = settle.NewCell[int64]("count")
	other = settle.NewCell[int64]("other")
	bump  = settle.NewRequest[struct{}, int64]("bump")
)

// bumping is a program with a counter, a computation of result, and a handler that calls more.
func bumping(compute func(v *settle.View) (int64, error), more func(tx *settle.Tx) error, options ...settle.Option) *settle.Program {
	p := settle.NewProgram("bumping")
	bump.Handle(p, func(tx *settle.Tx, _ struct{}) (int64, error) {
		n := count.Get(tx) + 1
		count.Set(tx, n)
		if more != nil {
			return n, more(tx)
		}
		return n, nil
	})
	if compute != nil {
		result.Compute(p, compute, options...)
	}
	return p
}

func double(v *settle.View) (int64, error) { return 2 * count.Get(v), nil }

func TestANonIdempotentComputationIsReportedWithTheDifference(t *testing.T) {
	t.Parallel()
	kept := int64(0)
	cases := map[string]func(v *settle.View) (int64, error){
		"a variable": func(v *settle.View) (int64, error) { kept++; return count.Get(v) + kept, nil },
		"the clock":  func(v *settle.View) (int64, error) { return count.Get(v) + time.Now().UnixNano(), nil },
		"a die":      func(v *settle.View) (int64, error) { return count.Get(v) + rand.Int64N(1e15), nil },
		"the order of a map": func(v *settle.View) (n int64, err error) {
			for k := range map[int64]bool{1: true, 2: true, 3: true, 4: true, 5: true} {
				n = 10*n + k
			}
			return count.Get(v) + n, nil
		},
	}
	for name, compute := range cases {
		t.Run(name, func(t *testing.T) {
			r := failing(t, func(tb *recorder) {
				s := settletest.New(tb, bumping(compute, nil)).Space("home")
				settletest.Watch(s, result)
				for range 3 {
					settletest.Call(s, bump)
				}
			})
			if len(r.errors) == 0 || !strings.Contains(r.errors[0], "node result is not idempotent: result: ") || !strings.Contains(r.errors[0], "no clock") {
				t.Errorf("the test reported %v", r.errors)
			}
		})
	}
	r := failing(t, func(tb *recorder) {
		result.Get(settletest.New(tb, bumping(cases["a variable"], nil), settletest.WithoutValidator()).Space("home"))
	})
	r.wantNone()
}

func TestANonIdempotentHandlerIsReportedWithTheDifference(t *testing.T) {
	t.Parallel()
	kept := int64(0)
	r := failing(t, func(tb *recorder) {
		s := settletest.New(tb, bumping(nil, func(tx *settle.Tx) error { kept++; other.Set(tx, kept); return nil })).Space("home")
		settletest.Call(s, bump)
	})
	r.wantFailure("the handler of bump is not idempotent: other: 1, then 2")
}

func TestAnErrorOfAComputationFailsTheTestUnlessItIsAllowed(t *testing.T) {
	t.Parallel()
	fails := bumping(func(v *settle.View) (int64, error) { return 0, errors.New("no rates today") }, nil)
	failing(t, func(tb *recorder) {
		result.Get(settletest.New(tb, fails).Space("home"))
	}).wantFailure("space home: node result: no rates today")
	failing(t, func(tb *recorder) {
		w := settletest.New(tb, fails, settletest.AllowErrors("result"))
		result.Get(w.Space("home"))
		if got := w.Problems(); len(got) != 1 || got[0].Node != "result" {
			t.Errorf("problems %v", got)
		}
	}).wantNone()
	failing(t, func(tb *recorder) {
		result.Get(settletest.New(tb, fails, settletest.AllowErrors("another")).Space("home"))
	}).wantFailure("no rates today")
}

func TestAFindingOfACellNamesTheLineOfTheTest(t *testing.T) {
	t.Parallel()
	fails := bumping(func(v *settle.View) (int64, error) { return 0, errors.New("no rates today") }, nil)
	for name, read := range map[string]func(s *settletest.Space){
		"Get":    func(s *settletest.Space) { result.Get(s) },
		"Expect": func(s *settletest.Space) { settletest.Expect(s, result, 0) },
		"of another type": func(s *settletest.Space) {
			s.Set("count", "many")
			count.Get(s)
		},
	} {
		r := failing(t, func(tb *recorder) { read(settletest.New(tb, fails).Space("home")) })
		if len(r.errors) == 0 || !strings.Contains(r.errors[0], "\n    at findings_test.go:") {
			t.Errorf("%s: the test reported %v", name, r.errors)
		}
	}
	r := failing(t, func(tb *recorder) { settletest.New(tb, fails).Space("home").Get("result") })
	r.wantFailure("no rates today")
	if strings.Contains(r.errors[0], "findings_test.go") { // testing names the line
		t.Errorf("the test reported %v", r.errors)
	}
}

// ending is a recorder that can run the cleanup of its test.
type ending struct {
	*recorder
	atEnd func()
}

func (e *ending) Cleanup(f func()) { e.atEnd = f }

func TestAnAllowOptionWithAnUnknownNameFailsTheTest(t *testing.T) {
	t.Parallel()
	run := func(options ...settletest.Option) *recorder {
		return failing(t, func(tb *recorder) {
			e := &ending{recorder: tb}
			settletest.Call(settletest.New(e, bumping(double, nil), options...).Space("home"), bump)
			e.atEnd()
		})
	}
	run(settletest.AllowErrors("resutl")).wantFailure(`AllowErrors("resutl") allows nothing`, "(it has result)", `(it has "bump")`)
	run(settletest.AllowErrors("result", "bump"), settletest.AllowCircles("result"), settletest.AllowErrors()).wantNone()
}

func TestAPanicIsReportedWithItsLine(t *testing.T) {
	t.Parallel()
	failing(t, func(tb *recorder) {
		p := bumping(func(v *settle.View) (int64, error) { var m map[string]int; m["a"] = 1; return 0, nil }, nil) //nolint:staticcheck // to panic is the point
		result.Get(settletest.New(tb, p).Space("home"))
	}).wantFailure("node result panicked: assignment to entry in nil map", "findings_test.go:")
}

func TestAPanicOfAHandlerIsReportedWithItsLine(t *testing.T) {
	t.Parallel()
	sends := false
	p := bumping(nil, func(tx *settle.Tx) error {
		if sends && tx.Event().Origin() == "" {
			bump.Send(tx, settle.Here, struct{}{})
			return nil
		}
		var m map[string]int
		m["a"] = 1 //nolint:staticcheck // to panic is the point
		return nil
	})
	call := func(tb *recorder) { settletest.Call(settletest.New(tb, p).Space("home"), bump) }
	failing(t, call).wantFailure("event sent-1 on bump of space home failed: handler of bump panicked: assignment to entry in nil map\n", "findings_test.go:")
	sends = true
	failing(t, call).wantFailure("on bump: failed: handler of bump panicked: assignment to entry in nil map\n", "findings_test.go:")
}

func TestAFailedFollowUpFailsTheTest(t *testing.T) {
	t.Parallel()
	p := func() *settle.Program {
		return bumping(nil, func(tx *settle.Tx) error {
			if count.Get(tx) > 1 {
				return errors.New("twice is too much")
			}
			bump.Send(tx, settle.Here, struct{}{})
			return nil
		})
	}
	failing(t, func(tb *recorder) {
		settletest.Call(settletest.New(tb, p()).Space("home"), bump)
	}).wantFailure("on bump: failed: twice is too much")
	failing(t, func(tb *recorder) {
		w := settletest.New(tb, p(), settletest.AllowErrors("bump"))
		settletest.Call(w.Space("home"), bump)
		if l := w.DeadLetters(); len(l) != 1 || l[0].Error != "twice is too much" || l[0].Stream != "bump" || l[0].Space != "home" {
			t.Errorf("dead letters %v", l)
		}
	}).wantNone()
}

// A test receives the receipts of the events that it sends itself, so it decides whether a failure is
// expected.
func TestSendReturnsFailedReceipts(t *testing.T) {
	t.Parallel()
	p := bumping(nil, func(*settle.Tx) error { return errors.New("not today") })
	failing(t, func(tb *recorder) {
		s := settletest.New(tb, p).Space("home")
		if rc := settletest.Send(s, bump); rc.Outcome != model.Failed || rc.Error != "not today" {
			t.Errorf("receipt %+v", rc)
		}
		if rc := s.Send("nothing", nil); rc.Outcome != model.Refused {
			t.Errorf("receipt %+v", rc)
		}
	}).wantNone()
	failing(t, func(tb *recorder) {
		settletest.Call(settletest.New(tb, p).Space("home"), bump)
	}).wantFailure("event sent-1 on bump of space home failed: not today")
}

func TestAWriteThatWasNotDeclaredFailsTheTestUnlessItIsAllowed(t *testing.T) {
	t.Parallel()
	p := bumping(nil, nil)
	p.Node(space.NodeSpec{ID: "copier", Kind: space.Effect, Writes: []space.Address{{Doc: "copy"}}, Run: func(tx *settle.Tx) (settle.Value, error) {
		tx.Set("copy", tx.Get("count"))
		tx.Set("elsewhere", tx.Get("count"))
		return settle.Value{}, nil
	}})
	run := func(options ...settletest.Option) *recorder {
		return failing(t, func(tb *recorder) {
			settletest.Call(settletest.New(tb, p, options...).Space("home"), bump)
		})
	}
	run().wantFailure("node copier", "elsewhere", "Declare the place")
	run(settletest.AllowOutsideWrites("copier")).wantNone()
}

func TestDocumentsOfSpacesThatFollowFromEachOtherFailTheTest(t *testing.T) {
	t.Parallel()
	ping, pong := settle.NewDerived[int]("ping").Or(0), settle.NewDerived[int]("pong").Or(0)
	p := settle.NewProgram("tennis")
	ping.Compute(p, func(v *settle.View) (int, error) { return pong.In("east").Get(v) + 1, nil })
	pong.Compute(p, func(v *settle.View) (int, error) { return ping.In("west").Get(v) + 1, nil })
	run := func(options ...settletest.Option) *recorder {
		return failing(t, func(tb *recorder) {
			w := settletest.New(tb, p, options...)
			ping.Get(w.Space("west"))
			w.Advance(time.Second)
		})
	}
	run().wantFailure("node pong", "in a circle over spaces: east/pong -> west/ping -> east/pong")
	run(settletest.AllowCircles("pong")).wantNone()
}

func TestNodesThatInvalidateEachOtherFailTheTest(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("circle")
	p.ComputeInto("grower", func(d *settle.Draft) error { count.Set(d, count.Get(d)+other.Get(d)+1); return nil }, []settle.Place{count})
	p.ComputeInto("echo", func(d *settle.Draft) error { other.Set(d, count.Get(d)); return nil }, []settle.Place{other})
	r := failing(t, func(tb *recorder) {
		other.Get(settletest.New(tb, p, settletest.WithoutValidator()).Space("home"))
	})
	if len(r.errors) == 0 || !strings.Contains(r.errors[0], "does not come to rest") {
		t.Errorf("the test reported %v", r.errors)
	}
}

func TestAnEndlessChainOfEventsEndsTheTest(t *testing.T) {
	t.Parallel()
	run := func(sends int) *recorder {
		p := bumping(nil, func(tx *settle.Tx) error {
			for range sends {
				bump.Send(tx, settle.To("home"), struct{}{})
			}
			return nil
		})
		return failing(t, func(tb *recorder) {
			settletest.Call(settletest.New(tb, p, settletest.WithoutValidator()).Space("away"), bump)
		})
	}
	run(1).wantFailure("on bump: failed", "the last of a chain of events that send each other", "its depth is 10000")
	run(2).wantFailure("no rest after 5", "never ends", "handler of bump in space home")
}

func TestAnUnhandledEventIsReportedWithTheReason(t *testing.T) {
	t.Parallel()
	p := bumping(nil, func(*settle.Tx) error { return settle.Transient(errors.New("busy")) })
	failing(t, func(tb *recorder) {
		settletest.Call(settletest.New(tb, p).Space("home"), bump)
	}).wantFailure("event sent-1 on bump of space home is not handled yet", "is tried again at", "after 1 error")
}

func TestAHandlerThatEndsItsGoroutineEndsTheTestWithAReason(t *testing.T) {
	t.Parallel()
	failing(t, func(tb *recorder) {
		w := settletest.New(tb, bumping(nil, func(*settle.Tx) error { tb.fatal = true; goexit(); return nil }))
		settletest.Call(w.Space("home"), bump)
	}).wantFailure("handler of bump in space home has ended its goroutine")
}

func TestExpect_NamesEachPlaceThatDiffers(t *testing.T) {
	t.Parallel()
	failing(t, func(tb *recorder) {
		s := settletest.New(tb, airport()).Space("HAM")
		settletest.Call(s, departure, Departure{Flight: "LH1", Late: true})
		settletest.Expect(s, stats, Stats{Departures: 1, Arrivals: 2})
	}).wantFailure("@HAM/stats is not what is wanted", "/arrivals\n        got   0\n        want  2", "/late")
	failing(t, func(tb *recorder) {
		s := settletest.New(tb, airport()).Space("HAM")
		s.Expect("stats", map[string]int{})
	}).wantFailure("got   nothing", "want  {}")
}

func TestExpect_ExplainsWhyADocumentIsHeldBack(t *testing.T) {
	t.Parallel()
	failing(t, func(tb *recorder) {
		s := settletest.New(tb, bumping(double, nil, settle.Debounce(time.Minute))).Space("home")
		settletest.Watch(s, result)
		settletest.Call(s, bump)
		settletest.Expect(s, result, 2)
	}).wantFailure("got   0", "want  2", "held until 1m0s by its debounce", "because of count")
	s := settletest.New(t, bumping(double, nil, settle.Debounce(time.Minute))).Space("home")
	seen := settletest.Watch(s, result)
	settletest.Call(s, bump)
	s.Advance(time.Minute)
	settletest.Expect(s, result, 2)
	if got := fmt.Sprint(seen.Values()); got != "[0 2]" {
		t.Errorf("seen %s", got)
	}
}

func TestExpectRuns_ExplainsWhyANodeRan(t *testing.T) {
	t.Parallel()
	failing(t, func(tb *recorder) {
		s := settletest.New(tb, bumping(double, nil)).Space("home")
		settletest.Watch(s, result)
		settletest.Call(s, bump)
		s.ExpectRuns("result", 1)
	}).wantFailure("node result of space home ran 2 times, want 1", "because of count (handler of bump")
	failing(t, func(tb *recorder) {
		settletest.New(tb, bumping(double, nil)).Space("home").ExpectRuns("reslut", 1)
	}).wantFailure("has no node reslut; it has result")
}

// A test may omit the payload of an event that has none, and of no other.
func TestAPayloadMustMatchTheEvent(t *testing.T) {
	t.Parallel()
	note := settle.NewStream[string]("note")
	ping := settle.NewTrigger("ping")
	p := settle.NewProgram("notes")
	note.Handle(p, func(*settle.Tx, string) error { return nil })
	ping.Handle(p, func(*settle.Tx) error { return nil })
	failing(t, func(tb *recorder) {
		settletest.Call(settletest.New(tb, p).Space("home"), note)
	}).wantFailure("send to home/note: its events have a payload of type string; pass one")
	failing(t, func(tb *recorder) {
		settletest.Send(settletest.New(tb, p).Space("home"), note, "a", "b")
	}).wantFailure("send to home/note: an event has one payload, and not 2")
	failing(t, func(tb *recorder) {
		s := settletest.New(tb, p).Space("home")
		settletest.Call(s, note, "a")
		settletest.Call(s, ping)
		settletest.SendID(s, ping, settle.ID("p-1"))
		settletest.Call(s, ping, struct{}{})
	}).wantNone()
}

// A list whose rows add further rows takes more steps than a pass has. It comes to rest, and is no circle.
func TestALongWaveIsNoCircle(t *testing.T) {
	t.Parallel()
	const rows = 35
	p := settle.NewProgram("wave")
	start := settle.NewTrigger("start")
	start.Handle(p, func(tx *settle.Tx) error { tx.Set("rows", true, "0"); return nil })
	p.Node(space.NodeSpec{ID: "list", Kind: space.Effect, Run: func(tx *settle.Tx) (settle.Value, error) {
		for _, key := range tx.GetShallow("rows").Keys() {
			n, _ := strconv.Atoi(key)
			tx.Node(space.NodeSpec{ID: "row-" + key, Kind: space.Effect, Writes: []space.Address{{Doc: "rows"}}, Run: func(tx *settle.Tx) (settle.Value, error) {
				if n < rows {
					tx.Set("rows", true, strconv.Itoa(n+1))
				}
				return settle.Value{}, nil
			}})
		}
		return settle.Value{}, nil
	}})
	failing(t, func(tb *recorder) {
		s := settletest.New(tb, p).Space("s")
		settletest.Send(s, start)
		s.World().Advance(time.Minute)
		if got := len(s.Get("rows").Keys()); got != rows+1 {
			t.Errorf("there are %d rows", got)
		}
	}).wantNone()
}
