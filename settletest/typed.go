package settletest

import (
	"reflect"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/simkit"
)

// Subject is the space under test, of a World or of a Fleet.
type Subject interface {
	settle.Reader
	tb() TB
	sendTo(stream, id string, payload settle.Value, at time.Time) (settle.Receipt, bool)
	doubt(doc string) string
	panicked(stream, id string) string
	underived(doc string) string
}

// Call sends an event of a stream to a space and returns its result. It ends the test unless the
// event is handled.
func Call[In, Out any](s Subject, stream settle.Stream[In, Out], in In) Out {
	s.tb().Helper()
	rc, ok := send(s, stream, "", in, time.Time{})
	mustBeHandled(s, stream.Name(), rc, ok)
	out, err := stream.Result(s.Space(), &rc)
	if err != nil {
		s.tb().Fatalf("settletest: %v", err)
	}
	return out
}

// Send sends an event of a stream to a space, and returns the receipt, whatever its outcome. See
// Space.Send.
func Send[In, Out any](s Subject, stream settle.Stream[In, Out], in In) settle.Receipt {
	s.tb().Helper()
	rc, _ := send(s, stream, "", in, time.Time{})
	return rc
}

// SendID is Send under an id; events with the same id are one event.
func SendID[In, Out any](s Subject, stream settle.Stream[In, Out], id string, in In) settle.Receipt {
	s.tb().Helper()
	rc, _ := send(s, stream, id, in, time.Time{})
	return rc
}

// SendAt is Send for an event that waits until a time.
func SendAt[In, Out any](s Subject, at time.Time, stream settle.Stream[In, Out], in In) settle.Receipt {
	s.tb().Helper()
	rc, _ := send(s, stream, "", in, at)
	return rc
}

func send[In, Out any](s Subject, stream settle.Stream[In, Out], id string, in In, at time.Time) (settle.Receipt, bool) {
	s.tb().Helper()
	o, err := stream.Outgoing(s.Space(), id, in)
	if err != nil {
		s.tb().Fatalf("settletest: %v", err)
	}
	v, err := settle.ValueOf(o.Payload)
	if err != nil {
		s.tb().Fatalf("settletest: %v", err)
	}
	return s.sendTo(stream.Name(), id, v, at)
}

// Place is a document or a part of one: a settle.Cell or settle.Derived with a T, settle.Rows or
// settle.DerivedRows with a map[string]T, or one row of those (cards.At(key)).
type Place[T any] interface {
	Address() settle.Address
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

// get reads a place as a handler does; there reports whether a value exists.
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

// ExpectKeys fails the test unless the rows have exactly these keys. It does not read the rows.
func ExpectKeys[T any](s Subject, rows settle.Keyed[T], want ...string) {
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
func read(s Subject, at settle.Address) settle.Value {
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
		at := v.At(w.place.Address().Path)
		if i > 0 && equal(at, last) {
			continue
		}
		last = at
		out = append(out, w.decode(at))
	}
	return out
}

// Last returns the value seen last.
func (w *Watched[T]) Last() T {
	w.s.w.t.Helper()
	all := w.w.Values()
	return w.decode(all[len(all)-1].At(w.place.Address().Path))
}

func (w *Watched[T]) decode(v settle.Value) T {
	w.s.w.t.Helper()
	t, err := w.place.Decode(v)
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
