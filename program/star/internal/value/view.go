package value

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/meter"
)

// View is an object or an array that was read: the payload of an event, a default, an element of
// either. It never changes. Its fields are attributes and keys; a field that does not exist is None.
type View struct {
	V      model.Value
	Schema *Schema // of a payload; nil if there is none
	// Closed names what the object is, such as "an event", if it has the fields of V and no others: naming another one is an error.
	Closed string
}

var (
	_ starlark.Mapping    = (*View)(nil)
	_ starlark.Sequence   = (*View)(nil)
	_ starlark.HasAttrs   = (*View)(nil)
	_ starlark.Container  = (*View)(nil)
	_ starlark.HasBinary  = (*View)(nil)
	_ starlark.Comparable = (*View)(nil)
)

func (x *View) Type() string         { return TypeOf(x.V) }
func (x *View) Freeze()              {}
func (x *View) Truth() starlark.Bool { return x.V.Len() > 0 }
func (x *View) Len() int             { return x.V.Len() }
func (x *View) String() string       { return x.Type() }
func (x *View) Hash() (uint32, error) {
	return 0, fmt.Errorf("unhashable: %s", x.Type())
}

func TypeOf(v model.Value) string {
	if v.Kind() == model.KindArray {
		return "array"
	}
	return "object"
}

// Attr implements x.name for a field. Calls of methods are rewritten to operations, which package
// interp has.
func (x *View) Attr(name string) (starlark.Value, error) {
	if x.V.Kind() != model.KindObject {
		return nil, nil
	}
	f := x.V.Get(name)
	if !f.IsAbsent() {
		return x.child(f, name), nil
	}
	if x.Schema != nil && x.Schema.fields != nil && x.Schema.field(name) == nil {
		return nil, starlark.NoSuchAttrError(fmt.Sprintf("the payload has no field %s; its schema has %s", name, x.Schema.names()))
	}
	if x.Closed != "" {
		return nil, starlark.NoSuchAttrError(x.lacks(name))
	}
	return starlark.None, nil
}

// lacks returns the error of a field that a closed object does not have.
func (x *View) lacks(name string) string {
	return fmt.Sprintf("%s has no field %s; it has %s", x.Closed, meter.Clip(name), strings.Join(x.V.Keys(), ", "))
}

func (x *View) child(f model.Value, name string) starlark.Value {
	y := FromModel(f)
	if v, ok := y.(*View); ok && x.Schema != nil {
		if s := x.Schema.field(name); s != nil {
			v.Schema = s.inner
		}
	}
	return y
}

func (x *View) AttrNames() []string {
	if x.Schema != nil && x.Schema.fields != nil {
		return x.Schema.all()
	}
	names := x.V.Keys()
	return names[:min(len(names), 100)]
}

// Get implements x[k].
func (x *View) Get(k starlark.Value) (starlark.Value, bool, error) {
	step, err := stepOf(x.V, k)
	if err != nil {
		return nil, false, err
	}
	v := x.V.At(model.Path{step})
	if x.Closed != "" && v.IsAbsent() {
		return nil, false, errors.New(x.lacks(step))
	}
	return FromModel(v), true, nil
}

// stepOf converts a key or an index to a step of a path. A negative index counts from the end.
func stepOf(v model.Value, k starlark.Value) (string, error) {
	switch k := k.(type) {
	case starlark.String:
		if v.Kind() == model.KindArray {
			return "", fmt.Errorf("an array has no key %s; use an index", meter.Clip(k.String()))
		}
		return string(k), nil
	case starlark.Int:
		i, err := starlark.AsInt32(k)
		if v.Kind() != model.KindArray {
			return "", fmt.Errorf("a key of an object is a string, not the number %v; use str(n)", k)
		}
		if err == nil && i < 0 {
			i += v.Len()
		}
		if err != nil || i < 0 || i >= v.Len() {
			return "", fmt.Errorf("index %v is out of range: the array has %d elements", k, v.Len())
		}
		return strconv.Itoa(i), nil
	}
	return "", fmt.Errorf("a key must be a string and an index a number, not %s", meter.Article(k.Type()))
}

// Has implements k in x: a key of an object, or a scalar element of an array.
func (x *View) Has(k starlark.Value) (bool, error) {
	if x.V.Kind() == model.KindObject {
		s, ok := k.(starlark.String)
		return ok && !x.V.Get(string(s)).IsAbsent(), nil
	}
	for e := range x.V.Elements() {
		if sameScalar(e, k) {
			return true, nil
		}
	}
	return false, nil
}

// sameScalar compares an element with a scalar. Package interp compares containers, and charges for it.
func sameScalar(e model.Value, k starlark.Value) bool {
	if IsContainer(e) {
		return false
	}
	same, err := starlark.Equal(FromModel(e), k)
	return same && err == nil
}

// Iterate iterates over the keys of an object, or the elements of an array.
func (x *View) Iterate() starlark.Iterator {
	if x.V.Kind() == model.KindObject {
		return &keyIterator{keys: x.V.Keys()}
	}
	return &elementIterator{v: x.V}
}

type keyIterator struct{ keys []string }

func (it *keyIterator) Next(p *starlark.Value) bool {
	if len(it.keys) == 0 {
		return false
	}
	*p, it.keys = starlark.String(it.keys[0]), it.keys[1:]
	return true
}
func (*keyIterator) Done() {}

type elementIterator struct {
	v model.Value
	i int
}

func (it *elementIterator) Next(p *starlark.Value) bool {
	if it.i >= it.v.Len() {
		return false
	}
	*p = FromModel(it.v.Index(it.i))
	it.i++
	return true
}
func (*elementIterator) Done() {}

// Binary implements x + y for arrays.
func (x *View) Binary(op syntax.Token, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	return concat(op, x, y, side)
}

// concat returns x + y for lists, at least one of which was read from a document.
func concat(op syntax.Token, x, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	if op != syntax.PLUS {
		return nil, nil
	}
	if side == starlark.Right {
		x, y = y, x
	}
	if !IsList(x) || !IsList(y) {
		return nil, nil
	}
	var elems []starlark.Value
	for _, z := range []starlark.Value{x, y} {
		it := starlark.Iterate(z)
		if it == nil {
			return nil, nil
		}
		var e starlark.Value
		for it.Next(&e) {
			elems = append(elems, e)
		}
		it.Done()
	}
	return starlark.NewList(elems), nil
}

// CompareSameType compares two values that were read.
func (x *View) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	switch op {
	case syntax.EQL:
		return model.Equal(x.V, y.(*View).V), nil
	case syntax.NEQ:
		return !model.Equal(x.V, y.(*View).V), nil
	}
	return false, fmt.Errorf("%s %s %s is not defined", x.Type(), op, y.Type())
}

// listLike is a view or a place, which may have elements.
type listLike interface{ isArray() bool }

func (x *View) isArray() bool { return x.V.Kind() == model.KindArray }

// IsList reports whether x is a list, or an array of a document.
func IsList(x starlark.Value) bool {
	switch x := x.(type) {
	case *starlark.List:
		return true
	case listLike:
		return x.isArray()
	}
	return false
}

// FromModel converts a value of a document to one of the language: scalars directly, null and absent to
// None, and containers to a View, which converts the elements that are used.
func FromModel(v model.Value) starlark.Value {
	switch v.Kind() {
	case model.KindBool:
		b, _ := v.AsBool()
		return starlark.Bool(b)
	case model.KindInt:
		i, _ := v.AsInt()
		return starlark.MakeInt64(i)
	case model.KindFloat:
		f, _ := v.AsFloat()
		return starlark.Float(f)
	case model.KindString:
		s, _ := v.AsString()
		return starlark.String(s)
	case model.KindArray, model.KindObject:
		if v.IsLink() {
			l, _ := v.AsLink()
			return Link{l}
		}
		return &View{V: v}
	}
	return starlark.None
}

// IsContainer reports whether a value is an object or an array, and no link.
func IsContainer(v model.Value) bool {
	k := v.Kind()
	return (k == model.KindArray || k == model.KindObject) && !v.IsLink()
}

// Measure returns approximately how many bytes a value has, how many values it contains, and how deep
// they are nested.
func Measure(v model.Value) (size, nodes, depth int) {
	switch v.Kind() {
	case model.KindString:
		s, _ := v.AsString()
		return len(s) + 2, 1, 0
	case model.KindArray:
		for e := range v.Elements() {
			s, n, d := Measure(e)
			size, nodes, depth = size+s+1, nodes+n, max(depth, d)
		}
		return size + 2, nodes + 1, depth + 1
	case model.KindObject:
		for k, e := range v.All() {
			s, n, d := Measure(e)
			size, nodes, depth = size+s+len(k)+4, nodes+n, max(depth, d)
		}
		return size + 2, nodes + 1, depth + 1
	}
	return 8, 1, 0
}
