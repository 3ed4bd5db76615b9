package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// oracle runs a handler again, or evaluates a derived document, on the documents of the log alone. It is
// a view.
type oracle struct {
	f    *fold
	docs map[string]model.Value
	// hint is the value of another space that the handler has seen: no log records which value was
	// mirrored at that time.
	hint  model.Value
	after map[string]model.Value
	sends []model.Send
	// asWritten makes it read derived documents as stored instead of evaluating them.
	asWritten bool
	// now is the time of the handler according to its result; the log does not have it.
	now     int64
	cancels []string // of timers
	edition int      // of the program
	event   *model.Event
	// slowRests is set while the computation that hangs is abandoned, and its last output is read.
	slowRests bool

	outcome model.Outcome
	result  model.Value
}

func (o *oracle) Space() string { return o.f.space }

func (o *oracle) Get(doc string, path ...string) model.Value {
	if v, ok := o.after[doc]; ok {
		return v.At(path)
	}
	if run := o.f.w.plan.computation(doc, o.edition); run != nil && !o.asWritten && !(doc == slow && o.slowRests) {
		return run(o).At(path)
	}
	return o.docs[doc].At(path)
}

func (o *oracle) GetFrom(space, doc string, path ...string) model.Value {
	if o.asWritten || o.after != nil {
		return o.hint.At(path)
	}
	other := o.f.w.folds[space]
	if other.seq == 0 { // a link does not create the space, and delivers what is in logs
		return model.Value{}
	}
	return (&oracle{f: other, docs: other.docs, edition: o.edition}).Get(doc, path...)
}

func (o *oracle) Set(doc string, v any, path ...string) {
	val, err := model.Of(v)
	if err != nil {
		panic(err)
	}
	wr := model.Write{Doc: doc, Path: path, Value: val}
	next, err := wr.Apply(o.Get(doc))
	if err != nil {
		panic(err)
	}
	o.after[doc] = next
}

func (o *oracle) Delete(doc string, path ...string) { o.Set(doc, model.Value{}, path...) }

func (o *oracle) Send(space, stream string, payload any, _ ...space.SendOption) {
	s := o.send(space, stream, payload)
	s.Depth = o.next()
}

func (o *oracle) send(space, stream string, payload any) *model.Send {
	v, err := model.Of(payload)
	if err != nil {
		panic(err)
	}
	o.sends = append(o.sends, model.Send{To: space, Stream: stream, Payload: v})
	return &o.sends[len(o.sends)-1]
}

// maxChain is how long chains may become in a simulation: shorter than those of its streams.
const maxChain = 3

// next returns the depth of an event that is sent without a delay. It panics at the end of a chain,
// which makes the event fail.
func (o *oracle) next() uint64 {
	if o.event == nil {
		return 0
	}
	if o.event.Depth == uint64(o.f.w.plan.chainLimit()) {
		o.f.w.count("chains that came to their end")
		panic("the chain is too long")
	}
	return o.event.Depth + 1
}

// timed returns the depth of an event that is sent for a time: 0 if that time is in the future, or later
// than the time for which the current event had waited.
func (o *oracle) timed(at time.Time) uint64 {
	since := o.now
	if o.event != nil && o.event.NotBefore > 0 {
		since = min(since, o.event.NotBefore)
	}
	if at.UnixMilli() > since {
		return 0
	}
	return o.next()
}

// handle runs the handler of an event.
func (o *oracle) handle(stream string, ev *model.Event, rc *model.Receipt) {
	o.after, o.event = map[string]model.Value{}, ev
	drop := func(outcome model.Outcome) {
		o.outcome, o.result, o.after, o.sends, o.cancels = outcome, model.Value{}, nil, nil, nil
	}
	h := o.f.w.plan.handler(stream, o.edition)
	o.now, _ = rc.Result.Get("now").AsInt()
	o.handed(ev)
	switch k, _ := ev.Payload.AsInt(); {
	case o.unhandled(stream, ev, rc):
		return
	case h == nil || ev.Invalid != "":
		drop(model.Refused)
		return
	case stream == "hang" && rc.Outcome == model.Failed:
		o.hung(ev, rc)
		drop(model.Failed)
		return
	case rc.Outcome == model.Failed && strings.HasPrefix(rc.Error, "the handler never came back"):
		o.givenUp(stream, ev)
		drop(model.Failed)
		return
	case stream == "big", stream == "flaky" && k > 5 && rc.Outcome == model.Failed:
		drop(model.Failed)
		return
	case stream == "flaky" && rc.Outcome == model.Failed:
		o.f.wrong("oracle", "event %s failed, and should have passed after %d attempts", ev.ID, k)
	}
	defer func() {
		if recover() != nil {
			drop(model.Failed)
		}
	}()
	v, err := h(o, ev)
	if err != nil {
		drop(model.Failed)
		return
	}
	o.outcome, o.result = model.Handled, v
}

// lostAttempts is the default of space.Config.LostAttempts.
const lostAttempts = 3

// givenUp: an event fails without another attempt if that many processes have recorded one and not
// returned. The event need not be the cause of their deaths.
func (o *oracle) givenUp(stream string, ev *model.Event) {
	if lives := o.f.tried[eventKey{o.f.space, stream, ev.ID}]; len(lives) < lostAttempts {
		o.f.wrong("oracle", "event %s is given up after attempts of %d lives", ev.ID, len(lives))
	}
	if stream == "deadly" {
		o.f.w.count("deadly events given up")
	} else {
		o.f.w.count("other events given up, of which no process died")
	}
}

// compare compares a handling in the log with the oracle's result.
func (f *fold) compare(c *model.Commit, tx *model.Tx, o *oracle, after map[string]model.Value) {
	what := fmt.Sprintf("%s of %s by %s", tx.By, tx.Receipt.Event, c.Runtime)
	if tx.Receipt.Outcome != o.outcome || !model.Equal(tx.Receipt.Result, o.result) {
		f.wrong("oracle", "%s: %s with %s, want %s with %s", what, tx.Receipt.Outcome, tx.Receipt.Result, o.outcome, o.result)
	}
	f.compareWrites(what, tx, o, after)
	if from, ok := after["seen"]; ok {
		space, _ := from.Get("from").AsString()
		f.seenElsewhere(what, space, from.Get("v"))
	}
}

// compareWrites compares the writes and sends of a transaction with those of the oracle.
func (f *fold) compareWrites(what string, tx *model.Tx, o *oracle, after map[string]model.Value) {
	for doc, want := range o.after { // any order: each document once
		got, ok := after[doc]
		if !ok {
			got = f.docs[doc]
		}
		if !model.Equal(got, want) {
			f.wrong("oracle", "%s: %s is %s, want %s", what, doc, got, want)
		}
	}
	for doc, got := range after { // any order: each document once
		if _, ok := o.after[doc]; !ok && !model.Equal(got, f.docs[doc]) {
			f.wrong("oracle", "%s: it writes %s", what, doc)
		}
	}
	if want := o.cancelsOf(); !slices.Equal(tx.Cancels, want) {
		f.wrong("oracle", "%s: it cancels %v, want %v", what, tx.Cancels, want)
	}
	sends := slices.DeleteFunc(slices.Clone(tx.Sends), func(s model.Send) bool { return s.Timer == cronTimer })
	if len(sends) != len(o.sends) {
		f.wrong("oracle", "%s: %d sends, want %d", what, len(sends), len(o.sends))
		return
	}
	for i := range o.sends {
		got, want := &sends[i], &o.sends[i]
		if got.NotBefore != want.NotBefore || got.Timer != want.Timer || (got.Slot > 0) != (got.To == f.space && got.NotBefore > 0) {
			f.wrong("oracle", "%s: send %d waits until %d in slot %d as timer %q, want %d, %q", what, i, got.NotBefore, got.Slot, got.Timer, want.NotBefore, want.Timer)
		}
		if got.Depth != want.Depth {
			f.wrong("oracle", "%s: send %d has depth %d, want %d", what, i, got.Depth, want.Depth)
		}
		if got.To != want.To || got.Stream != want.Stream || !model.Equal(got.Payload, want.Payload) {
			f.wrong("oracle", "%s: send %d is %s/%s %s, want %s/%s %s", what, i, got.To, got.Stream, got.Payload, want.To, want.Stream, want.Payload)
		}
	}
}

// computed checks the document that a computation has just written against the other documents at that
// position of the log.
func (f *fold) computed(node string) {
	f.runs[node]++
	run := f.w.plan.computation(node, f.edition)
	if run == nil {
		f.wrong("oracle", "there is no computation %s", node)
		return
	}
	got := f.docs[node]
	o := &oracle{f: f, docs: f.docs, asWritten: true, hint: got, edition: f.edition}
	if want := run(o); !model.Equal(got, want) {
		f.wrong("derived", "%s is %s, want %s", node, got, want)
	}
	if from, ok := f.docs["from"].AsString(); ok && node == "abroad" {
		f.seenElsewhere(node, from, got)
	}
}

// seenElsewhere: a value read from another space is one that its log had at some time.
func (f *fold) seenElsewhere(what, space string, v model.Value) {
	other := f.w.folds[space]
	if other == nil || !other.ever("double", v) {
		f.wrong("abroad", "%s: has seen %s as double of space %s, which it never was", what, v, space)
		return
	}
	f.readElsewhere(what, other, v)
}
