package settle

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/codec"
	"github.com/settlehq/settle/model"
)

// Page selects some of the keys, or names, of a list that is in order. The zero Page selects all of them.
type Page = model.Page

func pageOf(pages []Page) (p Page) {
	if len(pages) > 0 {
		p = pages[0]
	}
	return p
}

// Documents are the documents of a space whose names begin with a prefix, each with a value of type T: a collection whose elements are
// read, written and saved one by one, where Rows are one document.
//
//	var orders = settle.NewDocuments[Order]("order-")
//	...
//	orders.At("17").Set(tx, order)
//
// A list of them has those that exist and that handlers write; documents that computations derive are in none.
type Documents[T any] struct {
	prefix string
	codec  *codec.Codec[T]
}

// NewDocuments returns the documents with a prefix. It panics if the prefix is not valid in a name, or begins with '-', or if T
// cannot be encoded.
func NewDocuments[T any](prefix string) Documents[T] {
	if prefix == "" || prefix[0] == '-' {
		must(fmt.Errorf("documents %q: the prefix of their names must not be empty, nor begin with '-'", prefix))
	}
	must(model.CheckPattern("documents", model.PatternOf(prefix)))
	return Documents[T]{prefix, codecOf[T]("documents " + prefix)}
}

// Prefix returns the prefix.
func (d Documents[T]) Prefix() string { return d.prefix }

// At returns the document of a key as a cell: the one whose name is the prefix and the key. A key has letters, digits, '-' and '_', and
// at most 64 together with the prefix; reading or writing that of another one fails. See NameOf.
func (d Documents[T]) At(key string) Cell[T] {
	return Cell[T]{place[T]{doc: d.prefix + key, codec: d.codec}}
}

// Keys returns the keys of the documents that exist, in order. It depends on which there are, and not on their values.
func (d Documents[T]) Keys(r Reader, page ...Page) []string {
	names := r.GetShallow(model.PatternOf(d.prefix)).Keys()
	for i := range names {
		names[i] = names[i][len(d.prefix):]
	}
	return pageOf(page).Of(names)
}

// All iterates over keys and values, in order. It depends on which documents there are, and on the values of those that it reads.
func (d Documents[T]) All(r Reader, page ...Page) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, key := range d.Keys(r, page...) {
			if v, ok := d.At(key).Lookup(r); ok && !yield(key, v) {
				return
			}
		}
	}
}

// Element is a document among Documents.
type Element[T any] struct {
	Key   string
	Value T
	// Revision is the log sequence of the last change.
	Revision uint64
}

// Fetch returns documents of a space as they are in the log, in the order of their keys. It needs no worker.
func (d Documents[T]) Fetch(ctx context.Context, from Space, page ...Page) ([]Element[T], error) {
	p := pageOf(page)
	if p.After != "" {
		p.After = d.prefix + p.After
	}
	entries, err := from.List(ctx, d.prefix, p)
	if err != nil {
		return nil, err
	}
	var all []Element[T]
	for _, e := range entries {
		if e.Derived {
			continue
		}
		key := strings.TrimPrefix(e.Name, d.prefix)
		v, err := d.At(key).Decode(e.Value)
		if err != nil {
			return nil, err
		}
		all = append(all, Element[T]{key, v, e.Revision})
	}
	return all, nil
}

// Entry is a document in a list.
type Entry struct {
	Name  string
	Value Value
	// Revision is the log sequence of the last change.
	Revision uint64
	// Derived is set if the document is known to be derived. Its value may then be older than what it is derived from.
	Derived bool
}

// List returns the documents of the space whose names begin with a prefix, "" for all, as they are in the log: at one moment, in the
// order of their names. It reads the whole space, needs no worker, and computes nothing. A space that does not exist has none.
func (s Space) List(ctx context.Context, prefix string, page ...Page) ([]Entry, error) {
	p := pageOf(page)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	if err := model.CheckPattern("documents", model.PatternOf(prefix)); err != nil {
		return nil, err
	}
	if err := s.client.deployed(ctx); err != nil {
		return nil, err
	}
	all, err := history.ReadContents(ctx, s.client.bus, s.name)
	if err != nil {
		return nil, err
	}
	return entriesOf(all, prefix, p), nil
}

func entriesOf(all *history.Contents, prefix string, p Page) []Entry {
	var names []string
	for _, name := range all.DocIDs() {
		if strings.HasPrefix(name, prefix) && !all.Doc(name).Value.IsAbsent() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = p.Of(names)
	entries := make([]Entry, len(names))
	for i, name := range names {
		d := all.Doc(name)
		entries[i] = Entry{Name: name, Value: d.Value, Revision: d.Seq, Derived: slices.Contains(all.Derived, name)}
	}
	return entries
}
