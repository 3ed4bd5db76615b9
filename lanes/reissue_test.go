package lanes

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// inTerm returns the event at a position of the origin "o" in a term. prev is the term of the previous
// position, 0 for the same term. The key identifies the cause of the event.
func inTerm(pos, term, prev, key, seq uint64) model.Event {
	return model.Event{ID: model.TxID{Space: "o", Epoch: term, N: pos}.Event(0), Position: pos, Term: term, PrevTerm: prev, ReplayKey: key, Lane: seq}
}

// handled returns the receipts of events.
func handled(evs ...model.Event) (list []model.Receipt) {
	for i := range evs {
		list = append(list, model.Receipt{Event: evs[i].ID, Pos: evs[i].Position, Term: evs[i].Term, ReplayKey: evs[i].ReplayKey, Outcome: model.Handled, Result: model.Int(int64(i))})
	}
	return list
}

// confirmAll makes the log confirm everything that was taken.
func confirmAll(l *Lane) { l.Confirm(l.Undecided(), l.Cursor(l.Undecided())) }

func TestReissue_ALaterTermContinuesWhereTheEarlierOneEnded(t *testing.T) {
	l := New(State{}, 0)
	for _, ev := range []model.Event{inTerm(1, 10, model.NoTerm, 1, 1), inTerm(3, 20, 0, 3, 2), inTerm(2, 20, 10, 2, 3), inTerm(4, 30, 20, 4, 4)} {
		l.Offer(ev)
	}
	if _, asked := l.Reissued(); asked {
		t.Error("the lane requests receipts although no position was reassigned")
	}
	wantOrder(t, drain(l), "o:10:1:0", "o:20:2:0", "o:20:3:0", "o:30:4:0")
}

// Events of a lost term that were handled are not handled again; new ones are. Until the lane can distinguish
// them, it holds the events of the origin, but no others.
func TestReissue_NewEventsAreDistinguishedFromHandledOnes(t *testing.T) {
	l := New(State{}, 0)
	lost := []model.Event{inTerm(2, 10, 0, 102, 2), inTerm(3, 10, 0, 103, 3)}
	l.Offer(inTerm(1, 10, model.NoTerm, 101, 1))
	l.Offer(lost[0])
	l.Offer(lost[1])
	drain(l)
	l.Offer(inTerm(2, 20, 10, 103, 4)) // the origin has lost 102, too, so all later events have moved by one position
	l.Offer(inTerm(3, 20, 0, 104, 5))
	l.Offer(external(6))
	if _, asked := l.Reissued(); asked {
		t.Error("the lane requests receipts before the handled events are in the log")
	}
	wantOrder(t, drain(l), "e6")
	confirmAll(l)
	if c := l.Cursor(0); c.Floor != 6 || !slices.Equal(c.Held, []uint64{4, 5}) {
		t.Errorf("the cursor is %+v", c)
	}
	of, asked := l.Reissued()
	if want := (model.Reissued{Origin: "o", Again: model.Again{Term: 20, First: 2, Last: 3}}); !asked || of != want {
		t.Fatalf("the lane requests %+v, want %+v", of, want)
	}
	l.Recall(of, handled(lost...))
	if _, asked := l.Reissued(); asked {
		t.Error("the lane repeats the request")
	}
	ev := l.Peek()
	if ev == nil || ev.ID != "o:20:2:0" || ev.Earlier == nil || ev.Earlier.Event != "o:10:3:0" {
		t.Fatalf("next is %+v", ev)
	}
	l.Take()
	if ev = l.Peek(); ev == nil || ev.ID != "o:20:3:0" || ev.Earlier != nil {
		t.Fatalf("next is %+v", ev)
	}
}

// The lane ignores receipts that it has not requested: otherwise it would forget what was handled. An event
// that is in the log under the same id has no earlier receipt.
func TestReissue_OnlyRequestedReceiptsAreAccepted(t *testing.T) {
	l := New(State{}, 0)
	lost := []model.Event{inTerm(2, 10, 0, 102, 2), inTerm(3, 10, 0, 103, 3), inTerm(4, 10, 0, 104, 4)}
	l.Offer(inTerm(1, 10, model.NoTerm, 101, 1))
	for _, ev := range lost {
		l.Offer(ev)
	}
	drain(l)
	confirmAll(l)
	own := inTerm(2, 20, 10, 103, 5)
	l.Offer(own)
	of, asked := l.Reissued()
	if !asked {
		t.Fatal("the lane requests nothing")
	}
	l.Recall(of, append(handled(lost[0], lost[2]), handled(own)...))
	l.Recall(of, nil)
	l.Offer(inTerm(3, 20, 0, 104, 6))
	for _, want := range []struct{ id, earlier string }{{"o:20:2:0", ""}, {"o:20:3:0", "o:10:4:0"}} {
		ev := l.Peek()
		if ev == nil || ev.ID != want.id || (ev.Earlier != nil) != (want.earlier != "") || ev.Earlier != nil && ev.Earlier.Event != want.earlier {
			t.Fatalf("next is %+v, want %+v", ev, want)
		}
		l.Take()
	}
}

// An event that the cursor has set aside, and that is queued after Recall, is open until it is handled: the
// cursor keeps listing it, even if it is the last event that the lane has seen.
func TestReissue_TheCursorListsAnEventQueuedBehindIt(t *testing.T) {
	l := New(State{}, 0)
	l.Offer(inTerm(1, 10, model.NoTerm, 101, 1))
	drain(l)
	confirmAll(l)
	l.Offer(inTerm(1, 20, model.NoTerm, 102, 2))
	confirmAll(l)
	for range 2 {
		if c := l.Cursor(0); c.Floor != 2 || !slices.Equal(c.Held, []uint64{2}) {
			t.Errorf("the cursor is %+v", c)
		}
		if of, asked := l.Reissued(); asked {
			l.Recall(of, nil)
		}
	}
	wantOrder(t, drain(l), "o:20:1:0")
	confirmAll(l)
	if c := l.Cursor(0); c.Floor != 2 || len(c.Held) > 0 {
		t.Errorf("the cursor is %+v", c)
	}
}

// An event of a lost term that arrives late is refused, not dropped and not handled: the clock of the server
// may have been set back.
func TestReissue_ALateEventOfALostTermIsRefused(t *testing.T) {
	l := New(State{}, 0)
	l.Offer(inTerm(1, 10, model.NoTerm, 101, 1))
	l.Offer(inTerm(4, 10, 0, 104, 2)) // its predecessor never arrives
	l.Offer(inTerm(2, 20, 10, 105, 3))
	l.Offer(inTerm(3, 10, 0, 103, 4))
	l.Offer(inTerm(1, 10, model.NoTerm, 101, 5))
	var refused []string
	for ev := l.Peek(); ev != nil; ev = l.Peek() {
		if ev.Invalid != "" {
			refused = append(refused, ev.ID)
		}
		l.Take()
	}
	wantOrder(t, refused, "o:10:4:0", "o:10:3:0")
	confirmAll(l)
	if !l.Done() {
		t.Error("something is left")
	}
}

// An event from a version without terms, or relayed by one, counts by its position.
func TestReissue_WithoutTermsPositionsCount(t *testing.T) {
	l := New(State{}, 0)
	l.Offer(inTerm(1, 10, model.NoTerm, 101, 1))
	l.Offer(inTerm(2, 0, 0, 0, 2))
	l.Offer(inTerm(3, 20, 0, 103, 3)) // the first one of its term had none
	l.Offer(inTerm(2, 0, 0, 0, 4))
	l.Offer(inTerm(5, 0, 0, 0, 5))
	l.Offer(inTerm(4, 20, 0, 104, 6))
	wantOrder(t, drain(l), "o:10:1:0", "o:0:2:0", "o:20:3:0", "o:20:4:0", "o:0:5:0")
}

// remake is the world of a property test: an origin that loses the end of its log, and with it the positions
// that it had assigned, coordinators that release in any order, more than once and too late, and a target
// that crashes. Every cause is something that the origin must send to the target.
type remake struct {
	term     uint64
	log      []model.Event // of the origin: the events that it has sent
	causes   []uint64      // causes that it has to handle again
	cause    uint64
	flight   []model.Event // read from a log, but not released yet
	stream   []model.Event
	stored   map[string]bool
	ids      uint64
	lane     *Lane
	target   *replica.Replica
	receipts []model.Receipt
	open     []model.Tx
	done     map[uint64]string // by cause: the event that was handled
	lost     bool
}

func (w *remake) takeOver() { w.term += 10 }

// send sends the event of the cause that the origin handles next.
func (w *remake) send(again bool) {
	cause := w.cause + 1
	if again && len(w.causes) > 0 {
		cause, w.causes = w.causes[0], w.causes[1:]
	} else {
		w.cause++
	}
	w.ids++
	ev := model.Event{
		ID: model.TxID{Space: "o", Epoch: w.term, N: w.ids}.Event(0), Position: uint64(len(w.log)) + 1, Term: w.term, ReplayKey: cause,
		Space: testSpace, Stream: "any",
	}
	if n := len(w.log); n == 0 {
		ev.PrevTerm = model.NoTerm
	} else if before := w.log[n-1].Term; before != w.term {
		ev.PrevTerm = before
	}
	w.log = append(w.log, ev)
	w.flight = append(w.flight, ev)
}

// lose makes the origin lose the end of its log. Some of the causes are lost, too.
func (w *remake) lose(t *rapid.T, n int) {
	keep := len(w.log) - min(n, len(w.log))
	var again []uint64
	for _, ev := range w.log[keep:] {
		if rapid.IntRange(0, 3).Draw(t, "the cause is lost, too") > 0 {
			again = append(again, ev.ReplayKey)
		}
	}
	w.lost = w.lost || keep < len(w.log)
	w.log, w.causes = w.log[:keep:keep], append(again, w.causes...)
	if rapid.Bool().Draw(t, "what is on its way is lost") {
		w.flight = slices.Clone(w.log)
	}
	w.takeOver()
}

// release puts one of the events on their way into the lane of the target.
func (w *remake) release(i int) {
	ev := w.flight[i]
	w.flight = slices.Delete(w.flight, i, i+1)
	if w.stored[ev.ID] {
		return
	}
	w.stored[ev.ID] = true
	ev.Lane = uint64(len(w.stream)) + 1
	w.stream = append(w.stream, ev)
}

// load makes the lane from the state of the target's log.
func (w *remake) load(limit, holds int) {
	w.open = nil
	w.lane = newLane(stateOf(w.target), limit, holds)
}

// read offers the events of the stream.
func (w *remake) read() {
	after := w.lane.ReadAfter()
	if again, is := w.lane.Refill(); is {
		after = again
	}
	for _, ev := range w.stream[after:] {
		if !w.lane.Offer(ev) {
			break
		}
	}
	if of, asked := w.lane.Reissued(); asked {
		var list []model.Receipt
		for _, rc := range w.receipts {
			if rc.Outcome == model.Handled && rc.Term < of.Term && rc.Pos >= of.First && rc.Pos <= of.Last {
				list = append(list, rc)
			}
		}
		w.lane.Recall(of, list)
	}
}

// handle handles the next event.
func (w *remake) handle() bool {
	ev := w.lane.Peek()
	if ev == nil {
		return false
	}
	rc := &model.Receipt{Event: ev.ID, Lane: ev.Lane, Pos: ev.Position, Term: ev.Term, ReplayKey: ev.ReplayKey, Outcome: model.Handled}
	switch {
	case ev.Invalid != "":
		rc.Outcome = model.Refused
	case ev.Earlier != nil:
		rc.Result = model.String(ev.Earlier.Event)
	}
	w.open = append(w.open, model.Tx{N: uint64(len(w.open)) + 1, Receipt: rc})
	w.lane.Take()
	return true
}

// commit confirms the handled events.
func (w *remake) commit(t *rapid.T) {
	n := w.lane.Undecided()
	c := &model.Commit{Txs: w.open, Cursor: w.lane.Cursor(n)}
	if _, err := w.target.Apply(w.target.Seq+1, c); err != nil {
		t.Fatal(err)
	}
	w.lane.Confirm(n, c.Cursor)
	for i := range w.open {
		rc := w.open[i].Receipt
		w.receipts = append(w.receipts, *rc)
		if rc.Outcome != model.Handled || !rc.Result.IsAbsent() {
			continue
		}
		if was, is := w.done[rc.ReplayKey]; is {
			t.Fatalf("cause %d is handled as %s, but was handled as %s before", rc.ReplayKey, rc.Event, was)
		}
		w.done[rc.ReplayKey] = rc.Event
	}
	w.open = nil
}

// settle releases everything that the origin has sent, and makes the target handle it.
func (w *remake) settle(t *rapid.T) {
	w.flight = append(w.flight, w.log...)
	for len(w.flight) > 0 {
		w.release(0)
	}
	for idle := 0; idle < 12; idle++ {
		w.read()
		for w.handle() {
			idle = 0
		}
		w.commit(t)
	}
}

// check compares the log of the origin with what the target has handled, in its order.
func (w *remake) check(t *rapid.T) {
	at := map[string]int{}
	for i, rc := range w.receipts {
		if _, twice := at[rc.Event]; twice {
			t.Fatalf("%s has two receipts", rc.Event)
		}
		at[rc.Event] = i
		if rc.Outcome == model.Refused && slices.ContainsFunc(w.log, func(ev model.Event) bool { return ev.ID == rc.Event }) {
			t.Fatalf("%s is in the log of its origin, but was refused", rc.Event)
		}
	}
	before := -1
	for _, ev := range w.log {
		i, is := at[ev.ID]
		if !is {
			t.Fatalf("%s, position %d of term %d, has no receipt; the lane holds %d, and knows %+v", ev.ID, ev.Position, ev.Term, w.lane.Held(), w.lane.inbound["o"])
		}
		if _, done := w.done[ev.ReplayKey]; !done {
			t.Fatalf("cause %d never took effect", ev.ReplayKey)
		}
		if i < before {
			t.Fatalf("%s is handled before an earlier event", ev.ID)
		}
		before = i
	}
	if !w.lane.Done() {
		t.Fatalf("something is left: %d held, %+v", w.lane.Held(), w.lane.inbound)
	}
	in, again := w.target.Inbound["o"], w.lane.inbound["o"]
	if in.Position != again.Position || !slices.Equal(in.Terms, again.Terms) || in.Again != again.Again {
		t.Fatalf("the log has %+v, the lane %+v", in, again)
	}
}

// Whatever an origin loses, and whenever its events arrive: every event in its log takes effect once and in
// order, and no cause takes effect twice.
func TestReissue_EveryEventInTheLogOfTheOriginTakesEffectOnce(t *testing.T) {
	met := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := &remake{term: 100, stored: map[string]bool{}, target: replica.New(testSpace), done: map[uint64]string{}}
		limit, holds := rapid.SampledFrom([]int{2, 100}).Draw(t, "limit"), rapid.SampledFrom([]int{1, 100}).Draw(t, "holds")
		w.load(limit, holds)
		for range 60 {
			switch rapid.SampledFrom([]string{"send", "send", "send", "release", "release", "release", "read", "handle", "handle", "commit", "lose", "take over", "crash"}).Draw(t, "step") {
			case "send":
				w.send(len(w.causes) > 0) // handle lost causes again first
			case "release":
				if n := len(w.flight); n > 0 {
					w.release(rapid.IntRange(0, min(n-1, 4)).Draw(t, "which"))
				}
			case "read":
				w.read()
			case "handle":
				w.handle()
			case "commit":
				w.commit(t)
			case "lose":
				w.lose(t, rapid.IntRange(1, 6).Draw(t, "how many"))
			case "take over":
				w.takeOver()
			case "crash":
				w.load(limit, holds)
			}
		}
		w.takeOver()
		for range len(w.causes) + 1 {
			w.send(true)
		}
		w.settle(t)
		w.check(t)
		for _, rc := range w.receipts {
			switch {
			case rc.Outcome == model.Refused:
				met["refused"]++
			case !rc.Result.IsAbsent():
				met["repeated"]++
			}
		}
		if w.lost {
			met["lost"]++
		}
	})
	for _, what := range []string{"refused", "repeated", "lost"} {
		if met[what] == 0 {
			t.Errorf("no %s: the run proves nothing", what)
		}
	}
	t.Log(fmt.Sprint(slices.Sorted(maps.Keys(met))), met)
}
