package interp

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/program/star/internal/value"
)

// areNumbers reports whether two operands are numbers: the common case, and cheap.
func areNumbers(x, y starlark.Value) bool {
	return isNumeric(x) && isNumeric(y)
}

func isNumeric(x starlark.Value) bool {
	switch x.(type) {
	case starlark.Int, starlark.Float:
		return true
	}
	return false
}

// checkNumber refuses integers beyond 64 bits, infinite floats and NaN.
func checkNumber(x starlark.Value, err error) (starlark.Value, error) {
	if err != nil {
		return nil, err
	}
	switch x := x.(type) {
	case starlark.Int:
		if _, ok := x.Int64(); !ok {
			return nil, fmt.Errorf("the integer does not fit into 64 bits")
		}
	case starlark.Float:
		if math.IsInf(float64(x), 0) || math.IsNaN(float64(x)) {
			return nil, fmt.Errorf("the result is not a finite number")
		}
	}
	return x, nil
}

// sizeOf returns how many steps it takes to go through a value, and how many bytes to copy it, without
// what its elements hold.
func sizeOf(x starlark.Value) (steps, bytes int) {
	switch x := x.(type) {
	case starlark.String:
		return 1 + len(x)/meter.TextStep, len(x)
	case *starlark.List:
		return 1 + x.Len(), x.Len() * meter.SlotBytes
	case starlark.Tuple:
		return 1 + len(x), len(x) * meter.SlotBytes
	case *starlark.Dict, *starlark.Set:
		n := starlark.Len(x)
		return 1 + n + rehash(x), n * meter.EntryBytes
	case *value.View:
		return 1 + x.Len(), x.Len() * 48
	case *value.Place:
		return 1 + x.Len(), x.Len() * 48
	case starlark.Sequence:
		return 1 + x.Len(), x.Len() * meter.SlotBytes
	}
	return 1, 0
}

// rehash returns how many steps, beyond one for each key, it takes to hash all keys of a dict or set
// again, as copying it does.
func rehash(x starlark.Value) (steps int) {
	switch x := x.(type) {
	case *starlark.Dict:
		for k := range x.Entries() {
			steps += hashSteps(k)
		}
	case *starlark.Set:
		for k := range x.Elements() {
			steps += hashSteps(k)
		}
	}
	return steps
}

func hashSteps(k starlark.Value) (steps int) {
	switch k := k.(type) {
	case starlark.String:
		return len(k) / meter.TextStep
	case starlark.Tuple: // of 1000 values at most, see hashable
		for _, e := range k {
			steps += 1 + hashSteps(e)
		}
	}
	return steps
}

// chargeLoop charges for the list of keys that is made before a loop begins.
func chargeLoop(run *value.Run, x starlark.Value) error {
	switch x := x.(type) {
	case *value.View:
		return run.Charge(1+x.Len()/8, meter.SlotBytes*x.Len())
	case *value.Place:
		n := x.Len()
		return run.Charge(1+n/8, meter.SlotBytes*n)
	}
	return nil
}

// asView returns the value of a view or a place, nil for anything else.
func asView(x starlark.Value) (*value.View, error) {
	switch x := x.(type) {
	case *value.View:
		return x, nil
	case *value.Place:
		v, err := x.Read()
		return &value.View{V: v}, err
	}
	return nil, nil
}

// collect returns the elements of a sequence in a slice of its own.
func collect(run *value.Run, x starlark.Value) ([]starlark.Value, error) {
	it, ok := x.(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("%s value is not iterable", x.Type())
	}
	n := starlark.Len(x)
	if err := run.Charge(1+max(n, 0), max(n, 0)*meter.SlotBytes); err != nil {
		return nil, err
	}
	elems := make([]starlark.Value, 0, max(n, 0))
	iter := it.Iterate()
	defer iter.Done()
	var e starlark.Value
	for iter.Next(&e) {
		if n < 0 {
			if err := run.Charge(1, 2*meter.SlotBytes); err != nil {
				return nil, err
			}
		}
		elems = append(elems, e)
	}
	return elems, nil
}

// dictOf returns a dict of the fields of an object.
func dictOf(run *value.Run, x *value.View) (*starlark.Dict, error) {
	if err := run.Charge(1+x.Len(), meter.DictBytes+x.Len()*meter.EntryBytes); err != nil {
		return nil, err
	}
	d := starlark.NewDict(x.Len())
	for k, v := range x.V.All() {
		if err := run.ChargeKey(starlark.String(k)); err != nil {
			return nil, err
		}
		if err := d.SetKey(starlark.String(k), value.FromModel(v)); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// fieldOf returns x.name.
func fieldOf(x starlark.Value, name string) (starlark.Value, error) {
	if h, ok := x.(starlark.HasAttrs); ok {
		v, err := h.Attr(name)
		if v != nil || err != nil {
			return v, err
		}
	}
	return nil, fmt.Errorf("%s has no .%s field or method", x.Type(), name)
}

// scalarAt returns the value of a place, and any other x unchanged.
func scalarAt(x starlark.Value) (starlark.Value, error) {
	p, ok := x.(*value.Place)
	if !ok {
		return x, nil
	}
	v, err := p.Read()
	if err != nil {
		return nil, err
	}
	return value.FromModel(v), nil
}

func isContainerValue(y starlark.Value) bool {
	switch y.(type) {
	case *value.View, *value.Place, *starlark.List, *starlark.Dict, starlark.Tuple, *starlark.Set:
		return true
	}
	return false
}

// sequence is a list, or an array of a document.
type sequence struct {
	n  int
	at func(int) starlark.Value
}

func asSequence(run *value.Run, x starlark.Value) (sequence, bool, error) {
	if s, ok := x.(*starlark.List); ok {
		return sequence{s.Len(), s.Index}, true, nil
	}
	v, err := asView(x)
	if v == nil || err != nil || v.V.Kind() != model.KindArray {
		return sequence{}, false, err
	}
	return sequence{v.Len(), func(i int) starlark.Value { return value.FromModel(v.V.Index(i)) }}, true, nil
}

// mapping is a dict, or an object of a document.
type mapping struct {
	n    int
	each func(yield func(k, v starlark.Value) bool)
	get  func(k starlark.Value) (starlark.Value, bool)
}

func asMapping(run *value.Run, x starlark.Value) (mapping, bool, error) {
	if d, ok := x.(*starlark.Dict); ok {
		return mapping{d.Len(), d.Entries(), func(k starlark.Value) (starlark.Value, bool) {
			v, found, _ := d.Get(k)
			return v, found
		}}, true, nil
	}
	v, err := asView(x)
	if v == nil || err != nil || v.V.Kind() != model.KindObject {
		return mapping{}, false, err
	}
	return mapping{v.Len(), func(yield func(k, v starlark.Value) bool) {
		for k, f := range v.V.All() {
			if !yield(starlark.String(k), value.FromModel(f)) {
				return
			}
		}
	}, func(k starlark.Value) (starlark.Value, bool) {
		s, ok := k.(starlark.String)
		f := v.V.Get(string(s))
		return value.FromModel(f), ok && !f.IsAbsent()
	}}, true, nil
}

// pairs returns the entries that a dict is made of.
func pairs(run *value.Run, x starlark.Value) ([]starlark.Value, error) {
	elems, err := collect(run, x)
	if err != nil {
		return nil, err
	}
	for i, e := range elems {
		pair, err := collect(run, e)
		if err != nil || len(pair) != 2 {
			return nil, fmt.Errorf("dict: element %d is not a pair of a key and a value", i)
		}
		if err := run.ChargeKey(pair[0]); err != nil {
			return nil, err
		}
		elems[i] = starlark.Tuple(pair)
	}
	return elems, run.Charge(len(elems), len(elems)*meter.EntryBytes)
}

// keysIn returns the elements of a sequence, each charged as a key.
func keysIn(run *value.Run, x starlark.Value) ([]starlark.Value, error) {
	elems, err := collect(run, x)
	if err != nil {
		return nil, err
	}
	for _, e := range elems {
		if err := run.ChargeKey(e); err != nil {
			return nil, err
		}
	}
	return elems, run.Charge(len(elems), len(elems)*meter.EntryBytes)
}

// valueAt returns the value of a place.
func valueAt(run *value.Run, x *value.Place) (starlark.Value, error) {
	v, err := x.Read()
	return value.FromModel(v), err
}
