package value

import (
	"fmt"
	"slices"
	"strconv"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Place is a location in a document: cell and doc return places, and so do the objects and arrays
// inside. It holds no value. A scalar field is read when it is named, at exactly that path; a container
// is another place, which is read when it is used:
//
//	for k in x, len(x), k in x, x.keys(), if x     the keys, or the number of elements
//	x == y, str(x), return x, send(..., x)         the whole value
//	for e in x                                     the whole value if x is an array
//
// Where the document has no value, the place has that of the default, and None where there is no
// default.
type Place struct {
	Cur   *Current
	Space string // "" for the own space
	Doc   string
	Path  model.Path
	// byDefault is the default of the place, absent if there is none; docDefault that of the document.
	ByDefault   model.Value
	DocDefault  model.Value
	Form        *Form // nil for version 1
	Stored      bool  // it is read as it is stored, whatever its version, as expect in a test does
	DefaultSize int   // how many values the default has, inner ones included
	// remembers is set on places that live as long as the instance; children are the places inside that
	// were named.
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

// Bounds of the children that places keep: for one place, for all of an instance, and the length of a
// name in bytes.
const (
	maxChildren   = 64
	MaxRemembered = 4096
	maxChildName  = 64
)

func (x *Place) Type() string          { return "place" }
func (x *Place) Freeze()               {}
func (x *Place) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: place %s", x) }

// String returns the address of the place; str(x) in a program is its value.
func (x *Place) String() string { return x.address().String() }

func (x *Place) address() *space.Address {
	return &space.Address{Space: x.Space, Doc: x.Doc, Path: x.Path}
}

// Tx returns the documents of the run under way. While the program is loaded there is none.
func (x *Place) Tx() (Documents, error) {
	if x.Cur.Run == nil || x.Cur.Run.Docs == nil {
		return nil, fmt.Errorf("%s is read while the program is loaded; read documents in handlers, computations and effects", x)
	}
	if x.Cur.Run.Upgrades {
		return nil, fmt.Errorf("%s is read by an upgrade; it returns the new value of the old one, and uses nothing else", x)
	}
	return x.Cur.Run.Docs, nil
}

// Child returns the place inside x at a step. It reads nothing.
func (x *Place) Child(step string) *Place {
	if k := x.Children[step]; k != nil {
		return k
	}
	k := &Place{Cur: x.Cur, Space: x.Space, Doc: x.Doc, DocDefault: x.DocDefault, Form: x.Form, Stored: x.Stored}
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

// In returns the same place of a space, "" for the own one. It reads nothing.
func (x *Place) In(space string, remembers bool) *Place {
	y := *x
	y.Space, y.Remembers, y.Children = space, remembers, nil
	return &y
}

// Read returns the whole value.
func (x *Place) Read() (model.Value, error) {
	tx, err := x.Tx()
	if err != nil {
		return model.Value{}, err
	}
	return x.withDefault(x.value(tx, deep)), tx.Err()
}

// ReadShallow returns the value for a caller that uses only its keys or its length: the node then
// depends on no more than that.
func (x *Place) ReadShallow() model.Value {
	tx, err := x.Tx()
	if err != nil {
		return x.ByDefault
	}
	return x.withDefault(x.value(tx, shallow))
}

// withDefault adds to a value the fields of the default that it lacks. Going through a large default is
// charged; if the charge fails, the run ends at its next instruction.
func (x *Place) withDefault(v model.Value) model.Value {
	if !v.IsAbsent() {
		x.Cur.chargeDefault(x.DefaultSize)
	}
	return v.WithDefaults(x.ByDefault)
}

// chargeDefault charges the run for going through a default of n values.
func (c *Current) chargeDefault(n int) {
	if c.Run != nil && n >= 16 {
		_ = c.Run.Charge(n/4, 48*n)
	}
}

// Exists reports whether the document has a value there, defaults aside.
func (x *Place) Exists() (bool, error) {
	tx, err := x.Tx()
	if err != nil {
		return false, err
	}
	return !x.value(tx, shallow).IsAbsent(), tx.Err()
}

// Member reads the value at a step: a scalar, or a place inside x.
func (x *Place) Member(step string) (starlark.Value, error) {
	tx, err := x.Tx()
	if err != nil {
		return x.Child(step), nil //nolint:nilerr // while the program is loaded, places are only named
	}
	c := x.Child(step)
	x.Cur.Run.Missing = nil
	if x.Space != "" {
		v := c.withDefault(c.value(tx, deep))
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

// scalar converts a value that was read, and notes a string: a test may take it for the name of a
// document.
func (x *Place) scalar(v model.Value) starlark.Value {
	x.Cur.Run.LastText, _ = v.AsString()
	return FromModel(v)
}

// readScalar reads a scalar. Whether the value is a container is found out with Peek, without a
// dependency: the place is read when it is used.
func (x *Place) readScalar(tx Documents) model.Value {
	if !x.ByDefault.IsAbsent() && !IsContainer(x.ByDefault) {
		return x.value(tx, deep) // a scalar, usually
	}
	v := x.value(tx, peeking)
	switch {
	case IsContainer(v):
		return v
	case !v.IsAbsent():
		return x.value(tx, deep)
	case IsContainer(x.ByDefault):
		return v
	}
	return x.value(tx, shallow)
}

// Attr implements x.name.
func (x *Place) Attr(name string) (starlark.Value, error) {
	if x.ByDefault.Kind() == model.KindObject && x.ByDefault.Len() > 0 && x.ByDefault.Get(name).IsAbsent() {
		return nil, starlark.NoSuchAttrError(fmt.Sprintf("%s has no field %s: its default does not declare one; add it to the default, or use %s[%q]", x, name, x, name))
	}
	return x.Member(name)
}

// AttrNames returns the fields of the default.
func (x *Place) AttrNames() []string { return x.ByDefault.Keys() }

// Get implements x[k].
func (x *Place) Get(k starlark.Value) (starlark.Value, bool, error) {
	step, err := x.Step(k)
	if err != nil {
		return nil, false, err
	}
	v, err := x.Member(step)
	return v, err == nil, err
}

// At returns the place inside x at a key or an index, and x itself if that is nil.
func (x *Place) At(k starlark.Value) (*Place, error) {
	if k == nil {
		return x, nil
	}
	step, err := x.Step(k)
	if err != nil {
		return nil, err
	}
	return x.Child(step), nil
}

// Step converts a key or an index to a step of a path. An index makes the node depend on the length.
func (x *Place) Step(k starlark.Value) (string, error) {
	if s, ok := k.(starlark.String); ok {
		return string(s), nil
	}
	return stepOf(x.ReadShallow(), k)
}

// Truth is false for an empty container and for a value that does not exist; a scalar has its own
// truth.
func (x *Place) Truth() starlark.Bool {
	v := x.ReadShallow()
	if IsContainer(v) {
		return v.Len() > 0
	}
	return FromModel(v).Truth()
}

// Len returns the number of keys or elements.
func (x *Place) Len() int { return x.ReadShallow().Len() }

// Has implements k in x.
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

// Iterate iterates over the keys of an object, or the elements of an array.
func (x *Place) Iterate() starlark.Iterator {
	v := x.ReadShallow()
	if v.Kind() == model.KindArray {
		v, _ = x.Read() // an error fails the transaction
	}
	return (&View{V: v}).Iterate()
}

// Binary implements x + y for arrays, and the operators of numbers and strings for documents that are
// one.
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

// SetField implements x.name = v.
func (x *Place) SetField(name string, v starlark.Value) error {
	if x.ByDefault.Kind() == model.KindObject && x.ByDefault.Len() > 0 && x.ByDefault.Get(name).IsAbsent() {
		return starlark.NoSuchAttrError(fmt.Sprintf("%s has no field %s: its default does not declare one; add it to the default, or use %s[%q]", x, name, x, name))
	}
	return x.Child(name).Write(v)
}

// SetKey implements x[k] = v.
func (x *Place) SetKey(k, v starlark.Value) error {
	at, err := x.At(k)
	if err != nil {
		return err
	}
	return at.Write(v)
}

// Write replaces the value of the place.
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

// chargeWrite charges for the containers that a write copies.
func (x *Place) chargeWrite(run *Run) error {
	v, n := run.Docs.Peek(x.Doc), 1
	for i := 0; i < len(x.Path) && v.Len() > 0; i++ {
		n += v.Len() / 8
		v = v.At(x.Path[i : i+1])
	}
	return run.Charge(n, 0)
}

// put writes a value. A document that does not exist yet gets its default first, so that readers
// elsewhere find all of its fields.
func (x *Place) put(run *Run, v model.Value) error {
	if len(x.Path) > 0 && x.DocDefault.Len() > 0 && run.Docs.Peek(x.Doc).IsAbsent() {
		whole, err := x.DocDefault.Set(x.Path, v)
		if err != nil {
			return fmt.Errorf("write %s: %w", x, err)
		}
		return x.store(run.Docs, nil, whole)
	}
	return x.store(run.Docs, x.Path, v)
}

// mayWrite refuses a write that the space would refuse later, or would only count as a write outside
// the declared surfaces.
func (x *Place) mayWrite() error {
	tx, err := x.Tx()
	switch {
	case err != nil:
		return fmt.Errorf("%s is written while the program is loaded; write documents in handlers", x)
	case x.Space != "" && x.Space != tx.Space():
		if t, is := tx.(interface{ Writes() string }); is {
			return fmt.Errorf("write %s: %s", x, t.Writes())
		}
		return fmt.Errorf("write %s: a program can only write documents of its own space; send the other space an event", x)
	case !x.Cur.Run.Handles && !tx.Declares(x.Doc, x.Path...):
		return fmt.Errorf("write %s: %s may only read it; a computation returns its output, and declares other places that it writes with writes = [...]", x, x.Cur.Run.Name())
	}
	return nil
}

// Delete deletes the value of the place.
func (x *Place) Delete() error {
	if err := x.mayWrite(); err != nil {
		return err
	}
	tx := x.Cur.Run.Docs
	if err := x.chargeWrite(x.Cur.Run); err != nil {
		return err
	}
	if x.outdated(tx) {
		return tx.Err()
	}
	if err := x.prepare(tx, true); err != nil {
		return fmt.Errorf("delete %s: %w", x, err)
	}
	tx.Delete(x.Doc, x.Path...)
	return tx.Err()
}

// Append appends to an array.
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
	if x.value(x.Cur.Run.Docs, peeking).IsAbsent() {
		if err := x.put(x.Cur.Run, have); err != nil { // the elements of the default
			return err
		}
	}
	return x.Child(strconv.Itoa(have.Len())).Write(v)
}

func (x *Place) isArray() bool { return x.ReadShallow().Kind() == model.KindArray }

// Keys returns the keys of an object, sorted.
func (x *Place) Keys() ([]string, error) {
	v := x.ReadShallow()
	if v.Kind() == model.KindArray {
		return nil, fmt.Errorf("%s is an array and has no keys", x)
	}
	keys := v.Keys()
	slices.Sort(keys)
	return keys, nil
}
