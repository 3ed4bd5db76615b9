package buscontract

import (
	"time"

	"github.com/settlehq/settle/model"
)

var purgeChecks = []check{
	{"a purge removes old events up to its bound", purgeUpTo},
	{"a purge keeps young events", purgeKeepsTheYoung},
	{"a purge never removes the last event", purgeKeepsTheLast},
	{"a repeated or late purge changes nothing", purgeAgain},
	{"an id that was purged can be stored again, behind all others", purgedIDIsFree},
	{"a purge affects one partition", purgeOnePartition},
	{"a follower continues after the purged events", followOverAPurge},
	{"a lane that was full has room after a purge", purgeMakesRoom},
}

// old is an age that every event has reached.
const old = time.Duration(0)

func (w *world) purge(c Client, partition int, upTo uint64, age time.Duration) {
	w.Helper()
	for {
		more, err := c.PurgeLane(w.ctx, partition, upTo, age)
		w.must(err)
		if !more {
			return
		}
	}
}

func purgeUpTo(w *world) {
	c := w.connect("a")
	ids := numbered("e-", 10)
	w.sendAll(c, cart, ids...)
	w.purge(c, 0, 0, old)
	w.wantLane(c, cart, ids...)
	w.purge(c, 0, 4, old)
	w.wantLane(c, cart, ids[4:]...)
	w.equal("first sequence that is left", w.lane(c, cart)[0].Seq, uint64(5))
	w.equal("end", w.laneEnd(c, 0), uint64(10))
	if _, ok, err := c.FindEvent(w.ctx, cart, "add", ids[3]); ok || err != nil {
		w.Errorf("an event that was purged is found: %v, %v", ok, err)
	}
	w.wantLog(c, cart)
}

func purgeKeepsTheYoung(w *world) {
	c := w.connect("a")
	ids := numbered("e-", 3)
	w.sendAll(c, cart, ids...)
	w.purge(c, 0, 3, time.Hour)
	w.wantLane(c, cart, ids...)
}

func purgeKeepsTheLast(w *world) {
	c := w.connect("a")
	w.purge(c, 0, 1<<40, old) // an empty lane
	w.sendAll(c, cart, numbered("e-", 3)...)
	w.purge(c, 0, 1<<40, old)
	w.wantLane(c, cart, "e-3")
	w.equal("end", w.laneEnd(c, 0), uint64(3))
	w.purge(c, 0, 1<<40, old)
	w.wantLane(c, cart, "e-3")
	w.equal("next", w.mustSend(c, event(cart, "e-4")).Seq, uint64(4))
}

func purgeAgain(w *world) {
	a, b := w.connect("a"), w.connect("b")
	ids := numbered("e-", 9)
	w.sendAll(a, cart, ids...)
	w.purge(a, 0, 6, old)
	w.purge(b, 0, 6, old)
	w.purge(b, 0, 2, old) // by a client with an older bound
	w.wantLane(a, cart, ids[6:]...)
}

func purgedIDIsFree(w *world) {
	c := w.connect("a")
	w.sendAll(c, cart, numbered("e-", 3)...)
	w.purge(c, 0, 1, old)
	w.equal("answer for an id that is there", w.mustSend(c, event(cart, "e-2")), model.SendResult{Duplicate: true})
	w.equal("answer for an id that was purged", w.mustSend(c, event(cart, "e-1")), model.SendResult{Seq: 4})
	w.wantLane(c, cart, "e-2", "e-3", "e-1")
}

func purgeOnePartition(w *world) {
	c := w.connect("a")
	other := space(1, 0)
	w.sendAll(c, cart, "e-1", "e-2")
	w.sendAll(c, other, "e-1", "e-2")
	w.purge(c, 1, 2, old)
	w.wantLane(c, cart, "e-1", "e-2")
	w.wantLane(c, other, "e-2")
	if _, err := c.PurgeLane(w.ctx, partitions, 1, old); err == nil {
		w.Error("a partition that does not exist was purged")
	}
}

func followOverAPurge(w *world) {
	c := w.connect("a")
	ids := numbered("e-", 8)
	w.sendAll(c, cart, ids[:6]...)
	w.purge(c, 0, 4, old)
	whole, tail := recordLane(w, c, 0, 0), recordLane(w, c, 0, 5)
	w.equal("from the start", eventIDs(whole.take(2)), ids[4:6])
	w.equal("from behind the purge", eventIDs(tail.take(1)), ids[5:6])
	w.purge(c, 0, 5, old)
	w.sendAll(c, cart, ids[6:]...)
	w.equal("what is new", eventIDs(whole.take(2)), ids[6:])
	w.equal("what is new", eventIDs(tail.take(2)), ids[6:])
	page, err := c.ReadLane(w.ctx, cart, 2, 2)
	w.must(err)
	w.equal("a page from within what was purged", eventIDs(page), ids[5:7])
}

func purgeMakesRoom(w *world) {
	c := w.connect("a")
	w.LimitLanes(w.T, 3)
	w.sendAll(c, cart, numbered("e-", 3)...)
	if _, err := w.send(c, event(cart, "e-4")); err == nil {
		w.Fatal("the lane is not full")
	}
	w.purge(c, 0, 2, old)
	w.sendAll(c, cart, "e-4", "e-5")
	w.wantLane(c, cart, "e-3", "e-4", "e-5")
}
