package star

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
)

type (
	placeFunc = func(run *Run, x *place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error)
	viewFunc  = func(run *Run, x *view, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error)
)

// placeMethods are the methods of places. A field of one of these names is x.name without a
// call, or x["name"].
var placeMethods map[string]placeFunc

// viewMethod are those of objects and arrays that were read.
var viewMethods map[string]viewFunc

func init() {
	placeMethods = map[string]placeFunc{
		"get": placeGet, "keys": placeKeys, "values": placeValues, "items": placeItems,
		"set": placeSet, "update": placeUpdate, "delete": placeDelete, "append": placeAppend, "pop": placePop,
		"exists": placeExists, "setdefault": placeSetDefault,
	}
	viewMethods = map[string]viewFunc{"get": viewGet, "keys": viewKeys, "values": viewValues, "items": viewItems}
	for n := range placeMethods {
		methods[n] = true
	}
}

// unpack reads positional arguments.
func unpack(name string, args starlark.Tuple, kwargs []starlark.Tuple, least int, vars ...any) error {
	return starlark.UnpackPositionalArgs(name, args, kwargs, least, vars...)
}

// placeGet is x.get(key, default=None): of what is not there, the default. x.get() is the
// value of the place itself: for documents that are a number or a string.
func placeGet(run *Run, x *place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args)+len(kwargs) == 0 {
		v, err := x.read()
		return fromModel(v), err
	}
	var k starlark.Value
	var def starlark.Value = starlark.None
	if err := unpack(name, args, kwargs, 1, &k, &def); err != nil {
		return nil, err
	}
	step, err := x.step(k)
	if err != nil {
		return nil, err
	}
	v, err := x.member(step)
	if err != nil {
		return nil, err
	}
	if v == starlark.None {
		return def, nil
	}
	return v, nil
}

func placeKeys(run *Run, x *place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := unpack(name, args, kwargs, 0); err != nil {
		return nil, err
	}
	keys, err := x.keys()
	if err != nil {
		return nil, err
	}
	return stringList(run, keys)
}

func stringList(run *Run, keys []string) (starlark.Value, error) {
	if err := run.charge(1+len(keys), 2*len(keys)*slotBytes); err != nil {
		return nil, err
	}
	elems := make([]starlark.Value, len(keys))
	for i, k := range keys {
		elems[i] = starlark.String(k)
	}
	return starlark.NewList(elems), nil
}

func placeValues(run *Run, x *place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return placeMembers(run, x, name, args, kwargs, func(_ string, v starlark.Value) starlark.Value { return v })
}

func placeItems(run *Run, x *place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return placeMembers(run, x, name, args, kwargs, func(k string, v starlark.Value) starlark.Value {
		return starlark.Tuple{starlark.String(k), v}
	})
}

// members reads what is at each key, as x[key] does.
func placeMembers(run *Run, x *place, name string, args starlark.Tuple, kwargs []starlark.Tuple, as func(string, starlark.Value) starlark.Value) (starlark.Value, error) {
	if err := unpack(name, args, kwargs, 0); err != nil {
		return nil, err
	}
	keys, err := x.keys()
	if err == nil {
		err = run.charge(1+4*len(keys), len(keys)*250)
	}
	if err != nil {
		return nil, err
	}
	elems := make([]starlark.Value, len(keys))
	for i, k := range keys {
		v, err := x.member(k)
		if err != nil {
			return nil, err
		}
		elems[i] = as(k, v)
	}
	return starlark.NewList(elems), nil
}

func placeSet(run *Run, x *place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v starlark.Value
	if err := unpack(name, args, kwargs, 1, &v); err != nil {
		return nil, err
	}
	return starlark.None, x.write(v)
}

// placeUpdate is x.update({...}, key = value): each key is written for itself.
func placeUpdate(run *Run, x *place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 1 {
		return nil, fmt.Errorf("update takes one dict")
	}
	if len(args) == 1 {
		m, ok, err := asMapping(run, args[0])
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("update takes a dict, not a %s", args[0].Type())
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
func placeDelete(run *Run, x *place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var k starlark.Value
	if err := unpack(name, args, kwargs, 0, &k); err != nil {
		return nil, err
	}
	if k == nil {
		return starlark.None, x.Delete()
	}
	step, err := x.step(k)
	if err != nil {
		return nil, err
	}
	return starlark.None, x.child(step).Delete()
}

func placeAppend(run *Run, x *place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v starlark.Value
	if err := unpack(name, args, kwargs, 1, &v); err != nil {
		return nil, err
	}
	return starlark.None, x.Append(v)
}

// placePop is x.pop(key, default): the value, which is taken out.
func placePop(run *Run, x *place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var k, def starlark.Value
	if err := unpack(name, args, kwargs, 1, &k, &def); err != nil {
		return nil, err
	}
	step, err := x.step(k)
	if err != nil {
		return nil, err
	}
	c := x.child(step)
	v, err := c.read()
	switch {
	case err != nil:
		return nil, err
	case v.IsAbsent() && def != nil:
		return def, nil
	case v.IsAbsent():
		return nil, fmt.Errorf("pop: %s is not there", c)
	}
	return fromModel(v), c.Delete()
}

// placeExists is x.exists(): whether anything is there, defaults aside.
func placeExists(run *Run, x *place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var k starlark.Value
	if err := unpack(name, args, kwargs, 0, &k); err != nil {
		return nil, err
	}
	if k != nil {
		step, err := x.step(k)
		if err != nil {
			return nil, err
		}
		x = x.child(step)
	}
	tx, err := x.tx()
	if err != nil {
		return nil, err
	}
	v := model.Value{}
	if x.space != "" {
		v = tx.GetFrom(x.space, x.doc, x.path...)
	} else {
		v = tx.GetShallow(x.doc, x.path...)
	}
	return starlark.Bool(!v.IsAbsent()), tx.Err()
}

// placeSetDefault is x.setdefault(key, value): what is there, or the value, written.
func placeSetDefault(run *Run, x *place, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var k, def starlark.Value
	if err := unpack(name, args, kwargs, 2, &k, &def); err != nil {
		return nil, err
	}
	step, err := x.step(k)
	if err != nil {
		return nil, err
	}
	v, err := x.member(step)
	if err != nil || v != starlark.None {
		return v, err
	}
	if err := x.child(step).write(def); err != nil {
		return nil, err
	}
	return x.member(step)
}

func viewGet(run *Run, x *view, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
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

func viewKeys(run *Run, x *view, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := unpack(name, args, kwargs, 0); err != nil {
		return nil, err
	}
	return stringList(run, x.v.Keys())
}

func viewValues(run *Run, x *view, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return viewMembers(run, x, name, args, kwargs, func(_ string, v starlark.Value) starlark.Value { return v })
}

func viewItems(run *Run, x *view, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return viewMembers(run, x, name, args, kwargs, func(k string, v starlark.Value) starlark.Value {
		return starlark.Tuple{starlark.String(k), v}
	})
}

func viewMembers(run *Run, x *view, name string, args starlark.Tuple, kwargs []starlark.Tuple, as func(string, starlark.Value) starlark.Value) (starlark.Value, error) {
	if err := unpack(name, args, kwargs, 0); err != nil {
		return nil, err
	}
	if x.v.Kind() != model.KindObject {
		return nil, fmt.Errorf("%s: an array has no keys", name)
	}
	if err := run.charge(1+x.Len(), x.Len()*100); err != nil {
		return nil, err
	}
	elems := make([]starlark.Value, 0, x.Len())
	for k, v := range x.v.All() {
		elems = append(elems, as(k, fromModel(v)))
	}
	return starlark.NewList(elems), nil
}
