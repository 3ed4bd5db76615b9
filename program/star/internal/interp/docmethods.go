package interp

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/program/star/internal/value"
)

type (
	placeFunc = func(run *value.Run, x *value.Place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error)
	viewFunc  = func(run *value.Run, x *value.View, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error)
)

// placeMethods are the methods of places. A field of one of these names is x.name without a call, or
// x["name"].
var placeMethods map[string]placeFunc

// viewMethods are the methods of objects and arrays that were read.
var viewMethods map[string]viewFunc

func init() {
	placeMethods = map[string]placeFunc{
		"get": placeGet, "keys": placeKeys, "values": placeValues, "items": placeItems,
		"set": placeSet, "update": placeUpdate, "delete": placeDelete, "append": placeAppend, "pop": placePop,
		"exists": placeExists, "setdefault": placeSetDefault,
	}
	viewMethods = map[string]viewFunc{"get": viewGet, "keys": viewKeys, "values": viewValues, "items": viewItems}
}

// unpack reads positional arguments.
func unpack(name string, args starlark.Tuple, kwargs []starlark.Tuple, least int, vars ...any) error {
	return starlark.UnpackPositionalArgs(name, args, kwargs, least, vars...)
}

// placeGet is x.get(key, default=None). x.get() is the value of the place itself: for documents that
// are a number or a string.
func placeGet(run *value.Run, x *value.Place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args)+len(kwargs) == 0 {
		v, err := x.Read()
		return value.FromModel(v), err
	}
	var k starlark.Value
	var def starlark.Value = starlark.None
	if err := unpack(name, args, kwargs, 1, &k, &def); err != nil {
		return nil, err
	}
	step, err := x.Step(k)
	if err != nil {
		return nil, err
	}
	v, err := x.Member(step)
	if err != nil {
		return nil, err
	}
	if v == starlark.None {
		return def, nil
	}
	return v, nil
}

func placeKeys(run *value.Run, x *value.Place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := unpack(name, args, kwargs, 0); err != nil {
		return nil, err
	}
	keys, err := x.Keys()
	if err != nil {
		return nil, err
	}
	return StringList(run, keys)
}

func StringList(run *value.Run, keys []string) (starlark.Value, error) {
	if err := run.Charge(1+len(keys), 2*len(keys)*meter.SlotBytes); err != nil {
		return nil, err
	}
	elems := make([]starlark.Value, len(keys))
	for i, k := range keys {
		elems[i] = starlark.String(k)
	}
	return starlark.NewList(elems), nil
}

func placeValues(run *value.Run, x *value.Place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return placeMembers(run, x, name, args, kwargs, func(_ string, v starlark.Value) starlark.Value { return v })
}

func placeItems(run *value.Run, x *value.Place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return placeMembers(run, x, name, args, kwargs, func(k string, v starlark.Value) starlark.Value {
		return starlark.Tuple{starlark.String(k), v}
	})
}

// placeMembers reads the value of each key, as x[key] does.
func placeMembers(run *value.Run, x *value.Place, name string, args starlark.Tuple, kwargs []starlark.Tuple, as func(string, starlark.Value) starlark.Value) (starlark.Value, error) {
	if err := unpack(name, args, kwargs, 0); err != nil {
		return nil, err
	}
	keys, err := x.Keys()
	if err == nil {
		err = run.Charge(1+4*len(keys), len(keys)*250)
	}
	if err != nil {
		return nil, err
	}
	elems := make([]starlark.Value, len(keys))
	for i, k := range keys {
		v, err := x.Member(k)
		if err != nil {
			return nil, err
		}
		elems[i] = as(k, v)
	}
	return starlark.NewList(elems), nil
}

func placeSet(run *value.Run, x *value.Place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v starlark.Value
	if err := unpack(name, args, kwargs, 1, &v); err != nil {
		return nil, err
	}
	return starlark.None, x.Write(v)
}

// placeUpdate is x.update({...}, key = value). Each key is a write of its own.
func placeUpdate(run *value.Run, x *value.Place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 1 {
		return nil, fmt.Errorf("update takes at most one positional argument, a dict")
	}
	if len(args) == 1 {
		m, ok, err := asMapping(run, args[0])
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("update takes a dict, not %s", meter.Article(args[0].Type()))
		}
		m.each(func(k, v starlark.Value) bool {
			err = x.SetKey(k, v)
			return err == nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, kv := range kwargs {
		if err := x.SetKey(kv[0], kv[1]); err != nil {
			return nil, err
		}
	}
	return starlark.None, nil
}

// placeDelete is x.delete(), or x.delete(key).
func placeDelete(run *value.Run, x *value.Place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var k starlark.Value
	if err := unpack(name, args, kwargs, 0, &k); err != nil {
		return nil, err
	}
	at, err := x.At(k)
	if err != nil {
		return nil, err
	}
	return starlark.None, at.Delete()
}

func placeAppend(run *value.Run, x *value.Place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v starlark.Value
	if err := unpack(name, args, kwargs, 1, &v); err != nil {
		return nil, err
	}
	return starlark.None, x.Append(v)
}

// placePop is x.pop(key, default): it deletes the key and returns its value.
func placePop(run *value.Run, x *value.Place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var k, def starlark.Value
	if err := unpack(name, args, kwargs, 1, &k, &def); err != nil {
		return nil, err
	}
	c, err := x.At(k)
	if err != nil {
		return nil, err
	}
	v, err := c.Read()
	switch {
	case err != nil:
		return nil, err
	case v.IsAbsent() && def != nil:
		return def, nil
	case v.IsAbsent():
		return nil, fmt.Errorf("pop: %s is not there", c)
	}
	return value.FromModel(v), c.Delete()
}

// placeExists is x.exists(): whether the document has a value there, defaults aside.
func placeExists(run *value.Run, x *value.Place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var k starlark.Value
	if err := unpack(name, args, kwargs, 0, &k); err != nil {
		return nil, err
	}
	x, err := x.At(k)
	if err != nil {
		return nil, err
	}
	there, err := x.Exists()
	return starlark.Bool(there), err
}

// placeSetDefault is x.setdefault(key, value): it returns the value of the key, and writes the given
// one first if there is none.
func placeSetDefault(run *value.Run, x *value.Place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var k, def starlark.Value
	if err := unpack(name, args, kwargs, 2, &k, &def); err != nil {
		return nil, err
	}
	step, err := x.Step(k)
	if err != nil {
		return nil, err
	}
	v, err := x.Member(step)
	if err != nil || v != starlark.None {
		return v, err
	}
	if err := x.Child(step).Write(def); err != nil {
		return nil, err
	}
	return x.Member(step)
}

// viewGet is x.get(k, default), and x.get() for the value itself, as of a place: an object in a document of another space is a value at once.
func viewGet(run *value.Run, x *value.View, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args)+len(kwargs) == 0 {
		return x, nil
	}
	var k starlark.Value
	var def starlark.Value = starlark.None
	if err := unpack(name, args, kwargs, 1, &k, &def); err != nil {
		return nil, err
	}
	v, _, err := x.Get(k)
	if err == nil && v == starlark.None {
		v = def
	}
	return v, err
}

func viewKeys(run *value.Run, x *value.View, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := unpack(name, args, kwargs, 0); err != nil {
		return nil, err
	}
	return StringList(run, x.V.Keys())
}

func viewValues(run *value.Run, x *value.View, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return viewMembers(run, x, name, args, kwargs, func(_ string, v starlark.Value) starlark.Value { return v })
}

func viewItems(run *value.Run, x *value.View, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return viewMembers(run, x, name, args, kwargs, func(k string, v starlark.Value) starlark.Value {
		return starlark.Tuple{starlark.String(k), v}
	})
}

func viewMembers(run *value.Run, x *value.View, name string, args starlark.Tuple, kwargs []starlark.Tuple, as func(string, starlark.Value) starlark.Value) (starlark.Value, error) {
	if err := unpack(name, args, kwargs, 0); err != nil {
		return nil, err
	}
	if x.V.Kind() != model.KindObject {
		return nil, fmt.Errorf("%s: an array has no keys", name)
	}
	if err := run.Charge(1+x.Len(), x.Len()*100); err != nil {
		return nil, err
	}
	elems := make([]starlark.Value, 0, x.Len())
	for k, v := range x.V.All() {
		elems = append(elems, as(k, value.FromModel(v)))
	}
	return starlark.NewList(elems), nil
}
