// Package upgrade gives documents versions. A program that has changed the form of a document names its version, and how older forms
// become newer ones:
//
//	var order = settle.NewCell[Order]("order").Version(3,
//		upgrade.From(1, func(o orderV1) (orderV2, error) { ... }),
//		upgrade.From(2, func(o orderV2) (Order, error) { ... }))
//
// A document is upgraded whenever it is read, and stored in the new form when a handler writes it. See docs/upgrades.md.
package upgrade

import (
	"errors"
	"fmt"

	"github.com/settlehq/settle/internal/codec"
	"github.com/settlehq/settle/model"
)

// Step upgrades a value by one version.
type Step struct {
	from  int
	apply func(model.Value) (model.Value, error)
}

// From returns the step from a version to the next one. f must be a function of the value alone, since it is called whenever an old
// document is read. An error fails the transaction that reads it. From panics if A or B cannot be encoded.
func From[A, B any](version int, f func(A) (B, error)) Step {
	from, wrong := codec.Of[A]()
	to, err := codec.Of[B]()
	if err = errors.Join(wrong, err); err != nil {
		panic(fmt.Sprintf("upgrade from version %d: %v", version, err))
	}
	if f == nil {
		panic(fmt.Sprintf("upgrade from version %d: the function is nil", version))
	}
	return Untyped(version, func(v model.Value) (model.Value, error) {
		a, err := from.Decode(v)
		if err != nil {
			return model.Value{}, err
		}
		b, err := f(a)
		if err != nil {
			return model.Value{}, err
		}
		return to.Encode(b)
	})
}

// Untyped is From for values without a type.
func Untyped(version int, f func(model.Value) (model.Value, error)) Step { return Step{version, f} }

// Chain is the version of a form, with the steps to it. A nil Chain is version 1.
type Chain struct {
	version int
	first   int // the oldest version that it reads
	steps   []func(model.Value) (model.Value, error)
}

// New returns the chain of steps to a version. The steps are in order, without gaps, and the last one is from the version before. Older
// documents than the first step is from cannot be read.
func New(version int, steps ...Step) (*Chain, error) {
	if version < 2 || version > model.MaxVersion {
		return nil, fmt.Errorf("version %d: a document has version 1 unless it says otherwise; use 2 to %d", version, model.MaxVersion)
	}
	c := &Chain{version: version, first: version - len(steps)}
	for i, s := range steps {
		if want := c.first + i; s.from != want || want < 1 {
			return nil, fmt.Errorf("version %d: step %d is from version %d; name a step from each version, in order, up to the one from %d", version, i+1, s.from, version-1)
		}
		c.steps = append(c.steps, s.apply)
	}
	return c, nil
}

// Version returns the version of the chain.
func (c *Chain) Version() int {
	if c == nil {
		return 1
	}
	return c.version
}

// Current returns a value that is stored in the chain's version, without the key of the version; false if it has another version.
func (c *Chain) Current(v model.Value) (model.Value, bool) {
	if model.VersionOf(v) != c.Version() {
		return model.Value{}, false
	}
	if c == nil {
		return v, true
	}
	return without(v), true
}

// Upgrade returns a stored value in the form of the chain's version, without the key of the version. place says where it is, for errors; a
// value that is absent stays so. A value of a later version is a *model.NewerError.
func (c *Chain) Upgrade(place fmt.Stringer, v model.Value) (model.Value, error) {
	n := model.VersionOf(v)
	switch {
	case v.IsAbsent() || c == nil && n == 1:
		return v, nil
	case n > c.Version():
		return model.Value{}, &model.NewerError{Place: place.String(), Version: n, Known: c.Version()}
	case n < c.first:
		return model.Value{}, fmt.Errorf("%s has version %d, and this program reads version %d and later: add the step from %d", place, n, c.first, n)
	}
	v = without(v)
	for at := n; at < c.version; at++ {
		next, err := c.steps[at-c.first](v)
		if err == nil {
			err = check(next)
		}
		if err != nil {
			return model.Value{}, fmt.Errorf("upgrade %s from version %d: %w", place, at, err)
		}
		v = next
	}
	return v, nil
}

// Stamp returns a value of the chain's version as it is stored. Only objects can have a version.
func (c *Chain) Stamp(v model.Value) (model.Value, error) {
	if c == nil {
		return v, unreserved(v)
	}
	if err := check(v); err != nil {
		return v, err
	}
	return v.Set(model.Path{model.VersionKey}, model.Int(int64(c.version)))
}

// check returns an error for a value that cannot have a version.
func check(v model.Value) error {
	switch {
	case v.Kind() != model.KindObject:
		return fmt.Errorf("a document with a version is an object; this is of kind %s", v.Kind())
	case v.IsLink():
		return errors.New("a document with a version cannot be a link")
	}
	return unreserved(v)
}

// unreserved returns an error for a value that has a version although the program has not given it one.
func unreserved(v model.Value) error {
	if v.Get(model.VersionKey).IsAbsent() {
		return nil
	}
	return fmt.Errorf("the key %s is reserved for the version of a document", model.VersionKey)
}

// without returns v without the key of its version.
func without(v model.Value) model.Value {
	if v.Get(model.VersionKey).IsAbsent() {
		return v
	}
	v, _ = v.Delete(model.Path{model.VersionKey}) // it is there
	return v
}

// Links are the documents of a space.
type Links interface {
	Space() string
	Link(doc string, path ...string) (model.Link, bool)
}

// maxLinks bounds the links to a document. Reads refuse more than that.
const maxLinks = 32

// Target returns the place whose version a write to a part of a place concerns: like the write, it follows links. It returns false if they lead to
// another space.
func Target(in Links, doc string, at model.Path) (string, model.Path, bool) {
	for range maxLinks + 1 {
		l, is := in.Link(doc, at...)
		switch {
		case !is:
			return doc, at, true
		case l.Space != "" && l.Space != in.Space():
			return doc, at, false
		}
		doc, at = l.Doc, l.Path
	}
	return doc, at, false
}
