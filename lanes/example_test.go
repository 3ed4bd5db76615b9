package lanes_test

import (
	"fmt"
	"strings"

	"github.com/settlehq/settle/lanes"
	"github.com/settlehq/settle/model"
)

// at returns an event with a sequence in the lane stream.
func at(seq uint64) model.Event {
	return model.Event{Space: "alice", Stream: "pay", ID: fmt.Sprint("e", seq), Lane: seq}
}

// sentBy returns the n-th event from a space to this one, with a sequence in the lane stream.
func sentBy(origin string, n, seq uint64) model.Event {
	ev := at(seq)
	ev.ID, ev.Position = model.TxID{Space: origin, Epoch: 1, N: n}.Event(0), n
	return ev
}

func handleAll(l *lanes.Lane) {
	var ids []string
	for ev := l.Peek(); ev != nil; ev = l.Peek() {
		ids = append(ids, ev.ID)
		l.Take()
	}
	fmt.Println(strings.Join(ids, " "))
}

// A lane used directly: events are offered as they are read, handled in order, and done when the commit with
// their receipts is stored. The next owner needs only the cursor of that commit.
func Example() {
	l := lanes.New(lanes.State{}, 0)
	for seq := uint64(1); seq <= 3; seq++ {
		l.Offer(at(seq))
	}
	fmt.Println("handle", l.Peek().ID)
	l.Take()
	cursor := l.Cursor(l.Undecided()) // goes into the commit, together with the handler's writes
	// ... the log has accepted the commit:
	l.Confirm(1, cursor)

	// This process dies. The next one reads the log, and then the stream again:
	next := lanes.New(lanes.State{Cursor: cursor}, 0)
	for seq := next.ReadAfter() + 1; seq <= 3; seq++ {
		next.Offer(at(seq))
	}
	next.Offer(at(1)) // a repetition
	handleAll(next)
	// Output:
	// handle e1
	// e2 e3
}

func ExampleLane_Confirm() {
	l := lanes.New(lanes.State{}, 0)
	l.Offer(at(1))
	l.Offer(at(2))
	l.Take()
	l.Take()
	first := l.Cursor(1) // of a commit that carries e1 only
	l.Confirm(1, first)
	fmt.Println(first.Floor, l.Undecided())
	// Output: 1 1
}

func ExampleLane_Done() {
	l := lanes.New(lanes.State{}, 0)
	l.Offer(at(1))
	l.Take()
	fmt.Println(l.Done())
	l.Confirm(1, l.Cursor(1))
	fmt.Println(l.Done())
	// Output:
	// false
	// true
}

func ExampleLane_Waiting() {
	l := lanes.New(lanes.State{}, 0)
	l.Offer(at(1))
	l.Offer(at(1))
	fmt.Println(l.Waiting())
	// Output: 1
}

func ExampleLane_Room() {
	l := lanes.New(lanes.State{}, 3)
	l.Offer(at(1))
	fmt.Println(l.Room())
	// Output: 2
}

func ExampleLane_Undecided() {
	l := lanes.New(lanes.State{}, 0)
	l.Offer(at(1))
	l.Take()
	fmt.Println(l.Undecided())
	// Output: 1
}

// Two owners at once: the log refuses the commit of the one that did not know the other's.
func ExampleLane_Integrate() {
	l := lanes.New(lanes.State{}, 0)
	for seq := uint64(1); seq <= 3; seq++ {
		l.Offer(at(seq))
	}
	l.Take()
	l.Take()
	// Refused: another owner has committed e1.
	l.Rewind(func(*model.Event) bool { return false })
	l.Integrate(lanes.State{Cursor: model.Cursor{Floor: 1}})
	handleAll(l)
	// Output: e2 e3
}

func ExampleNew() {
	// The state of the log (package replica): everything up to 7 is done except 5, alice's third event to
	// this space was the last one handled, and a follow-up waits behind 6.
	l := lanes.New(lanes.State{
		Cursor:  model.Cursor{Floor: 7, Held: []uint64{5}},
		Inbound: map[string]model.Received{"alice": {Position: 3}},
		Own:     []model.Event{{ID: "own", Behind: 6}},
	}, lanes.DefaultLimit)
	after, again := l.Refill()
	fmt.Println("read after", after, again)
	l.Offer(at(5))
	l.Offer(sentBy("alice", 3, 8)) // handled already
	l.Offer(sentBy("alice", 4, 9))
	handleAll(l)
	// Output:
	// read after 4 true
	// e5 own alice:1:4:0
}

// Events that do not fit stay in the stream, and are requested when there is room.
func ExampleLane_Offer() {
	l := lanes.New(lanes.State{}, 2)
	for seq := uint64(1); seq <= 4; seq++ {
		fmt.Println(seq, l.Offer(at(seq)))
	}
	handleAll(l)
	after, again := l.Refill()
	fmt.Println(after, again)
	// Output:
	// 1 true
	// 2 true
	// 3 false
	// 4 false
	// e1 e2
	// 2 true
}

func ExampleLane_LeftInStream() {
	l := lanes.New(lanes.State{}, 0)
	l.LeftInStream(9) // the process had no room for it
	after, again := l.Refill()
	fmt.Println(after, again, l.Done())
	// Output: 0 true false
}

func ExampleLane_Refill() {
	l := lanes.New(lanes.State{}, 0)
	_, again := l.Refill()
	fmt.Println(again)
	// Output: false
}

func ExampleLane_ReadAfter() {
	l := lanes.New(lanes.State{Cursor: model.Cursor{Floor: 7, Held: []uint64{5}}}, 0)
	fmt.Println(l.ReadAfter()) // 5 was set aside
	// Output: 4
}

// An event from another space waits for the one before it, in whatever order they arrive, and is taken once.
func ExampleLane_Held() {
	l := lanes.New(lanes.State{}, 0)
	l.Offer(sentBy("bob", 2, 1))
	fmt.Println(l.Held())
	l.Offer(sentBy("bob", 1, 2))
	l.Offer(sentBy("bob", 2, 3))
	fmt.Println(l.Held())
	handleAll(l)
	// Output:
	// 1
	// 0
	// bob:1:1:0 bob:1:2:0
}

// An event that a handler sends to its own space queues behind those in the lane, and remembers that place.
func ExampleLane_Follow() {
	l := lanes.New(lanes.State{}, 0)
	l.Offer(at(1))
	l.Offer(at(2))
	l.Take()
	own := l.Follow(model.Event{Space: "alice", ID: "own"})
	l.Offer(at(3))
	fmt.Println("behind", own.Behind)
	handleAll(l)
	// Output:
	// behind 2
	// e2 own e3
}

// The follow-ups of a refused commit vanish.
func ExampleLane_Rewind() {
	l := lanes.New(lanes.State{}, 0)
	l.Offer(at(1))
	l.Take()
	l.Follow(model.Event{Space: "alice", ID: "own"})
	l.Rewind(func(ev *model.Event) bool { return ev.ID == "own" })
	handleAll(l)
	// Output: e1
}

func ExampleLane_Withdraw() {
	l := lanes.New(lanes.State{}, 0)
	l.Follow(model.Event{ID: "timer", Slot: 1}) // its time has come
	l.Withdraw(func(ev *model.Event) bool { return ev.ID == "timer" })
	fmt.Println(l.Waiting())
	// Output: 0
}

func ExampleLane_Peek() {
	l := lanes.New(lanes.State{}, 0)
	fmt.Println(l.Peek() == nil)
	l.Offer(at(1))
	fmt.Println(l.Peek().ID, l.Peek().ID)
	// Output:
	// true
	// e1 e1
}

// An event that is taken is undecided until a commit with it is confirmed.
func ExampleLane_Take() {
	l := lanes.New(lanes.State{}, 0)
	l.Offer(at(1))
	fmt.Println(l.Waiting(), l.Undecided(), l.Room() == lanes.DefaultLimit-1)
	l.Take()
	fmt.Println(l.Waiting(), l.Undecided(), l.Room() == lanes.DefaultLimit)
	l.Confirm(1, l.Cursor(1))
	fmt.Println(l.Waiting(), l.Undecided())
	// Output:
	// 1 0 true
	// 0 1 true
	// 0 0
}

func ExampleLane_Quiet() {
	l := lanes.New(lanes.State{}, 0)
	l.Offer(at(1))
	l.Take()
	fmt.Println("quiet:", l.Quiet(), "done:", l.Done())
	// Output: quiet: true done: false
}

func ExampleLane_Seen() {
	l := lanes.New(lanes.State{}, 0)
	l.Offer(at(4))
	fmt.Println(l.Seen())
	// Output: 4
}

// The cursor of a commit covers everything handled up to it. An event that came out of order and is not
// handled yet is listed.
func ExampleLane_Cursor() {
	l := lanes.New(lanes.State{}, 0)
	l.Offer(sentBy("bob", 2, 1)) // waits for bob's first
	l.Offer(at(2))
	l.Take()
	fmt.Println(l.Cursor(0), l.Cursor(1))
	// Output: {0 []} {2 [1]}
}

// The log of alice has lost its end: position 4 is assigned again, in a later term. The receipts have the
// event that was handled under it; the key of an event distinguishes a repeated send by alice from a new one.
func ExampleLane_Recall() {
	l := lanes.New(lanes.State{Inbound: map[string]model.Received{"alice": {Position: 5, Terms: []model.TermStart{{Term: 100, First: 1}}}}}, 0)
	for i, key := range []uint64{71, 72} {
		l.Offer(model.Event{ID: fmt.Sprintf("alice:9:%d:0", i), Lane: uint64(8 + i), Position: uint64(4 + i), Term: 200, PrevTerm: 100 * uint64(1-i), ReplayKey: key})
	}
	of, asked := l.Reissued()
	fmt.Println(asked, of.Origin, of.First, of.Last)
	l.Recall(of, []model.Receipt{{Event: "alice:1:4:0", ReplayKey: 71, Outcome: model.Handled}})
	for ev := l.Peek(); ev != nil; ev = l.Peek() {
		fmt.Println(ev.ID, ev.Earlier != nil)
		l.Take()
	}
	// Output:
	// true alice 4 5
	// alice:9:0:0 true
	// alice:9:1:0 false
}
