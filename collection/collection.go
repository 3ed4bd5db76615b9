// Package collection has collections whose elements are documents of their own, where settle.Rows are one document: elements
// are read, written and saved one by one, and the list of them is in order.
package collection

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/codec"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/upgrade"
)

// Collection is the documents of a space whose names begin with a prefix, each with a value of type T. Like a settle.Cell it is a name and
// holds no data.
//
//	var orders = collection.New[Order]("order-")
//
// A key is the rest of the name: it has letters, digits, '-' and '_', and at most 64 together with the prefix. To read or write that of another key
// fails; settle.NameOf makes one of any text. A list of the keys has those of the documents that exist and that handlers write; documents that computations
// derive are in none.
type Collection[T any] struct {
	prefix string
	codec  *codec.Codec[T]
	chain  *upgrade.Chain
}

// New returns the collection of a prefix. It panics if the prefix is not valid in a name, or begins with '-', or if T cannot be encoded.
func New[T any](prefix string) Collection[T] {
	err := model.CheckPattern("collection", model.PatternOf(prefix))
	if err == nil && (prefix == "" || prefix[0] == '-') {
		err = fmt.Errorf("collection %q: the prefix must not be empty, nor begin with '-'", prefix)
	}
	c, wrong := codec.Of[T]()
	if err == nil && wrong != nil {
		err = fmt.Errorf("collection %s: %w", prefix, wrong)
	}
	if err != nil {
		panic("collection: " + err.Error())
	}
	return Collection[T]{prefix: prefix, codec: c}
}

// Version returns the collection with a version of its elements' form, and the steps from older ones; see settle.Cell.Version.
func (c Collection[T]) Version(version int, steps ...upgrade.Step) Collection[T] {
	chain, err := upgrade.New(version, steps...)
	if err != nil {
		panic(fmt.Sprintf("collection %s: %v", c.prefix, err))
	}
	c.chain = chain
	return c
}

// Address returns the location of all documents of the collection: a pattern, such as "order-*". Program.Documents takes it; computations do not write it.
func (c Collection[T]) Address() space.Address { return space.Address{Doc: model.PatternOf(c.prefix)} }

// ElementType returns T.
func (c Collection[T]) ElementType() reflect.Type { return reflect.TypeFor[T]() }

// Name returns the name of the document of a key.
func (c Collection[T]) Name(key string) string { return c.prefix + key }

// Lookup reads the value of a key, and returns false if there is none. A value that is no T fails the transaction.
func (c Collection[T]) Lookup(r settle.Reader, key string) (t T, ok bool) {
	v := r.Get(c.Name(key))
	if v.IsAbsent() {
		return t, false
	}
	t, err := c.decode(key, v)
	if err != nil {
		r.Fail(err)
	}
	return t, err == nil
}

// Get is Lookup, with the zero value if there is none.
func (c Collection[T]) Get(r settle.Reader, key string) T {
	t, _ := c.Lookup(r, key)
	return t
}

// Exists reports whether a key has a value.
func (c Collection[T]) Exists(r settle.Reader, key string) bool {
	return !r.GetShallow(c.Name(key)).IsAbsent()
}

// Set writes the value of a key.
func (c Collection[T]) Set(w settle.Writer, key string, t T) {
	v, err := c.codec.Encode(t)
	if err == nil {
		v, err = c.chain.Stamp(v)
	}
	if err != nil {
		w.Fail(fmt.Errorf("write %s: %w", c.Name(key), err))
		return
	}
	if c.knows(w, key) {
		w.Set(c.Name(key), v)
	}
}

// Update reads the value of a key, calls change on it, and writes it.
func (c Collection[T]) Update(w settle.Writer, key string, change func(*T)) {
	t := c.Get(w, key)
	change(&t)
	c.Set(w, key, t)
}

// Delete removes a key.
func (c Collection[T]) Delete(w settle.Writer, key string) {
	if c.knows(w, key) {
		w.Delete(c.Name(key))
	}
}

// named is the name of a document, for errors.
type named string

func (n named) String() string { return string(n) }

// knows fails the transaction if it would replace an element of a later version.
func (c Collection[T]) knows(w settle.Writer, key string) bool {
	n := model.VersionOf(w.Peek(c.Name(key)))
	if n > c.chain.Version() {
		w.Fail(&model.NewerError{Place: c.Name(key), Version: n, Known: c.chain.Version()})
	}
	return n <= c.chain.Version()
}

// Keys returns the keys, in order. It depends on which there are, and not on their values.
func (c Collection[T]) Keys(r settle.Reader, page ...model.Page) []string {
	names := r.GetShallow(model.PatternOf(c.prefix)).Keys()
	for i := range names {
		names[i] = names[i][len(c.prefix):]
	}
	return pageOf(page).Of(names)
}

// All iterates over keys and values, in order. It depends on which keys there are, and on the values that the loop reaches.
func (c Collection[T]) All(r settle.Reader, page ...model.Page) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, key := range c.Keys(r, page...) {
			if t, ok := c.Lookup(r, key); ok && !yield(key, t) {
				return
			}
		}
	}
}

// Element is an element of a collection, for clients.
type Element[T any] struct {
	Key   string
	Value T
	// Revision is the log sequence of the last change.
	Revision uint64
}

// Fetch returns elements as they are in the log, in the order of their keys. It needs no worker.
func (c Collection[T]) Fetch(ctx context.Context, from settle.Space, page ...model.Page) ([]Element[T], error) {
	p := pageOf(page)
	if p.After != "" {
		p.After = c.Name(p.After)
	}
	entries, err := from.List(ctx, c.prefix, p)
	if err != nil {
		return nil, err
	}
	all := make([]Element[T], len(entries))
	for i, e := range entries {
		key := strings.TrimPrefix(e.Name, c.prefix)
		t, err := c.decode(key, e.Value)
		if err != nil {
			return nil, err
		}
		all[i] = Element[T]{key, t, e.Revision}
	}
	return all, nil
}

func (c Collection[T]) decode(key string, v model.Value) (t T, err error) {
	v, err = c.chain.Upgrade(named(c.Name(key)), v)
	if err != nil {
		return t, err
	}
	if t, err = c.codec.Decode(v); err != nil {
		err = fmt.Errorf("read %s: %w", c.Name(key), err)
	}
	return t, err
}

func pageOf(pages []model.Page) (p model.Page) {
	if len(pages) > 0 {
		p = pages[0]
	}
	return p
}
