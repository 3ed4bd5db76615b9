package buscontract

import (
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// Calls that a worker needs when a lane has lost its end.
var fillChecks = []check{
	{"LaneEvent is the event at a sequence", laneEventAt},
	{"LaneBefore is the last sequence before a time", laneBefore},
	{"FillLane takes names and reaches the sequence, and readers do not see its fillers", fillLane},
	{"FillLane leaves present events alone", fillLaneAgain},
	{"LogTail is the last entries of a partition", logTail},
	{"MovePosition moves a position back", movePosition},
	{"PositionStored is the time at which a position was saved", positionStored},
	{"SavedSpaces are those with a mark", savedSpaces},
}

func (w *world) laneEvent(c Client, seq uint64) (model.Message, bool) {
	w.Helper()
	m, there, err := c.LaneEvent(w.ctx, 0, seq)
	w.must(err)
	return m, there
}

func laneEventAt(w *world) {
	c := w.connect("a")
	w.sendAll(c, cart, "e1", "e2")
	m, there := w.laneEvent(c, 2)
	w.equal("the event at 2", m.Space+" "+m.ID, cart+" e2")
	w.equal("its sequence, and whether it is there", []any{m.Seq, there}, []any{uint64(2), true})
	for _, seq := range []uint64{0, 3} {
		_, there := w.laneEvent(c, seq)
		w.equal("whether there is an event where none is", there, false)
	}
	if _, _, err := c.LaneEvent(w.ctx, partitions, 1); err == nil {
		w.Error("a partition that does not exist has an event")
	}
}

func laneBefore(w *world) {
	c := w.connect("a")
	before := func(at time.Time) uint64 {
		seq, err := c.LaneBefore(w.ctx, 0, at)
		w.must(err)
		return seq
	}
	w.equal("in an empty lane", before(time.Unix(1<<40, 0)), uint64(0))
	w.sendAll(c, cart, "e1", "e2", "e3")
	first, _ := w.laneEvent(c, 1)
	w.equal("before the first", before(first.Stored), uint64(0))
	w.equal("long after the last", before(first.Stored.Add(1000*time.Hour)), uint64(3))
}

func fillLane(w *world) {
	c, other := w.connect("a"), w.connect("b")
	w.sendAll(c, cart, "e1")
	followed := recordLane(w, other, 0, 0)
	lost := []model.Message{event(cart, "lost-1"), event(space(0, 1), "lost-2")}
	w.must(c.FillLane(w.ctx, 0, 6, lost))
	w.equal("end of the lane", w.laneEnd(other, 0), uint64(6))
	for _, m := range lost {
		w.equal("whether it is a duplicate", w.mustSend(other, m).Duplicate, true)
		_, found, err := other.FindEvent(w.ctx, m.Space, m.Stream, m.ID)
		w.must(err)
		anywhere, err := other.FindEvents(w.ctx, "", m.ID)
		w.must(err)
		w.equal("whether what only takes its name is found", found || len(anywhere) > 0, false)
	}
	w.equal("the next event", w.mustSend(c, event(cart, "e2")).Seq, uint64(7))
	w.wantLane(other, cart, "e1", "e2")
	w.equal("what is followed", eventIDs(followed.take(2)), []string{"e1", "e2"})
	for seq := uint64(2); seq <= 6; seq++ {
		m, there := w.laneEvent(other, seq)
		w.equal("what fills", []any{m.Space, m.Seq, there}, []any{"", seq, true})
	}
}

func fillLaneAgain(w *world) {
	c := w.connect("a")
	w.sendAll(c, cart, "e1", "e2", "e3")
	for range 2 {
		w.must(c.FillLane(w.ctx, 0, 2, []model.Message{event(cart, "e2")}))
	}
	w.equal("end of the lane", w.laneEnd(c, 0), uint64(3))
	w.wantLane(c, cart, "e1", "e2", "e3")
	if err := c.FillLane(w.ctx, partitions, 1, nil); err == nil {
		w.Error("the lane of a partition that does not exist was filled")
	}
}

func logTail(w *world) {
	c := w.connect("a")
	tail := func(n int) []string {
		entries, err := c.LogTail(w.ctx, 0, n)
		w.must(err)
		return entryIDs(entries)
	}
	w.equal("the tail of an empty log", len(tail(5)), 0)
	head := w.chain(c, cart, 0, "a/0/1", "a/0/2")
	w.chain(c, space(0, 1), 0, "b/0/1")
	w.chain(c, cart, head, "a/0/3")
	w.equal("the last two", tail(2), []string{"b/0/1", "a/0/3"})
	w.equal("more than there are", tail(100), []string{"a/0/1", "a/0/2", "b/0/1", "a/0/3"})
}

func movePosition(w *world) {
	a, b := w.connect("a"), w.connect("b")
	w.must(a.SavePosition(w.ctx, 0, "lane", 50))
	w.must(b.MovePosition(w.ctx, 0, "lane", 20))
	w.wantPosition(a, 0, "lane", 20)
	w.must(a.SavePosition(w.ctx, 0, "lane", 10)) // a smaller position still has no effect
	w.wantPosition(b, 0, "lane", 20)
	w.must(a.SavePosition(w.ctx, 0, "lane", 30)) // though a has saved a larger one before
	w.wantPosition(b, 0, "lane", 30)
	w.must(b.MovePosition(w.ctx, 0, "lane", 40))
	w.wantPosition(a, 0, "lane", 40)
}

func positionStored(w *world) {
	a, b := w.connect("a"), w.connect("b")
	stored := func(name string) time.Time {
		at, err := b.PositionStored(w.ctx, 0, name)
		w.must(err)
		return at
	}
	w.equal("whether one that never was has a time", stored("lane").IsZero(), true)
	w.sendAll(a, cart, "e1")
	w.must(a.SavePosition(w.ctx, 0, "lane", 1))
	before, _ := w.laneEvent(a, 1)
	first := stored("lane")
	w.equal("whether it is older than what was stored before", first.Before(before.Stored), false)
	w.must(a.SavePosition(w.ctx, 0, "lane", 1)) // which has no effect
	w.equal("when it was stored", stored("lane"), first)
	w.equal("whether another one has a time", stored("released").IsZero(), true)
	if _, err := a.PositionStored(w.ctx, partitions, "lane"); err == nil {
		w.Error("a partition that does not exist has a position")
	}
}

func savedSpaces(w *world) {
	c := w.connect("a")
	saved := func() []string {
		spaces, err := w.connect("b").SavedSpaces(w.ctx, 0)
		w.must(err)
		return spaces
	}
	w.equal("how many there are at first", len(saved()), 0)
	other := space(0, 1)
	mark, only := doc("", `{}`, 9), doc("d", "1", 9)
	w.must(w.save(c, cart, &mark, doc("d", "1", 9)))
	mark = doc("", `{}`, 3)
	w.must(w.save(c, other, &mark))
	w.must(w.save(c, space(0, 2), nil, only)) // no mark
	mark = doc("", `{}`, 4)
	w.must(w.save(c, space(1, 0), &mark))
	want := []string{cart, other}
	slices.Sort(want)
	w.equal("those of the partition", saved(), want)
	if _, err := c.SavedSpaces(w.ctx, partitions); err == nil {
		w.Error("a partition that does not exist has spaces")
	}
}
