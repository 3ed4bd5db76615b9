package buscontract

import (
	"errors"
	"fmt"
	"strings"

	"github.com/settlehq/settle/model"
)

var limitChecks = []check{
	{"an append larger than the server accepts is refused and the bus stays usable", oversizeAppend},
	{"an event larger than the server accepts is refused and the bus stays usable", oversizeSend},
	{"headers count towards the size", headersCount},
	{"a document larger than the server accepts is refused and the bus stays usable", oversizeDocument},
	{"a full lane refuses events and accepts them when there is room", fullLane},
	{"an event that is in a full lane is a duplicate", duplicateInFullLane},
	{"names that cannot be subjects are refused before anything is stored", invalidNames},
	{"there are as many partitions as were requested", func(w *world) {
		w.equal("partitions", w.connect("a").Partitions(), partitions)
	}},
}

func (w *world) wantTooLarge(err error) {
	w.Helper()
	if !errors.Is(err, model.ErrTooLarge) {
		w.Errorf("answer %v, want ErrTooLarge", err)
	}
}

func oversizeAppend(w *world) {
	c := w.connect("a")
	for _, size := range []int{c.MaxPayload() + 1, 3 * c.MaxPayload()} {
		_, err := w.append(c, model.Append{Space: cart, ID: "a/0/1", Data: make([]byte, size)})
		w.wantTooLarge(err)
	}
	w.equal("head", w.head(c, cart), uint64(0))
	head := w.chain(c, cart, 0, "a/0/2")
	_, err := w.append(c, model.Append{Space: cart, ID: "a/0/3", Expect: head, Data: make([]byte, c.MaxPayload()+1)})
	w.wantTooLarge(err)
	w.chain(c, cart, head, "a/0/4")
	w.wantLog(c, cart, "a/0/2", "a/0/4")
}

func oversizeSend(w *world) {
	c := w.connect("a")
	for _, size := range []int{c.MaxPayload() + 1, 3 * c.MaxPayload()} {
		_, err := w.send(c, model.Message{Space: cart, Stream: "add", ID: "e1", Payload: make([]byte, size)})
		w.wantTooLarge(err)
	}
	w.equal("end", w.laneEnd(c, 0), uint64(0))
	w.sendAll(c, cart, "e1") // the name was not taken
	w.wantLane(c, cart, "e1")
}

func headersCount(w *world) {
	c := w.connect("a")
	full := make([]byte, c.MaxPayload())
	_, err := w.append(c, model.Append{Space: cart, ID: "a/0/1", Data: full})
	w.wantTooLarge(err)
	traced := model.Message{Space: cart, Stream: "add", ID: "e1", Payload: full, Trace: model.Trace{Parent: "00-1-2-01"}}
	_, err = w.send(c, traced)
	w.wantTooLarge(err)
	w.wantLog(c, cart)
	w.wantLane(c, cart)
}

func oversizeDocument(w *world) {
	c := w.connect("a")
	mark := model.StateDoc{Data: []byte(`1`), Seq: 1}
	large := model.StateDoc{Doc: "large", Data: []byte(`"` + strings.Repeat("x", c.MaxPayload()) + `"`), Seq: 1}
	w.wantTooLarge(w.save(c, cart, &mark, large))
	w.wantState(c, cart, "=none@0")
	w.must(w.save(c, cart, &mark, doc("small", `1`, 1)))
	w.wantState(c, cart, "=1@1", "small=1@1")
}

func fullLane(w *world) {
	c := w.connect("a")
	w.LimitLanes(w.T, 3)
	w.sendAll(c, cart, "e1", "e2")
	w.sendAll(c, space(0, 1), "e3") // the lane is the partition's
	for _, s := range []string{cart, space(0, 1)} {
		if _, err := w.send(c, event(s, "e4")); !errors.Is(err, model.ErrLaneFull) {
			w.Errorf("send into a full lane: %v, want ErrLaneFull", err)
		}
	}
	w.sendAll(c, space(1, 0), "e4") // another partition has room
	w.equal("end", w.laneEnd(c, 0), uint64(3))
	w.chain(c, cart, 0, "a/0/1") // and commits are no events
	w.LimitLanes(w.T, 0)
	w.sendAll(c, cart, "e4")
	w.wantLane(c, cart, "e1", "e2", "e4")
}

// duplicateInFullLane: after a lost acknowledgement the sender must not get an error for an event that is
// stored.
func duplicateInFullLane(w *world) {
	c := w.connect("a")
	w.LimitLanes(w.T, 2)
	w.sendAll(c, cart, "e1")
	w.inject(c, Send, DropAck)
	w.mustSend(c, event(cart, "e2"))
	w.equal("second send", w.mustSend(c, event(cart, "e1")), model.SendResult{Duplicate: true})
	w.wantLane(c, cart, "e1", "e2")
}

// invalid lists names that would mean something else as part of a subject, or that some server or client
// rejects.
var invalid = []string{
	"", ".", "a.b", "a.", ".a", "*", "a*", ">", "a.>", " ", "a b", "a\tb", "a\r\nb", "a\x00b", "$JS", "$KV", "a/b", "é", "a\xff",
	"=checkpoint", strings.Repeat("x", model.MaxAnyEventIDLen+1),
}

func invalidNames(w *world) {
	c := w.connect("a")
	for _, name := range invalid {
		what := fmt.Sprintf("%q", name)
		_, err := w.append(c, commit(name, "a/0/1", 0))
		w.wantNameError("append to space "+what, err)
		_, err = c.Head(w.ctx, name)
		w.wantNameError("head of space "+what, err)
		_, err = c.ReadLog(w.ctx, name, 0, 1)
		w.wantNameError("log of space "+what, err)
		w.wantNameError("follow space "+what, c.FollowSpace(w.ctx, name, 0, func(model.LogEntry) {}))
		_, err = c.ReadLane(w.ctx, name, 0, 1)
		w.wantNameError("lane of space "+what, err)
		for _, m := range []model.Message{
			{Space: name, Stream: "add", ID: "e"}, {Space: cart, Stream: name, ID: "e"}, {Space: cart, Stream: "add", ID: name},
		} {
			_, err := w.send(c, m)
			w.wantNameError(fmt.Sprintf("send %q/%q/%q", m.Space, m.Stream, m.ID), err)
		}
		_, err = c.LoadState(w.ctx, name)
		w.wantNameError("load space "+what, err)
		w.wantNameError("save space "+what, w.save(c, name, nil, doc("d", `1`, 1)))
		w.wantNameError("save document "+what, w.save(c, cart, nil, doc("d", `1`, 1), doc(name, `1`, 1)))
		w.wantNameError("observe space "+what, c.Observe(model.Lease{Space: name, Doc: "d", Watcher: "w"}))
		if name != "" { // the empty id belongs to an attached runtime
			w.wantNameError("observe document "+what, c.Observe(model.Lease{Space: cart, Doc: name, Watcher: "w"}))
		}
		w.wantNameError("announce "+what, c.Announce(w.ctx, model.Member{ID: name}))
		w.wantNameError("answer for "+what, c.AnswerPings(w.ctx, name))
		_, err = c.Ping(w.ctx, name)
		w.wantNameError("ping "+what, err)
		_, err = c.LoadPosition(w.ctx, 0, name)
		w.wantNameError("load position "+what, err)
		w.wantNameError("save position "+what, c.SavePosition(w.ctx, 0, name, 1))
	}
	w.wantState(c, cart, "=none@0")
	for p := range partitions {
		w.equal("end", w.laneEnd(c, p), uint64(0))
		probe := w.chain(c, space(p, 0), 0, "a/0/1")
		w.equal("sequence of the first commit", probe, uint64(1))
	}
}

func (w *world) wantNameError(what string, err error) {
	w.Helper()
	var name *model.NameError
	if !errors.As(err, &name) {
		w.Errorf("%s: %v, want a NameError", what, err)
	}
}
