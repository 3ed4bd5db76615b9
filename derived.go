package settle

import (
	"errors"
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Derived is a document that a computation derives, as a value of type T, or with Part a
// part of one. Nobody else writes it, which is why it has no Set. Like a Cell it is a name.
//
//	var punctuality = settle.NewDerived[Punctuality]("punctuality")
type Derived[T any] struct {
	place[T]
}

// NoValue is what a computation returns for an error if there is nothing to derive (yet): its
// document does not exist then.
//
//	if n == 0 {
//		return Punctuality{}, settle.NoValue
//	}
var NoValue = errors.New("no value") //nolint:revive,staticcheck // it is no error, as fs.SkipDir is none

// NewDerived names a derived document of type T. It panics like NewCell.
func NewDerived[T any](doc string) Derived[T] {
	return Derived[T]{newPlace[T]("derived document", doc)}
}

// Part names a part of a derived document, as Field does of a cell.
func Part[F, T any](d Derived[T], path ...string) Derived[F] {
	return Derived[F]{part[F](d.place, path)}
}

// In is the same document of another space. To read it is demand over there: it is computed
// because it is read.
func (d Derived[T]) In(space string) Derived[T] {
	d.space = space
	return d
}

// Or is the document with a value that stands for one that does not exist; see Cell.Or.
func (d Derived[T]) Or(value T) Derived[T] {
	d.or = d.standIn(value)
	return d
}

// Compute registers the computation that derives the document. It runs while the document is
// observed: by a client that watches it, by a live computation that reads it (here or in
// another space), by an effect, or by an event whose handler reads it; and then only when
// something that it has read has changed. An error keeps the value that was there; NoValue
// removes it.
//
// run must be a function of what it reads: run again over the same documents, it returns
// the same. Package settletest checks that.
func (d Derived[T]) Compute(p *Program, run func(v *View) (T, error), options ...Option) {
	n := NodeSpec{ID: d.doc, Kind: Computation, Output: d.doc, Run: func(tx *space.Tx) (Value, error) {
		t, err := run((*View)(tx))
		if err != nil || tx.Err() != nil {
			return none(err)
		}
		return d.shape.Encode(t)
	}}
	switch {
	case run == nil:
		n.Run = nil
	case d.space != "" || len(d.path) > 0:
		p.note(fmt.Errorf("program %s: compute %s: a computation derives a whole document of its own space", p.Name(), d))
		return
	}
	p.node(n, options)
}

// none is what a run that ended in an error has come to.
func none(err error) (Value, error) {
	if errors.Is(err, NoValue) {
		return Value{}, nil
	}
	return Value{}, err
}

// Place is where something stands: a Cell, a Derived, Rows and the like. Cells and rows are what a
// node can be registered to write (ComputeInto, Materialize), all of them what it Expects to read.
type Place interface {
	Address() Address
}

// ComputeInto registers a computation that writes several places, or writes where handlers may
// write too: whoever reads one of them makes it run. The places are its write surface, and
// what run may write; no other computation may write there. It is named, since no single document
// stands for it.
func (p *Program) ComputeInto(name string, run func(d *Draft) error, into []Place, options ...Option) *Program {
	n := NodeSpec{ID: name, Kind: Computation, Writes: addresses(into), Run: drafting(run)}
	if len(into) == 0 {
		return p.note(fmt.Errorf("program %s: node %q: it writes nothing; name the cells that it derives", p.Name(), name))
	}
	p.node(n, options)
	return p
}

// Materialize registers a materializer: it keeps up an index or a list somewhere in the places
// within, and where exactly is known only when it has run. So it runs whether anybody
// looks or not, but only when nothing else is to do, or before a node or event that reads
// within. What it really writes triggers whoever reads there. No other computation may write there.
func (p *Program) Materialize(name string, run func(d *Draft) error, within []Place, options ...Option) *Program {
	n := NodeSpec{ID: name, Kind: Computation, Envelope: addresses(within), Run: drafting(run)}
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

func addresses(places []Place) []Address {
	out := make([]Address, len(places))
	for i, p := range places {
		out[i] = p.Address()
		out[i].Path = slices.Clone(out[i].Path)
	}
	return out
}

// Ref is a link to a place of type T, to be kept in a document: a field of type Ref[T] is
// encoded as a link. Reads through the dynamic interface follow it.
type Ref[T any] struct{ to model.Link }

// To is the link as a value.
func (r Ref[T]) To() Link { return r.to }

// IsZero reports whether the link leads nowhere.
func (r Ref[T]) IsZero() bool { return r.to.Doc == "" }

// Get reads what the link points to, the zero value if there is nothing.
func (r Ref[T]) Get(from Reader) T {
	v, _ := r.Lookup(from)
	return v
}

// Lookup reads what the link points to, and false if there is nothing.
func (r Ref[T]) Lookup(from Reader) (t T, ok bool) {
	if r.IsZero() {
		return t, false
	}
	p := place[T]{space: r.to.Space, doc: r.to.Doc, path: r.to.Path, shape: shapeOf[T]("a link")}
	return p.Lookup(from)
}

// In is the link as seen from another space: one that was read there and names no space
// leads to a place there.
func (r Ref[T]) In(space string) Ref[T] {
	if r.to.Space == "" {
		r.to.Space = space
	}
	return r
}

// String is the link, for people.
func (r Ref[T]) String() string { return r.to.String() }

// MarshalJSON is the link, or null.
func (r Ref[T]) MarshalJSON() ([]byte, error) {
	if r.IsZero() {
		return []byte("null"), nil
	}
	return r.to.MarshalJSON()
}

// UnmarshalJSON reads a link, or null.
func (r *Ref[T]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*r = Ref[T]{}
		return nil
	}
	return r.to.UnmarshalJSON(data)
}
