package star

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// place is a place in a document: what cell and doc return, and the objects and arrays
// inside. It holds no value. A field that is a scalar is read when it is named, and exactly
// that path; one that is a container is another place, which is read when it is used:
//
//	for k in x, len(x), k in x, x.keys(), if x     its shape: which keys there are, or how many elements
//	x == y, str(x), return x, send(..., x)         all of it
//	for e in x                                     all of it, if x is an array: elements have no names
//
// What is not there has the value of the default, and is None where that says nothing.
type place struct {
	m     *machine
	space string // "" for the own one
	doc   string
	path  model.Path
	// def is the default of the place, absent if there is none; origin that of the document.
	def    model.Value
	origin model.Value
	weight int // how many values the default has, those inside included
	// kept is set on places that live as long as the machine; kids are those inside that
	// were named, with their paths.
	kept bool
	kids map[string]*place
}

var (
	_ starlark.HasSetField = (*place)(nil)
	_ starlark.HasSetKey   = (*place)(nil)
	_ starlark.Sequence    = (*place)(nil)
	_ starlark.Container   = (*place)(nil)
	_ starlark.Comparable  = (*place)(nil)
	_ starlark.HasBinary   = (*place)(nil)
)

// Bounds of what is remembered: how many places inside of one, and of all of a machine, and
// how long their names may be.
const (
	maxKids    = 64
	maxKidsAll = 4096
	maxKidName = 64
)

func (x *place) Type() string          { return "place" }
func (x *place) Freeze()               {}
func (x *place) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: place %s", x) }

// String names the place; str(x) gives its value.
func (x *place) String() string {
	return space.Address{Space: x.space, Doc: x.doc, Path: x.path}.String()
}

// documents is what places read and write through: a transaction, or what a test has.
type documents interface {
	Space() string
	Get(doc string, path ...string) model.Value
	GetShallow(doc string, path ...string) model.Value
	GetFrom(space, doc string, path ...string) model.Value
	Peek(doc string, path ...string) model.Value
	Set(doc string, v any, path ...string)
	Delete(doc string, path ...string)
	Declares(doc string, path ...string) bool
	Err() error
}

// tx is the transaction of the run under way.
func (x *place) tx() (documents, error) {
	if x.m.cur == nil || x.m.cur.docs == nil {
		return nil, fmt.Errorf("%s is read while the program is loaded; documents are there in handlers, computations and effects", x)
	}
	return x.m.cur.docs, nil
}

func (x *place) child(step string) *place {
	if k := x.kids[step]; k != nil {
		return k
	}
	k := &place{m: x.m, space: x.space, doc: x.doc, origin: x.origin}
	k.path = append(x.path[:len(x.path):len(x.path)], step)
	if x.def.Kind() == model.KindObject {
		k.def = x.def.Get(step)
	}
	if isContainer(k.def) {
		_, k.weight, _ = measure(k.def)
		x.m.chargeDefault(k.weight)
	}
	if x.kept && len(x.kids) < maxKids && x.m.kids < maxKidsAll && len(step) <= maxKidName {
		x.m.kids++
		if x.kids == nil {
			x.kids = map[string]*place{}
		}
		k.kept = true
		x.kids[step] = k
	}
	return k
}

// read is the value, all of it.
func (x *place) read() (model.Value, error) {
	tx, err := x.tx()
	if err != nil {
		return model.Value{}, err
	}
	if x.space != "" {
		return x.filled(tx.GetFrom(x.space, x.doc, x.path...)), tx.Err()
	}
	return x.filled(tx.Get(x.doc, x.path...)), tx.Err()
}

// outline is the value, of which only the shape is looked at.
func (x *place) outline() model.Value {
	tx, err := x.tx()
	switch {
	case err != nil:
		return x.def
	case x.space != "":
		return x.filled(tx.GetFrom(x.space, x.doc, x.path...))
	}
	return x.filled(tx.GetShallow(x.doc, x.path...))
}

// filled is what is at the place with what its default adds. To look at a large default is
// charged for: what a charge finds wrong ends the run at its next instruction.
func (x *place) filled(v model.Value) model.Value {
	if !v.IsAbsent() {
		x.m.chargeDefault(x.weight)
	}
	return withDefaults(v, x.def)
}

// chargeDefault counts the going through a default of n values.
func (m *machine) chargeDefault(n int) {
	if m.cur != nil && n >= 16 {
		_ = m.cur.charge(n/4, 48*n)
	}
}

// withDefaults is a value with the fields of the default that it lacks.
func withDefaults(v, def model.Value) model.Value {
	if v.IsAbsent() || def.IsAbsent() {
		if v.IsAbsent() {
			return def
		}
		return v
	}
	if v.Kind() != model.KindObject || def.Kind() != model.KindObject || v.IsLink() {
		return v
	}
	var added []model.Field // by key, as those of the default are
	for k, d := range def.All() {
		have := v.Get(k)
		if full := withDefaults(have, d); have.IsAbsent() || have.Kind() == model.KindObject && !model.Equal(have, full) {
			added = append(added, model.Field{Key: k, Value: full})
		}
	}
	if added == nil {
		return v
	}
	fields := slices.Clone(added)
	for k, have := range v.All() {
		if _, found := slices.BinarySearchFunc(added, k, func(f model.Field, k string) int { return strings.Compare(f.Key, k) }); !found {
			fields = append(fields, model.Field{Key: k, Value: have})
		}
	}
	return model.Object(fields...)
}

// member reads what is at a step: a scalar, or a place inside.
func (x *place) member(step string) (starlark.Value, error) {
	tx, err := x.tx()
	if err != nil {
		return x.child(step), nil //nolint:nilerr // while the program is loaded, places are only named
	}
	c := x.child(step)
	x.m.cur.missed = nil
	if x.space != "" {
		v := c.filled(tx.GetFrom(c.space, c.doc, c.path...))
		if v.IsAbsent() {
			x.m.cur.missed = c
		}
		return x.got(v), tx.Err()
	}
	v := c.probe(tx)
	switch {
	case tx.Err() != nil:
		return nil, tx.Err()
	case v.IsAbsent() && !isContainer(c.def):
		if c.def.IsAbsent() {
			x.m.cur.missed = c
		}
		return x.got(c.def), nil
	case v.IsAbsent() || isContainer(v):
		return c, nil
	}
	return x.got(v), nil
}

// got is a value that was read, and notes it if it is a text: a test may take it for a place.
func (x *place) got(v model.Value) starlark.Value {
	x.m.cur.got, _ = v.AsString()
	return show(v)
}

// probe reads a place if it holds a scalar, and finds out without a trace whether it holds
// a container: that is read by whoever uses it.
func (x *place) probe(tx documents) model.Value {
	if !x.def.IsAbsent() && !isContainer(x.def) {
		return tx.Get(x.doc, x.path...) // a scalar, most likely
	}
	v := tx.Peek(x.doc, x.path...)
	switch {
	case isContainer(v):
		return v
	case !v.IsAbsent():
		return tx.Get(x.doc, x.path...)
	case isContainer(x.def):
		return v
	}
	return tx.GetShallow(x.doc, x.path...)
}

// Attr is x.name.
func (x *place) Attr(name string) (starlark.Value, error) {
	if x.def.Kind() == model.KindObject && x.def.Len() > 0 && x.def.Get(name).IsAbsent() {
		return nil, starlark.NoSuchAttrError(fmt.Sprintf("%s has no field %s: its default has none; declare it there, or use %s[%q]", x, name, x, name))
	}
	return x.member(name)
}

// AttrNames are the fields of the default.
func (x *place) AttrNames() []string { return x.def.Keys() }

// Get is x[k].
func (x *place) Get(k starlark.Value) (starlark.Value, bool, error) {
	step, err := x.step(k)
	if err != nil {
		return nil, false, err
	}
	v, err := x.member(step)
	return v, err == nil, err
}

// step is a key or an index as a step of a path. For an index the length is looked at.
func (x *place) step(k starlark.Value) (string, error) {
	if s, ok := k.(starlark.String); ok {
		return string(s), nil
	}
	return stepOf(x.outline(), k)
}

// Truth is false for what is empty or not there; a document that is a scalar is as true as
// that.
func (x *place) Truth() starlark.Bool {
	v := x.outline()
	if isContainer(v) {
		return v.Len() > 0
	}
	return show(v).Truth()
}

// Len is how many keys or elements there are.
func (x *place) Len() int { return x.outline().Len() }

// Has is k in x.
func (x *place) Has(k starlark.Value) (bool, error) {
	v := x.outline()
	if v.Kind() == model.KindArray {
		var err error
		if v, err = x.read(); err != nil {
			return false, err
		}
	}
	return (&view{v: v}).Has(k)
}

// Iterate goes through the keys, or the elements.
func (x *place) Iterate() starlark.Iterator {
	v := x.outline()
	if v.Kind() == model.KindArray {
		v, _ = x.read() // an error has failed the transaction
	}
	return (&view{v: v}).Iterate()
}

// Binary lets lists that were read be joined with others, and calculates with documents
// that are a number or a string.
func (x *place) Binary(op syntax.Token, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	if isList(x) {
		return joined(op, x, y, side)
	}
	v, err := x.read()
	if err != nil || isContainer(v) {
		return nil, err
	}
	if p, ok := y.(*place); ok {
		w, err := p.read()
		if err != nil {
			return nil, err
		}
		y = show(w)
	}
	if side == starlark.Right {
		return starlark.Binary(op, y, show(v))
	}
	return starlark.Binary(op, show(v), y)
}

// CompareSameType compares the values of two places.
func (x *place) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	a, err := x.read()
	if err != nil {
		return false, err
	}
	b, err := y.(*place).read()
	if err != nil {
		return false, err
	}
	return (&view{v: a}).CompareSameType(op, &view{v: b}, depth)
}

// SetField is x.name = v.
func (x *place) SetField(name string, v starlark.Value) error {
	if x.def.Kind() == model.KindObject && x.def.Len() > 0 && x.def.Get(name).IsAbsent() {
		return starlark.NoSuchAttrError(fmt.Sprintf("%s has no field %s: its default has none; declare it there, or use %s[%q]", x, name, x, name))
	}
	return x.child(name).write(v)
}

// SetKey is x[k] = v.
func (x *place) SetKey(k, v starlark.Value) error {
	step, err := x.step(k)
	if err != nil {
		return err
	}
	return x.child(step).write(v)
}

// write replaces what is at the place.
func (x *place) write(v starlark.Value) error {
	if err := x.mayWrite(); err != nil {
		return err
	}
	l := x.m.cur
	val, err := l.leave(v)
	if err == nil {
		err = x.chargeWrite(l)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", x, err)
	}
	return x.put(l, val)
}

// chargeWrite counts what a write copies: the container that it is in, and those above.
func (x *place) chargeWrite(l *level) error {
	v, n := l.docs.Peek(x.doc), 1
	for i := 0; i < len(x.path) && v.Len() > 0; i++ {
		n += v.Len() / 8
		v = v.At(x.path[i : i+1])
	}
	return l.charge(n, 0)
}

// put writes a value. A document that is not there yet gets its default first, so that
// whoever reads it elsewhere finds all of its fields.
func (x *place) put(l *level, v model.Value) error {
	if len(x.path) > 0 && x.origin.Len() > 0 && l.docs.Peek(x.doc).IsAbsent() {
		whole, err := x.origin.Set(x.path, v)
		if err != nil {
			return fmt.Errorf("write %s: %w", x, err)
		}
		l.docs.Set(x.doc, whole)
		return l.docs.Err()
	}
	l.docs.Set(x.doc, v, x.path...)
	return l.docs.Err()
}

// mayWrite refuses what the core would refuse later, and what it only counts.
func (x *place) mayWrite() error {
	tx, err := x.tx()
	switch {
	case err != nil:
		return fmt.Errorf("%s is written while the program is loaded; handlers write documents", x)
	case x.space != "" && x.space != tx.Space():
		return fmt.Errorf("write %s: a space is changed by itself only; send it an event", x)
	case x.m.cur.ev == nil && !tx.Declares(x.doc, x.path...):
		d := x.m.cur.decl
		return fmt.Errorf("write %s: %s %s may only read; a computation writes by returning a value, and elsewhere to what it declares with writes = [...]", x, d.kind, d.id)
	}
	return nil
}

// drop takes out what is at the place.
func (x *place) drop() error {
	if err := x.mayWrite(); err != nil {
		return err
	}
	tx := x.m.cur.docs
	if err := x.chargeWrite(x.m.cur); err != nil {
		return err
	}
	tx.Delete(x.doc, x.path...)
	return tx.Err()
}

// add appends to an array.
func (x *place) add(v starlark.Value) error {
	if err := x.mayWrite(); err != nil {
		return err
	}
	have := x.outline()
	switch {
	case have.IsAbsent():
		return x.write(starlark.NewList([]starlark.Value{v}))
	case have.Kind() != model.KindArray:
		return fmt.Errorf("append: %s is not an array", x)
	}
	if x.m.cur.docs.Peek(x.doc, x.path...).IsAbsent() {
		if err := x.put(x.m.cur, have); err != nil { // what the default has
			return err
		}
	}
	return x.child(strconv.Itoa(have.Len())).write(v)
}

// keys are those of an object, sorted.
func (x *place) keys() ([]string, error) {
	v := x.outline()
	if v.Kind() == model.KindArray {
		return nil, fmt.Errorf("%s is an array and has no keys", x)
	}
	keys := v.Keys()
	slices.Sort(keys)
	return keys, nil
}
