package settle

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/upgrade"
)

// Version returns the cell of a document whose form has changed, with the steps from older forms (package upgrade): older documents are
// upgraded when they are read, and stored as version version when a handler writes them. A document of a later version makes the
// event wait for a worker that knows it. It panics if the steps have a gap, or if T is not stored as an object.
//
//	var order = settle.NewCell[Order]("order").Version(2, upgrade.From(1, func(o orderV1) (Order, error) { ... }))
func (c Cell[T]) Version(version int, steps ...upgrade.Step) Cell[T] {
	if len(c.path) > c.form.depth() {
		must(fmt.Errorf("version of %s: a version is that of the document; set it before Field", c))
	}
	c.form.chain = chainOf[T](c, version, steps)
	return c
}

// Version is Cell.Version, for each row alone: rows of different versions are in one document.
func (r Rows[T]) Version(version int, steps ...upgrade.Step) Rows[T] {
	r.all.form.chain = chainOf[T](r.all, version, steps)
	return r
}

func chainOf[T any](of fmt.Stringer, version int, steps []upgrade.Step) *upgrade.Chain {
	c, err := upgrade.New(version, steps...)
	if err == nil && !mayBeObject(reflect.TypeFor[T]()) {
		err = fmt.Errorf("only objects have a version, and %s is none", reflect.TypeFor[T]())
	}
	if err != nil {
		must(fmt.Errorf("%s: %w", of, err))
	}
	return c
}

// mayBeObject reports whether values of the type may be stored as objects. For some structs that is known only when they are written.
func mayBeObject(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return slices.Contains([]reflect.Kind{reflect.Struct, reflect.Map, reflect.Interface}, t.Kind())
}

// form is the version of what a place is in: of a document, or of each of its rows.
type form struct {
	chain *upgrade.Chain
	rows  bool
}

// depth is the length of the path to what has the version.
func (f form) depth() int {
	if f.rows {
		return 1
	}
	return 0
}

// unit returns the path to what has the version, and the rest of the path of the place.
func (p place[T]) unit() (to, rest model.Path) {
	n := min(p.form.depth(), len(p.path))
	return p.path[:n:n], p.path[n:]
}

// upgraded returns a stored value in the present form: that of what has the version, or of the document of rows.
func (p place[T]) upgraded(v Value) (Value, error) {
	if len(p.path) < p.form.depth() {
		return p.upgradedRows(v)
	}
	if now, is := p.form.chain.Current(v); is {
		return now, nil // the common case, for which the place need not be on the heap
	}
	return p.form.chain.Upgrade(p, v)
}

func (p place[T]) upgradedRows(v Value) (Value, error) {
	for key, row := range v.All() {
		if p.form.chain == nil && model.VersionOf(row) == 1 {
			continue
		}
		at := p
		at.path = model.Path{key}
		up, err := p.form.chain.Upgrade(at, row)
		if err == nil && !model.Equal(row, up) {
			v, err = v.Set(model.Path{key}, up)
		}
		if err != nil {
			return Value{}, err
		}
	}
	return v, nil
}

// within returns the value of the place in its document.
func (p place[T]) within(doc Value) (Value, error) {
	to, rest := p.unit()
	v, err := p.upgraded(doc.At(to))
	return v.At(rest), err
}

// Within decodes the value that a document has at the location, as Get would. Use it for documents that were obtained elsewhere, such as from
// Space.GetCurrent.
func (p place[T]) Within(doc Value) (t T, err error) {
	v, err := p.within(doc)
	if err != nil {
		return t, err
	}
	return p.decoded(v)
}

// howToRead is a way to read: what is at a path as it is stored, and the value of the place itself.
type howToRead[T any] struct {
	at    func(p place[T], r Reader, path model.Path) Value
	whole func(p place[T], r Reader) Value
}

// read reads the value in its present form.
func (p place[T]) read(r Reader) Value {
	if p.form.chain == nil && len(p.path) == 0 && !p.form.rows {
		if v := p.stored(r); model.VersionOf(v) == 1 {
			return v // the common case
		}
	}
	return p.present(r, howToRead[T]{place[T].storedAt, place[T].stored})
}

// peek is read without a dependency.
func (p place[T]) peek(r Reader) Value {
	return p.present(r, howToRead[T]{place[T].peekAt, place[T].peekStored})
}

// shallow is read for a caller that asks only whether there is a value.
func (p place[T]) shallow(r Reader) Value {
	return p.present(r, howToRead[T]{place[T].storedAt, place[T].shallowStored})
}

// present reads the value of the place in its present form.
func (p place[T]) present(r Reader, how howToRead[T]) Value {
	to, rest := p.unit()
	switch {
	case len(rest) == 0:
		return p.orFail(r)(p.upgraded(how.whole(p, r)))
	case p.form.chain == nil:
		if v := how.whole(p, r); !p.outdated(r, to) {
			return v
		}
		return Value{}
	case model.VersionIn(how.at(p, r, append(to, model.VersionKey))) == p.form.chain.Version():
		return how.whole(p, r)
	}
	v := p.orFail(r)(p.upgraded(how.at(p, r, to))).At(rest)
	if l, is := v.AsLink(); is && !isLink[T]() {
		if l.Space == "" {
			l.Space = p.space
		}
		return r.Follow(l)
	}
	return v
}

// orFail returns a function that fails the transaction for an error.
func (p place[T]) orFail(r Reader) func(Value, error) Value {
	return func(v Value, err error) Value {
		if err != nil {
			r.Fail(err)
		}
		return v
	}
}

// outdated fails the transaction if what is stored has a later version than the place.
func (p place[T]) outdated(r Reader, to model.Path) bool {
	n := p.storedVersion(r, to)
	if n > p.form.chain.Version() {
		r.Fail(&model.NewerError{Place: p.String(), Version: n, Known: p.form.chain.Version()})
	}
	return n > p.form.chain.Version()
}

// storedVersion returns the version of what is stored. It is no dependency: what a transaction has read before a later version is
// written was of an earlier one.
func (p place[T]) storedVersion(r Reader, to model.Path) int {
	var tx *space.Tx
	switch r := r.(type) {
	case *space.Tx:
		tx = r
	case *View:
		tx = r.tx()
	case *Draft:
		tx = r.view().tx()
	}
	switch {
	case tx != nil:
		return tx.StoredVersion(p.space, p.doc, to...)
	case p.elsewhere(r):
		v := r.GetFrom(p.space, p.doc, to...) // a test, which has no dependencies
		return model.VersionOf(v)
	}
	return model.VersionOf(r.Peek(p.doc, to...))
}

// prepare makes what is stored ready for a write to a part of it: it is of the present form then. It returns false if it has failed
// the transaction.
func (p place[T]) prepare(w Writer, deletes bool) bool {
	to, rest := p.unit()
	if !p.own(w) || p.outdated(w, to) {
		return false
	}
	if p.form.chain == nil || len(rest) == 0 || p.storedVersion(w, to) == p.form.chain.Version() {
		return true
	}
	doc, at, own := upgrade.Target(w, p.doc, to)
	if !own {
		return true // the write itself is refused
	}
	v := w.Peek(doc, at...)
	if v.IsAbsent() {
		if !deletes {
			w.Set(doc, model.Object(model.F(model.VersionKey, p.form.chain.Version())), at...)
		}
		return true
	}
	v, err := p.upgraded(v)
	if err == nil {
		v, err = p.form.chain.Stamp(v)
	}
	if err != nil {
		w.Fail(err)
		return false
	}
	w.Set(doc, v, at...)
	return true
}

// stamped returns a value that is to be written with its version, if it is what has one.
func (p place[T]) stamped(w Writer, v Value) (Value, bool) {
	if len(p.path) != p.form.depth() {
		return v, true
	}
	v, err := p.form.chain.Stamp(v)
	if err != nil {
		w.Fail(fmt.Errorf("write %s: %w", p, err))
	}
	return v, err == nil
}
