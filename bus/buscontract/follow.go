package buscontract

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/settlehq/settle/model"
)

var followChecks = []check{
	{"FollowSpace delivers the entries after its sequence and then new ones", followSpace},
	{"FollowSpace leaves out the other spaces of the partition", followSpaceAlone},
	{"FollowLog delivers all spaces of its partition in their common order", followLog},
	{"every reader sees whether an entry is inert", inertEntries},
	{"FollowReleases delivers every entry, and the data of those that are not inert, however many are", followReleases},
	{"a sequence beyond the end is waited for", followFromTheFuture},
	{"old and new entries join without a gap under load", followUnderLoad},
	{"a long past is delivered whole and in order", followLongPast},
	{"a follower that takes its time misses nothing", slowFollower},
	{"every follower gets every entry", manyFollowers},
	{"followers continue after a disconnection with no gap and no repetition", followAcrossDisconnection},
	{"a follower that starts while disconnected begins when the server is back", followStartsDisconnected},
	{"a follow ends with its context and delivers nothing after it has returned", followEndsWithContext},
	{"a lost acknowledgement is followed once", followInDoubt},
}

func followSpace(w *world) {
	c := w.connect("a")
	ids := numbered("a/0/", 10)
	fourth := w.chain(c, cart, 0, ids[:4]...)
	head := w.chain(c, cart, fourth, ids[4:6]...)
	whole, part, tail := recordSpace(w, c, cart, 0), recordSpace(w, c, cart, fourth), recordSpace(w, c, cart, head)
	w.equal("from the start", entryIDs(whole.take(6)), ids[:6])
	w.equal("from a sequence", entryIDs(part.take(2)), ids[4:6])
	w.chain(c, cart, head, ids[6:]...)
	stored := w.log(c, cart)
	for _, r := range []*recording[model.LogEntry]{whole, part, tail} {
		w.equal("what is new", r.take(4), stored[6:])
		w.equal("beyond it", entryIDs(r.rest()), []string{})
	}
}

func followSpaceAlone(w *world) {
	c, other := w.connect("a"), space(0, 1)
	r := recordSpace(w, c, cart, 0)
	mine, theirs := uint64(0), uint64(0)
	for i := range 10 {
		theirs = w.mustAppend(c, commit(other, fmt.Sprintf("other/0/%d", i), theirs))
		mine = w.mustAppend(c, commit(cart, fmt.Sprintf("a/0/%d", i+1), mine))
	}
	w.equal("followed", entryIDs(r.take(10)), numbered("a/0/", 10))
	w.equal("beyond it", entryIDs(r.rest()), []string{})
}

func followLog(w *world) {
	c := w.connect("a")
	heads := map[string]uint64{}
	add := func(i int) {
		s := []string{space(0, 0), space(0, 1), space(1, 0), space(0, 2)}[i%4]
		heads[s] = w.mustAppend(c, commit(s, fmt.Sprintf("a/0/%d", i), heads[s]))
	}
	for i := range 12 {
		add(i)
	}
	whole, part := recordLog(w, c, 0, 0), recordLog(w, c, 0, 5)
	for i := 12; i < 24; i++ {
		add(i)
	}
	got := whole.take(18)
	for i, e := range got {
		w.equal("sequence", e.Seq, uint64(i+1))
	}
	w.equal("from a sequence", part.take(13), got[5:])
	w.equal("beyond", append(entryIDs(whole.rest()), entryIDs(part.rest())...), []string{})
	for _, s := range []string{space(0, 0), space(0, 1), space(0, 2)} {
		var of []model.LogEntry
		for _, e := range got {
			if e.Space == s {
				of = append(of, e)
			}
		}
		w.equal("entries of "+s, of, w.log(c, s))
	}
	if err := c.FollowLog(w.ctx, partitions, 0, func(model.LogEntry) {}); err == nil || w.ctx.Err() != nil {
		w.Errorf("following a partition that does not exist: %v, want an error", err)
	}
}

func inertEntries(w *world) {
	c := w.connect("a")
	first := w.mustAppend(c, inert(cart, "a/0/1", 0))
	w.mustAppend(c, commit(cart, "a/0/2", first))
	want := []bool{true, false}
	of := func(entries []model.LogEntry) (list []bool) {
		for _, e := range entries {
			list = append(list, e.Inert)
		}
		return list
	}
	w.equal("ReadLog", of(w.log(c, cart)), want)
	ofSpace, ofLog := recordSpace(w, c, cart, 0), recordLog(w, c, 0, 0)
	w.equal("FollowSpace", of(ofSpace.take(2)), want)
	w.equal("FollowLog", of(ofLog.take(2)), want)
	third := w.mustAppend(c, inert(cart, "a/0/3", first+1))
	w.equal("new, by FollowSpace", ofSpace.next().Inert, true)
	w.equal("new, by FollowLog", ofLog.next().Inert, true)
	w.mustAppend(c, commit(cart, "a/0/4", third))
	w.equal("the other, by FollowSpace", ofSpace.next().Inert, false)
	w.equal("the other, by FollowLog", ofLog.next().Inert, false)
}

// inert is commit for an append that is inert.
func inert(space, id string, expect uint64) model.Append {
	a := commit(space, id, expect)
	a.Inert = true
	return a
}

// followReleases has stretches of inert entries that are long enough for a bus to leave out their data, with few others among them, and
// then many.
func followReleases(w *world) {
	c := w.connect("a")
	follow := func(after uint64) *recording[model.LogEntry] {
		return record(w, func(ctx context.Context, deliver func(model.LogEntry)) error {
			return c.FollowReleases(ctx, 0, after, deliver)
		})
	}
	head, n := uint64(0), 0
	add := func(isInert bool) {
		n++
		a := commit(cart, fmt.Sprintf("a/0/%d", n), head)
		a.Inert = isInert
		head = w.mustAppend(c, a)
	}
	r := follow(0)
	for i := range 700 {
		add(i%150 != 0 && i < 650)
	}
	for i := range 300 {
		add(i != 290)
	}
	late := follow(700)
	check := func(what string, got []model.LogEntry, after uint64) {
		for i, e := range got {
			seq := after + uint64(i) + 1
			isInert := seq != 991 && (seq > 700 || (seq-1)%150 != 0 && seq <= 650)
			if e.Seq != seq || e.Space != cart || e.ID != fmt.Sprintf("a/0/%d", seq) || e.Prev != seq-1 || e.Inert != isInert || e.Stored.IsZero() {
				w.Fatalf("%s: entry %d is %+v", what, seq, e)
			}
			if string(e.Data) != "data of "+e.ID && !(isInert && len(e.Data) == 0) {
				w.Fatalf("%s: the data of entry %d is %q", what, seq, e.Data)
			}
		}
	}
	check("from the start", r.take(1000), 0)
	check("from a sequence", late.take(300), 700)
	w.equal("beyond", append(entryIDs(r.rest()), entryIDs(late.rest())...), []string{})
	if err := c.FollowReleases(w.ctx, partitions, 0, func(model.LogEntry) {}); err == nil || w.ctx.Err() != nil {
		w.Errorf("following a partition that does not exist: %v, want an error", err)
	}
}

func followFromTheFuture(w *world) {
	c := w.connect("a")
	w.chain(c, cart, 0, "a/0/1")
	w.sendAll(c, cart, "e1")
	ofSpace, ofLog, ofLane := recordSpace(w, c, cart, 3), recordLog(w, c, 0, 3), recordLane(w, c, 0, 3)
	w.chain(c, cart, 1, "a/0/2", "a/0/3", "a/0/4")
	w.sendAll(c, cart, "e2", "e3", "e4")
	w.equal("space", ofSpace.next().Seq, uint64(4))
	w.equal("log", ofLog.next().Seq, uint64(4))
	w.equal("lane", ofLane.next().Seq, uint64(4))
}

// followUnderLoad starts followers at every moment of a run of appends, so that some start between the last old
// entry and the first new one.
func followUnderLoad(w *world) {
	c, reader := w.connect("a"), w.connect("b")
	ids := numbered("a/0/", 40)
	var head uint64
	var entries []*recording[model.LogEntry]
	var events []*recording[model.Message]
	for i, id := range ids {
		next := w.startAppend(c, commit(cart, id, head))
		sent := w.startSend(c, event(cart, fmt.Sprintf("e-%d", i+1)))
		if i%4 == 0 {
			entries = append(entries, recordSpace(w, reader, cart, 0), recordLog(w, reader, 0, 0))
			events = append(events, recordLane(w, reader, 0, 0))
		}
		var err error
		head, err = next.wait()
		w.must(err)
		_, err = sent.wait()
		w.must(err)
	}
	for _, r := range entries {
		w.equal("followed", entryIDs(r.take(len(ids))), ids)
		w.equal("beyond it", entryIDs(r.rest()), []string{})
	}
	for _, r := range events {
		w.equal("followed", eventIDs(r.take(len(ids))), numbered("e-", len(ids)))
		w.equal("beyond it", eventIDs(r.rest()), []string{})
	}
}

func followLongPast(w *world) {
	const n = 1500 // more than any bus fetches at a time
	c := w.connect("a")
	head := w.chain(c, cart, 0, numbered("a/0/", n)...)
	var sends []*answer[model.SendResult]
	for _, id := range numbered("e-", n) {
		sends = append(sends, w.startSend(c, event(cart, id)))
	}
	for _, s := range sends {
		_, err := s.wait()
		w.must(err)
	}
	ofSpace, ofLog, ofLane := recordSpace(w, c, cart, 0), recordLog(w, c, 0, 0), recordLane(w, c, 0, 0)
	w.chain(c, cart, head, "a/0/last")
	w.sendAll(c, cart, "last")
	want := append(numbered("a/0/", n), "a/0/last")
	w.equal("space", entryIDs(ofSpace.take(n+1)), want)
	w.equal("log", entryIDs(ofLog.take(n+1)), want)
	for i, m := range ofLane.take(n + 1) {
		w.equal("lane", m.Seq, uint64(i+1))
	}
	w.equal("read", len(w.log(c, cart)), n+1)
	w.equal("read", len(w.lane(c, cart)), n+1)
}

// slowFollower: a follower that is blocked must not lose what is appended meanwhile, however much that is.
func slowFollower(w *world) {
	const n = 600
	c, reader := w.connect("a"), w.connect("b")
	stuck, proceed := make(chan struct{}, 2), make(chan struct{})
	release := sync.OnceFunc(func() { close(proceed) })
	entries := record(w, func(ctx context.Context, deliver func(model.LogEntry)) error {
		return reader.FollowSpace(ctx, cart, 0, stopAtFirst(stuck, proceed, deliver))
	})
	events := record(w, func(ctx context.Context, deliver func(model.Message)) error {
		return reader.FollowLane(ctx, 0, 0, stopAtFirst(stuck, proceed, deliver))
	})
	w.Cleanup(release) // before the recordings end, which wait for it
	head := w.chain(c, cart, 0, "a/0/1")
	w.sendAll(c, cart, "e-1")
	for range 2 {
		w.await("the first delivery", stuck)
	}
	payload := make([]byte, 4<<10)
	for i := 2; i <= n; i++ {
		head = w.mustAppend(c, model.Append{Space: cart, ID: fmt.Sprintf("a/0/%d", i), Expect: head, Data: payload})
		w.mustSend(c, model.Message{Space: cart, Stream: "add", ID: fmt.Sprintf("e-%d", i), Payload: payload})
	}
	release()
	for i := range n {
		w.equal("entry", entries.next().ID, fmt.Sprintf("a/0/%d", i+1))
		w.equal("event", events.next().ID, fmt.Sprintf("e-%d", i+1))
	}
}

// stopAtFirst makes a follower block at its first delivery.
func stopAtFirst[T any](stuck chan<- struct{}, proceed <-chan struct{}, deliver func(T)) func(T) {
	once := sync.OnceFunc(func() {
		stuck <- struct{}{}
		<-proceed
	})
	return func(v T) {
		once()
		deliver(v)
	}
}

func manyFollowers(w *world) {
	c := w.connect("a")
	var all []*recording[model.LogEntry]
	for i := range 5 {
		reader := w.connect(fmt.Sprintf("r%d", i))
		for range 4 {
			all = append(all, recordSpace(w, reader, cart, 0))
		}
	}
	w.chain(c, cart, 0, numbered("a/0/", 20)...)
	for _, r := range all {
		w.equal("followed", entryIDs(r.take(20)), numbered("a/0/", 20))
		w.equal("beyond it", entryIDs(r.rest()), []string{})
	}
}

func followAcrossDisconnection(w *world) {
	c, reader := w.connect("a"), w.connect("b")
	ofSpace, ofLog, ofLane := recordSpace(w, reader, cart, 0), recordLog(w, reader, 0, 0), recordLane(w, reader, 0, 0)
	var head uint64
	number := 0
	add := func(n int) { // and see it delivered
		for range n {
			number++
			head = w.mustAppend(c, commit(cart, fmt.Sprintf("a/0/%d", number), head))
			w.sendAll(c, cart, fmt.Sprintf("e-%d", number))
		}
	}
	seen := 0
	see := func() {
		w.Helper()
		for ; seen < number; seen++ {
			w.equal("entry of the space", ofSpace.next().ID, fmt.Sprintf("a/0/%d", seen+1))
			w.equal("entry of the log", ofLog.next().ID, fmt.Sprintf("a/0/%d", seen+1))
			w.equal("event", ofLane.next().ID, fmt.Sprintf("e-%d", seen+1))
		}
	}
	for round := range 3 {
		add(5)
		if round != 1 { // once, break off with everything still on its way
			see()
		}
		w.Disconnect(w.T)
		number++
		next := w.startAppend(c, commit(cart, fmt.Sprintf("a/0/%d", number), head))
		sent := w.startSend(c, event(cart, fmt.Sprintf("e-%d", number)))
		w.Reconnect(w.T)
		var err error
		head, err = next.wait()
		w.must(err)
		_, err = sent.wait()
		w.must(err)
		see() // no later entry would reveal the gap
		add(5)
		see()
	}
	w.equal("beyond", append(entryIDs(ofSpace.rest()), entryIDs(ofLog.rest())...), []string{})
	w.equal("beyond", eventIDs(ofLane.rest()), []string{})
}

func followStartsDisconnected(w *world) {
	c := w.connect("a")
	w.chain(c, cart, 0, "a/0/1")
	w.sendAll(c, cart, "e1")
	w.Disconnect(w.T)
	ofSpace, ofLog, ofLane := recordSpace(w, c, cart, 0), recordLog(w, c, 0, 0), recordLane(w, c, 0, 0)
	w.Reconnect(w.T)
	w.equal("space", ofSpace.next().ID, "a/0/1")
	w.equal("log", ofLog.next().ID, "a/0/1")
	w.equal("lane", ofLane.next().ID, "e1")
}

func followEndsWithContext(w *world) {
	c := w.connect("a")
	head := w.chain(c, cart, 0, "a/0/1")
	w.sendAll(c, cart, "e1")
	ofSpace, ofLog, ofLane := recordSpace(w, c, cart, 0), recordLog(w, c, 0, 0), recordLane(w, c, 0, 0)
	ofSpace.next()
	ofLog.next()
	ofLane.next()
	ofSpace.stop()
	ofLog.stop()
	ofLane.stop()
	w.chain(c, cart, head, "a/0/2")
	w.sendAll(c, cart, "e2")
	fence := recordLog(w, c, 0, 0) // all that a client could have read by now
	fence.take(2)
	w.equal("entries after the end", append(entryIDs(ofSpace.rest()), entryIDs(ofLog.rest())...), []string{})
	w.equal("events after the end", eventIDs(ofLane.rest()), []string{})
	for _, err := range []error{ofSpace.err, ofLog.err, ofLane.err} {
		if errors.Is(err, model.ErrStopped) {
			w.Errorf("a follow that was ended says %v, as if the bus had been", err)
		}
	}
}

func followInDoubt(w *world) {
	c := w.connect("a")
	ofSpace, ofLane := recordSpace(w, c, cart, 0), recordLane(w, c, 0, 0)
	var head uint64
	for i, fault := range faults {
		w.inject(c, Append, fault)
		head = w.mustAppend(c, commit(cart, fmt.Sprintf("a/0/%d", i+1), head))
		w.inject(c, Send, fault)
		w.sendAll(c, cart, fmt.Sprintf("e-%d", i+1))
	}
	w.chain(c, cart, head, "a/0/last")
	w.sendAll(c, cart, "last")
	w.equal("entries", entryIDs(ofSpace.take(4)), []string{"a/0/1", "a/0/2", "a/0/3", "a/0/last"})
	w.equal("events", eventIDs(ofLane.take(4)), []string{"e-1", "e-2", "e-3", "last"})
}
