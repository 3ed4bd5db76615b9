package buscontract

import (
	"errors"
	"fmt"

	"github.com/settlehq/settle/model"
)

// An append is in doubt when its answer is lost: it may be stored or not, now or
// later. The callback may be called only once there is no doubt.
var doubtChecks = []check{
	{"a lost acknowledgement of a stored append resolves to its sequence", func(w *world) { doubtResolves(w, DropAck) }},
	{"a lost request resolves by sending it again", func(w *world) { doubtResolves(w, DropRequest) }},
	{"a duplicated append is stored once", func(w *world) { doubtResolves(w, Duplicate) }},
	{"a lost acknowledgement is a success even when a competitor has appended since", overtakenAfterCommit},
	{"a lost request is refused when a competitor has won meanwhile", overtakenBeforeCommit},
	{"an append in doubt is not answered before it is decided", notAnsweredInDoubt},
	{"two appends of a runtime are not confused", appendsAreToldApart},
	{"an append id elsewhere in the log proves nothing", idElsewhere},
	{"appends made while disconnected are answered after it", appendWhileDisconnected},
	{"racing writers agree with the log whatever is lost", racingInDoubt},
	{"a lost acknowledgement of a send is a success and the event is there once", func(w *world) { sendDoubtResolves(w, DropAck) }},
	{"a lost request of a send resolves by sending it again", func(w *world) { sendDoubtResolves(w, DropRequest) }},
	{"a duplicated send is stored once", func(w *world) { sendDoubtResolves(w, Duplicate) }},
	{"sends that wait for one another keep their order whatever is lost", sendsInDoubtKeepOrder},
	{"sends made while disconnected are answered after it", sendWhileDisconnected},
}

func doubtResolves(w *world, fault Fault) {
	c := w.connect("a")
	first := w.mustAppend(c, commit(space(0, 1), "a/0/1", 0))
	for i, expect := range []uint64{0, first} { // of an empty space, and of one with a past
		s := space(0, i)
		w.inject(c, Append, fault)
		seq := w.mustAppend(c, commit(s, "a/0/2", expect))
		w.equal("head", w.head(c, s), seq)
		found := undated(w.log(c, s))
		w.equal("last entry", found[len(found)-1], model.LogEntry{Space: s, Seq: seq, ID: "a/0/2", Data: []byte("data of a/0/2"), Prev: expect})
		w.equal("number of entries", len(found), i+1)
		w.chain(c, s, seq, "a/0/3", "a/0/4") // and the chain goes on from there
	}
}

func overtakenAfterCommit(w *world) {
	a, b := w.connect("a"), w.connect("b")
	fault := w.holdAfter(a, Append, DropAck)
	mine := w.startAppend(a, commit(cart, "a/0/1", 0))
	fault.await()
	stored := w.head(b, cart)
	w.chain(b, cart, stored, numbered("b/0/", 30)...)
	fault.over()
	seq, err := mine.wait()
	w.must(err)
	w.equal("sequence", seq, stored)
	w.wantLog(a, cart, append([]string{"a/0/1"}, numbered("b/0/", 30)...)...)
}

func overtakenBeforeCommit(w *world) {
	a, b := w.connect("a"), w.connect("b")
	fault := w.holdAfter(a, Append, DropRequest)
	mine := w.startAppend(a, commit(cart, "a/0/1", 0))
	fault.await()
	w.chain(b, cart, 0, "b/0/1", "b/0/2")
	fault.over()
	if _, err := mine.wait(); !errors.Is(err, model.ErrRefused) {
		w.Fatalf("append: %v, want ErrRefused", err)
	}
	w.wantLog(a, cart, "b/0/1", "b/0/2")
}

func notAnsweredInDoubt(w *world) {
	for i, fault := range []Fault{DropAck, DropRequest} {
		c := w.connect(fmt.Sprintf("a%d", i))
		at := w.holdAfter(c, Append, fault)
		a := w.startAppend(c, commit(space(0, i), "a/0/1", 0))
		at.await()
		if !a.pending() {
			w.Errorf("after a %s the append was answered without asking again", fault)
		}
		at.over()
		_, err := a.wait()
		w.must(err)
	}
}

func appendsAreToldApart(w *world) {
	c := w.connect("a")
	first := w.mustAppend(c, commit(cart, "a/0/1", 0))
	for _, fault := range []Fault{DropAck, DropRequest} {
		w.inject(c, Append, fault)
		if _, err := w.append(c, commit(cart, "a/0/2", 0)); !errors.Is(err, model.ErrRefused) {
			w.Errorf("after a %s: %v, want ErrRefused", fault, err)
		}
	}
	w.equal("head", w.head(c, cart), first)
	w.wantLog(c, cart, "a/0/1")
}

// idElsewhere: a runtime that takes a space over twice may use one id for both commits. Only the entry after
// Expect counts.
func idElsewhere(w *world) {
	a, b := w.connect("a"), w.connect("b")
	first := w.mustAppend(a, commit(cart, "a/0/0", 0))
	second := w.mustAppend(b, commit(cart, "b/0/0", first))
	for _, fault := range []Fault{DropAck, DropRequest} {
		w.inject(a, Append, fault)
		if _, err := w.append(a, commit(cart, "a/0/0", first)); !errors.Is(err, model.ErrRefused) {
			w.Errorf("with its id behind another place: %v, want ErrRefused", err)
		}
	}
	w.inject(a, Append, DropAck)
	third := w.mustAppend(a, commit(cart, "a/0/0", second))
	w.equal("head", w.head(b, cart), third)
	w.wantLog(a, cart, "a/0/0", "b/0/0", "a/0/0")
}

func appendWhileDisconnected(w *world) {
	c := w.connect("a")
	head := w.mustAppend(c, commit(cart, "a/0/1", 0))
	w.Disconnect(w.T)
	wrong := w.startAppend(c, commit(space(0, 1), "a/0/2", head))
	right := w.startAppend(c, commit(cart, "a/0/3", head))
	w.nobodyAnswers(c)
	if !right.pending() || !wrong.pending() {
		w.Fatal("an append was answered with no server there")
	}
	w.Reconnect(w.T)
	_, err := right.wait()
	w.must(err)
	if _, err := wrong.wait(); !errors.Is(err, model.ErrRefused) {
		w.Errorf("append: %v, want ErrRefused", err)
	}
	w.wantLog(c, cart, "a/0/1", "a/0/3")
}

// racingInDoubt loses an answer in every other append of three writers. The answers that they do get must agree
// with the log exactly.
func racingInDoubt(w *world) {
	const each = 8
	type told struct{ stored, refused []string }
	finished := make(chan told, len(faults))
	for i, fault := range faults {
		name := string(rune('a' + i))
		c := w.connect(name)
		go func() { // ends after each appends
			var t told
			for n := range each {
				if n%2 == 0 {
					c.Inject(Append, fault, nil)
				}
				id := fmt.Sprintf("%s/0/%d", name, n)
				head, err := c.Head(w.ctx, cart)
				if err != nil {
					w.Error(err)
				}
				got := make(chan error, 1)
				c.Append(commit(cart, id, head), func(_ uint64, err error) { got <- err })
				switch err := <-got; {
				case err == nil:
					t.stored = append(t.stored, id)
				case errors.Is(err, model.ErrRefused):
					t.refused = append(t.refused, id)
				default:
					w.Errorf("append %s: %v", id, err)
				}
			}
			finished <- t
		}()
	}
	counts, answers := map[string]int{}, 0
	for range faults {
		t := <-finished
		answers += len(t.stored) + len(t.refused)
		for _, id := range t.stored {
			counts[id]--
		}
	}
	for _, e := range w.log(w.connect("reader"), cart) {
		counts[e.ID]++
	}
	for id, n := range counts {
		if n != 0 {
			w.Errorf("%s is in the log %+d times more often than acknowledged", id, n)
		}
	}
	w.equal("answers", answers, each*len(faults))
}

func sendDoubtResolves(w *world, fault Fault) {
	c := w.connect("a")
	w.sendAll(c, cart, "e1")
	w.inject(c, Send, fault)
	w.mustSend(c, event(cart, "e2"))
	w.sendAll(c, cart, "e3")
	w.wantLane(c, cart, "e1", "e2", "e3")
}

func sendsInDoubtKeepOrder(w *world) {
	c := w.connect("a")
	ids := numbered("e-", 9)
	for i, id := range ids {
		w.inject(c, Send, faults[i%len(faults)])
		w.mustSend(c, event(cart, id))
	}
	w.wantLane(c, cart, ids...)
}

func sendWhileDisconnected(w *world) {
	c := w.connect("a")
	w.sendAll(c, cart, "e1")
	w.Disconnect(w.T)
	again, fresh := w.startSend(c, event(cart, "e1")), w.startSend(c, event(cart, "e2"))
	w.nobodyAnswers(c)
	if !again.pending() || !fresh.pending() {
		w.Fatal("a send was answered with no server there")
	}
	w.Reconnect(w.T)
	if r, err := again.wait(); err != nil || !r.Duplicate {
		w.Errorf("second send: %+v, %v; want a duplicate", r, err)
	}
	_, err := fresh.wait()
	w.must(err)
	w.wantLane(c, cart, "e1", "e2")
}
