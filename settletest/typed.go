package settletest

import (
	"reflect"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/codec"
	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/space"
)

// Subject is the space under test, of a World or of a Fleet.
type Subject interface {
	settle.Reader
	tb() TB
	sendTo(stream, id string, payload settle.Value, at time.Time) (model.Receipt, bool)
	doubt(doc string) string
	panicked(stream, id string) string
	underived(doc string) string
}

// Events is a kind of event: a settle.Stream, settle.Request or settle.Trigger, with payloads of type In and
// results of type Out.
type Events[In, Out any] interface {
	Name() string
	Core() codec.Kind[In, Out]
}

// Call sends an event to a space and returns its result. It ends the test unless the event is handled. in is
// the payload: none for a trigger, one for a stream or request.
func Call[In, Out any](s Subject, of Events[In, Out], in ...In) Out {
	s.tb().Helper()
	rc, ok := send(s, of, settle.EventID{}, in, time.Time{})
	mustBeHandled(s, of.Name(), rc, ok)
	out, err := of.Core().Result(&rc)
	if err != nil {
		s.tb().Fatalf("settletest: space %s: %v", s.Space(), err)
	}
	return out
}

// Send sends an event to a space, and returns the receipt, whatever its outcome. The payload is as in
// Call. See Space.Send.
func Send[In, Out any](s Subject, of Events[In, Out], in ...In) model.Receipt {
	s.tb().Helper()
	rc, _ := send(s, of, settle.EventID{}, in, time.Time{})
	return rc
}

// Rejected is Send for an event that its handler must reject (see settle.Reject), and returns the rejection.
func Rejected[In, Out any](s Subject, of Events[In, Out], in ...In) *settle.Rejection {
	s.tb().Helper()
	rc, ok := send(s, of, settle.EventID{}, in, time.Time{})
	no := receipts.RejectionOf(&rc)
	if !ok || no == nil {
		s.tb().Fatalf("settletest: event %s on %s of space %s was expected to be rejected, but is %s: %s", rc.Event, of.Name(), s.Space(), rc.Outcome, rc.Error)
	}
	return no
}

// SendID is Send under an id; events with the same id are one event.
func SendID[In, Out any](s Subject, of Events[In, Out], id settle.EventID, in ...In) model.Receipt {
	s.tb().Helper()
	rc, _ := send(s, of, id, in, time.Time{})
	return rc
}

// SendFrom has a space send an event to a space, as a handler of it does, and returns the receipt, whatever its outcome. It is for internal streams,
// on which the other functions send as a client, whose events are rejected. The space that sends must have a program.
func SendFrom[In, Out any](from, to *Space, of Events[In, Out], in ...In) model.Receipt {
	from.w.t.Helper()
	if from.w != to.w {
		from.w.t.Fatalf("settletest: send from %s to %s/%s: they are spaces of two worlds", from.Space(), to.Space(), of.Name())
	}
	rc, _, err := from.s.SendTo(to.Space(), of.Name(), payload(to, of, in))
	from.w.check(err)
	return rc
}

// SendAt is Send for an event that waits until a time.
func SendAt[In, Out any](s Subject, at time.Time, of Events[In, Out], in ...In) model.Receipt {
	s.tb().Helper()
	rc, _ := send(s, of, settle.EventID{}, in, at)
	return rc
}

func send[In, Out any](s Subject, of Events[In, Out], id settle.EventID, in []In, at time.Time) (model.Receipt, bool) {
	s.tb().Helper()
	return s.sendTo(of.Name(), id.String(), payload(s, of, in), at)
}

// payload encodes the payload of an event. It ends the test if a payload is missing, or there is one too
// many.
func payload[In, Out any](s Subject, of Events[In, Out], in []In) settle.Value {
	s.tb().Helper()
	var one In
	switch _, none := any(one).(struct{}); {
	case len(in) > 1:
		s.tb().Fatalf("settletest: send to %s/%s: an event has one payload, and not %d", s.Space(), of.Name(), len(in))
	case len(in) == 1:
		one = in[0]
	case !none:
		s.tb().Fatalf("settletest: send to %s/%s: its events have a payload of type %T; pass one", s.Space(), of.Name(), one)
	}
	v, err := of.Core().Payload(one)
	if err != nil {
		s.tb().Fatalf("settletest: send to %s/%s: %v", s.Space(), of.Name(), err)
	}
	return v
}

// Place is a document or a part of one: a settle.Cell or settle.Derived with a T, settle.Rows or
// settle.DerivedRows with a map[string]T, or one row of those (cards.At(key)).
type Place[T any] interface {
	Address() space.Address
	Decode(v settle.Value) (T, error)
}

// Expect reads a place, and fails the test if its value is not want, with the differences and their
// possible causes. Rows are expected as a map; ExpectKeys compares only their keys.
func Expect[T any](s Subject, place Place[T], want T) {
	s.tb().Helper()
	got, there := get(s, place)
	if reflect.DeepEqual(got, want) || emptyMap(got) && emptyMap(want) {
		return
	}
	note := ""
	if !there() {
		note = absent(s, place.Address())
		if at := place.Address(); isDerived(place) && (at.Space == "" || at.Space == s.Space()) {
			note += s.underived(at.Doc)
		}
	}
	differs(s, place.Address(), diff(jsonOf(got), jsonOf(want)), note)
}

// get reads a place as a handler does; there reports whether it has a value.
func get[T any](s Subject, place Place[T]) (got T, there func() bool) {
	s.tb().Helper()
	if p, ok := place.(interface {
		Get(r settle.Reader) T
		Exists(r settle.Reader) bool
	}); ok {
		return p.Get(s), func() bool { return p.Exists(s) }
	}
	v := read(s, place.Address())
	got, err := place.Decode(v)
	if err != nil {
		s.Fail(err)
	}
	return got, func() bool { return !v.IsAbsent() }
}

// ExpectKeys fails the test unless the rows, settle.Rows or settle.DerivedRows, have exactly these keys. It does not read the rows.
func ExpectKeys(s Subject, rows interface {
	settle.Place
	Keys(from settle.Reader) []string
}, want ...string,
) {
	s.tb().Helper()
	got := rows.Keys(s)
	missing, others := without(want, got), without(got, want)
	var lines []string
	if len(missing) > 0 {
		lines = append(lines, "not there   "+list(missing))
	}
	if len(others) > 0 {
		lines = append(lines, "not wanted  "+list(others))
	}
	if len(lines) > 0 {
		differs(s, rows.Address(), strings.Join(lines, "\n"), "")
	}
}

// read reads a place, in any space.
func read(s Subject, at space.Address) settle.Value {
	s.tb().Helper()
	if at.Space != "" && at.Space != s.Space() {
		return s.GetFrom(at.Space, at.Doc, at.Path...)
	}
	return s.Get(at.Doc, at.Path...)
}

// Watched is the view of a client that watches a place.
type Watched[T any] struct {
	s     *Space
	place Place[T]
	w     *simkit.Watch
}

// Watch watches a place of the space from now on, as a client does: it is kept up to date.
func Watch[T any](s *Space, place Place[T]) *Watched[T] {
	s.w.t.Helper()
	if other := place.Address().Space; other != "" && other != s.Space() {
		s.w.t.Fatalf("settletest: watch %s: it is of another space; watch it there", place.Address())
	}
	return &Watched[T]{s, place, s.watch(place.Address().Doc)}
}

// Values returns the values seen so far: the initial one, and each change.
func (w *Watched[T]) Values() []T {
	w.s.w.t.Helper()
	var out []T
	var last settle.Value
	for i, v := range w.w.Values() {
		at, t := v.At(w.place.Address().Path), w.decode(v)
		if i > 0 && equal(at, last) && reflect.DeepEqual(t, out[len(out)-1]) {
			continue
		}
		last = at
		out = append(out, t)
	}
	return out
}

// Last returns the value seen last.
func (w *Watched[T]) Last() T {
	w.s.w.t.Helper()
	all := w.w.Values()
	return w.decode(all[len(all)-1])
}

// decode decodes the value of the place in its document.
func (w *Watched[T]) decode(doc settle.Value) T {
	w.s.w.t.Helper()
	if p, ok := w.place.(interface {
		Within(doc settle.Value) (T, error)
	}); ok {
		t, err := p.Within(doc)
		if err != nil {
			w.s.Fail(err)
		}
		return t
	}
	t, err := w.place.Decode(doc.At(w.place.Address().Path))
	if err != nil {
		w.s.Fail(err)
	}
	return t
}

// Stop ends the watch.
func (w *Watched[T]) Stop() {
	w.s.w.t.Helper()
	w.s.w.check(w.w.Stop())
}
