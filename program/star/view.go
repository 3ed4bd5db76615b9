package star

import (
	"fmt"
	"strconv"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/model"
)

// view is an object or an array that was read: the payload of an event, a default, an
// element of either. It never changes. Fields are attributes and keys; what is not there
// is None.
type view struct {
	v      model.Value
	schema *schema // of a payload; nil if there is none
}

var (
	_ starlark.Mapping    = (*view)(nil)
	_ starlark.Sequence   = (*view)(nil)
	_ starlark.HasAttrs   = (*view)(nil)
	_ starlark.Container  = (*view)(nil)
	_ starlark.HasBinary  = (*view)(nil)
	_ starlark.Comparable = (*view)(nil)
)

func (x *view) Type() string         { return typeOf(x.v) }
func (x *view) Freeze()              {}
func (x *view) Truth() starlark.Bool { return x.v.Len() > 0 }
func (x *view) Len() int             { return x.v.Len() }
func (x *view) String() string       { return x.Type() }
func (x *view) Hash() (uint32, error) {
	return 0, fmt.Errorf("unhashable: %s", x.Type())
}

func typeOf(v model.Value) string {
	if v.Kind() == model.KindArray {
		return "array"
	}
	return "object"
}

// Attr is a field. Methods are called, and what is called is rewritten: see rewrite.go.
func (x *view) Attr(name string) (starlark.Value, error) {
	if x.v.Kind() != model.KindObject {
		return nil, nil
	}
	f := x.v.Get(name)
	if !f.IsAbsent() {
		return x.child(f, name), nil
	}
	if x.schema != nil && x.schema.fields != nil && x.schema.field(name) == nil {
		return nil, starlark.NoSuchAttrError(fmt.Sprintf("the payload has no field %s; its schema has %s", name, x.schema.names()))
	}
	return starlark.None, nil
}

func (x *view) child(f model.Value, name string) starlark.Value {
	y := fromModel(f)
	if v, ok := y.(*view); ok && x.schema != nil {
		if s := x.schema.field(name); s != nil {
			v.schema = s.inner
		}
	}
	return y
}

func (x *view) AttrNames() []string {
	if x.schema != nil && x.schema.fields != nil {
		return x.schema.all()
	}
	names := x.v.Keys()
	return names[:min(len(names), 100)]
}

// Get is x[k].
func (x *view) Get(k starlark.Value) (starlark.Value, bool, error) {
	step, err := stepOf(x.v, k)
	if err != nil {
		return nil, false, err
	}
	return fromModel(x.v.At(model.Path{step})), true, nil
}

// stepOf is a key or an index as a step of a path. An index that is negative counts from the
// end; one that is outside is an error.
func stepOf(v model.Value, k starlark.Value) (string, error) {
	switch k := k.(type) {
	case starlark.String:
		if v.Kind() == model.KindArray {
			return "", fmt.Errorf("an array has indexes, not the key %s", clip(k.String()))
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
			return "", fmt.Errorf("index %v is outside of the array of %d", k, v.Len())
		}
		return strconv.Itoa(i), nil
	}
	return "", fmt.Errorf("a key is a string, an index a number; this is a %s", k.Type())
}

// Has is `k in x`: a key of an object, an element of an array.
func (x *view) Has(k starlark.Value) (bool, error) {
	if x.v.Kind() == model.KindObject {
		s, ok := k.(starlark.String)
		return ok && !x.v.Get(string(s)).IsAbsent(), nil
	}
	for e := range x.v.Elements() {
		if sameScalar(e, k) {
			return true, nil
		}
	}
	return false, nil
}

// sameScalar compares an element with a scalar. Containers go through containsDeep.
func sameScalar(e model.Value, k starlark.Value) bool {
	if isContainer(e) {
		return false
	}
	same, err := starlark.Equal(fromModel(e), k)
	return same && err == nil
}

// Iterate goes through the keys of an object, or the elements of an array.
func (x *view) Iterate() starlark.Iterator {
	if x.v.Kind() == model.KindObject {
		return &keyIterator{keys: x.v.Keys()}
	}
	return &elementIterator{v: x.v}
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
	*p = fromModel(it.v.Index(it.i))
	it.i++
	return true
}
func (*elementIterator) Done() {}

// Binary lets lists that were read be joined with others.
func (x *view) Binary(op syntax.Token, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	return concat(op, x, y, side)
}

func isList(x starlark.Value) bool {
	switch x := x.(type) {
	case *starlark.List:
		return true
	case *view:
		return x.v.Kind() == model.KindArray
	case *place:
		return x.readShallow().Kind() == model.KindArray
	}
	return false
}

// joined is x + y for lists of which one at least was read.
func concat(op syntax.Token, x, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	if op != syntax.PLUS {
		return nil, nil
	}
	if side == starlark.Right {
		x, y = y, x
	}
	if !isList(x) || !isList(y) {
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
func (x *view) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	switch op {
	case syntax.EQL:
		return model.Equal(x.v, y.(*view).v), nil
	case syntax.NEQ:
		return !model.Equal(x.v, y.(*view).v), nil
	}
	return false, fmt.Errorf("%s %s %s is not defined", x.Type(), op, y.Type())
}

// link is a link to a place, as a value: see model.Link.
type link struct{ target model.Link }

func (x link) Type() string          { return "link" }
func (x link) Freeze()               {}
func (x link) Truth() starlark.Bool  { return true }
func (x link) Hash() (uint32, error) { return starlark.String(x.String()).Hash() }
func (x link) String() string {
	where := x.target.Doc + x.target.Path.String()
	if x.target.Space != "" {
		where = "@" + x.target.Space + "/" + where
	}
	return "link(" + where + ")"
}

// Attr are the parts of a link.
func (x link) Attr(name string) (starlark.Value, error) {
	switch name {
	case "space":
		return starlark.String(x.target.Space), nil
	case "doc":
		return starlark.String(x.target.Doc), nil
	case "path":
		t := make(starlark.Tuple, len(x.target.Path))
		for i, s := range x.target.Path {
			t[i] = starlark.String(s)
		}
		return t, nil
	}
	return nil, nil
}
func (x link) AttrNames() []string { return []string{"doc", "path", "space"} }

// CompareSameType compares where two links point.
func (x link) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	same := x.String() == y.(link).String()
	switch op {
	case syntax.EQL:
		return same, nil
	case syntax.NEQ:
		return !same, nil
	}
	return false, fmt.Errorf("link %s link is not defined", op)
}
