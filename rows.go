package settle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/settlehq/settle/internal/codec"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Rows is a document that holds rows of type T by key, written by handlers. Reading a row depends
// on that row alone; reading the keys depends on the set of keys.
//
//	var cards = settle.NewRows[Card]("cards")
type Rows[T any] struct {
	rows[T]
}

// DerivedRows is a document whose rows are derived one by one: see Each.
type DerivedRows[T any] struct {
	rows[T]
}

// NewRows returns the rows of document doc. It panics like NewCell.
func NewRows[T any](doc string) Rows[T] { return Rows[T]{newRows[T]("rows", doc)} }

// NewDerivedRows returns the derived rows of document doc. It panics like NewCell.
func NewDerivedRows[T any](doc string) DerivedRows[T] {
	return DerivedRows[T]{newRows[T]("derived rows", doc)}
}

// At returns the row of a key as a cell.
func (r Rows[T]) At(key string) Cell[T] { return Cell[T]{r.at(key)} }

// In returns the same document of another space, for reading.
func (r Rows[T]) In(space string) Rows[T] {
	r.all.space = space
	return r
}

// Set writes the row of a key.
func (r Rows[T]) Set(w Writer, key string, row T) { r.At(key).Set(w, row) }

// Update reads the row of a key (the zero value if there is none), calls change on it, and writes
// it.
func (r Rows[T]) Update(w Writer, key string, change func(*T)) { r.At(key).Update(w, change) }

// Delete removes the row of a key.
func (r Rows[T]) Delete(w Writer, key string) { r.At(key).Delete(w) }

// At returns the row of a key as a derived document.
func (r DerivedRows[T]) At(key string) Derived[T] { return Derived[T]{r.at(key)} }

// In returns the same document of another space.
func (r DerivedRows[T]) In(space string) DerivedRows[T] {
	r.all.space = space
	return r
}

// Node returns the name of the node that derives the row of a key, as used in tests and logs:
// "totals--order-7"; for a key that cannot be part of a name, a name derived from its hash.
func (r DerivedRows[T]) Node(key string) string { return model.RowNode(r.all.doc, key) }

// NameOf maps a key to a name for a timer, an event or a document: the key itself if it is a valid
// name (1 to 64 letters, digits, '-' and '_'), otherwise a name derived from its hash. It is
// deterministic, and collisions are infeasible even for keys chosen by an adversary.
func NameOf(key string) string { return model.NameOf(key) }

// rows holds what Rows and DerivedRows have in common.
type rows[T any] struct {
	all place[map[string]T]
	row *codec.Codec[T]
}

func newRows[T any](what, doc string) rows[T] {
	r := rows[T]{all: newPlace[map[string]T](what, doc), row: codecOf[T](what + " " + doc)}
	r.all.form.rows = true
	return r
}

func (r rows[T]) at(key string) place[T] {
	return place[T]{space: r.all.space, doc: r.all.doc, path: model.Path{key}, codec: r.row, form: r.all.form}
}

// Name returns the name of the document.
func (r rows[T]) Name() string { return r.all.doc }

// Address returns the location of the document.
func (r rows[T]) Address() space.Address { return r.all.Address() }

// Get reads the row of a key; the zero value if there is none.
func (r rows[T]) Get(from Reader, key string) T { return r.at(key).Get(from) }

// Lookup reads the row of a key, and returns false if there is none.
func (r rows[T]) Lookup(from Reader, key string) (T, bool) { return r.at(key).Lookup(from) }

// Exists reports whether the key has a row.
func (r rows[T]) Exists(from Reader, key string) bool { return r.at(key).Exists(from) }

// Keys returns the keys, sorted. It depends on the set of keys but not on the rows; in another
// space, on the whole document.
func (r rows[T]) Keys(from Reader) []string { return r.outline(from).Keys() }

// Len returns the number of rows. It depends on what Keys depends on.
func (r rows[T]) Len(from Reader) int { return r.outline(from).Len() }

func (r rows[T]) outline(from Reader) Value {
	if r.all.elsewhere(from) {
		return r.keyed(from, r.all.read(from))
	}
	return r.keyed(from, from.GetShallow(r.all.doc))
}

// keyed fails the transaction for a value that is not an object: treated as empty, it would make a
// computation remove all that it had derived.
func (r rows[T]) keyed(from Reader, v Value) Value {
	if v.IsAbsent() || v.Kind() == model.KindObject {
		return v
	}
	from.Fail(fmt.Errorf("read %s: an object of rows is wanted; this is of kind %s", r.all, v.Kind()))
	return Value{}
}

// All iterates over the rows in the order of their keys. It depends on all of them.
func (r rows[T]) All(from Reader) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for key, v := range r.keyed(from, r.all.read(from)).All() {
			if row, ok := r.at(key).decode(from, v); !ok || !yield(key, row) {
				return
			}
		}
	}
}

// Decode decodes the document's value into rows by key, as Cell.Decode does; an absent value has
// none.
func (r rows[T]) Decode(v Value) (map[string]T, error) { return r.all.Decode(v) }

// Within decodes the rows that a document has; see Cell.Within.
func (r rows[T]) Within(doc Value) (map[string]T, error) { return r.all.Within(doc) }

// Fetch returns all rows, brought up to date; none if the document does not exist. Its errors are those of
// Cell.Fetch.
func (r rows[T]) Fetch(ctx context.Context, from Space) (map[string]T, error) {
	all, err := r.all.Fetch(ctx, from)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return all, err
}

// Watch observes the rows; see Cell.Watch.
func (r rows[T]) Watch(ctx context.Context, in Space, options ...WatchOption) iter.Seq2[Update[map[string]T], error] {
	return r.all.Watch(ctx, in, options...)
}

// keyed is a document of rows of type T: Rows or DerivedRows.
type keyed[T any] interface {
	Address() space.Address
	Keys(Reader) []string
	at(key string) place[T]
}

// Row is one row, as passed to a computation of Each.
type Row[T any] struct {
	place[T]
	// Key is the row's key.
	Key string
}

// PerRow derives rows one by one: Each returns one, and DerivedRows.Compute registers it.
type PerRow[O any] struct {
	keys func(from Reader) []string
	row  func(key string) func(v *View) (O, error)
}

// Each derives a row from each row of in, which is Rows or DerivedRows: run is called for one row, and may read anything beside it.
// Returning NoValue leaves the row out.
//
//	totals.Compute(p, settle.Each(orders, func(v *settle.View, order settle.Row[Order]) (Total, error) {
//		return order.Get(v).total(rates.Get(v)), nil
//	}))
func Each[I, O any](in keyed[I], run func(v *View, row Row[I]) (O, error)) PerRow[O] {
	if run == nil {
		return PerRow[O]{}
	}
	return PerRow[O]{keys: in.Keys, row: func(key string) func(v *View) (O, error) {
		row := Row[I]{place: in.at(key), Key: key}
		return func(v *View) (O, error) { return run(v, row) }
	}}
}

// Compute registers the computations that derive the rows: one child node per key, which exists as long
// as the key does. With a thousand rows, a changed row reruns one child; an added or removed row reruns
// the parent, which reads only the keys. The options are those of the children.
func (r DerivedRows[T]) Compute(p *Program, each PerRow[T], options ...Option) {
	e := eachRow[T]{out: r, in: each, options: options}
	n := space.NodeSpec{ID: r.Name(), Kind: space.Computation, Writes: addresses([]Place{r}), Run: e.parent}
	if err := e.check(); err != nil {
		p.note(fmt.Errorf("program %s: rows of %s: %w", p.Name(), r.Name(), err))
		return
	}
	p.node(n, nil)
	d := r.described()
	d.derived = true
	p.documents = append(p.documents, d)
	o, _ := applied(space.NodeSpec{}, options) // checked before
	p.reads(r.Name(), o.inputs)
}

type eachRow[O any] struct {
	out     DerivedRows[O]
	in      PerRow[O]
	options []Option
}

func (e *eachRow[O]) check() error {
	switch name := e.out.Name(); {
	case e.in.row == nil:
		return errors.New("the function is nil")
	case e.out.all.space != "":
		return errors.New("they belong to another space; a space derives its own documents")
	case strings.Contains(name, model.RowMark), strings.HasSuffix(name, model.RowMark[:1]):
		return fmt.Errorf("the name must not contain %q nor end in %q: the names of the rows' nodes are made with it", model.RowMark, model.RowMark[:1])
	}
	_, err := applied(space.NodeSpec{}, e.options)
	return err
}

// parent registers a child per key, and removes the rows whose keys are gone.
func (e *eachRow[O]) parent(tx *space.Tx) (Value, error) {
	keys := e.in.keys(tx)
	for _, key := range keys {
		n, _ := applied(space.NodeSpec{
			ID: model.RowNode(e.out.Name(), key), Kind: space.Computation,
			Writes: []space.Address{{Doc: e.out.Name(), Path: model.Path{key}}}, Run: e.child(key),
		}, e.options)
		tx.Node(n.NodeSpec)
	}
	there := tx.Peek(e.out.Name())
	if there.Kind() != model.KindObject { // nothing, or left by another program
		tx.Set(e.out.Name(), model.Object())
	}
	for _, key := range there.Keys() {
		if _, found := slices.BinarySearch(keys, key); !found {
			tx.Delete(e.out.Name(), key)
		}
	}
	return Value{}, nil
}

// child returns the function that derives the row of a key.
func (e *eachRow[O]) child(key string) func(tx *space.Tx) (Value, error) {
	run, to := e.in.row(key), e.out.at(key)
	return func(tx *space.Tx) (Value, error) {
		row, err := run((*View)(tx))
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
