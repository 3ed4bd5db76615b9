package host

import (
	"fmt"
	"sync"
	"testing"

	"github.com/settlehq/settle/internal/serverclock"
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

func newTestHost(t *testing.T, laneLimit int) *host {
	t.Helper()
	core, err := newTestCore("w", ledger.Limits{LaneLimit: laneLimit})
	if err != nil {
		t.Fatal(err)
	}
	e := &env{ctx: t.Context(), cfg: &Config{Options: Options{BacklogBytes: 1 << 20}}, tasks: &sync.WaitGroup{}, counters: &counters{}, clock: &serverclock.Clock{}}
	h := newHost(e, "s", nil, laneBacklog{})
	t.Cleanup(h.cancel)
	h.core, h.graph = core, h.newGraphParts(core)
	h.saver.observed = core
	return h
}

// Events that the loop leaves in the inbox must not be in the memory to which the reader writes the next
// ones.
func TestInbox_MemoryThatIsKeptForReuseHoldsNoWaitingEvent(t *testing.T) {
	h := newTestHost(t, 4)
	for seq := uint64(1); seq <= 16; seq++ {
		if !h.inbox.tryOffer(model.Message{Space: "s", Stream: "x", ID: fmt.Sprintf("e%d", seq), Seq: seq}) {
			t.Fatalf("event %d has no room", seq)
		}
	}
	h.takeIn() // four of them
	spare := h.inbox.spare[:cap(h.inbox.spare)]
	for i := range spare {
		spare[i].ID = "overwritten"
	}
	for i, m := range h.inbox.events {
		if want := fmt.Sprintf("e%d", 5+i); m.ID != want {
			t.Fatalf("event %s of the inbox became %s", want, m.ID)
		}
	}
	if len(h.inbox.events) != 12 {
		t.Errorf("%d events wait, want 12", len(h.inbox.events))
	}
}

func TestInbox_EventsBeyondTheLimitStayInTheStreamAndOpen(t *testing.T) {
	h := newTestHost(t, 0)
	h.inbox.lane.low.Store(allDone)
	for seq := uint64(1); seq <= inboxLimit; seq++ {
		if !h.inbox.tryOffer(model.Message{Space: "s", Seq: seq}) {
			t.Fatalf("event %d has no room", seq)
		}
	}
	if h.inbox.tryOffer(model.Message{Space: "s", Seq: inboxLimit + 1}) {
		t.Error("the inbox takes more than its limit")
	}
	h.inbox.leave(inboxLimit + 1)
	for seq := uint64(inboxLimit + 2); seq < 2*inboxLimit; seq++ {
		if !h.inbox.tryOffer(model.Message{Space: "s", Seq: seq}) {
			t.Fatalf("event %d waits for room although one was left in the stream already", seq)
		}
	}
	if n := len(h.inbox.events); n != inboxLimit {
		t.Errorf("%d events in the inbox", n)
	}
	if h.inbox.left != 2*inboxLimit-1 {
		t.Errorf("left up to %d", h.inbox.left)
	}
	if low := h.inbox.laneDone(); low != 0 {
		t.Errorf("done up to %d, want 0", low)
	}
}

func TestEventOf_AnUnhandleableEventIsInvalidAndBlocksNone(t *testing.T) {
	for name, c := range map[string]struct {
		m        model.Message
		invalid  bool
		position uint64
	}{
		"plain":                              {model.Message{ID: "e1", Payload: []byte(`{}`)}, false, 0},
		"no payload":                         {model.Message{ID: "e1"}, false, 0},
		"from another space":                 {model.Message{ID: "a:1:2:0", Position: 3}, false, 3},
		"not JSON":                           {model.Message{ID: "e1", Payload: []byte(`{`)}, true, 0},
		"not JSON, from another space":       {model.Message{ID: "a:1:2:0", Position: 3, Payload: []byte(`{`)}, true, 3},
		"minted, no position":                {model.Message{ID: "a:1:2:0", Payload: []byte(`1`)}, true, 0},
		"minted, no position, no payload":    {model.Message{ID: "a:1:2:0"}, true, 0},
		"a position, not minted":             {model.Message{ID: "e1", Position: 3, Payload: []byte(`1`)}, true, 0},
		"a position, not minted, no payload": {model.Message{ID: "e1", Position: 3}, true, 0},
		"colons, but not minted":             {model.Message{ID: "a:b:c:d"}, false, 0},
		"a position and half a minted id":    {model.Message{ID: "a:1:2", Position: 1}, true, 0},
	} {
		c.m.Seq = 9
		ev := eventOf(&c.m, model.DefaultHorizon)
		if (ev.Invalid != "") != c.invalid {
			t.Errorf("%s: invalid is %q", name, ev.Invalid)
		}
		if ev.Position != c.position || ev.Lane != 9 {
			t.Errorf("%s: position %d, lane %d", name, ev.Position, ev.Lane)
		}
	}
}
