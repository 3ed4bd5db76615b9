package history_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/lanes"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// author writes a lane and a log as runtimes would. Several runtimes take turns; every commit is of a runtime
// that is not deposed.
type author struct {
	server *membus.Server
	space  string
	lane   *lanes.Lane
	head   uint64
	owner  *epoch
	joined []*epoch
	// sent are all events, with the log sequence of the handled ones.
	sent    []model.Message
	handled map[string]uint64 // log sequence by event id
	// never are follow-ups of transactions that were never committed.
	never []string
	pos   uint64 // the highest position sent from north
}

type epoch struct{ seq, n uint64 }

func newAuthor(partitions int, space string) *author {
	return &author{
		server: membus.NewServer(membus.Config{Partitions: partitions}), space: space,
		lane: lanes.New(lanes.State{}, 0), handled: map[string]uint64{},
	}
}

func (a *author) append(c *model.Commit) {
	c.Version, c.Space = model.CommitVersion, a.space
	seq, err := a.server.Append(model.Append{Space: a.space, Expect: a.head, Data: model.AppendCommit(nil, c, nil)})
	if err != nil {
		panic(err)
	}
	a.head = seq
	for i := range c.Txs {
		if rc := c.Txs[i].Receipt; rc != nil {
			a.handled[rc.Event] = seq
		}
	}
}

func (a *author) takeOver() {
	a.append(&model.Commit{Takeover: true, Cursor: a.lane.Cursor(0)})
	a.owner = &epoch{seq: a.head}
}

func (a *author) join() {
	a.append(&model.Commit{Join: true, Cursor: a.lane.Cursor(0)})
	a.joined = append(a.joined, &epoch{seq: a.head})
}

// send stores an event and offers it to the lane. An event with a position waits there for its predecessor.
func (a *author) send(id string, position uint64) {
	m := model.Message{Space: a.space, Stream: "add", ID: id, Position: position}
	r, err := a.server.Send(m)
	if err != nil {
		panic(err)
	}
	m.Seq = r.Seq
	a.sent = append(a.sent, m)
	a.lane.Offer(model.Event{Space: m.Space, Stream: m.Stream, ID: m.ID, Lane: m.Seq, Position: position})
}

// commit handles up to n events in one commit, each of which sends a follow-up if follow returns true.
func (a *author) commit(e *epoch, n int, follow func() bool) {
	c := &model.Commit{Epoch: e.seq}
	for range n {
		ev := a.lane.Peek()
		if ev == nil {
			break
		}
		a.lane.Take()
		e.n++
		tx := model.Tx{N: e.n, By: receipts.By(ev.Stream), Receipt: receipts.Handled(ev, model.Value{})}
		if follow() {
			id := model.TxID{Space: a.space, Epoch: e.seq, N: e.n}.Event(0)
			queued := a.lane.Follow(model.Event{Space: a.space, Stream: "note", ID: id})
			tx.Sends = []model.Send{{ID: id, To: a.space, Stream: "note", Behind: queued.Behind}}
			a.sent = append(a.sent, model.Message{Space: a.space, Stream: "note", ID: id})
		}
		c.Txs = append(c.Txs, tx)
	}
	taken := a.lane.Undecided()
	c.Cursor = a.lane.Cursor(taken)
	a.append(c)
	a.lane.Confirm(taken, c.Cursor)
}

// lose makes a transaction that is never committed: its number is used up.
func (a *author) lose(e *epoch) {
	e.n++
	a.never = append(a.never, model.TxID{Space: a.space, Epoch: e.seq, N: e.n}.Event(0))
}

// compute makes a commit that handles nothing.
func (a *author) compute(e *epoch) {
	e.n++
	a.append(&model.Commit{Epoch: e.seq, Txs: []model.Tx{{N: e.n, By: "compute total"}}, Cursor: a.lane.Cursor(0)})
}

// reading is a bus that counts log reads, and may have lost the log's beginning.
type reading struct {
	*membus.Bus
	purged uint64 // up to this sequence
	reads  int
}

func (r *reading) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	r.reads++
	return r.Bus.ReadLog(ctx, space, max(after, r.purged), limit)
}

func (a *author) reader(t interface{ Cleanup(func()) }) *reading {
	b := a.server.Connect("reader")
	t.Cleanup(b.Close)
	return &reading{Bus: b}
}

func TestFindReceipt_ReadsAboutTheLogarithmOfTheLog(t *testing.T) {
	const n = 10_000
	a := newAuthor(1, "s")
	a.takeOver()
	for i := range n {
		a.send(fmt.Sprint("e", i), 0)
		a.commit(a.owner, 2, func() bool { return i%2 == 0 })
	}
	bus := a.reader(t)
	for _, i := range []int{0, 1, 17, n / 2, n - 3} {
		bus.reads = 0
		h, err := history.FindReceipt(t.Context(), bus, "s", "add", fmt.Sprint("e", i))
		if err != nil || h == nil || h.Tx.Receipt.Event != fmt.Sprint("e", i) || h.Seq != a.handled[h.Tx.Receipt.Event] {
			t.Fatalf("event %d: %+v, %v", i, h, err)
		}
		if most := 2 * bits.Len(n); bus.reads > most {
			t.Errorf("event %d of %d took %d reads, want at most %d", i, n, bus.reads, most)
		}
		if len(h.Tx.Sends) == 0 {
			continue
		}
		bus.reads = 0
		f, err := history.FindReceipt(t.Context(), bus, "s", "note", h.Tx.Sends[0].ID)
		if err != nil || f == nil || f.Seq != a.handled[h.Tx.Sends[0].ID] {
			t.Fatalf("follow-up of event %d: %+v, %v", i, f, err)
		}
		if most := 3 * bits.Len(n); bus.reads > most {
			t.Errorf("the follow-up of event %d took %d reads, want at most %d", i, bus.reads, most)
		}
		bus.reads = 0
		if again, err := history.FindSent(t.Context(), bus, h, &h.Tx.Sends[0]); err != nil || again == nil || again.Seq != f.Seq {
			t.Errorf("the follow-up by its origin: %+v, %v", again, err)
		}
		if bus.reads > 2 {
			t.Errorf("a follow-up with a known origin took %d reads", bus.reads)
		}
	}
}

// A follow-up of an owner that was deposed long ago is found by bisection, without a scan, whatever happened
// before it.
func TestFindReceipt_AFollowUpOfALongGoneOwnerIsFoundByBisection(t *testing.T) {
	a := newAuthor(1, "s")
	a.takeOver()
	a.send("first", 0)
	a.commit(a.owner, 1, func() bool { return true })
	a.commit(a.owner, 1, func() bool { return false })
	for range 3 {
		a.takeOver()
		for range 2000 {
			a.compute(a.owner)
		}
	}
	bus := a.reader(t)
	id := a.sent[1].ID
	h, err := history.FindReceipt(t.Context(), bus, "s", "note", id)
	if err != nil || h == nil || h.Seq != a.handled[id] {
		t.Fatalf("%+v, %v", h, err)
	}
	if bus.reads > 40 {
		t.Errorf("%d reads of a log of %d commits", bus.reads, a.head)
	}
}

// Runtimes that take turns make the search slightly longer.
func TestFindReceipt_AFollowUpAmongSeveralRuntimesIsFoundNearlyAsFast(t *testing.T) {
	a := newAuthor(1, "s")
	a.takeOver()
	for range 4 {
		a.join()
	}
	all := append(slices.Clone(a.joined), a.owner)
	for i := range 5000 {
		a.send(fmt.Sprint("e", i), 0)
		a.commit(all[(i*i+i/3)%len(all)], 2, func() bool { return i%2 == 0 })
	}
	bus := a.reader(t)
	found := 0
	for i := 1; i < len(a.sent)-10; i += 401 {
		m := a.sent[i]
		if m.Seq != 0 {
			continue
		}
		found++
		bus.reads = 0
		h, err := history.FindReceipt(t.Context(), bus, "s", m.Stream, m.ID)
		if err != nil || h == nil || h.Seq != a.handled[m.ID] {
			t.Fatalf("%s: %+v, %v", m.ID, h, err)
		}
		if bus.reads > 60 {
			t.Errorf("%s took %d reads of a log of %d", m.ID, bus.reads, a.head)
		}
	}
	if found < 5 {
		t.Errorf("%d follow-ups are too few", found)
	}
}

// Whatever several runtimes have written, and wherever the log begins, a search finds what a full scan would.
func TestFindReceipt_FindsWhatReadingTheWholeLogWould(t *testing.T) {
	var forgotten, found, none int
	rapid.Check(t, func(t *rapid.T) {
		a := newAuthor(1, "s")
		a.takeOver()
		a.write(t)
		bus := a.reader(t)
		bus.purged = uint64(rapid.IntRange(0, int(a.head)-1).Draw(t, "purged"))
		for _, m := range a.sent {
			h, err := history.FindReceipt(t.Context(), bus, "s", m.Stream, m.ID)
			switch at := a.handled[m.ID]; {
			case at > bus.purged:
				found++
				if err != nil || h == nil || h.Seq != at || h.Tx.Receipt.Event != m.ID {
					// If the origin of a follow-up was purged, nothing is known of the follow-up.
					if m.Seq == 0 && errors.Is(err, history.ErrForgotten) && originSeq(a, m.ID) <= bus.purged {
						continue
					}
					t.Fatalf("%s was handled at %d: found %+v, %v", m.ID, at, h, err)
				}
			case at > 0:
				forgotten++
				if !errors.Is(err, history.ErrForgotten) {
					t.Fatalf("%s was handled at %d, which is purged: %+v, %v", m.ID, at, h, err)
				}
			default:
				none++
				if h != nil || err != nil && !(m.Seq == 0 && bus.purged > 0 && errors.Is(err, history.ErrForgotten)) {
					t.Fatalf("%s is not handled: %+v, %v", m.ID, h, err)
				}
			}
		}
		for _, id := range append(a.never, "other", model.TxID{Space: "s", Epoch: a.head + 9, N: 1}.Event(0)) {
			if h, err := history.FindReceipt(t.Context(), bus, "s", "note", id); h != nil || err != nil && !(bus.purged > 0 && errors.Is(err, history.ErrForgotten)) {
				t.Fatalf("%s was never sent: %+v, %v", id, h, err)
			}
		}
	})
	if found == 0 || forgotten == 0 || none == 0 {
		t.Errorf("%d found, %d forgotten, %d not handled: the test needs each of them", found, forgotten, none)
	}
}

// write writes a log with every kind of commit.
func (a *author) write(t *rapid.T) {
	late := []uint64{} // positions that were skipped, and arrive later
	for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
		who := a.owner
		if n := rapid.IntRange(0, len(a.joined)).Draw(t, "who"); n > 0 {
			who = a.joined[n-1]
		}
		switch rapid.SampledFrom([]string{"send", "send", "release", "release late", "handle", "handle", "handle", "compute", "lose", "take over", "join"}).Draw(t, "step") {
		case "send":
			a.send(fmt.Sprint("e", i), 0)
		case "release":
			a.pos++
			if rapid.IntRange(0, 2).Draw(t, "late") == 0 {
				late = append(late, a.pos)
				a.pos++
			}
			a.send(model.TxID{Space: "north", Epoch: 1, N: a.pos}.Event(0), a.pos)
		case "release late":
			if len(late) > 0 {
				a.send(model.TxID{Space: "north", Epoch: 1, N: late[0]}.Event(0), late[0])
				late = late[1:]
			}
		case "handle":
			a.commit(who, rapid.IntRange(1, 4).Draw(t, "events"), func() bool { return rapid.Bool().Draw(t, "follow") })
		case "compute":
			a.compute(who)
		case "lose":
			a.lose(who)
		case "take over":
			a.takeOver()
		case "join":
			a.join()
		}
	}
}

// originSeq returns the log sequence of the commit that sent a follow-up.
func originSeq(a *author, id string) uint64 {
	for _, e := range a.server.ReadLog(a.space, 0, 1<<30) {
		c, err := model.DecodeCommit(e.Data)
		if err != nil {
			panic(err)
		}
		for i := range c.Txs {
			if slices.ContainsFunc(c.Txs[i].Sends, func(s model.Send) bool { return s.ID == id }) {
				return e.Seq
			}
		}
	}
	return 0
}
