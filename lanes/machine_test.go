package lanes

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/settlehq/settle/internal/seeded" // see the package
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// The world of this test: one lane stream, one log with a compare-and-set on its head, and two owners that
// take the space from each other, crash, return and read the stream at irregular intervals. Every commit in
// the log is checked by a referee that does not know lanes, only the rules for the order in which events are
// handled.

const testSpace = "home"

type world struct {
	stream []model.Event
	log    []*model.Commit // sequence i+1 at index i
	// sent is the highest position that each origin has released so far.
	sent map[string]uint64
	// ahead is how far beyond sent a position may be.
	ahead   int
	referee referee
}

func newWorld() *world { return &world{sent: map[string]uint64{}, ahead: 2, referee: newReferee()} }

func (w *world) publish(ev model.Event) {
	ev.Space, ev.Stream = testSpace, "any"
	ev.Lane = w.end() + 3 // other spaces of the partition have sequences, too
	w.stream = append(w.stream, ev)
}

func (w *world) end() uint64 {
	if len(w.stream) == 0 {
		return 0
	}
	return w.stream[len(w.stream)-1].Lane
}

func (w *world) external() {
	w.publish(model.Event{ID: fmt.Sprintf("e%d", len(w.stream))})
}

func (w *world) release(origin string, pos uint64) {
	id := model.TxID{Space: origin, Epoch: 1, N: pos}.Event(0)
	w.publish(model.Event{ID: id, Position: pos})
	w.sent[origin] = max(w.sent[origin], pos)
}

// after returns the stream after a sequence.
func (w *world) after(seq uint64) []model.Event {
	i, _ := slices.BinarySearchFunc(w.stream, seq+1, func(ev model.Event, s uint64) int {
		return int(ev.Lane) - int(s)
	})
	return w.stream[i:]
}

// append is the log's compare-and-set.
func (w *world) append(t *rapid.T, expect uint64, c *model.Commit) bool {
	if expect != uint64(len(w.log)) {
		return false
	}
	w.log = append(w.log, c)
	w.referee.commit(t, w, c)
	return true
}

// referee checks the confirmed history of the space.
type referee struct {
	handled map[string]bool
	origin  map[string]uint64 // the last position handled
	lane    uint64            // the last external event
	pending []model.Event     // committed follow-ups, in the order in which they were sent
}

func newReferee() referee { return referee{handled: map[string]bool{}, origin: map[string]uint64{}} }

func (r *referee) commit(t *rapid.T, w *world, c *model.Commit) {
	for i := range c.Txs {
		r.handle(t, w, c.Txs[i].Receipt)
		for _, s := range c.Txs[i].Sends {
			r.pending = append(r.pending, s.Event())
		}
	}
	r.cursor(t, w, c.Cursor)
}

func (r *referee) handle(t *rapid.T, w *world, rc *model.Receipt) {
	if r.handled[rc.Event] {
		t.Fatalf("%s handled twice", rc.Event)
	}
	r.handled[rc.Event] = true
	switch {
	case rc.Pos > 0:
		tx, _ := model.OriginOf(rc.Event)
		if rc.Pos != r.origin[tx.Space]+1 {
			t.Fatalf("%s handled at position %d, after %d", rc.Event, rc.Pos, r.origin[tx.Space])
		}
		r.origin[tx.Space] = rc.Pos
	case rc.Lane > 0:
		if rc.Lane <= r.lane {
			t.Fatalf("%s at %d handled after %d", rc.Event, rc.Lane, r.lane)
		}
		for _, f := range r.pending {
			if f.Behind < rc.Lane {
				t.Fatalf("%s at %d handled before the follow-up %s, which queued behind %d", rc.Event, rc.Lane, f.ID, f.Behind)
			}
		}
		r.lane = rc.Lane
	default:
		r.followUp(t, w, rc.Event)
	}
}

func (r *referee) followUp(t *rapid.T, w *world, id string) {
	if len(r.pending) == 0 || r.pending[0].ID != id {
		t.Fatalf("follow-up %s handled out of turn; waiting are %v", id, ids(r.pending))
	}
	for _, ev := range w.stream {
		if ev.Position == 0 && ev.Lane <= r.pending[0].Behind && !r.handled[ev.ID] {
			t.Fatalf("follow-up %s, behind %d, handled before %s at %d", id, r.pending[0].Behind, ev.ID, ev.Lane)
		}
	}
	r.pending = r.pending[1:]
}

// cursor checks that a commit does not claim events that are not done.
func (r *referee) cursor(t *rapid.T, w *world, c model.Cursor) {
	open := map[string]bool{}
	for _, ev := range w.stream {
		if slices.Contains(c.Held, ev.Lane) {
			open[ev.ID] = true
		}
	}
	for _, ev := range w.stream {
		if ev.Lane <= c.Floor && !r.handled[ev.ID] && !open[ev.ID] {
			t.Fatalf("cursor %+v claims %s at %d", c, ev.ID, ev.Lane)
		}
	}
	if !slices.IsSorted(c.Held) || len(c.Held) > 0 && c.Held[len(c.Held)-1] > c.Floor {
		t.Fatalf("cursor %+v: held events are not in order below the floor", c)
	}
}

// queued returns the events in a lane's queue.
func queued(l *Lane) []model.Event {
	var out []model.Event
	for _, ev := range l.entries {
		out = append(out, *ev)
	}
	return out
}

func ids(evs []model.Event) []string {
	var out []string
	for i := range evs {
		out = append(out, evs[i].ID)
	}
	return out
}

// owner is a runtime that has loaded the space.
type owner struct {
	w       *world
	name    string
	limit   int
	holds   int // number of early events that are kept in memory
	lane    *Lane
	replica *replica.Replica
	epoch   uint64
	live    uint64 // how far the live reader has offered the stream

	lastTx  uint64
	open    []model.Tx
	sealed  *model.Commit
	expect  uint64
	decides int
}

func newOwner(w *world, name string, limit, holds int) *owner {
	o := &owner{w: w, name: name, limit: limit, holds: holds, replica: replica.New(testSpace)}
	o.reload(nil, 0)
	return o
}

func stateOf(r *replica.Replica) State {
	return State{Cursor: r.Cursor, Inbound: r.Inbound, Own: r.Own}
}

// reload crashes the owner and loads the space again: only the log survives, and a few pages of the stream
// are read from where the new lane requests them.
func (o *owner) reload(t *rapid.T, pages int) {
	r := replica.New(testSpace)
	for i, c := range o.w.log {
		if _, err := r.Apply(uint64(i+1), c); err != nil {
			t.Fatal(err)
		}
	}
	*o = owner{w: o.w, name: o.name, limit: o.limit, holds: o.holds, replica: r, lane: newLane(stateOf(r), o.limit, o.holds)}
	for range pages {
		batch := o.w.after(o.lane.ReadAfter())
		if !o.offerAll(batch[:min(3, len(batch))]) {
			break
		}
	}
	o.live = o.w.end()
	o.lane.LeftInStream(o.live) // the reading may have ended before that
}

func (o *owner) offerAll(evs []model.Event) bool {
	for _, ev := range evs {
		if !o.lane.Offer(ev) {
			return false
		}
	}
	return true
}

// deliver lets the live reader offer its next event, or skip it.
func (o *owner) deliver(t *rapid.T) {
	next := o.w.after(o.live)
	if len(next) == 0 {
		return
	}
	ev := next[0]
	o.live = ev.Lane
	if rapid.IntRange(0, 5).Draw(t, "overrun") == 0 {
		o.lane.LeftInStream(ev.Lane)
		return
	}
	before, beyond := o.lane.Waiting(), ev.Lane > o.lane.seen && !slices.Contains(o.lane.reclaim, ev.Lane)
	if took := o.lane.Offer(ev); took && beyond && before >= o.limit {
		t.Fatalf("%d events waiting, limit %d, but %s was taken", before, o.limit, ev.ID)
	}
}

func (o *owner) refill(t *rapid.T) {
	after, ok := o.lane.Refill()
	if !ok {
		return
	}
	batch := o.w.after(after)
	n := rapid.IntRange(1, 6).Draw(t, "page")
	o.offerAll(batch[:min(n, len(batch))])
}

// handle takes the next event and commits its transaction to the open group.
func (o *owner) handle(t *rapid.T, followUps int) {
	ev := o.lane.Peek()
	if ev == nil || o.epoch == 0 {
		return
	}
	o.lastTx++
	tx := model.Tx{N: o.lastTx, By: "handle any", Receipt: &model.Receipt{Event: ev.ID, Lane: ev.Lane, Pos: ev.Position}}
	o.lane.Take()
	for k := range followUps {
		s := model.Send{
			ID: model.TxID{Space: testSpace, Epoch: o.epoch, N: tx.N}.Event(k),
			To: testSpace, Stream: "any", Behind: o.lane.Seen(),
		}
		if got := o.lane.Follow(s.Event()); got.Behind != s.Behind {
			t.Fatalf("follow-up behind %d, Seen said %d", got.Behind, s.Behind)
		}
		tx.Sends = append(tx.Sends, s)
	}
	o.open = append(o.open, tx)
}

func (o *owner) seal() {
	if o.sealed != nil || len(o.open) == 0 {
		return
	}
	o.decides, o.expect = o.lane.Undecided(), o.replica.Seq
	o.sealed = &model.Commit{Space: testSpace, Runtime: o.name, Epoch: o.epoch, Txs: o.open, Cursor: o.lane.Cursor(o.decides)}
	o.open = nil
}

// decide makes the log accept or refuse what was sealed.
func (o *owner) decide(t *rapid.T) {
	if o.sealed == nil {
		return
	}
	c := o.sealed
	if !o.w.append(t, o.expect, c) {
		o.undo()
		o.integrate(t)
		return
	}
	o.sealed = nil
	if _, err := o.replica.Apply(o.expect+1, c); err != nil {
		t.Fatal(err)
	}
	o.lane.Confirm(o.decides, c.Cursor)
}

// undo drops everything that is not in the log.
func (o *owner) undo() {
	dead := map[string]bool{}
	note := func(txs []model.Tx) {
		for i := range txs {
			for _, s := range txs[i].Sends {
				dead[s.ID] = true
			}
		}
	}
	if o.sealed != nil {
		note(o.sealed.Txs)
	}
	note(o.open)
	o.sealed, o.open = nil, nil
	o.lane.Rewind(func(ev *model.Event) bool { return dead[ev.ID] })
}

func (o *owner) integrate(t *rapid.T) {
	for o.replica.Seq < uint64(len(o.w.log)) {
		if _, err := o.replica.Apply(o.replica.Seq+1, o.w.log[o.replica.Seq]); err != nil {
			t.Fatal(err)
		}
		o.lane.Integrate(stateOf(o.replica))
		o.epoch = 0
	}
}

// takeOver makes o the owner if it is not, provided that nothing of it is undecided.
func (o *owner) takeOver(t *rapid.T) {
	if o.epoch != 0 {
		return
	}
	o.integrate(t)
	c := &model.Commit{Space: testSpace, Runtime: o.name, Takeover: true, Cursor: o.replica.Cursor}
	if !o.w.append(t, o.replica.Seq, c) {
		t.Fatal("there is no other writer")
	}
	if _, err := o.replica.Apply(o.replica.Seq+1, c); err != nil {
		t.Fatal(err)
	}
	o.epoch, o.lastTx = o.replica.Seq, 0
}

// checkOrder compares the events in memory, after an undo, with a lane that was newly made from the confirmed
// state and has read the same part of the stream: a crash must not change the order of anything.
func (o *owner) checkOrder(t *rapid.T) {
	o.undo()
	o.integrate(t)
	if len(o.lane.reclaim) > 0 || o.holds < DefaultHeld {
		return // it has not read as far as the other, or holds less
	}
	fresh := New(stateOf(o.replica), 1<<20)
	for _, ev := range o.w.after(fresh.ReadAfter()) {
		if ev.Lane <= o.lane.seen {
			fresh.Offer(ev)
		}
	}
	if a, b := ids(queued(o.lane)), ids(queued(fresh)); !slices.Equal(a, b) {
		t.Fatalf("kept %v\nread %v\n(state %+v)", a, b, stateOf(o.replica))
	}
	if a, b := ids(o.lane.own), ids(fresh.own); !slices.Equal(a, b) {
		t.Fatalf("kept follow-ups %v, read %v", a, b)
	}
}

// finish lets one owner do all the remaining work.
func (o *owner) finish(t *rapid.T) {
	for i := 0; ; i++ {
		if i > 10000 {
			t.Fatalf("the lane is never done: %+v", o.lane)
		}
		o.takeOver(t)
		o.refillAll()
		for len(o.w.after(o.live)) > 0 {
			ev := o.w.after(o.live)[0]
			o.live = ev.Lane
			o.lane.Offer(ev)
		}
		for o.lane.Peek() != nil {
			o.handle(t, 0)
		}
		o.seal()
		o.decide(t)
		if o.lane.Done() {
			return
		}
	}
}

func (o *owner) refillAll() {
	if after, ok := o.lane.Refill(); ok {
		o.offerAll(o.w.after(after))
	}
}

// steps are the possible steps, repeated by weight. rapid shrinks a failing run to the first.
var steps = rapid.SampledFrom(slices.Concat([]string{"nothing"},
	slices.Repeat([]string{"deliver"}, 8), slices.Repeat([]string{"handle"}, 8),
	slices.Repeat([]string{"external", "release", "seal", "decide", "refill"}, 3),
	[]string{"take over", "take over", "crash", "order", "follow", "follow"},
))

func step(t *rapid.T, w *world, o *owner) {
	switch steps.Draw(t, "step") {
	case "external":
		w.external()
	case "release":
		origin := rapid.SampledFrom([]string{"north", "south"}).Draw(t, "origin")
		// The next position, a repetition, or a position that is too early.
		w.release(origin, uint64(rapid.IntRange(1, int(w.sent[origin])+w.ahead).Draw(t, "position")))
	case "deliver":
		o.deliver(t)
	case "refill":
		o.refill(t)
	case "handle":
		o.handle(t, 0)
	case "follow":
		o.handle(t, rapid.IntRange(1, 3).Draw(t, "follow-ups"))
	case "seal":
		o.seal()
	case "decide":
		o.decide(t)
	case "take over":
		if o.sealed == nil && len(o.open) == 0 {
			o.takeOver(t)
		}
	case "crash":
		o.reload(t, rapid.IntRange(0, 5).Draw(t, "pages"))
	case "order":
		o.checkOrder(t)
	}
}

// Every event is handled exactly once and in the right order (I4, I11), whatever is repeated, reordered,
// refused, left for lack of room or lost in a crash.
func TestI11_EveryEventIsHandledOnceInOrderWhateverCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { crashes(t, newWorld(), rapid.Just(DefaultHeld)) })
}

// The same with positions that arrive far too early, and almost none of them kept in memory.
func TestI11_EveryEventIsHandledOnceInOrderWhereFewAreHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.ahead = 12
		crashes(t, w, rapid.SampledFrom([]int{1, 2, 5}))
	})
}

func crashes(t *rapid.T, w *world, holds *rapid.Generator[int]) {
	limits := rapid.SampledFrom([]int{1, 2, 4, 16})
	owners := []*owner{newOwner(w, "a", limits.Draw(t, "limit"), holds.Draw(t, "holds")), newOwner(w, "b", limits.Draw(t, "limit"), holds.Draw(t, "holds"))}
	pick := rapid.SampledFrom(owners)
	var looks []look
	for i := range 500 {
		o := pick.Draw(t, "owner")
		step(t, w, o)
		if i%20 == 0 {
			looks = append(looks, lookAt(t, o.lane))
		}
	}
	for _, l := range looks {
		if now := contentsText(l.contents); now != l.was {
			t.Fatalf("contents that were %s are %s now", l.was, now)
		}
	}
	for _, origin := range slices.Sorted(maps.Keys(w.sent)) {
		for pos := uint64(1); pos <= w.sent[origin]; pos++ {
			w.release(origin, pos) // the predecessors of all early positions
		}
	}
	last := pick.Draw(t, "last")
	last.undo()
	last.finish(t)
	if len(w.referee.pending) > 0 {
		t.Fatalf("follow-ups never handled: %v", ids(w.referee.pending))
	}
	for _, ev := range w.stream {
		if !w.referee.handled[ev.ID] {
			t.Fatalf("%s at %d never handled", ev.ID, ev.Lane)
		}
	}
	if held := last.replica.Cursor.Held; len(held) > 0 {
		t.Fatalf("events %v are held although nothing is left", held)
	}
}
