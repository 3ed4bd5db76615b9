package buscontract

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

var laneChecks = []check{
	{"an event is read with all its fields", eventsRoundTrip},
	{"a payload is any bytes or none", payloadIsAnyBytes},
	{"the answer to a send is the event's place in the lane", sendAnswersTheSequence},
	{"a second event of an id is a duplicate and the first one stays as it was", duplicateKeepsTheFirst},
	{"an id in another space or stream is another event", sameIDElsewhere},
	{"of two clients that send one id one stores it", oneSenderStores},
	{"minted ids and the longest names are accepted", longestNames},
	{"lane order is the order of sends that wait for one another", laneOrderIsSendOrder},
	{"sends that do not wait are all stored once", pipelinedSends},
	{"principals that choose one id have an event each", principalsHaveTheirOwnIDs},
	{"what a client sends has no position, term or depth and is no tombstone", clientsSendPlainEvents},
	{"ReadLane pages through one space's events", readLanePages},
	{"FindEvent finds the one event of a name", findEvent},
	{"FindEvents finds an id in all streams of a space or in all spaces", findEvents},
	{"an event carries the time at which it was stored", eventsHaveTheirTime},
	{"LaneEnd is the last sequence of the partition", laneEndOfPartition},
	{"FollowLane delivers the events after its cursor and then new ones", followLane},
	{"FollowLane delivers the events of its partition and no others", followLanePartition},
	{"an event in the lane of another partition is delivered to that lane's followers and not found by name", misplacedEvent},
	{"a lane and the log of its partition count apart", laneAndLogCountApart},
}

func eventsRoundTrip(w *world) {
	c := w.connect("a")
	traced := model.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "vendor=a,other=b"}
	sent := []model.Message{
		{Space: cart, Stream: "add", ID: "e1", Payload: []byte(`{"n":1}`)},
		{Space: cart, Stream: "add", ID: "origin:17:2:0", Payload: []byte(`{"n":2}`), Position: 42, Term: 1_800_000_000_123, PrevTerm: 1, ReplayKey: 1<<64 - 1, Depth: 3, Trace: traced},
		{Space: cart, Stream: "remove", ID: "e3", Payload: []byte(`{"n":3}`), Trace: model.Trace{Parent: traced.Parent}},
		{Space: cart, Stream: "add", ID: "origin:17:3:0", Position: model.MaxNumber, Term: model.MaxMillis, Depth: model.MaxNumber, Invalid: "too large: a tombstone", Payload: []byte{}},
	}
	for i := range sent {
		sent[i].Seq = w.mustSend(c, sent[i]).Seq
	}
	w.equal("events read", timeless(w.lane(c, cart)), sent)
	w.equal("events followed", timeless(recordLane(w, c, 0, 0).take(len(sent))), sent)
}

func payloadIsAnyBytes(w *world) {
	c := w.connect("a")
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	payloads := [][]byte{nil, {}, all, []byte("{not json"), bytes.Repeat([]byte("x"), c.MaxPayload()/2)}
	followed := recordLane(w, c, 0, 0)
	for i, p := range payloads {
		w.mustSend(c, model.Message{Space: cart, Stream: "add", ID: fmt.Sprintf("e%d", i), Payload: p})
	}
	read := w.lane(c, cart)
	for i, p := range payloads {
		if !bytes.Equal(read[i].Payload, p) || !bytes.Equal(followed.next().Payload, p) {
			w.Errorf("payload %d came back differently", i)
		}
	}
}

func sendAnswersTheSequence(w *world) {
	c := w.connect("a")
	var told, stored []uint64
	for _, id := range numbered("e-", 5) {
		told = append(told, w.mustSend(c, event(cart, id)).Seq)
	}
	for _, m := range w.lane(c, cart) {
		stored = append(stored, m.Seq)
	}
	w.equal("sequences", told, stored)
	w.equal("sequences", told, []uint64{1, 2, 3, 4, 5})
}

func duplicateKeepsTheFirst(w *world) {
	a, b := w.connect("a"), w.connect("b")
	w.sendAll(a, cart, "e1", "e2")
	for _, c := range []Client{a, b} {
		again := model.Message{Space: cart, Stream: "add", ID: "e1", Payload: []byte("another"), Position: 7}
		w.equal("answer to a second send", w.mustSend(c, again), model.SendResult{Duplicate: true})
	}
	w.sendAll(a, cart, "e3")
	w.wantLane(b, cart, "e1", "e2", "e3")
	first := timeless(w.lane(b, cart))[0]
	w.equal("first event", first, model.Message{Space: cart, Stream: "add", ID: "e1", Payload: []byte("payload of e1"), Seq: 1})
}

func sameIDElsewhere(w *world) {
	c := w.connect("a")
	places := []model.Message{
		{Space: cart, Stream: "add", ID: "e1"},
		{Space: cart, Stream: "remove", ID: "e1"},
		{Space: space(0, 1), Stream: "add", ID: "e1"},
		{Space: space(1, 0), Stream: "add", ID: "e1"},
	}
	for _, m := range places {
		if r := w.mustSend(c, m); r.Duplicate || r.Seq == 0 {
			w.Errorf("%s/%s/%s: %+v, want a new event", m.Space, m.Stream, m.ID, r)
		}
	}
	w.wantLane(c, cart, "e1", "e1")
	w.wantLane(c, space(0, 1), "e1")
	w.wantLane(c, space(1, 0), "e1")
}

func oneSenderStores(w *world) {
	a, b := w.connect("a"), w.connect("b")
	for _, id := range numbered("e-", 30) {
		first, second := w.startSend(a, event(cart, id)), w.startSend(b, event(cart, id))
		r1, err := first.wait()
		w.must(err)
		r2, err := second.wait()
		w.must(err)
		if r1.Duplicate == r2.Duplicate {
			w.Errorf("%s: %+v and %+v, want one stored and one duplicate", id, r1, r2)
		}
	}
	w.wantLane(a, cart, numbered("e-", 30)...)
}

func longestNames(w *world) {
	c := w.connect("a")
	long := strings.Repeat("x", model.MaxNameLen)
	ids := []string{
		strings.Repeat("i", model.MaxEventIDLen),
		model.EventIDOf(long, strings.Repeat("i", model.MaxEventIDLen)),
		model.RedriveID(model.EventIDOf(long, strings.Repeat("i", model.MaxEventIDLen))),
		model.TxID{Space: long, Epoch: 1<<64 - 1, N: 1<<64 - 1}.Event(1<<31 - 1),
		"A-z_09",
	}
	for _, id := range ids {
		w.mustSend(c, model.Message{Space: long, Stream: long, ID: id})
	}
	w.wantLane(c, long, ids...)
	w.chain(c, long, 0, "a/0/1")
	w.wantLog(c, long, "a/0/1")
}

func principalsHaveTheirOwnIDs(w *world) {
	c := w.connect("a")
	var sent []model.Message
	for _, id := range []string{"e1", "alice=e1", "bob=e1", "alice=e1:r1", "e1:r1"} {
		m := model.Message{Space: cart, Stream: "add", ID: id, Payload: []byte("payload of " + id)}
		m.Seq = w.mustSend(c, m).Seq
		w.equal("the same id of the same principal", w.mustSend(c, model.Message{Space: cart, Stream: "add", ID: id}), model.SendResult{Duplicate: true})
		sent = append(sent, m)
	}
	w.equal("events read", timeless(w.lane(c, cart)), sent)
	n, err := c.CountLane(w.ctx, cart, 0, sent[len(sent)-1].Seq)
	w.must(err)
	w.equal("events counted", n, len(sent))
	for _, m := range sent {
		found, _, err := c.FindEvent(w.ctx, cart, "add", m.ID)
		w.must(err)
		all, err := c.FindEvents(w.ctx, "", m.ID)
		w.must(err)
		w.equal("events of "+m.ID, timeless(append(all, found)), []model.Message{m, m})
	}
	for _, id := range []string{"=e1", "alice=", "al.ice=e1", "alice=bob=e1", "a:b=e1"} {
		if _, err := w.send(c, model.Message{Space: cart, Stream: "add", ID: id}); err == nil {
			w.Errorf("id %q was accepted", id)
		}
	}
}

func clientsSendPlainEvents(w *world) {
	c := w.connect("a")
	for _, id := range []string{"e1", "alice=e1"} {
		plain := model.Message{Space: cart, Stream: "add", ID: id, Payload: []byte("1"), NotBefore: 1_800_000_000_123, Expires: 1_900_000_000_456}
		forged := plain
		forged.Position, forged.Term, forged.PrevTerm, forged.ReplayKey, forged.Depth, forged.Invalid = 7, 8, 9, 10, 11, "gone"
		plain.Seq = w.mustSend(c, forged).Seq
		found, _, err := c.FindEvent(w.ctx, cart, "add", id)
		w.must(err)
		w.equal("event", timeless([]model.Message{found})[0], plain)
	}
}

func laneOrderIsSendOrder(w *world) {
	c := w.connect("a")
	ids := numbered("e-", 100)
	slices.Reverse(ids) // not the order of their names
	w.sendAll(c, cart, ids...)
	w.wantLane(c, cart, ids...)
}

func pipelinedSends(w *world) {
	c := w.connect("a")
	ids := numbered("e-", 300)
	var answers []*answer[model.SendResult]
	for _, id := range ids {
		answers = append(answers, w.startSend(c, event(cart, id)))
	}
	bySeq := make([]string, len(ids))
	for i, a := range answers {
		r, err := a.wait()
		w.must(err)
		bySeq[r.Seq-1] = ids[i]
	}
	w.wantLane(c, cart, bySeq...)
}

func readLanePages(w *world) {
	c := w.connect("a")
	var mine []uint64
	for i := range 25 {
		w.sendAll(c, space(0, 1), fmt.Sprintf("other-%d", i))
		mine = append(mine, w.mustSend(c, event(cart, fmt.Sprintf("e%d", i))).Seq)
	}
	var read []uint64
	pages := []int{}
	for after := uint64(0); ; after = read[len(read)-1] {
		page, err := c.ReadLane(w.ctx, cart, after, 10)
		w.must(err)
		pages = append(pages, len(page))
		for _, m := range page {
			read = append(read, m.Seq)
		}
		if len(page) < 10 {
			break
		}
	}
	w.equal("sequences", read, mine)
	w.equal("pages", pages, []int{10, 10, 5})
	beyond, err := c.ReadLane(w.ctx, cart, mine[24]+1000, 10)
	w.must(err)
	w.equal("events beyond the end", len(beyond), 0)
}

func findEvents(w *world) {
	c := w.connect("a")
	sent := []model.Message{
		{Space: cart, Stream: "add", ID: "e1", Payload: []byte(`1`)},
		{Space: cart, Stream: "remove", ID: "e1", Payload: []byte(`3`)},
		{Space: space(0, 1), Stream: "add", ID: "e1", Payload: []byte(`4`)},
		{Space: space(1, 0), Stream: "add", ID: "e1", Payload: []byte(`5`)},
		{Space: cart, Stream: "add", ID: "origin:17:2:0", Payload: []byte(`6`), Position: 42},
	}
	for i := range sent {
		sent[i].Seq = w.mustSend(c, sent[i]).Seq
	}
	find := func(space, id string) []model.Message {
		found, err := c.FindEvents(w.ctx, space, id)
		w.must(err)
		slices.SortFunc(found, func(a, b model.Message) int { return bytes.Compare(a.Payload, b.Payload) })
		return timeless(found)
	}
	w.equal("e1 in the cart", find(cart, "e1"), sent[:2])
	w.equal("e1 anywhere", find("", "e1"), sent[:4])
	w.equal("a minted id anywhere", find("", "origin:17:2:0"), sent[4:])
	w.equal("an id that was never sent", len(find("", "e2"))+len(find(cart, "e2")), 0)
	for _, bad := range []string{"*", ">", "a.b", ""} {
		if _, err := c.FindEvents(w.ctx, cart, bad); err == nil {
			w.Errorf("id %q was looked for", bad)
		}
	}
	if _, err := c.FindEvents(w.ctx, "*", "e1"); err == nil {
		w.Error("a pattern of spaces was looked for")
	}
}

func findEvent(w *world) {
	c := w.connect("a")
	sent := []model.Message{
		{Space: cart, Stream: "add", ID: "e1", Payload: []byte(`1`)},
		{Space: cart, Stream: "add", ID: "origin:17:2:0", Payload: []byte(`2`), Position: 42},
		{Space: cart, Stream: "remove", ID: "e1", Payload: []byte(`3`)},
		{Space: space(0, 1), Stream: "add", ID: "e1", Payload: []byte(`4`)},
		{Space: space(1, 0), Stream: "add", ID: "e1", Payload: []byte(`5`)},
	}
	for i := range sent {
		sent[i].Seq = w.mustSend(c, sent[i]).Seq
	}
	w.mustSend(c, sent[0]) // a duplicate changes nothing
	for _, m := range sent {
		found, ok, err := c.FindEvent(w.ctx, m.Space, m.Stream, m.ID)
		w.must(err)
		if !ok {
			w.Errorf("%s/%s/%s was not found", m.Space, m.Stream, m.ID)
		}
		w.equal("event found", timeless([]model.Message{found})[0], m)
	}
	for _, m := range []model.Message{
		{Space: cart, Stream: "add", ID: "e2"},
		{Space: cart, Stream: "ad", ID: "e1"},
		{Space: space(1, 0), Stream: "remove", ID: "e1"},
	} {
		if _, ok, err := c.FindEvent(w.ctx, m.Space, m.Stream, m.ID); ok || err != nil {
			w.Errorf("%s/%s/%s: found %v, %v; it was not sent", m.Space, m.Stream, m.ID, ok, err)
		}
	}
	for _, m := range []model.Message{{Space: "*", Stream: "add", ID: "e1"}, {Space: cart, Stream: ">", ID: "e1"}, {Space: cart, Stream: "add", ID: "*"}} {
		if _, _, err := c.FindEvent(w.ctx, m.Space, m.Stream, m.ID); err == nil {
			w.Errorf("%s/%s/%s is not a valid name, and was looked up", m.Space, m.Stream, m.ID)
		}
	}
}

// timeless returns events without their times.
func timeless(events []model.Message) []model.Message {
	for i := range events {
		events[i].Stored = time.Time{}
	}
	return events
}

// An event has the same time whichever way it is read, and times are in order.
func eventsHaveTheirTime(w *world) {
	c := w.connect("a")
	ids := numbered("e-", 5)
	w.sendAll(c, cart, ids...)
	read, followed := w.lane(c, cart), recordLane(w, c, 0, 0).take(len(ids))
	for i, m := range read {
		found, _, err := c.FindEvent(w.ctx, cart, "add", m.ID)
		w.must(err)
		w.equal("time of an event that is followed", followed[i].Stored, m.Stored)
		w.equal("time of an event that is found", found.Stored, m.Stored)
		if m.Stored.IsZero() || i > 0 && m.Stored.Before(read[i-1].Stored) {
			w.Errorf("event %d was stored at %v, the one before at %v", i, m.Stored, read[max(i-1, 0)].Stored)
		}
	}
}

func laneEndOfPartition(w *world) {
	c := w.connect("a")
	w.equal("end of an empty lane", w.laneEnd(c, 0), uint64(0))
	w.sendAll(c, space(0, 0), "e1", "e2")
	w.sendAll(c, space(0, 1), "e3")
	w.sendAll(c, space(0, 0), "e1") // a duplicate takes no sequence
	w.equal("end", w.laneEnd(c, 0), uint64(3))
	w.equal("end of another partition", w.laneEnd(c, 1), uint64(0))
}

func followLane(w *world) {
	c := w.connect("a")
	ids := numbered("e-", 10)
	w.sendAll(c, cart, ids[:6]...)
	whole, part, tail := recordLane(w, c, 0, 0), recordLane(w, c, 0, 4), recordLane(w, c, 0, 6)
	w.equal("from the start", eventIDs(whole.take(6)), ids[:6])
	w.equal("from the cursor", eventIDs(part.take(2)), ids[4:6])
	w.sendAll(c, cart, ids[6:]...)
	for _, r := range []*recording[model.Message]{whole, part, tail} {
		w.equal("what is new", eventIDs(r.take(4)), ids[6:])
		w.equal("beyond it", eventIDs(r.rest()), []string{})
	}
}

func followLanePartition(w *world) {
	c := w.connect("a")
	zero, one := recordLane(w, c, 0, 0), recordLane(w, c, 1, 0)
	w.sendAll(c, space(0, 0), "e1")
	w.sendAll(c, space(1, 0), "e2")
	w.sendAll(c, space(0, 1), "e3")
	w.sendAll(c, space(1, 1), "e4")
	w.equal("partition 0", eventIDs(zero.take(2)), []string{"e1", "e3"})
	w.equal("partition 1", eventIDs(one.take(2)), []string{"e2", "e4"})
	w.equal("beyond", append(eventIDs(zero.rest()), eventIDs(one.rest())...), []string{})
	if err := c.FollowLane(w.ctx, partitions, 0, func(model.Message) {}); err == nil || w.ctx.Err() != nil {
		w.Errorf("following a partition that does not exist: %v, want an error", err)
	}
}

func misplacedEvent(w *world) {
	c := w.connect("a")
	home, other := space(1, 0), space(0, 0)
	followed := recordLane(w, c, 0, 0)
	w.Misplace(w.T, 0, model.Message{Space: home, Stream: "add", ID: "lost", Payload: []byte("1")})
	w.sendAll(c, other, "e1")
	strayed := followed.take(2)[0]
	w.equal("what is followed", fmt.Sprintf("%s %s %s %s %d", strayed.Space, strayed.Stream, strayed.ID, strayed.Payload, strayed.Seq), home+" add lost 1 1")
	w.equal("end of its own lane", w.laneEnd(c, 1), uint64(0))
	w.equal("what is read", eventIDs(append(w.lane(c, home), w.lane(c, other)...)), []string{"e1"})
	_, found, err := c.FindEvent(w.ctx, home, "add", "lost")
	w.must(err)
	anywhere, err := c.FindEvents(w.ctx, "", "lost")
	w.must(err)
	w.equal("what is found", found || len(anywhere) > 0, false)

	w.mustSend(c, strayed) // a follower of the lane forwards it
	w.equal("sent on", eventIDs(w.lane(c, home)), []string{"lost"})
	w.equal("sent on once more", w.mustSend(c, strayed).Duplicate, true)
}

func laneAndLogCountApart(w *world) {
	c := w.connect("a")
	w.sendAll(c, cart, "e1", "e2", "e3")
	w.equal("first commit", w.chain(c, cart, 0, "a/0/1"), uint64(1))
	w.equal("next event", w.mustSend(c, event(cart, "e4")).Seq, uint64(4))
	entries := record(w, func(ctx context.Context, deliver func(model.LogEntry)) error { return c.FollowLog(ctx, 0, 0, deliver) })
	w.equal("log", entryIDs(entries.take(1)), []string{"a/0/1"})
	w.equal("beyond", entryIDs(entries.rest()), []string{})
}
