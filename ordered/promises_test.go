package ordered

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/worker/host"
)

// unwatched is code without a limit.
type unwatched struct{ code }

func (unwatched) Handles(string, string, uint64, bool, time.Duration) {}
func (unwatched) Returned(bool) *host.Overrun                         { return nil }
func (unwatched) Used()                                               {}

// unitCore is the core of the key k, taken over at 1, with a handler for stream x.
func unitCore(t *testing.T, h Handler) *core {
	t.Helper()
	cfg := &Config{id: "o1", Attempts: 5, RetryMin: time.Millisecond, RetryMax: time.Millisecond, MaxChain: 100, Handlers: map[string]Handler{"x": h}}
	limits := cfg.options().Limits
	limits.MaxCommitBytes = 32 << 10
	own, err := (&program{cfg: cfg}).configured(limits)
	if err != nil {
		t.Fatal(err)
	}
	c := newCore(cfg, own, replica.New("k"), unwatched{})
	c.Clock(time.Now())
	return c
}

// taken makes a core take its key over, at 1.
func taken(t *testing.T, c *core) *core {
	t.Helper()
	c.TakeOver()
	if c.Settle(0).Append == nil {
		t.Fatal("the core does not take over")
	}
	if err := c.Confirm(1); err != nil {
		t.Fatal(err)
	}
	return c
}

// offered puts n events into the lane of a core.
func offered(c *core, n int) {
	for i := range n {
		c.Offer(model.Event{Space: "k", Stream: "x", ID: fmt.Sprint("e", i+1), Lane: uint64(i + 1)})
	}
}

// A handler that declines an event leaves nothing but a receipt with code, message and data.
func TestCore_ARejectedEventHasAReceiptAndNoWrites(t *testing.T) {
	c := taken(t, unitCore(t, func(tx *Tx, _ *model.Event) (any, error) {
		tx.Set("x", 1)
		return nil, receipts.Reject("full", "no place is left", 3)
	}))
	offered(c, 1)
	a := c.Settle(0).Append
	if a == nil || len(a.Commit.Txs) != 1 {
		t.Fatalf("append %+v", a)
	}
	tx := &a.Commit.Txs[0]
	if rc := tx.Receipt; len(tx.Writes) > 0 || rc.Outcome != model.Rejected || receipts.Reason(rc) != "full: no place is left" || rc.Result.String() != "3" {
		t.Errorf("%+v with the receipt %+v", tx, rc)
	}
}

// A handler that keeps its transaction and uses it in a later call fails the later event, in words.
func TestTx_PanicsWithWordsAfterItsCall(t *testing.T) {
	var first *Tx
	c := taken(t, unitCore(t, func(tx *Tx, _ *model.Event) (any, error) {
		if first == nil {
			first = tx
		}
		return nil, first.Read("x", new(int))
	}))
	offered(c, 2)
	a := c.Settle(0).Append
	if a == nil || len(a.Commit.Txs) != 2 {
		t.Fatalf("append %+v", a)
	}
	for i, want := range []model.Outcome{model.Handled, model.Failed} {
		if rc := a.Commit.Txs[i].Receipt; rc.Outcome != want || want == model.Failed && !strings.Contains(rc.Error, "valid only during the call") {
			t.Errorf("event %d has the receipt %+v", i+1, rc)
		}
	}
	for name, use := range map[string]func(){
		"Space": func() { first.Space() }, "Event": func() { first.Event() }, "Context": func() { first.Context() }, "Get": func() { first.Get("x") },
		"Set": func() { first.Set("x", 1) }, "Delete": func() { first.Delete("x") }, "Send": func() { first.Send(Here, "x", 1) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "valid only during the call") {
					t.Errorf("%s says %s", name, got)
				}
			}()
			use()
		}()
	}
}

// An event without room in a commit is handled in the next one, and later events share commits again.
func TestCore_AnEventWithoutRoomIsHandledInTheNextCommit(t *testing.T) {
	c := taken(t, unitCore(t, func(tx *Tx, ev *model.Event) (any, error) {
		size := map[string]int{"e1": 10 << 10, "e2": 20 << 10, "e3": 10 << 10, "e4": 20 << 10}[ev.ID] // of the 28 KiB that fit in a commit
		tx.Set(ev.ID, strings.Repeat("x", size))
		return nil, nil
	}))
	offered(c, 6)
	var got []string
	crowded := false
	for range 8 {
		r := c.Settle(0)
		crowded = crowded || c.ledger.Overflowed()
		if a := r.Append; a != nil {
			together := ""
			for i := range a.Commit.Txs {
				together += a.Commit.Txs[i].Receipt.Event
			}
			got = append(got, together)
			c.Settle(0) // while an append is in flight
			if err := c.Confirm(a.Expect + 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := fmt.Sprint([]string{"e1", "e2", "e3", "e4", "e5e6"}); fmt.Sprint(got) != want || !crowded {
		t.Errorf("handled %v, want %v", got, want)
	}
}

// late is code that returns after its limit.
type late struct{ unwatched }

func (late) Returned(bool) *host.Overrun {
	return &host.Overrun{Stream: "x", Event: "e1", Limit: time.Second}
}

// A handler that returns after its limit has failed, whatever it returns, and is retried.
func TestCore_AHandlerThatReturnsTooLateHasFailed(t *testing.T) {
	c := taken(t, unitCore(t, func(tx *Tx, _ *model.Event) (any, error) {
		tx.Set("n", 1)
		return nil, nil
	}))
	c.code = late{}
	offered(c, 1)
	if r := c.Settle(time.Minute); r.Append != nil || r.Wake <= time.Minute {
		t.Errorf("the event is not retried: %+v", r)
	}
}

// A handler reads its own writes.
func TestTx_ReadsItsOwnWrites(t *testing.T) {
	var seen string
	c := taken(t, unitCore(t, func(tx *Tx, _ *model.Event) (any, error) {
		tx.Set("n", 1)
		tx.Set("n", 2)
		seen = tx.Get("n").String()
		tx.Delete("n")
		seen += " " + tx.Get("n").String()
		return nil, nil
	}))
	offered(c, 1)
	if c.Settle(0); seen != "2 absent" {
		t.Errorf("it sees %s", seen)
	}
}

func TestConfig_NegativeSettingsAreRefused(t *testing.T) {
	handlers := map[string]Handler{"x": func(*Tx, *model.Event) (any, error) { return nil, nil }}
	for name, cfg := range map[string]Config{
		"attempts": {Attempts: -1}, "keys": {MaxAwake: -1}, "pause": {RetryMin: -1}, "most pause": {RetryMax: -1}, "heartbeat": {Heartbeat: -1},
		"ttl": {TTL: -1}, "handover": {Handover: -1}, "checkpoint": {Checkpoint: -1}, "idle": {Idle: -1}, "history": {History: -1},
	} {
		if cfg.Handlers = handlers; cfg.fill() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
