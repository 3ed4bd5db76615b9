package interp

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/program/star/internal/value"
)

// compare returns x op y. Every pair of values that is compared counts as a step: a list that holds the
// same list twice, a hundred times over, would otherwise be compared without end.
func compare(run *value.Run, op syntax.Token, x, y starlark.Value) (bool, error) {
	if areNumbers(x, y) {
		return starlark.Compare(op, x, y)
	}
	if a, ok := x.(starlark.String); ok && len(a) < meter.TextStep && (op == syntax.EQL || op == syntax.NEQ) {
		if b, ok := y.(starlark.String); ok {
			return (a == b) == (op == syntax.EQL), nil
		}
	}
	switch op {
	case syntax.EQL:
		return Equal(run, x, y, 0)
	case syntax.NEQ:
		same, err := Equal(run, x, y, 0)
		return !same, err
	}
	c, err := orderOf(run, x, y, 0)
	if err != nil {
		return false, err
	}
	switch op {
	case syntax.LT:
		return c < 0, nil
	case syntax.LE:
		return c <= 0, nil
	case syntax.GT:
		return c > 0, nil
	}
	return c >= 0, nil
}

// Equal reports whether two values are equal. Lists, dicts and values of documents are compared by
// their elements.
func Equal(run *value.Run, x, y starlark.Value, depth int) (bool, error) {
	if err := run.Charge(1, 0); err != nil {
		return false, err
	}
	if err := run.CheckDepth(depth); err != nil {
		return false, err
	}
	switch x := x.(type) {
	case starlark.String:
		s, ok := y.(starlark.String)
		if !ok || len(s) != len(x) {
			return false, nil
		}
		return s == x, run.Charge(len(s)/meter.TextStep, 0)
	case starlark.Tuple:
		t, ok := y.(starlark.Tuple)
		if !ok || len(t) != len(x) {
			return false, nil
		}
		return equalElements(run, len(x), x.Index, t.Index, depth)
	case *starlark.Set:
		s, ok := y.(*starlark.Set)
		if !ok || s.Len() != x.Len() {
			return false, nil
		}
		if err := run.Charge(x.Len()+rehash(x), 0); err != nil {
			return false, err
		}
		return starlark.Equal(x, s)
	}
	a, aok, err := asSequence(run, x)
	if err != nil {
		return false, err
	}
	if aok {
		b, bok, err := asSequence(run, y)
		if err != nil || !bok || a.n != b.n {
			return false, err
		}
		return equalElements(run, a.n, a.at, b.at, depth)
	}
	o, ook, err := asMapping(run, x)
	if err != nil {
		return false, err
	}
	if ook {
		q, qok, err := asMapping(run, y)
		if err != nil || !qok || o.n != q.n {
			return false, err
		}
		return equalMappings(run, o, q, depth)
	}
	if x, err = scalarAt(x); err != nil {
		return false, err
	}
	if y, err = scalarAt(y); err != nil {
		return false, err
	}
	if isContainerValue(y) {
		return false, nil
	}
	return starlark.Equal(x, y)
}

func equalElements(run *value.Run, n int, a, b func(int) starlark.Value, depth int) (bool, error) {
	for i := range n {
		same, err := Equal(run, a(i), b(i), depth+1)
		if !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

func equalMappings(run *value.Run, a, b mapping, depth int) (same bool, err error) {
	same = true
	a.each(func(k, v starlark.Value) bool {
		if err = run.ChargeKey(k); err != nil {
			return false
		}
		w, found := b.get(k)
		if !found {
			same = false
			return false
		}
		same, err = Equal(run, v, w, depth+1)
		return same && err == nil
	})
	return same && err == nil, err
}

// orderOf compares numbers, strings, and lists or tuples of them, element by element.
func orderOf(run *value.Run, x, y starlark.Value, depth int) (int, error) {
	if err := run.Charge(1, 0); err != nil {
		return 0, err
	}
	if err := run.CheckDepth(depth); err != nil {
		return 0, err
	}
	switch a := x.(type) {
	case starlark.String:
		if b, ok := y.(starlark.String); ok {
			if err := run.Charge(min(len(a), len(b))/meter.TextStep, 0); err != nil {
				return 0, err
			}
			return threeWay(a < b, a > b), nil
		}
	case starlark.Tuple:
		if b, ok := y.(starlark.Tuple); ok {
			return orderElements(run, sequence{len(a), a.Index}, sequence{len(b), b.Index}, depth)
		}
	}
	a, aok, err := asSequence(run, x)
	if err != nil {
		return 0, err
	}
	if aok {
		b, bok, err := asSequence(run, y)
		if err != nil {
			return 0, err
		}
		if bok {
			return orderElements(run, a, b, depth)
		}
	}
	if x, err = scalarAt(x); err != nil {
		return 0, err
	}
	if y, err = scalarAt(y); err != nil {
		return 0, err
	}
	if isContainerValue(x) || isContainerValue(y) {
		return 0, fmt.Errorf("%s and %s cannot be ordered", x.Type(), y.Type())
	}
	less, err := starlark.Compare(syntax.LT, x, y)
	if err != nil || less {
		return -1, err
	}
	more, err := starlark.Compare(syntax.GT, x, y)
	return threeWay(false, more), err
}

func threeWay(less, more bool) int {
	switch {
	case less:
		return -1
	case more:
		return 1
	}
	return 0
}

func orderElements(run *value.Run, a, b sequence, depth int) (int, error) {
	for i := range min(a.n, b.n) {
		c, err := orderOf(run, a.at(i), b.at(i), depth+1)
		if c != 0 || err != nil {
			return c, err
		}
	}
	return threeWay(a.n < b.n, a.n > b.n), nil
}
