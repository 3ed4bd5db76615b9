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
	cur   *Current
	space string // "" for the own one
	doc   string
	path  model.Path
	// def is the default of the place, absent if there is none; origin that of the document.
	byDefault   model.Value
	docDefault  model.Value
	defaultSize int // how many values the default has, those inside included
	// kept is set on places that live as long as the machine; kids are those inside that
	// were named, with their paths.
	remembers bool
	children  map[string]*place
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
	maxChildren   = 64
	maxRemembered = 4096
	maxChildName  = 64
)

func (x *place) Type() string          { return "place" }
func (x *place) Freeze()               {}
func (x *place) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: place %s", x) }

// String names the place; str(x) gives its value.
func (x *place) String() string {
	return space.Address{Space: x.space, Doc: x.doc, Path: x.path}.String()
}

// tx is the transaction of the run under way.
func (x *place) tx() (documents, error) {
	if x.cur.Run == nil || x.cur.Run.docs == nil {
		return nil, fmt.Errorf("%s is read while the program is loaded; documents are there in handlers, computations and effects", x)
	}
	return x.cur.Run.docs, nil
}

func (x *place) child(step string) *place {
	if k := x.children[step]; k != nil {
		return k
	}
	k := &place{cur: x.cur, space: x.space, doc: x.doc, docDefault: x.docDefault}
	k.path = append(x.path[:len(x.path):len(x.path)], step)
	if x.byDefault.Kind() == model.KindObject {
		k.byDefault = x.byDefault.Get(step)
	}
	if isContainer(k.byDefault) {
		_, k.defaultSize, _ = measure(k.byDefault)
		x.cur.chargeDefault(k.defaultSize)
	}
	if x.remembers && len(x.children) < maxChildren && x.cur.remembered < maxRemembered && len(step) <= maxChildName {
		x.cur.remembered++
		if x.children == nil {
			x.children = map[string]*place{}
		}
		k.remembers = true
		x.children[step] = k
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
		return x.withDefault(tx.GetFrom(x.space, x.doc, x.path...)), tx.Err()
	}
	return x.withDefault(tx.Get(x.doc, x.path...)), tx.Err()
}

// outline is the value, of which only the shape is looked at.
func (x *place) readShallow() model.Value {
	tx, err := x.tx()
	switch {
	case err != nil:
		return x.byDefault
	case x.space != "":
		return x.withDefault(tx.GetFrom(x.space, x.doc, x.path...))
	}
	return x.withDefault(tx.GetShallow(x.doc, x.path...))
}

// filled is what is at the place with what its default adds. To look at a large default is
// charged for: what a charge finds wrong ends the run at its next instruction.
func (x *place) withDefault(v model.Value) model.Value {
	if !v.IsAbsent() {
		x.cur.chargeDefault(x.defaultSize)
	}
	return withDefaults(v, x.byDefault)
}

// chargeDefault counts the going through a default of n values.
func (c *Current) chargeDefault(n int) {
	if c.Run != nil && n >= 16 {
		_ = c.Run.charge(n/4, 48*n)
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
	x.cur.Run.missing = nil
	if x.space != "" {
		v := c.withDefault(tx.GetFrom(c.space, c.doc, c.path...))
		if v.IsAbsent() {
			x.cur.Run.missing = c
		}
		return x.scalar(v), tx.Err()
	}
	v := c.readScalar(tx)
	switch {
	case tx.Err() != nil:
		return nil, tx.Err()
	case v.IsAbsent() && !isContainer(c.byDefault):
		if c.byDefault.IsAbsent() {
			x.cur.Run.missing = c
		}
		return x.scalar(c.byDefault), nil
	case v.IsAbsent() || isContainer(v):
		return c, nil
	}
	return x.scalar(v), nil
}

// got is a value that was read, and notes it if it is a text: a test may take it for a place.
func (x *place) scalar(v model.Value) starlark.Value {
	x.cur.Run.lastText, _ = v.AsString()
	return fromModel(v)
}

// probe reads a place if it holds a scalar, and finds out without a trace whether it holds
// a container: that is read by whoever uses it.
func (x *place) readScalar(tx documents) model.Value {
	if !x.byDefault.IsAbsent() && !isContainer(x.byDefault) {
		return tx.Get(x.doc, x.path...) // a scalar, most likely
	}
	v := tx.Peek(x.doc, x.path...)
	switch {
	case isContainer(v):
		return v
	case !v.IsAbsent():
		return tx.Get(x.doc, x.path...)
	case isContainer(x.byDefault):
		return v
	}
	return tx.GetShallow(x.doc, x.path...)
}

// Attr is x.name.
func (x *place) Attr(name string) (starlark.Value, error) {
	if x.byDefault.Kind() == model.KindObject && x.byDefault.Len() > 0 && x.byDefault.Get(name).IsAbsent() {
		return nil, starlark.NoSuchAttrError(fmt.Sprintf("%s has no field %s: its default has none; declare it there, or use %s[%q]", x, name, x, name))
	}
	return x.member(name)
}

// AttrNames are the fields of the default.
func (x *place) AttrNames() []string { return x.byDefault.Keys() }

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
	return stepOf(x.readShallow(), k)
}

// Truth is false for what is empty or not there; a document that is a scalar is as true as
// that.
func (x *place) Truth() starlark.Bool {
	v := x.readShallow()
	if isContainer(v) {
		return v.Len() > 0
	}
	return fromModel(v).Truth()
}

// Len is how many keys or elements there are.
func (x *place) Len() int { return x.readShallow().Len() }

// Has is k in x.
func (x *place) Has(k starlark.Value) (bool, error) {
	v := x.readShallow()
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
	v := x.readShallow()
	if v.Kind() == model.KindArray {
		v, _ = x.read() // an error has failed the transaction
	}
	return (&view{v: v}).Iterate()
}

// Binary lets lists that were read be joined with others, and calculates with documents
// that are a number or a string.
func (x *place) Binary(op syntax.Token, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	if isList(x) {
		return concat(op, x, y, side)
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
		y = fromModel(w)
	}
	if side == starlark.Right {
		return starlark.Binary(op, y, fromModel(v))
	}
	return starlark.Binary(op, fromModel(v), y)
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
	if x.byDefault.Kind() == model.KindObject && x.byDefault.Len() > 0 && x.byDefault.Get(name).IsAbsent() {
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
	run := x.cur.Run
	val, err := run.toModel(v)
	if err == nil {
		err = x.chargeWrite(run)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", x, err)
	}
	return x.put(run, val)
}

// chargeWrite counts what a write copies: the container that it is in, and those above.
func (x *place) chargeWrite(run *Run) error {
	v, n := run.docs.Peek(x.doc), 1
	for i := 0; i < len(x.path) && v.Len() > 0; i++ {
		n += v.Len() / 8
		v = v.At(x.path[i : i+1])
	}
	return run.charge(n, 0)
}

// put writes a value. A document that is not there yet gets its default first, so that
// whoever reads it elsewhere finds all of its fields.
func (x *place) put(run *Run, v model.Value) error {
	if len(x.path) > 0 && x.docDefault.Len() > 0 && run.docs.Peek(x.doc).IsAbsent() {
		whole, err := x.docDefault.Set(x.path, v)
		if err != nil {
			return fmt.Errorf("write %s: %w", x, err)
		}
		run.docs.Set(x.doc, whole)
		return run.docs.Err()
	}
	run.docs.Set(x.doc, v, x.path...)
	return run.docs.Err()
}

// mayWrite refuses what the core would refuse later, and what it only counts.
func (x *place) mayWrite() error {
	tx, err := x.tx()
	switch {
	case err != nil:
		return fmt.Errorf("%s is written while the program is loaded; handlers write documents", x)
	case x.space != "" && x.space != tx.Space():
		return fmt.Errorf("write %s: a space is changed by itself only; send it an event", x)
	case !x.cur.Run.handles && !tx.Declares(x.doc, x.path...):
		return fmt.Errorf("write %s: %s %s may only read; a computation writes by returning a value, and elsewhere to what it declares with writes = [...]", x, x.cur.Run.kind, x.cur.Run.id)
	}
	return nil
}

// drop takes out what is at the place.
func (x *place) Delete() error {
	if err := x.mayWrite(); err != nil {
		return err
	}
	tx := x.cur.Run.docs
	if err := x.chargeWrite(x.cur.Run); err != nil {
		return err
	}
	tx.Delete(x.doc, x.path...)
	return tx.Err()
}

// add appends to an array.
func (x *place) Append(v starlark.Value) error {
	if err := x.mayWrite(); err != nil {
		return err
	}
	have := x.readShallow()
	switch {
	case have.IsAbsent():
		return x.write(starlark.NewList([]starlark.Value{v}))
	case have.Kind() != model.KindArray:
		return fmt.Errorf("append: %s is not an array", x)
	}
	if x.cur.Run.docs.Peek(x.doc, x.path...).IsAbsent() {
		if err := x.put(x.cur.Run, have); err != nil { // what the default has
			return err
		}
	}
	return x.child(strconv.Itoa(have.Len())).write(v)
}

// keys are those of an object, sorted.
func (x *place) keys() ([]string, error) {
	v := x.readShallow()
	if v.Kind() == model.KindArray {
		return nil, fmt.Errorf("%s is an array and has no keys", x)
	}
	keys := v.Keys()
	slices.Sort(keys)
	return keys, nil
}
