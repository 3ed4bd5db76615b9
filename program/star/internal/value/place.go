package value

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
type Place struct {
	Cur   *Current
	Space string // "" for the own one
	Doc   string
	Path  model.Path
	// def is the default of the place, absent if there is none; origin that of the document.
	ByDefault   model.Value
	DocDefault  model.Value
	DefaultSize int // how many values the default has, those inside included
	// kept is set on places that live as long as the machine; kids are those inside that
	// were named, with their paths.
	Remembers bool
	Children  map[string]*Place
}

var (
	_ starlark.HasSetField = (*Place)(nil)
	_ starlark.HasSetKey   = (*Place)(nil)
	_ starlark.Sequence    = (*Place)(nil)
	_ starlark.Container   = (*Place)(nil)
	_ starlark.Comparable  = (*Place)(nil)
	_ starlark.HasBinary   = (*Place)(nil)
)

// Bounds of what is remembered: how many places inside of one, and of all of a machine, and
// how long their names may be.
const (
	maxChildren   = 64
	MaxRemembered = 4096
	maxChildName  = 64
)

func (x *Place) Type() string          { return "place" }
func (x *Place) Freeze()               {}
func (x *Place) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: place %s", x) }

// String names the place; str(x) gives its value.
func (x *Place) String() string { return x.address().String() }

func (x *Place) address() *space.Address {
	return &space.Address{Space: x.Space, Doc: x.Doc, Path: x.Path}
}

// tx is the transaction of the run under way.
func (x *Place) Tx() (Documents, error) {
	if x.Cur.Run == nil || x.Cur.Run.Docs == nil {
		return nil, fmt.Errorf("%s is read while the program is loaded; documents are there in handlers, computations and effects", x)
	}
	return x.Cur.Run.Docs, nil
}

func (x *Place) Child(step string) *Place {
	if k := x.Children[step]; k != nil {
		return k
	}
	k := &Place{Cur: x.Cur, Space: x.Space, Doc: x.Doc, DocDefault: x.DocDefault}
	k.Path = append(x.Path[:len(x.Path):len(x.Path)], step)
	if x.ByDefault.Kind() == model.KindObject {
		k.ByDefault = x.ByDefault.Get(step)
	}
	if IsContainer(k.ByDefault) {
		_, k.DefaultSize, _ = Measure(k.ByDefault)
		x.Cur.chargeDefault(k.DefaultSize)
	}
	if x.Remembers && len(x.Children) < maxChildren && x.Cur.remembered < MaxRemembered && len(step) <= maxChildName {
		x.Cur.remembered++
		if x.Children == nil {
			x.Children = map[string]*Place{}
		}
		k.Remembers = true
		x.Children[step] = k
	}
	return k
}

// read is the value, all of it.
func (x *Place) Read() (model.Value, error) {
	tx, err := x.Tx()
	if err != nil {
		return model.Value{}, err
	}
	if x.Space != "" {
		return x.withDefault(tx.GetFrom(x.Space, x.Doc, x.Path...)), tx.Err()
	}
	return x.withDefault(tx.Get(x.Doc, x.Path...)), tx.Err()
}

// outline is the value, of which only the shape is looked at.
func (x *Place) ReadShallow() model.Value {
	tx, err := x.Tx()
	switch {
	case err != nil:
		return x.ByDefault
	case x.Space != "":
		return x.withDefault(tx.GetFrom(x.Space, x.Doc, x.Path...))
	}
	return x.withDefault(tx.GetShallow(x.Doc, x.Path...))
}

// filled is what is at the place with what its default adds. To look at a large default is
// charged for: what a charge finds wrong ends the run at its next instruction.
func (x *Place) withDefault(v model.Value) model.Value {
	if !v.IsAbsent() {
		x.Cur.chargeDefault(x.DefaultSize)
	}
	return withDefaults(v, x.ByDefault)
}

// chargeDefault counts the going through a default of n values.
func (c *Current) chargeDefault(n int) {
	if c.Run != nil && n >= 16 {
		_ = c.Run.Charge(n/4, 48*n)
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
func (x *Place) Member(step string) (starlark.Value, error) {
	tx, err := x.Tx()
	if err != nil {
		return x.Child(step), nil //nolint:nilerr // while the program is loaded, places are only named
	}
	c := x.Child(step)
	x.Cur.Run.Missing = nil
	if x.Space != "" {
		v := c.withDefault(tx.GetFrom(c.Space, c.Doc, c.Path...))
		if v.IsAbsent() {
			x.Cur.Run.Missing = c.address()
		}
		return x.scalar(v), tx.Err()
	}
	v := c.readScalar(tx)
	switch {
	case tx.Err() != nil:
		return nil, tx.Err()
	case v.IsAbsent() && !IsContainer(c.ByDefault):
		if c.ByDefault.IsAbsent() {
			x.Cur.Run.Missing = c.address()
		}
		return x.scalar(c.ByDefault), nil
	case v.IsAbsent() || IsContainer(v):
		return c, nil
	}
	return x.scalar(v), nil
}

// got is a value that was read, and notes it if it is a text: a test may take it for a place.
func (x *Place) scalar(v model.Value) starlark.Value {
	x.Cur.Run.LastText, _ = v.AsString()
	return FromModel(v)
}

// probe reads a place if it holds a scalar, and finds out without a trace whether it holds
// a container: that is read by whoever uses it.
func (x *Place) readScalar(tx Documents) model.Value {
	if !x.ByDefault.IsAbsent() && !IsContainer(x.ByDefault) {
		return tx.Get(x.Doc, x.Path...) // a scalar, most likely
	}
	v := tx.Peek(x.Doc, x.Path...)
	switch {
	case IsContainer(v):
		return v
	case !v.IsAbsent():
		return tx.Get(x.Doc, x.Path...)
	case IsContainer(x.ByDefault):
		return v
	}
	return tx.GetShallow(x.Doc, x.Path...)
}

// Attr is x.name.
func (x *Place) Attr(name string) (starlark.Value, error) {
	if x.ByDefault.Kind() == model.KindObject && x.ByDefault.Len() > 0 && x.ByDefault.Get(name).IsAbsent() {
		return nil, starlark.NoSuchAttrError(fmt.Sprintf("%s has no field %s: its default has none; declare it there, or use %s[%q]", x, name, x, name))
	}
	return x.Member(name)
}

// AttrNames are the fields of the default.
func (x *Place) AttrNames() []string { return x.ByDefault.Keys() }

// Get is x[k].
func (x *Place) Get(k starlark.Value) (starlark.Value, bool, error) {
	step, err := x.Step(k)
	if err != nil {
		return nil, false, err
	}
	v, err := x.Member(step)
	return v, err == nil, err
}

// step is a key or an index as a step of a path. For an index the length is looked at.
func (x *Place) Step(k starlark.Value) (string, error) {
	if s, ok := k.(starlark.String); ok {
		return string(s), nil
	}
	return stepOf(x.ReadShallow(), k)
}

// Truth is false for what is empty or not there; a document that is a scalar is as true as
// that.
func (x *Place) Truth() starlark.Bool {
	v := x.ReadShallow()
	if IsContainer(v) {
		return v.Len() > 0
	}
	return FromModel(v).Truth()
}

// Len is how many keys or elements there are.
func (x *Place) Len() int { return x.ReadShallow().Len() }

// Has is k in x.
func (x *Place) Has(k starlark.Value) (bool, error) {
	v := x.ReadShallow()
	if v.Kind() == model.KindArray {
		var err error
		if v, err = x.Read(); err != nil {
			return false, err
		}
	}
	return (&View{V: v}).Has(k)
}

// Iterate goes through the keys, or the elements.
func (x *Place) Iterate() starlark.Iterator {
	v := x.ReadShallow()
	if v.Kind() == model.KindArray {
		v, _ = x.Read() // an error has failed the transaction
	}
	return (&View{V: v}).Iterate()
}

// Binary lets lists that were read be joined with others, and calculates with documents
// that are a number or a string.
func (x *Place) Binary(op syntax.Token, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	if IsList(x) {
		return concat(op, x, y, side)
	}
	v, err := x.Read()
	if err != nil || IsContainer(v) {
		return nil, err
	}
	if p, ok := y.(*Place); ok {
		w, err := p.Read()
		if err != nil {
			return nil, err
		}
		y = FromModel(w)
	}
	if side == starlark.Right {
		return starlark.Binary(op, y, FromModel(v))
	}
	return starlark.Binary(op, FromModel(v), y)
}

// CompareSameType compares the values of two places.
func (x *Place) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	a, err := x.Read()
	if err != nil {
		return false, err
	}
	b, err := y.(*Place).Read()
	if err != nil {
		return false, err
	}
	return (&View{V: a}).CompareSameType(op, &View{V: b}, depth)
}

// SetField is x.name = v.
func (x *Place) SetField(name string, v starlark.Value) error {
	if x.ByDefault.Kind() == model.KindObject && x.ByDefault.Len() > 0 && x.ByDefault.Get(name).IsAbsent() {
		return starlark.NoSuchAttrError(fmt.Sprintf("%s has no field %s: its default has none; declare it there, or use %s[%q]", x, name, x, name))
	}
	return x.Child(name).Write(v)
}

// SetKey is x[k] = v.
func (x *Place) SetKey(k, v starlark.Value) error {
	step, err := x.Step(k)
	if err != nil {
		return err
	}
	return x.Child(step).Write(v)
}

// write replaces what is at the place.
func (x *Place) Write(v starlark.Value) error {
	if err := x.mayWrite(); err != nil {
		return err
	}
	run := x.Cur.Run
	val, err := run.ToModel(v)
	if err == nil {
		err = x.chargeWrite(run)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", x, err)
	}
	return x.put(run, val)
}

// chargeWrite counts what a write copies: the container that it is in, and those above.
func (x *Place) chargeWrite(run *Run) error {
	v, n := run.Docs.Peek(x.Doc), 1
	for i := 0; i < len(x.Path) && v.Len() > 0; i++ {
		n += v.Len() / 8
		v = v.At(x.Path[i : i+1])
	}
	return run.Charge(n, 0)
}

// put writes a value. A document that is not there yet gets its default first, so that
// whoever reads it elsewhere finds all of its fields.
func (x *Place) put(run *Run, v model.Value) error {
	if len(x.Path) > 0 && x.DocDefault.Len() > 0 && run.Docs.Peek(x.Doc).IsAbsent() {
		whole, err := x.DocDefault.Set(x.Path, v)
		if err != nil {
			return fmt.Errorf("write %s: %w", x, err)
		}
		run.Docs.Set(x.Doc, whole)
		return run.Docs.Err()
	}
	run.Docs.Set(x.Doc, v, x.Path...)
	return run.Docs.Err()
}

// mayWrite refuses what the core would refuse later, and what it only counts.
func (x *Place) mayWrite() error {
	tx, err := x.Tx()
	switch {
	case err != nil:
		return fmt.Errorf("%s is written while the program is loaded; handlers write documents", x)
	case x.Space != "" && x.Space != tx.Space():
		return fmt.Errorf("write %s: a space is changed by itself only; send it an event", x)
	case !x.Cur.Run.Handles && !tx.Declares(x.Doc, x.Path...):
		return fmt.Errorf("write %s: %s may only read; a computation writes by returning a value, and elsewhere to what it declares with writes = [...]", x, x.Cur.Run.Name())
	}
	return nil
}

// drop takes out what is at the place.
func (x *Place) Delete() error {
	if err := x.mayWrite(); err != nil {
		return err
	}
	tx := x.Cur.Run.Docs
	if err := x.chargeWrite(x.Cur.Run); err != nil {
		return err
	}
	tx.Delete(x.Doc, x.Path...)
	return tx.Err()
}

// add appends to an array.
func (x *Place) Append(v starlark.Value) error {
	if err := x.mayWrite(); err != nil {
		return err
	}
	have := x.ReadShallow()
	switch {
	case have.IsAbsent():
		return x.Write(starlark.NewList([]starlark.Value{v}))
	case have.Kind() != model.KindArray:
		return fmt.Errorf("append: %s is not an array", x)
	}
	if x.Cur.Run.Docs.Peek(x.Doc, x.Path...).IsAbsent() {
		if err := x.put(x.Cur.Run, have); err != nil { // what the default has
			return err
		}
	}
	return x.Child(strconv.Itoa(have.Len())).Write(v)
}

func (x *Place) isArray() bool { return x.ReadShallow().Kind() == model.KindArray }

// keys are those of an object, sorted.
func (x *Place) Keys() ([]string, error) {
	v := x.ReadShallow()
	if v.Kind() == model.KindArray {
		return nil, fmt.Errorf("%s is an array and has no keys", x)
	}
	keys := v.Keys()
	slices.Sort(keys)
	return keys, nil
}
