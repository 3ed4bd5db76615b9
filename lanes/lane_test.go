package lanes

import (
	"fmt"
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
)

func external(seq uint64) model.Event { return model.Event{ID: fmt.Sprintf("e%d", seq), Lane: seq} }

// from returns the event at position pos of an origin, in the lane at seq.
func from(origin string, pos, seq uint64) model.Event {
	return model.Event{ID: model.TxID{Space: origin, Epoch: 1, N: pos}.Event(0), Position: pos, Lane: seq}
}

func followUp(n uint64) model.Event {
	return model.Event{ID: model.TxID{Space: "home", Epoch: 7, N: n}.Event(0)}
}

// drain takes everything that can be handled now.
func drain(l *Lane) []string {
	var out []string
	for ev := l.Peek(); ev != nil; ev = l.Peek() {
		out = append(out, ev.ID)
		l.Take()
	}
	return out
}

func wantOrder(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("handled %v, want %v", got, want)
	}
}

func TestAnEventIsHeldUntilItsPredecessorIsQueued(t *testing.T) {
	l := New(State{}, 0)
	l.Offer(from("o", 2, 1))
	l.Offer(external(2))
	if l.Held() != 1 {
		t.Errorf("%d events held, want 1", l.Held())
	}
	if c := l.Cursor(0); c.Floor != 0 {
		t.Errorf("cursor %+v before anything is decided", c)
	}
	l.Offer(from("o", 1, 3))
	wantOrder(t, drain(l), "e2", "o:1:1:0", "o:1:2:0")
}

// A position counts what one space has sent to another. An event with a position but without an origin, made
// by a client, is not held for a predecessor that does not exist.
func TestAPositionWithoutAnOriginIsIgnored(t *testing.T) {
	l := New(State{}, 0)
	for seq := uint64(1); seq <= 3; seq++ {
		ev := external(seq)
		ev.Position = 7
		l.Offer(ev)
	}
	wantOrder(t, drain(l), "e1", "e2", "e3")
}

func TestARepetitionIsDroppedAndTheCursorPassesOverIt(t *testing.T) {
	l := New(State{Inbound: map[string]model.Received{"o": {Position: 3}}}, 0)
	for pos := uint64(1); pos <= 4; pos++ {
		l.Offer(from("o", pos, pos))
		l.Offer(from("o", pos, 10+pos))
	}
	wantOrder(t, drain(l), "o:1:4:0")
	if c := l.Cursor(l.Undecided()); c.Floor != 14 || len(c.Held) > 0 {
		t.Errorf("cursor %+v, want floor 14", c)
	}
}

// A coordinator that releases the same event again and again costs no memory.
func TestRepetitionsTakeNoRoom(t *testing.T) {
	l := New(State{Inbound: map[string]model.Received{"o": {Position: 1}}}, 4)
	for seq := uint64(1); seq <= 1000; seq++ {
		if !l.Offer(from("o", 1, seq)) {
			t.Fatalf("repetition at %d was left in the stream", seq)
		}
	}
	if len(l.entries)+l.Held() != 0 || !l.Done() {
		t.Errorf("1000 repetitions left %d entries behind", len(l.entries))
	}
}

func TestTheLaneKeepsToItsLimitAndRequestsTheRestLater(t *testing.T) {
	l := New(State{}, 2)
	for seq := uint64(1); seq <= 5; seq++ {
		if took := l.Offer(external(seq)); took != (seq <= 2) {
			t.Errorf("event %d taken: %v", seq, took)
		}
	}
	if _, ok := l.Refill(); ok {
		t.Error("the lane requests more events while it is full")
	}
	if l.Done() {
		t.Error("done, with three events in the stream")
	}
	drain(l)
	if after, ok := l.Refill(); !ok || after != 2 {
		t.Errorf("refill after %d, %v, want after 2", after, ok)
	}
}

// A reader that continues after an event was left in the stream must not make the lane forget that event,
// even if there is room by then.
func TestNothingOvertakesAnEventLeftInTheStream(t *testing.T) {
	l := New(State{}, 1)
	l.Offer(external(1))
	for seq := uint64(2); seq <= 4; seq++ {
		l.Offer(external(seq)) // the live reader: no room
	}
	drain(l)
	if l.Offer(external(3)) || l.Offer(external(4)) {
		t.Error("an event was taken although 2 is still in the stream")
	}
	for seq := uint64(2); seq <= 4; seq++ {
		if !l.Offer(external(seq)) {
			t.Errorf("event %d was left although it is the next", seq)
		}
		wantOrder(t, drain(l), fmt.Sprintf("e%d", seq))
	}
	if _, ok := l.Refill(); ok {
		t.Error("everything is read, but the lane still requests events")
	}
}

// Events that an earlier owner had set aside were queued before any later event of the stream, and before the
// follow-ups that are not handled.
func TestEventsSetAsideComeBeforeLaterOnes(t *testing.T) {
	pending := followUp(1)
	pending.Behind = 9
	l := New(State{
		Cursor:  model.Cursor{Floor: 9, Held: []uint64{3}},
		Inbound: map[string]model.Received{"o": {Position: 1}},
		Own:     []model.Event{pending},
	}, 0)
	if l.Offer(external(12)) {
		t.Error("12 was taken before 3 was read again")
	}
	if l.Peek() != nil {
		t.Errorf("%s can be handled before 3 was read again", l.Peek().ID)
	}
	if got := l.Follow(followUp(2)); got.Behind != 9 {
		t.Errorf("the follow-up queues behind %d, want 9", got.Behind)
	}
	if after, ok := l.Refill(); !ok || after != 2 {
		t.Errorf("refill after %d, %v, want after 2", after, ok)
	}
	l.Offer(from("o", 2, 3))
	l.Offer(external(12))
	wantOrder(t, drain(l), "o:1:2:0", "home:7:1:0", "home:7:2:0", "e12")
}

func TestUnreadEventsStaySetAside(t *testing.T) {
	l := New(State{Cursor: model.Cursor{Floor: 9, Held: []uint64{3, 5}}, Inbound: map[string]model.Received{"o": {Position: 1}}}, 0)
	l.Offer(from("o", 2, 3))
	wantOrder(t, drain(l), "o:1:2:0")
	if c := l.Cursor(l.Undecided()); c.Floor != 9 || !slices.Equal(c.Held, []uint64{5}) {
		t.Errorf("cursor %+v, want 5 held below 9", c)
	}
	l.Follow(followUp(1))
	l.Offer(from("o", 3, 5))
	wantOrder(t, drain(l), "o:1:3:0", "home:7:1:0")
}

// Follow-ups keep the order in which they were sent, even if the new owner has not read as far as the one
// that sent them.
func TestFollowUpsDoNotOvertakeEachOther(t *testing.T) {
	early := followUp(1)
	early.Behind = 8
	l := New(State{Cursor: model.Cursor{Floor: 5}, Own: []model.Event{early}}, 0)
	l.Offer(external(6))
	wantOrder(t, drain(l), "e6")
	if got := l.Follow(followUp(2)); got.Behind != 8 {
		t.Errorf("the follow-up queues behind %d, want 8, like the one before it", got.Behind)
	}
	l.Offer(external(8))
	l.Offer(external(9))
	wantOrder(t, drain(l), "e8", "home:7:1:0", "home:7:2:0", "e9")
}

func TestI10_RewindRemovesTheFollowUpsOfUndoneTransactions(t *testing.T) {
	committed := followUp(1)
	committed.Behind = 8
	l := New(State{Cursor: model.Cursor{Floor: 5}, Own: []model.Event{committed}}, 0)
	l.Offer(external(6))
	drain(l)
	l.Follow(followUp(2)) // behind the previous one, which has not been read
	l.Rewind(func(ev *model.Event) bool { return ev.ID == followUp(2).ID })
	l.Offer(external(8))
	wantOrder(t, drain(l), "e6", "e8", "home:7:1:0")
}

// A commit of another runtime that both sends and handles a follow-up leaves nothing to do.
func TestI11_AFollowUpThatItsOwnCommitHandledIsNotHandledAgain(t *testing.T) {
	l := New(State{}, 0)
	l.Offer(external(1))
	l.Integrate(State{Cursor: model.Cursor{Floor: 1}})
	if ev := l.Peek(); ev != nil {
		t.Errorf("%s is still to be handled", ev.ID)
	}
}

func TestConfirmingMoreThanWasTakenPanics(t *testing.T) {
	l := New(State{}, 0)
	l.Offer(external(1))
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	l.Confirm(1, model.Cursor{Floor: 1})
}
