package ordered_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

func (w *world) sendAll(key string, n int) {
	w.Helper()
	for _, id := range worldtest.Numbered(n) {
		w.Send(key, "pay", id, `{"cents":1}`)
	}
}

func TestServe_HandlesTheEventsOfAKeyInOrderAndOnceEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.sendAll("alice", 100)
		p := w.serve(ordered.Config{Name: "o1"}, nil)
		w.sendAll("bob", 1500) // more than fit in a commit
		w.EventuallyEnded("alice", 100)
		w.EventuallyEnded("bob", 1500)
		w.WantEnded("alice", worldtest.Numbered(100)...)
		w.WantEnded("bob", worldtest.Numbered(1500)...)
		w.wantDoc("bob", "balance", "1500")
		w.stop(p)
	})
}

func TestServe_ADuplicateIsRefusedByTheServerAndHandledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.serve(ordered.Config{Name: "o1"}, nil)
		w.Send("alice", "pay", "e1", `{"cents":5}`)
		w.EventuallyEnded("alice", 1)
		if r := w.Send("alice", "pay", "e1", `{"cents":5}`); !r.Duplicate {
			t.Errorf("the second send: %+v, want a duplicate", r)
		}
		w.Pass(5 * time.Second)
		w.WantEnded("alice", "e1")
		w.wantDoc("alice", "balance", "5")
		w.stop(p)
	})
}

func TestServe_EveryEventEndsInAReceiptAndPoisonInTheDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		h := accounts()
		h["panic"] = func(*ordered.Tx, *model.Event) (any, error) { panic("at the disco") }
		h["fail"] = func(tx *ordered.Tx, _ *model.Event) (any, error) {
			tx.Set("balance", -1)
			return nil, errors.New("no such currency")
		}
		h["bad"] = func(tx *ordered.Tx, _ *model.Event) (any, error) {
			tx.Set("no=name", 1)
			return nil, nil
		}
		h["huge"] = func(tx *ordered.Tx, _ *model.Event) (any, error) {
			tx.Set("huge", strings.Repeat("x", 200<<10))
			return nil, nil
		}
		p := w.serve(ordered.Config{Name: "o1", Handlers: h}, nil)
		w.Send("alice", "pay", "e1", `{"cents":5}`)
		w.Send("alice", "panic", "p", `{"x":1}`)
		w.Send("alice", "fail", "f", `7`)
		w.Send("alice", "bad", "b")
		w.Send("alice", "huge", "h")
		w.Send("alice", "pay", "json", `{"cents":`)
		w.Send("alice", "pay", "type", `{"cents":"five"}`)
		w.Send("alice", "unknown", "n", `1`)
		w.Send("alice", "pay", "e2", `{"cents":5}`)
		w.EventuallyEnded("alice", 9)
		want := map[string]struct {
			o    model.Outcome
			text string
		}{
			"e1": {model.Handled, ""}, "e2": {model.Handled, ""},
			"p": {model.Failed, "panicked: at the disco"}, "f": {model.Failed, "no such currency"},
			"b": {model.Failed, "no=name"}, "h": {model.Failed, "write smaller documents"},
			"json": {model.Refused, "not JSON"}, "type": {model.Failed, "payload of event type"}, "n": {model.Refused, "no handler for stream unknown"},
		}
		for _, rc := range w.Receipts("alice") {
			if x := want[rc.Event]; rc.Outcome != x.o || !strings.Contains(rc.Error, x.text) {
				t.Errorf("%s: %s (%s), want %s (%s)", rc.Event, rc.Outcome, rc.Error, x.o, x.text)
			}
		}
		w.wantDoc("alice", "balance", "10")
		w.Eventually("the dead letters are written", func() bool { return len(w.dead("alice")) == 7 })
		for _, d := range w.dead("alice") {
			if payload := string(d.Bytes()); d.Event == "p" && payload != `{"x":1}` || d.Event == "json" && payload != `{"cents":` {
				t.Errorf("the letter about %s has payload %s (%s)", d.Event, payload, d.Lost)
			}
		}
		w.stop(p)
	})
}

func (w *world) dead(key string) []model.DeadLetter {
	w.Helper()
	list, err := w.Client.ReadDead(context.Background(), key, 0, 100)
	if err != nil {
		w.Fatal(err)
	}
	return list
}

func TestServe_ATransientErrorIsRetriedAndDelaysOnlyItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		h := accounts()
		var tries atomic.Int32
		h["flaky"] = func(tx *ordered.Tx, _ *model.Event) (any, error) {
			if tries.Add(1) < 4 {
				tx.Set("balance", -1)
				return nil, ordered.Transient(errors.New("not now"))
			}
			return "at last", nil
		}
		h["never"] = func(*ordered.Tx, *model.Event) (any, error) {
			return nil, ordered.Transient(errors.New("not ever"))
		}
		p := w.serve(ordered.Config{Name: "o1", Handlers: h, RetryMin: time.Second, RetryMax: 4 * time.Second}, nil)
		w.Send("alice", "flaky", "f")
		w.Send("alice", "pay", "e1", `{"cents":5}`)
		w.Send("alice", "never", "n")
		w.Send("bob", "pay", "e1", `{"cents":5}`)
		w.Pass(6 * time.Second) // for pauses of 1, 2 and 4 s
		w.WantEnded("bob", "e1")
		w.WantEnded("alice")
		w.Pass(30 * time.Second)
		w.WantEnded("alice", "f", "e1", "n")
		rc := w.Receipts("alice")
		if rc[0].Attempts != 4 || rc[0].Outcome != model.Handled || rc[2].Attempts != 5 || rc[2].Outcome != model.Failed {
			t.Errorf("%+v and %+v, want 4 and 5 attempts", rc[0], rc[2])
		}
		w.wantDoc("alice", "balance", "5")
		w.stop(p)
	})
}

func TestServe_SendsLeaveWithTheirTransactionAndArriveOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		h := accounts()
		h["fail"] = func(tx *ordered.Tx, _ *model.Event) (any, error) {
			tx.Send(ordered.To("bob"), "pay", payment{Cents: 1000})
			tx.Send(ordered.To("alice"), "pay", payment{Cents: 1000})
			return nil, errors.New("no")
		}
		h["again"] = func(tx *ordered.Tx, _ *model.Event) (any, error) {
			tx.Send(ordered.To("alice"), "pay", payment{Cents: 100})
			return nil, nil
		}
		p := w.serve(ordered.Config{Name: "o1", Handlers: h}, nil)
		for i := range 50 {
			w.Send("alice", "pay", fmt.Sprint("t", i), `{"cents":1,"to":"bob"}`)
			w.Send("alice", "fail", fmt.Sprint("f", i))
		}
		w.Send("alice", "again", "a")
		w.EventuallyEnded("bob", 50)
		w.EventuallyEnded("alice", 102)
		w.Pass(3 * time.Second)
		w.wantDoc("bob", "balance", "50")
		w.wantDoc("alice", "balance", "150")
		var last uint64
		for _, rc := range w.Receipts("bob") {
			if rc.Pos != last+1 {
				t.Fatalf("position %d after %d", rc.Pos, last)
			}
			last = rc.Pos
		}
		w.stop(p)
	})
}

func TestServe_AnExpiredEventIsNotHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		done := make(chan error, 2)
		for id, expires := range map[string]time.Duration{"late": -time.Second, "early": time.Hour} {
			w.Client.Send(model.Message{Space: "alice", Stream: "pay", ID: id, Expires: time.Now().Add(expires).UnixMilli()}, func(_ model.SendResult, err error) { done <- err })
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		p := w.serve(ordered.Config{Name: "o1"}, nil)
		w.EventuallyEnded("alice", 2)
		for _, rc := range w.Receipts("alice") {
			if (rc.Event == "late") != (rc.Outcome == model.Expired) {
				t.Errorf("%+v", rc)
			}
		}
		w.stop(p)
	})
}

// An event that expires while it waits after another one is not handled, although it had not expired when it
// was read from the lane.
func TestServe_AnEventThatExpiresWhileItWaitsIsNotHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		h := accounts()
		h["flaky"] = func(*ordered.Tx, *model.Event) (any, error) { return nil, ordered.Transient(errors.New("not now")) }
		p := w.serve(ordered.Config{Name: "o1", Handlers: h, RetryMin: 2 * time.Second, RetryMax: 2 * time.Second}, nil)
		w.Send("alice", "flaky", "f")
		w.SendMessage(model.Message{Space: "alice", Stream: "pay", ID: "e1", Payload: []byte(`{"cents":1}`), Expires: time.Now().Add(time.Second).UnixMilli()})
		w.EventuallyEnds("alice", "f failed 5", "e1 expired 0")
		w.wantDoc("alice", "balance", "absent")
		w.stop(p)
	})
}

func TestServe_RefusesInvalidConfigurations(t *testing.T) {
	w := newWorld(t, 1)
	nothing := func(*ordered.Tx, *model.Event) (any, error) { return nil, nil }
	for text, cfg := range map[string]ordered.Config{
		"Handlers is empty": {},
		"is nil":            {Handlers: map[string]ordered.Handler{"a": nil}},
		"stream":            {Handlers: map[string]ordered.Handler{"a b": nothing}},
		"server":            {Name: "a b", Handlers: accounts()},
		"negative":          {Handlers: accounts(), Idle: -1},
	} {
		if err := ordered.Serve(t.Context(), w.Client, cfg); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
}

// A handler sends to another key, whose handler sends back. The chain ends as a dead letter, whichever
// servers handle it, and the keys continue.
func TestChain_EndsAcrossKeysAndServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		handlers := accounts()
		handlers["pass"] = ordered.On(func(tx *ordered.Tx, to string) (any, error) {
			var balance int64
			if err := tx.Read("balance", &balance); err != nil || balance > 100 { // bounded for the test
				return nil, err
			}
			tx.Send(ordered.Here, "pay", payment{Cents: 1})
			tx.Send(ordered.To(to), "pass", tx.Space())
			return nil, nil
		})
		cfg := ordered.Config{Name: "o1", Handlers: handlers, MaxChain: 30, Heartbeat: 20 * time.Millisecond, Checkpoint: 10 * time.Millisecond}
		p := w.serve(cfg, nil)
		w.Send("alice", "pass", "e1", `"bob"`)
		w.Eventually("the chain has begun", func() bool { return len(w.Receipts("bob")) > 3 })
		p.crash()
		p = w.serve(cfg, nil)
		w.EventuallyEnded("alice", 31)
		w.EventuallyEnded("bob", 30)
		w.Pass(time.Second)
		if got := w.Receipts("alice"); len(got) != 31 || got[30].Outcome != model.Failed || !strings.Contains(got[30].Error, "its depth is 30") {
			t.Errorf("alice: %d receipts, the last is %+v", len(got), got[len(got)-1])
		}
		w.wantDoc("alice", "balance", "15")
		w.wantDoc("bob", "balance", "15")
		w.stop(p)
	})
}
