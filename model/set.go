package model

import (
	"fmt"
	"unicode/utf8"
)

// At returns the value at p, absent if there is none.
func (v Value) At(p Path) Value {
	for _, step := range p {
		v = v.step(step)
	}
	return v
}

func (v Value) step(step string) Value {
	if v.Kind() == KindArray {
		if i, ok := arrayIndex(step); ok {
			return v.Index(i)
		}
		return Value{}
	}
	return v.Get(step)
}

// Set returns v with x at p. It copies the containers along the path and shares everything else with v, which
// does not change. Objects missing along the way are created. An array index may be at most the length of the
// array, which appends. An absent x deletes.
//
// If x is the value at p already, Set returns v itself. It returns v and an error if a scalar or null is in
// the way, if a step is not an index of the array that it addresses, if a new key is not valid UTF-8, or if
// the result would be nested deeper than MaxDepth.
func (v Value) Set(p Path, x Value) (Value, error) {
	if x.IsAbsent() {
		return v.Delete(p)
	}
	if err := checkDepth(x, len(p)); err != nil {
		return v, fmt.Errorf("set %s: %w", p, err)
	}
	return v.set(p, 0, x)
}

// set is Set for v located at p[:depth].
func (v Value) set(p Path, depth int, x Value) (Value, error) {
	if depth == len(p) {
		if Equal(v, x) {
			return v, nil
		}
		return x, nil
	}
	switch v.Kind() {
	case KindObject:
		return v.setMember(p, depth, x)
	case KindArray:
		return v.setElement(p, depth, x)
	case KindAbsent:
		return nest(p, depth, x)
	}
	return v, fmt.Errorf("set %s: there is a %s at %q", p, v.Kind(), p[:depth].String())
}

func (v Value) setMember(p Path, depth int, x Value) (Value, error) {
	keys, values := v.members()
	i := indexOf(keys, p[depth])
	if i < 0 {
		child, err := nest(p, depth+1, x)
		if err == nil {
			err = checkKey(p, depth)
		}
		if err != nil {
			return v, err
		}
		return v.plusMember(p[depth], child), nil
	}
	child, err := values[i].set(p, depth+1, x)
	if err != nil || same(child, values[i]) {
		return v, err
	}
	return v.withMember(i, child), nil
}

func (v Value) setElement(p Path, depth int, x Value) (Value, error) {
	i, ok := arrayIndex(p[depth])
	if !ok || i > v.Len() {
		return v, fmt.Errorf("set %s: %q is not an index of the array of %d at %q", p, p[depth], v.Len(), p[:depth].String())
	}
	was := v.Index(i)
	child, err := was.set(p, depth+1, x)
	if err != nil || same(child, was) {
		return v, err
	}
	return v.withElement(i, child), nil
}

// nest returns x inside an object for each step of p from depth on.
func nest(p Path, depth int, x Value) (Value, error) {
	for i := len(p) - 1; i >= depth; i-- {
		if err := checkKey(p, i); err != nil {
			return Value{}, err
		}
		keys, cells := newKeys(1), newCells(1)
		keys[0], cells[1] = p[i], x
		x = objectWith(keys, cells, x.height()+1)
	}
	return x, nil
}

func checkKey(p Path, i int) error {
	if !utf8.ValidString(p[i]) {
		return fmt.Errorf("path %q: key %q: %w", p.String(), p[i], errUTF8)
	}
	return nil
}

// Delete returns v without the object key at p, or absent if p is the root. If there is nothing to delete it
// returns v itself. An element cannot be removed from an array, because that would renumber the following
// ones: write the whole array.
func (v Value) Delete(p Path) (Value, error) {
	return v.delete(p, 0)
}

// delete is Delete for v located at p[:depth].
func (v Value) delete(p Path, depth int) (Value, error) {
	if depth == len(p) {
		return Value{}, nil
	}
	was := v.step(p[depth])
	if was.IsAbsent() {
		return v, nil
	}
	isArray := v.Kind() == KindArray
	if isArray && depth == len(p)-1 {
		return v, fmt.Errorf("delete %s: is an element of an array; write the whole array", p)
	}
	child, err := was.delete(p, depth+1)
	if err != nil || same(child, was) {
		return v, err
	}
	if isArray {
		i, _ := arrayIndex(p[depth])
		return v.withElement(i, child), nil
	}
	keys, _ := v.members()
	i := indexOf(keys, p[depth])
	if child.IsAbsent() {
		return v.minusMember(i), nil
	}
	return v.withMember(i, child), nil
}
