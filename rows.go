package settle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/settlehq/settle/internal/shape"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Rows is a document that holds rows of type T by key, which handlers write. To read one row
// is to depend on that row; to read the keys, on which rows there are.
//
//	var cards = settle.NewRows[Card]("cards")
type Rows[T any] struct {
	rows[T]
}

// DerivedRows is a document of rows that are derived, each for itself: see EachRow.
type DerivedRows[T any] struct {
	rows[T]
}

// NewRows names a document of rows. It panics like NewCell.
func NewRows[T any](doc string) Rows[T] { return Rows[T]{newRows[T]("rows", doc)} }

// NewDerivedRows names a document of derived rows. It panics like NewCell.
func NewDerivedRows[T any](doc string) DerivedRows[T] {
	return DerivedRows[T]{newRows[T]("derived rows", doc)}
}

// At is the row of a key, as a cell.
func (r Rows[T]) At(key string) Cell[T] { return Cell[T]{r.at(key)} }

// In is the same document of another space, to be read.
func (r Rows[T]) In(space string) Rows[T] {
	r.all.space = space
	return r
}

// Set writes the row of a key.
func (r Rows[T]) Set(w Writer, key string, row T) { r.At(key).Set(w, row) }

// Update reads the row of a key (the zero value if there is none), has it changed, and
// writes it.
func (r Rows[T]) Update(w Writer, key string, change func(*T)) { r.At(key).Update(w, change) }

// Delete removes the row of a key.
func (r Rows[T]) Delete(w Writer, key string) { r.At(key).Delete(w) }

// At is the row of a key, as a derived place.
func (r DerivedRows[T]) At(key string) Derived[T] { return Derived[T]{r.at(key)} }

// In is the same document of another space.
func (r DerivedRows[T]) In(space string) DerivedRows[T] {
	r.all.space = space
	return r
}

// Node is the name of the node that derives the row of a key, by which tests and logs call it:
// "totals--order-7", and for a key that is no part of a name, one that is made from a hash of it.
func (r DerivedRows[T]) Node(key string) string { return model.RowNode(r.all.doc, key) }

// NameOf makes a name of a key, for a timer, an event or a document: the key itself if it is a
// name (1 to 64 letters, digits, '-' and '_'), and else one that is made from a hash of it. It is
// always the same for a key, and no two keys have the same, even if somebody looks for such.
func NameOf(key string) string { return model.NameOf(key) }

// rows is what Rows and DerivedRows have in common.
type rows[T any] struct {
	all place[map[string]T]
	row *shape.Shape[T]
}

func newRows[T any](what, doc string) rows[T] {
	return rows[T]{all: newPlace[map[string]T](what, doc), row: shapeOf[T](what + " " + doc)}
}

func (r rows[T]) at(key string) place[T] {
	return place[T]{space: r.all.space, doc: r.all.doc, path: model.Path{key}, shape: r.row}
}

// Name is the name of the document.
func (r rows[T]) Name() string { return r.all.doc }

// Address is where the document is.
func (r rows[T]) Address() Address { return r.all.Address() }

// Get reads the row of a key, the zero value if there is none.
func (r rows[T]) Get(from Reader, key string) T { return r.at(key).Get(from) }

// Lookup reads the row of a key, and false if there is none.
func (r rows[T]) Lookup(from Reader, key string) (T, bool) { return r.at(key).Lookup(from) }

// Exists reports whether there is a row of a key.
func (r rows[T]) Exists(from Reader, key string) bool { return r.at(key).Exists(from) }

// Keys are the keys, sorted. It depends on which rows there are, and not on what is in them;
// of another space, on all of it.
func (r rows[T]) Keys(from Reader) []string { return r.outline(from).Keys() }

// Len is how many rows there are.
func (r rows[T]) Len(from Reader) int { return r.outline(from).Len() }

func (r rows[T]) outline(from Reader) Value {
	if r.all.elsewhere(from) {
		return r.keyed(from, r.all.read(from))
	}
	return r.keyed(from, from.GetShallow(r.all.doc))
}

// keyed refuses what has no rows: as if there were none, a computation would remove what it had
// derived from them.
func (r rows[T]) keyed(from Reader, v Value) Value {
	if v.IsAbsent() || v.Kind() == model.KindObject {
		return v
	}
	from.Fail(fmt.Errorf("read %s: an object of rows is wanted; this is of kind %s", r.all, v.Kind()))
	return Value{}
}

// All goes through the rows in the order of their keys. It depends on all of them.
func (r rows[T]) All(from Reader) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for key, v := range r.keyed(from, r.all.read(from)).All() {
			if row, ok := r.at(key).decode(from, v); !ok || !yield(key, row) {
				return
			}
		}
	}
}

// Decode makes the rows of the document's value, by key, as Cell.Decode does; none of an absent one.
func (r rows[T]) Decode(v Value) (map[string]T, error) { return r.all.Decode(v) }

// Fetch returns all rows as of now, see Cell.Fetch.
func (r rows[T]) Fetch(ctx context.Context, c *Client, space string) (map[string]T, error) {
	return r.all.Fetch(ctx, c, space)
}

// Watch observes the rows, see Cell.Watch.
func (r rows[T]) Watch(ctx context.Context, c *Client, space string, deliver func(rows map[string]T, revision uint64), opts ...WatchOption) error {
	return r.all.Watch(ctx, c, space, deliver, opts...)
}

// Keyed is a document of rows of type T: Rows, or DerivedRows.
type Keyed[T any] interface {
	Address() Address
	Keys(Reader) []string
	at(key string) place[T]
}

// Row is one row, as a computation made by EachRow sees it.
type Row[T any] struct {
	place[T]
	// Key is the row's key.
	Key string
}

// EachRow registers computations that derive a row from each row of in: one child per key,
// stable as long as the key is there. Of a thousand rows, one that changes makes one child
// run; one that comes or goes makes the parent look at the keys, and at nothing else.
// run may read whatever it likes beside its row; NoValue leaves its row out.
//
//	settle.EachRow(p, totals, orders, func(v *settle.View, order settle.Row[Order]) (Total, error) {
//		return order.Get(v).total(rates.Get(v)), nil
//	})
func EachRow[I, O any](p *Program, out DerivedRows[O], in Keyed[I], run func(v *View, row Row[I]) (O, error), options ...Option) {
	e := eachRow[I, O]{out: out, in: in, run: run, options: options}
	n := NodeSpec{ID: out.Name(), Kind: Computation, Writes: addresses([]Place{out}), Run: e.parent}
	if err := e.check(); err != nil {
		p.note(fmt.Errorf("program %s: rows of %s: %w", p.Name(), out.Name(), err))
		return
	}
	p.node(n, nil)
	o, _ := applied(NodeSpec{}, options) // has been tried
	p.reads(out.Name(), o.inputs)
}

type eachRow[I, O any] struct {
	out     DerivedRows[O]
	in      Keyed[I]
	run     func(v *View, row Row[I]) (O, error)
	options []Option
}

func (e *eachRow[I, O]) check() error {
	switch name := e.out.Name(); {
	case e.run == nil:
		return errors.New("the function is nil")
	case e.out.all.space != "":
		return errors.New("they belong to another space; a space derives its own documents")
	case strings.Contains(name, model.RowMark), strings.HasSuffix(name, model.RowMark[:1]):
		return fmt.Errorf("the name must not contain %q nor end in %q: the names of the rows' nodes are made with it", model.RowMark, model.RowMark[:1])
	}
	_, err := applied(NodeSpec{}, e.options)
	return err
}

// parent registers a child per key, and takes out the rows whose keys are gone.
func (e *eachRow[I, O]) parent(tx *space.Tx) (Value, error) {
	keys := e.in.Keys(tx)
	for _, key := range keys {
		n, _ := applied(NodeSpec{
			ID: model.RowNode(e.out.Name(), key), Kind: Computation,
			Writes: []Address{{Doc: e.out.Name(), Path: model.Path{key}}}, Run: e.child(key),
		}, e.options)
		tx.Node(n.NodeSpec)
	}
	there := tx.Peek(e.out.Name())
	if there.Kind() != model.KindObject { // nothing, or what another program has left
		tx.Set(e.out.Name(), model.Object())
	}
	for _, key := range there.Keys() {
		if _, found := slices.BinarySearch(keys, key); !found {
			tx.Delete(e.out.Name(), key)
		}
	}
	return Value{}, nil
}

// child derives the row of a key.
func (e *eachRow[I, O]) child(key string) func(tx *space.Tx) (Value, error) {
	from, to := Row[I]{place: e.in.at(key), Key: key}, e.out.at(key)
	return func(tx *space.Tx) (Value, error) {
		row, err := e.run((*View)(tx), from)
		switch {
		case tx.Err() != nil:
		case errors.Is(err, NoValue):
			tx.Delete(to.doc, to.path...)
			return Value{}, nil
		case err == nil:
			if v, ok := to.encode(tx, row); ok {
				tx.Set(to.doc, v, to.path...)
			}
		}
		return Value{}, err
	}
}
