package settle

import (
	"errors"
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Derived is a document that a computation derives, as a value of type T, or with Part a part of
// one. Only the computation writes it, so it has no Set. Like a Cell it is a name.
//
//	var punctuality = settle.NewDerived[Punctuality]("punctuality")
type Derived[T any] struct {
	place[T]
}

// NoValue is the error that a computation returns if there is nothing to derive (yet): its document
// then does not exist.
//
//	if n == 0 {
//		return Punctuality{}, settle.NoValue
//	}
var NoValue = errors.New("no value") //nolint:revive,staticcheck // a signal, like fs.SkipDir

// NewDerived returns the derived document doc of type T. It panics like NewCell.
func NewDerived[T any](doc string) Derived[T] {
	return Derived[T]{newPlace[T]("derived document", doc)}
}

// Part returns a part of a derived document, as Field does for a cell.
func Part[F, T any](d Derived[T], path ...string) Derived[F] {
	return Derived[F]{part[F](d.place, path)}
}

// In returns the same document of another space. Reading it creates demand there: it is computed
// because it is read.
func (d Derived[T]) In(space string) Derived[T] {
	d.space = space
	return d
}

// Or returns the document with a value to read where none exists; see Cell.Or.
func (d Derived[T]) Or(value T) Derived[T] {
	d.or = d.substitute(value)
	return d
}

// Compute registers the computation that derives the document. It runs while the document is
// observed: by a client that watches it, by an observed computation that reads it (here or in
// another space), by an effect, or by an event whose handler reads it; and then only when something
// that it read has changed. After an error the document keeps its value; NoValue removes it.
//
// run must be a function of what it reads: run again over the same documents, it returns the same.
// Package settletest checks that.
func (d Derived[T]) Compute(p *Program, run func(v *View) (T, error), options ...Option) {
	n := space.NodeSpec{ID: d.doc, Kind: space.Computation, Output: d.doc, Run: func(tx *space.Tx) (Value, error) {
		t, err := run((*View)(tx))
		if err != nil || tx.Err() != nil {
			return none(err)
		}
		return d.codec.Encode(t)
	}}
	switch {
	case run == nil:
		n.Run = nil
	case d.space != "" || len(d.path) > 0:
		p.note(fmt.Errorf("program %s: compute %s: a computation derives a whole document of its own space", p.Name(), d))
		return
	}
	p.node(n, options)
	doc := d.described()
	doc.derived = true
	p.documents = append(p.documents, doc)
}

// none converts the error of a run to its result: NoValue means an absent value.
func none(err error) (Value, error) {
	if errors.Is(err, NoValue) {
		return Value{}, nil
	}
	return Value{}, err
}

// Place is a location in documents: a Cell, a Derived, Rows or DerivedRows. A node can be
// registered to write cells and rows (ComputeInto, Materialize), and Expects takes all of them.
type Place interface {
	Address() space.Address
}

// ComputeInto registers a computation that writes several locations, or locations that handlers
// also write. Reading any of them creates demand for it. The locations are its write surface: run
// may write there and nowhere else, and no other computation may write there. It has a name of its
// own because no single document stands for it.
func (p *Program) ComputeInto(name string, run func(d *Draft) error, into []Place, options ...Option) *Program {
	n := space.NodeSpec{ID: name, Kind: space.Computation, Writes: addresses(into), Run: drafting(run)}
	if len(into) == 0 {
		return p.note(fmt.Errorf("program %s: node %q: it writes nothing; name the cells that it derives", p.Name(), name))
	}
	p.node(n, options)
	return p
}

// Materialize registers a materializer: it maintains an index or a list within the given locations,
// and decides while running where exactly it writes. It therefore runs without being observed, but
// only when nothing else is runnable, or before a node or event that reads within. Its actual
// writes trigger their readers. No other computation may write there.
func (p *Program) Materialize(name string, run func(d *Draft) error, within []Place, options ...Option) *Program {
	n := space.NodeSpec{ID: name, Kind: space.Computation, Envelope: addresses(within), Run: drafting(run)}
	if len(within) == 0 {
		return p.note(fmt.Errorf("program %s: node %q: it writes nothing; name the cells that it keeps up", p.Name(), name))
	}
	p.node(n, options)
	return p
}

func drafting(run func(d *Draft) error) func(tx *space.Tx) (Value, error) {
	if run == nil {
		return nil
	}
	return func(tx *space.Tx) (Value, error) { return Value{}, run((*Draft)(tx)) }
}

func addresses(places []Place) []space.Address {
	out := make([]space.Address, len(places))
	for i, p := range places {
		out[i] = p.Address()
		out[i].Path = slices.Clone(out[i].Path)
	}
	return out
}

// Ref is a link to a location of type T, for storing in a document: a field of type Ref[T] is
// encoded as a link. Untyped reads follow it.
type Ref[T any] struct{ to model.Link }

// To returns the link as a value.
func (r Ref[T]) To() model.Link { return r.to }

// IsZero reports whether the link points nowhere.
func (r Ref[T]) IsZero() bool { return r.to.Doc == "" }

// Get reads what the link points to; the zero value if there is nothing.
func (r Ref[T]) Get(from Reader) T {
	v, _ := r.Lookup(from)
	return v
}

// Lookup reads what the link points to, and returns false if there is nothing.
func (r Ref[T]) Lookup(from Reader) (t T, ok bool) {
	if r.IsZero() {
		return t, false
	}
	p := place[T]{space: r.to.Space, doc: r.to.Doc, path: r.to.Path, codec: codecOf[T]("a link")}
	return p.Lookup(from)
}

// In resolves the link relative to a space: a link that was read there and names no space points
// into that space.
func (r Ref[T]) In(space string) Ref[T] {
	if r.to.Space == "" {
		r.to.Space = space
	}
	return r
}

// String formats the link for people.
func (r Ref[T]) String() string { return r.to.String() }

// MarshalJSON encodes the link, or null.
func (r Ref[T]) MarshalJSON() ([]byte, error) {
	if r.IsZero() {
		return []byte("null"), nil
	}
	return r.to.MarshalJSON()
}

// UnmarshalJSON decodes a link, or null.
func (r *Ref[T]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*r = Ref[T]{}
		return nil
	}
	return r.to.UnmarshalJSON(data)
}
