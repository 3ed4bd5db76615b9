package interp

import (
	"fmt"
	"math"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/program/star/internal/value"
)

// operator is an operation that Rewrite puts in the place of an operator. Errors name it by its sign.
type operator struct {
	sign string
	run  func(run *value.Run, args starlark.Tuple) (starlark.Value, error)
}

var operators map[string]operator

func init() {
	operators = map[string]operator{
		"%add": {"+", arithmetic(syntax.PLUS)}, "%sub": {"-", arithmetic(syntax.MINUS)}, "%mul": {"*", arithmetic(syntax.STAR)},
		"%mod": {"%", arithmetic(syntax.PERCENT)}, "%or": {"|", arithmetic(syntax.PIPE)}, "%and": {"&", arithmetic(syntax.AMP)},
		"%xor": {"^", arithmetic(syntax.CIRCUMFLEX)}, "%shl": {"<<", arithmetic(syntax.LTLT)},
		"%eq": {"==", comparison(syntax.EQL)}, "%ne": {"!=", comparison(syntax.NEQ)},
		"%lt": {"<", comparison(syntax.LT)}, "%le": {"<=", comparison(syntax.LE)},
		"%gt": {">", comparison(syntax.GT)}, "%ge": {">=", comparison(syntax.GE)},
		"%in": {"in", func(run *value.Run, a starlark.Tuple) (starlark.Value, error) {
			ok, err := contains(run, a[0], a[1])
			return starlark.Bool(ok), err
		}},
		"%notin": {"not in", func(run *value.Run, a starlark.Tuple) (starlark.Value, error) {
			ok, err := contains(run, a[0], a[1])
			return starlark.Bool(!ok), err
		}},
		"%index": {"[]", func(run *value.Run, a starlark.Tuple) (starlark.Value, error) { return elementAt(run, a[0], a[1]) }},
		"%setindex": {"[]", func(run *value.Run, a starlark.Tuple) (starlark.Value, error) {
			return starlark.None, setElement(run, a[0], a[1], a[2])
		}},
		"%augindex": {"[]", func(run *value.Run, a starlark.Tuple) (starlark.Value, error) {
			old, err := elementAt(run, a[0], a[1])
			if err == nil {
				old, err = augmented(run, old, a[2], a[3])
			}
			if err != nil {
				return nil, err
			}
			return starlark.None, setElement(run, a[0], a[1], old)
		}},
		"%aug": {"=", func(run *value.Run, a starlark.Tuple) (starlark.Value, error) {
			return augmented(run, a[0], a[1], a[2])
		}},
		"%augfield": {"=", augmentedField},
		"%slice": {"[:]", func(run *value.Run, a starlark.Tuple) (starlark.Value, error) {
			return sliceOf(run, a[0], a[1], a[2], a[3])
		}},
		"%dict": {"dict", func(run *value.Run, a starlark.Tuple) (starlark.Value, error) {
			return a[0], run.Charge(1, meter.DictBytes+meter.EntryBytes*starlark.Len(a[0]))
		}},
		"%key":  {"key", func(run *value.Run, a starlark.Tuple) (starlark.Value, error) { return a[0], run.ChargeKey(a[0]) }},
		"%iter": {"in", func(run *value.Run, a starlark.Tuple) (starlark.Value, error) { return a[0], chargeLoop(run, a[0]) }},
		"%frame": {"call", func(run *value.Run, a starlark.Tuple) (starlark.Value, error) {
			n, _ := starlark.AsInt32(a[0])
			return a[len(a)-1], run.Charge(n/8, n*meter.SlotBytes)
		}},
		"%args":   {"*", func(run *value.Run, a starlark.Tuple) (starlark.Value, error) { return spreadArgs(run, a[0]) }},
		"%kwargs": {"**", spreadKwargs},
	}
}

// maxArgs bounds the arguments that f(*x) or f(**x) passes.
const maxArgs = 1000

func arithmetic(op syntax.Token) func(run *value.Run, args starlark.Tuple) (starlark.Value, error) {
	return func(run *value.Run, args starlark.Tuple) (starlark.Value, error) {
		return binary(run, op, args[0], args[1])
	}
}

// binary returns x op y, charged for the result.
func binary(run *value.Run, op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	if areNumbers(x, y) {
		return checkNumber(starlark.Binary(op, x, y))
	}
	var err error
	if x, err = scalarAt(x); err != nil { // the value of a place may be long
		return nil, err
	}
	if y, err = scalarAt(y); err != nil {
		return nil, err
	}
	if err := run.Charge(operatorCost(run, op, x, y)); err != nil {
		return nil, err
	}
	if format, ok := x.(starlark.String); ok && op == syntax.PERCENT {
		return formatPercent(run, string(format), y)
	}
	return checkNumber(starlark.Binary(op, x, y))
}

// operatorCost returns what joining or repeating costs.
func operatorCost(run *value.Run, op syntax.Token, x, y starlark.Value) (steps, bytes int) {
	if op == syntax.STAR {
		if n, ok := x.(starlark.Int); ok {
			return repeatCost(y, n)
		}
		if n, ok := y.(starlark.Int); ok {
			return repeatCost(x, n)
		}
		return 1, 0
	}
	if op == syntax.LTLT {
		return 1, 128
	}
	sx, bx := sizeOf(x)
	sy, by := sizeOf(y)
	return sx + sy, bx + by
}

// repeatCost returns the cost of x * n.
func repeatCost(x starlark.Value, n starlark.Int) (steps, bytes int) {
	count, ok := n.Int64()
	if !ok || count > math.MaxInt32 {
		count = math.MaxInt32
	}
	_, b := sizeOf(x)
	if count < 1 || b == 0 {
		return 1, 0
	}
	bytes = int(min(int64(b)*count, math.MaxInt32*1024))
	return 1 + bytes/meter.TextStep, bytes
}

// augmented returns x op= y. Lists and dicts are changed in place, as in Python.
func augmented(run *value.Run, x, sign, y starlark.Value) (starlark.Value, error) {
	op := augmentedOps[string(sign.(starlark.String))]
	switch x := x.(type) {
	case *starlark.List:
		if op == syntax.PLUS {
			return x, extend(run, x, y)
		}
	case *starlark.Dict:
		if d, ok := y.(*starlark.Dict); ok && op == syntax.PIPE {
			if err := run.Charge(sizeOf(d)); err != nil {
				return nil, err
			}
			for k, v := range d.Entries() {
				if err := x.SetKey(k, v); err != nil {
					return nil, err
				}
			}
			return x, nil
		}
	case starlark.Int, starlark.Float:
		if isNumeric(y) {
			return checkNumber(starlark.Binary(op, x, y))
		}
	}
	return binary(run, op, x, y)
}

var augmentedOps = map[string]syntax.Token{
	"+=": syntax.PLUS, "-=": syntax.MINUS, "*=": syntax.STAR, "/=": syntax.SLASH, "//=": syntax.SLASHSLASH, "%=": syntax.PERCENT,
	"&=": syntax.AMP, "|=": syntax.PIPE, "^=": syntax.CIRCUMFLEX, "<<=": syntax.LTLT, ">>=": syntax.GTGT,
}

// extend appends the elements of y.
func extend(run *value.Run, x *starlark.List, y starlark.Value) error {
	elems, err := collect(run, y)
	if err != nil {
		return err
	}
	for _, e := range elems {
		if err := x.Append(e); err != nil {
			return err
		}
	}
	return nil
}

func augmentedField(run *value.Run, a starlark.Tuple) (starlark.Value, error) {
	name := string(a[1].(starlark.String))
	old, err := fieldOf(a[0], name)
	if err != nil {
		return nil, err
	}
	v, err := augmented(run, old, a[2], a[3])
	if err != nil {
		return nil, err
	}
	x, ok := a[0].(starlark.HasSetField)
	if !ok {
		return nil, fmt.Errorf("can't assign to .%s field of %s", name, a[0].Type())
	}
	return starlark.None, x.SetField(name, v)
}

// elementAt returns x[k].
func elementAt(run *value.Run, x, k starlark.Value) (starlark.Value, error) {
	switch x := x.(type) {
	case *starlark.Dict:
		if err := run.ChargeKey(k); err != nil {
			return nil, err
		}
		v, found, err := x.Get(k)
		if err == nil && !found {
			err = fmt.Errorf("the key %s is not in the dict", ShortText(run, k))
		}
		return v, err
	case starlark.Mapping:
		v, _, err := x.Get(k)
		return v, err
	case starlark.Indexable:
		i, err := starlark.AsInt32(k)
		if err != nil {
			return nil, fmt.Errorf("%s index: %w", x.Type(), err)
		}
		n := x.Len()
		if at := i; at < -n || at >= n {
			return nil, fmt.Errorf("index %d is out of range: the %s has %d elements", i, x.Type(), n)
		}
		if i < 0 {
			i += n
		}
		return x.Index(i), nil
	}
	return nil, fmt.Errorf("%s cannot be indexed with [...]", meter.Article(x.Type()))
}

// setElement is x[k] = v.
func setElement(run *value.Run, x, k, v starlark.Value) error {
	switch x := x.(type) {
	case *starlark.Dict:
		if err := run.ChargeKey(k); err != nil {
			return err
		}
		before := x.Len()
		if err := x.SetKey(k, v); err != nil {
			return err
		}
		if x.Len() > before {
			return run.Charge(0, meter.EntryBytes)
		}
		return nil
	case starlark.HasSetKey:
		return x.SetKey(k, v)
	case starlark.HasSetIndex:
		i, err := starlark.AsInt32(k)
		n := x.Len()
		if err != nil || i < -n || i >= n {
			return fmt.Errorf("index %s is out of range: the %s has %d elements", ShortText(run, k), x.Type(), n)
		}
		if i < 0 {
			i += n
		}
		return x.SetIndex(i, v)
	}
	return fmt.Errorf("the elements of %s cannot be assigned to", meter.Article(x.Type()))
}

// sliceOf returns x[lo:hi:step].
func sliceOf(run *value.Run, x, lo, hi, step starlark.Value) (starlark.Value, error) {
	switch v := x.(type) {
	case *value.View, *value.Place:
		if !value.IsList(x) {
			return nil, fmt.Errorf("an object cannot be sliced")
		}
		elems, err := collect(run, x)
		if err != nil {
			return nil, err
		}
		x = starlark.NewList(elems)
	case starlark.String:
		if step == starlark.None {
			break // shares its bytes
		}
		if err := run.Charge(1+len(v), 2*len(v)); err != nil {
			return nil, err
		}
	default:
		if err := run.Charge(sizeOf(x)); err != nil {
			return nil, err
		}
	}
	s, ok := x.(starlark.Sliceable)
	if !ok {
		return nil, fmt.Errorf("%s cannot be sliced", meter.Article(x.Type()))
	}
	return sliced(s, lo, hi, step)
}

// sliced does what the interpreter does for a slice.
func sliced(x starlark.Sliceable, lo, hi, step starlark.Value) (starlark.Value, error) {
	n, by := x.Len(), 1
	for _, a := range []starlark.Value{lo, hi, step} {
		if _, ok := a.(starlark.Int); !ok && a != starlark.None {
			return nil, fmt.Errorf("the bounds of a slice must be integers, not %s", meter.Article(a.Type()))
		}
	}
	if step != starlark.None {
		i, err := starlark.AsInt32(step)
		if err != nil || i == 0 {
			return nil, fmt.Errorf("the step of a slice must be an integer other than 0")
		}
		by = i
	}
	from, to := 0, n
	if by < 0 {
		from, to = n-1, -1
	}
	bound := func(a starlark.Value, into *int) {
		if a == starlark.None {
			return
		}
		i, err := starlark.AsInt32(a)
		if err != nil {
			i = math.MaxInt32 * a.(starlark.Int).Sign()
		}
		if i < 0 {
			i += n
		}
		if by > 0 {
			*into = min(max(i, 0), n)
		} else {
			*into = min(max(i, -1), n-1)
		}
	}
	bound(lo, &from)
	bound(hi, &to)
	if by > 0 {
		to = max(to, from)
	} else {
		to = min(to, from)
	}
	return x.Slice(from, to, by), nil
}

// spreadArgs returns the arguments that f(*x) passes.
func spreadArgs(run *value.Run, x starlark.Value) (starlark.Value, error) {
	if n := starlark.Len(x); n > maxArgs {
		return nil, fmt.Errorf("a call can have at most %d arguments, not %d", maxArgs, n)
	}
	elems, err := collect(run, x)
	if err == nil && len(elems) > maxArgs {
		err = fmt.Errorf("a call can have at most %d arguments", maxArgs)
	}
	return starlark.Tuple(elems), err
}

// spreadKwargs returns the arguments that f(**x) passes.
func spreadKwargs(run *value.Run, a starlark.Tuple) (starlark.Value, error) {
	d := a[0]
	if x, err := asView(d); err != nil {
		return nil, err
	} else if x != nil && x.V.Kind() == model.KindObject {
		if d, err = dictOf(run, x); err != nil {
			return nil, err
		}
	}
	dict, ok := d.(*starlark.Dict)
	if !ok {
		return nil, fmt.Errorf("the argument after ** must be a dict, not %s", meter.Article(d.Type()))
	}
	if dict.Len() > maxArgs {
		return nil, fmt.Errorf("a call can have at most %d arguments, not %d", maxArgs, dict.Len())
	}
	return dict, run.Charge(sizeOf(dict))
}

// contains is x in y.
func contains(run *value.Run, x, y starlark.Value) (bool, error) {
	switch y := y.(type) {
	case starlark.String:
		s, ok := x.(starlark.String)
		if !ok {
			return false, fmt.Errorf("only a string can be in a string, not %s", meter.Article(x.Type()))
		}
		if err := run.Charge(1+len(y)/meter.TextStep, 0); err != nil {
			return false, err
		}
		return strings.Contains(string(y), string(s)), nil
	case *starlark.Dict:
		if err := run.ChargeKey(x); err != nil {
			return false, err
		}
		_, found, err := y.Get(x)
		return found, err
	case *starlark.Set:
		if err := run.ChargeKey(x); err != nil {
			return false, err
		}
		return y.Has(x)
	case *starlark.List:
		return containsElement(run, x, y.Len(), y.Index)
	case starlark.Tuple:
		return containsElement(run, x, len(y), y.Index)
	case *value.Place:
		if !value.IsList(y) {
			return y.Has(x)
		}
		v, err := y.Read()
		if err != nil {
			return false, err
		}
		return contains(run, x, &value.View{V: v})
	case *value.View:
		if y.V.Kind() == model.KindArray {
			return containsElement(run, x, y.Len(), func(i int) starlark.Value { return value.FromModel(y.V.Index(i)) })
		}
		return y.Has(x)
	case starlark.Container:
		if err := run.Charge(sizeOf(y)); err != nil {
			return false, err
		}
		return y.Has(x)
	}
	return false, fmt.Errorf("the right operand of in cannot be %s", meter.Article(y.Type()))
}

func containsElement(run *value.Run, x starlark.Value, n int, at func(int) starlark.Value) (bool, error) {
	for i := range n {
		same, err := Equal(run, x, at(i), 0)
		if same || err != nil {
			return same, err
		}
	}
	return false, nil
}

func comparison(op syntax.Token) func(run *value.Run, args starlark.Tuple) (starlark.Value, error) {
	return func(run *value.Run, args starlark.Tuple) (starlark.Value, error) {
		ok, err := compare(run, op, args[0], args[1])
		return starlark.Bool(ok), err
	}
}
