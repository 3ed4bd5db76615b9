package settle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/settlehq/settle/internal/codec"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Cell is a location that handlers write: a document, or with Field a part of one, as a value of
// type T. It is a name and holds no data, so one package variable serves all spaces, transactions
// and goroutines.
//
//	var stats = settle.NewCell[Stats]("stats")
//
// T is encoded as JSON, with `json` tags; docs/documents.md has the details.
type Cell[T any] struct {
	place[T]
}

// NewCell returns the cell of document doc. It panics if doc is not a valid name (letters, digits,
// '-' and '_'; at most 64) or if T cannot be encoded, as regexp.MustCompile does: cells are
// declared once, and the mistake is in the source.
func NewCell[T any](doc string) Cell[T] { return Cell[T]{newPlace[T]("cell", doc)} }

// Field returns a part of a cell, addressed by JSON names. A read of it depends on that part only.
// It panics if T has no such field, or if the field has another type than F:
//
//	var departures = settle.Field[int64](stats, "departures")
func Field[F, T any](c Cell[T], path ...string) Cell[F] {
	return Cell[F]{part[F](c.place, path)}
}

// Or returns the cell with a value to read where none exists. Each read decodes a copy of its own.
// It panics if the value cannot be encoded.
func (c Cell[T]) Or(value T) Cell[T] {
	c.or = c.substitute(value)
	return c
}

// In returns the same location of another space, for reading. Set and Delete on it fail the
// transaction: to change another space, send it an event.
func (c Cell[T]) In(space string) Cell[T] {
	c.space = space
	return c
}

// Set writes the value. Writing a value equal to the present one is not a change.
func (c Cell[T]) Set(w Writer, v T) {
	val, ok := c.encode(w, v)
	if ok {
		val, ok = c.stamped(w, val)
	}
	if ok && c.prepare(w, false) {
		w.Set(c.doc, val, c.path...)
	}
}

// Update reads the value, calls change on it, and writes it.
func (c Cell[T]) Update(w Writer, change func(*T)) {
	v := c.Get(w)
	change(&v)
	c.Set(w, v)
}

// Delete removes the value.
func (c Cell[T]) Delete(w Writer) {
	if c.prepare(w, true) {
		w.Delete(c.doc, c.path...)
	}
}

// place holds what Cell and Derived have in common: where the value is, and how it is read.
type place[T any] struct {
	space, doc string
	path       model.Path
	codec      *codec.Codec[T]
	or         Value // read where there is no value
	form       form
}

func newPlace[T any](what, doc string) place[T] {
	must(model.CheckName(what, doc))
	return place[T]{doc: doc, codec: codecOf[T](what + " " + doc)}
}

func codecOf[T any](what string) *codec.Codec[T] {
	s, err := codec.Of[T]()
	if err != nil {
		must(fmt.Errorf("%s: %w", what, err))
	}
	return s
}

func part[F, T any](of place[T], path []string) place[F] {
	what := fmt.Sprintf("field %s of %s", model.Path(path), of.doc)
	found, err := codec.Field(reflect.TypeFor[T](), path...)
	if want := reflect.TypeFor[F](); err == nil && found != want && want != reflect.TypeFor[Value]() {
		err = fmt.Errorf("it is of type %v in %v, not %v", found, reflect.TypeFor[T](), want)
	}
	if err != nil {
		must(fmt.Errorf("%s: %w", what, err))
	}
	return place[F]{space: of.space, doc: of.doc, path: slices.Concat(of.path, path), codec: codecOf[F](what), form: of.form}
}

func must(err error) {
	if err != nil {
		panic("settle: " + err.Error())
	}
}

// Name returns the name of the document.
func (p place[T]) Name() string { return p.doc }

// Address returns the location.
func (p place[T]) Address() space.Address {
	return space.Address{Space: p.space, Doc: p.doc, Path: p.path}
}

// Get reads the value; if there is none, the value of Or or the zero value. A value that does not
// decode into T fails the transaction, with an error that names the location.
func (p place[T]) Get(r Reader) T {
	v, ok := p.Lookup(r)
	if !ok {
		return p.instead()
	}
	return v
}

// substitute encodes the value of Or: kept as a T, it could be modified by one reader while another
// space reads it.
func (p place[T]) substitute(value T) Value {
	v, err := p.codec.Encode(value)
	if err == nil {
		_, err = p.codec.Decode(v)
	}
	if err != nil {
		must(fmt.Errorf("the value that stands for %s: %w", p, err))
	}
	return v
}

// instead returns the value to read where there is none.
func (p place[T]) instead() T {
	t, _ := p.codec.Decode(p.or) // checked by standIn
	return t
}

// Lookup reads the value, and returns false if there is none.
func (p place[T]) Lookup(r Reader) (T, bool) { return p.decode(r, p.read(r)) }

// Exists reports whether there is a value. In the same space it depends on the outermost structure
// of the value only, see [space.Tx.GetShallow]; in another space, on the whole value.
func (p place[T]) Exists(r Reader) bool {
	if p.elsewhere(r) || isLink[T]() {
		return !p.read(r).IsAbsent()
	}
	if _, rest := p.unit(); len(rest) == 0 {
		return !r.GetShallow(p.doc, p.path...).IsAbsent()
	}
	return !p.shallow(r).IsAbsent()
}

// Peek reads the value in this space without a dependency: the node does not run again because of
// it, and nothing is brought up to date for it.
func (p place[T]) Peek(r Reader) T {
	if p.elsewhere(r) {
		r.Fail(fmt.Errorf("peek at %s: another space can be read only with Get", p))
	}
	v, ok := p.decode(r, p.peek(r))
	if !ok {
		return p.instead()
	}
	return v
}

// Ref returns a link to the location, for storing in a document.
func (p place[T]) Ref() Ref[T] {
	return Ref[T]{model.Link{Space: p.space, Doc: p.doc, Path: p.path}}
}

// Decode decodes a stored value of this location into a T, as Get does: an absent value yields the value
// of Or or the zero value. Use it for values obtained elsewhere, such as from Space.GetCurrent; for a part of a
// document with a Version, use Within.
func (p place[T]) Decode(v Value) (t T, err error) {
	if len(p.path) <= p.form.depth() {
		v, err = p.upgraded(v)
	}
	if err != nil {
		return t, err
	}
	return p.decoded(v)
}

// decoded is Decode for a value in its present form.
func (p place[T]) decoded(v Value) (t T, err error) {
	if v.IsAbsent() {
		return p.instead(), nil
	}
	if t, err = p.codec.Decode(v); err != nil {
		err = fmt.Errorf("read %s: %w", p, err)
	}
	return t, err
}

// String formats the address, "@space/document/path", for people.
func (p place[T]) String() string {
	return space.Address{Space: p.space, Doc: p.doc, Path: p.path}.String()
}

func (p place[T]) elsewhere(r Reader) bool { return p.space != "" && p.space != r.Space() }

func (p place[T]) storedAt(r Reader, path model.Path) Value {
	if p.elsewhere(r) {
		return r.GetFrom(p.space, p.doc, path...)
	}
	return r.Get(p.doc, path...)
}

func (p place[T]) shallowStored(r Reader) Value { return r.GetShallow(p.doc, p.path...) }

func (p place[T]) peekAt(r Reader, path model.Path) Value { return r.Peek(p.doc, path...) }

// stored reads the value as it is stored.
func (p place[T]) stored(r Reader) Value {
	switch {
	case isLink[T]():
		return p.link(r)
	case p.elsewhere(r):
		return r.GetFrom(p.space, p.doc, p.path...)
	}
	return r.Get(p.doc, p.path...)
}

func (p place[T]) peekStored(r Reader) Value {
	if isLink[T]() {
		return p.member(r, func(path ...string) Value { return r.Peek(p.doc, path...) })
	}
	return r.Peek(p.doc, p.path...)
}

// isLink reports whether T is a Ref: then the link itself is the value, and is not followed.
func isLink[T any]() bool {
	_, ok := any((*T)(nil)).(interface{ To() model.Link })
	return ok
}

// link reads a link itself.
func (p place[T]) link(r Reader) Value {
	if p.elsewhere(r) {
		return p.member(r, func(path ...string) Value { return r.GetFrom(p.space, p.doc, path...) })
	}
	if l, ok := r.Link(p.doc, p.path...); ok {
		return l.Value()
	}
	return r.Get(p.doc, p.path...)
}

// member reads a link where reads would follow it: as a member of its parent.
func (p place[T]) member(r Reader, read func(path ...string) Value) Value {
	last := len(p.path) - 1
	if last < 0 {
		r.Fail(fmt.Errorf("read %s: a link that is a whole document is read with Get, in its space; keep it in a field", p))
		return Value{}
	}
	return read(p.path[:last]...).Get(p.path[last])
}

// decode decodes a value. A value that is no T fails the transaction: substituting another value
// would hide the error.
func (p place[T]) decode(r Reader, v Value) (t T, ok bool) {
	if v.IsAbsent() {
		return t, false
	}
	t, err := p.decoded(v)
	if err != nil {
		r.Fail(err)
	}
	return t, err == nil
}

// encode encodes a T that is to be written.
func (p place[T]) encode(w Writer, t T) (Value, bool) {
	if !p.own(w) {
		return Value{}, false
	}
	v, err := p.codec.Encode(t)
	if err != nil {
		w.Fail(fmt.Errorf("write %s: %w", p, err))
	}
	return v, err == nil
}

// own fails the transaction if the location belongs to another space.
func (p place[T]) own(w Writer) bool {
	if p.elsewhere(w) {
		w.Fail(fmt.Errorf("write %s: a space is changed by itself only; send it an event", p))
		return false
	}
	return true
}

// ErrNotFound reports that the value that is fetched does not exist.
var ErrNotFound = errors.New("it does not exist")

// Fetch returns the current value; derived documents are brought up to date for it by the worker
// that serves the space. If there is none, it returns the value of Or, or ErrNotFound. A value
// that does not decode into T is an error, and so is one that cannot be brought up to date, for
// instance because a computation fails; the error says why. Other errors are those of
// Space.GetCurrent.
func (p place[T]) Fetch(ctx context.Context, from Space) (t T, err error) {
	now, err := from.GetCurrent(ctx, p.doc)
	if err != nil {
		return t, err
	}
	if !now.Current {
		return t, fmt.Errorf("%s of space %s is not up to date: %s", p.doc, from.name, now.Reason)
	}
	p.space = from.name
	at, err := p.within(now.Value)
	switch {
	case err != nil:
		return t, err
	case at.IsAbsent() && p.or.IsAbsent():
		return t, fmt.Errorf("fetch %s: %w", p, ErrNotFound)
	}
	return p.decoded(at)
}

// Watch observes the value: the loop receives the present value, then every change, until ctx ends. A
// value that does not decode into T ends it with an error. See Space.Watch. A value that does not exist
// (yet) is not received, unless it existed before.
func (p place[T]) Watch(ctx context.Context, in Space, options ...WatchOption) iter.Seq2[Update[T], error] {
	p.space = in.name
	return p.updates(in.Watch(ctx, p.doc, options...))
}

// updates returns the updates of the place that those of its document contain.
func (p place[T]) updates(document iter.Seq2[Update[Value], error]) iter.Seq2[Update[T], error] {
	return func(yield func(Update[T], error) bool) {
		at, value := Value{}, p.instead()
		var last Update[T] // its status is the last that was received
		for u, err := range document {
			next := at
			if err == nil {
				next, err = p.within(u.Value)
			}
			changed := err == nil && u.Changed && !model.Equal(next, at)
			if changed {
				at = next
				value, err = p.decoded(at)
			}
			if err != nil {
				yield(Update[T]{}, err)
				return
			}
			now := Update[T]{value, u.Revision, !at.IsAbsent(), changed, u.Connected, u.Current, u.Reason}
			isNews := changed || !u.Changed || now.Connected != last.Connected || now.Current != last.Current || now.Reason != last.Reason
			if last = now; isNews && !yield(now, nil) {
				return
			}
		}
	}
}

var _ Reader = (*space.Tx)(nil)
