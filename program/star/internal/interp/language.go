package interp

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/program/star/internal/value"
	"github.com/settlehq/settle/receipts"
)

// language are the builtins that compute: those of Starlark, with charges.
var language = map[string]func(run *value.Run, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error){}

func init() {
	for name, f := range map[string]func(run *value.Run, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error){
		"abs": callUniverse, "bool": callUniverse, "chr": callUniverse, "len": callUniverse,
		"all": allOf, "any": anyOf, "dict": makeDict, "enumerate": callOverElements, "fail": fail, "float": makeFloat,
		"hasattr": hasAttr, "int": makeInt, "list": makeList, "max": minMax, "min": minMax,
		"name_of": nameOf, "ord": makeOrd, "range": makeRange, "reject": reject, "repr": makeRepr, "reversed": callOverElements, "round": rounded, "set": makeSet,
		"sorted": sorted, "str": makeStr, "sum": sum, "tuple": makeTuple, "type": typeName, "zip": zipped,
	} {
		language[name] = f
	}
}

// withheldNames are the builtins of Starlark that a program does not get.
var withheldNames = []string{"print", "bytes", "hash", "dir"}

// Builtins returns the builtins that compute, and for those that a program does not get a builtin that
// fails with a hint. They act on the run that is under way when they are called.
func Builtins(c *value.Current) starlark.StringDict {
	pre := starlark.StringDict{}
	for name, f := range language {
		pre[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return f(c.Run, t, b, args, kwargs)
		})
	}
	pre["getattr"] = starlark.NewBuiltin("getattr", func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return getAttr(c, b, args, kwargs)
	})
	for _, name := range withheldNames {
		pre[name] = starlark.NewBuiltin(name, func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			return nil, errors.New(missingNames[name])
		})
	}
	return pre
}

// IsBuiltin reports whether Builtins has a name.
func IsBuiltin(name string) bool {
	return language[name] != nil || name == "getattr" || slices.Contains(withheldNames, name)
}

// Operation returns the builtin of an operation that Rewrite has put into a tree.
func Operation(c *value.Current, op string) starlark.Value {
	if op == "%None" {
		return starlark.None
	}
	if name, ok := strings.CutPrefix(op, "%m."); ok {
		return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return callMethod(c.Run, name, t, args[0], args[1:], kwargs)
		})
	}
	if name, ok := strings.CutPrefix(op, "%a."); ok {
		return starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return attribute(c, name, args[0])
		})
	}
	o := operators[op]
	return starlark.NewBuiltin(o.sign, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return o.run(c.Run, args)
	})
}

// attribute returns x.name without a call, for the name of a method: a field, or a method that is
// charged when it is called.
func attribute(c *value.Current, name string, x starlark.Value) (starlark.Value, error) {
	switch x.(type) {
	case *value.Place, *value.View:
		v, err := x.(starlark.HasAttrs).Attr(name)
		if v == nil && err == nil {
			err = fmt.Errorf("%s has no .%s field or method", x.Type(), name)
		}
		return v, err
	}
	if _, err := fieldOf(x, name); err != nil {
		return nil, err
	}
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return callMethod(c.Run, name, t, x, args, kwargs)
	}).BindReceiver(x), nil // freezing the method freezes x
}

// callUniverse calls the builtin of the library, which costs one step.
func callUniverse(run *value.Run, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return starlark.Universe[b.Name()].(*starlark.Builtin).CallInternal(t, args, kwargs)
}

// oneArgument returns the single argument of a builtin.
func oneArgument(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (x starlark.Value, err error) {
	err = starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &x)
	return x, err
}

// callOverElements calls a builtin of the library with the elements of a sequence.
func callOverElements(run *value.Run, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	own := slices.Clone(args)
	if len(own) > 0 {
		elems, err := collect(run, own[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name(), err)
		}
		if err := run.Charge(len(elems), 4*meter.SlotBytes*len(elems)); err != nil {
			return nil, err
		}
		own[0] = starlark.NewList(elems)
	}
	return callUniverse(run, t, b, own, kwargs)
}

// firstThat goes through a sequence until the truth of an element is until.
func firstThat(run *value.Run, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple, until starlark.Bool) (starlark.Value, error) {
	x, err := oneArgument(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	if err := chargeLoop(run, x); err != nil {
		return nil, err
	}
	it := starlark.Iterate(x)
	if it == nil {
		return nil, fmt.Errorf("%s: %s value is not iterable", b.Name(), x.Type())
	}
	defer it.Done()
	var e starlark.Value
	for it.Next(&e) {
		if err := run.Charge(1, 0); err != nil {
			return nil, err
		}
		if e.Truth() == until {
			return until, nil
		}
	}
	return !until, nil
}

func allOf(run *value.Run, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return firstThat(run, b, args, kwargs, false)
}

func anyOf(run *value.Run, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return firstThat(run, b, args, kwargs, true)
}

func makeList(run *value.Run, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return starlark.NewList(nil), nil
	}
	x, err := oneArgument(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	elems, err := collect(run, x)
	return starlark.NewList(elems), err
}

func makeTuple(run *value.Run, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return starlark.Tuple(nil), nil
	}
	x, err := oneArgument(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	elems, err := collect(run, x)
	return starlark.Tuple(elems), err
}

func makeSet(run *value.Run, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return starlark.NewSet(0), run.Charge(1, meter.DictBytes)
	}
	x, err := oneArgument(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	elems, err := keysIn(run, x)
	if err != nil {
		return nil, err
	}
	s := starlark.NewSet(0)
	for _, e := range elems {
		if err := s.Insert(e); err != nil {
			return nil, err
		}
	}
	return s, run.Charge(1, meter.DictBytes)
}

// makeDict is dict(pairs or object, key = value).
func makeDict(run *value.Run, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	own := slices.Clone(args)
	for i, a := range own {
		v, err := asView(a)
		if err != nil {
			return nil, err
		}
		if v != nil && !value.IsList(v) {
			if own[i], err = dictOf(run, v); err != nil {
				return nil, err
			}
			continue
		}
		if d, ok := a.(*starlark.Dict); ok {
			if err := run.Charge(sizeOf(d)); err != nil {
				return nil, err
			}
			continue
		}
		pairs, err := pairs(run, a)
		if err != nil {
			return nil, err
		}
		own[i] = starlark.NewList(pairs)
	}
	if err := run.Charge(1+len(kwargs), meter.DictBytes+len(kwargs)*meter.EntryBytes); err != nil {
		return nil, err
	}
	return callUniverse(run, t, b, own, kwargs)
}

// minMax is min and max.
func minMax(run *value.Run, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var key starlark.Callable
	if err := starlark.UnpackArgs(b.Name(), nil, kwargs, "key?", &key); err != nil {
		return nil, err
	}
	var elems []starlark.Value = args
	if len(args) == 1 {
		var err error
		if elems, err = collect(run, args[0]); err != nil {
			return nil, err
		}
	}
	if len(elems) == 0 {
		return nil, fmt.Errorf("%s: the sequence is empty", b.Name())
	}
	keys, err := keysOf(run, t, elems, key)
	if err != nil {
		return nil, err
	}
	op := syntax.LT
	if b.Name() == "max" {
		op = syntax.GT
	}
	best := 0
	for i := range keys {
		better, err := compare(run, op, keys[i], keys[best])
		if err != nil {
			return nil, err
		}
		if better {
			best = i
		}
	}
	return elems[best], nil
}

func keysOf(run *value.Run, t *starlark.Thread, elems []starlark.Value, key starlark.Callable) ([]starlark.Value, error) {
	if key == nil {
		return elems, nil
	}
	keys := make([]starlark.Value, len(elems))
	for i, e := range elems {
		k, err := starlark.Call(t, key, starlark.Tuple{e}, nil)
		if err != nil {
			return nil, err
		}
		keys[i] = k
	}
	return keys, nil
}

// sorted sorts, stably; every comparison is charged.
func sorted(run *value.Run, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	var key starlark.Callable
	var reverse bool
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "iterable", &x, "key?", &key, "reverse?", &reverse); err != nil {
		return nil, err
	}
	elems, err := collect(run, x)
	if err != nil {
		return nil, err
	}
	keys, err := keysOf(run, t, elems, key)
	if err != nil {
		return nil, err
	}
	order := make([]int, len(elems))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		if err != nil {
			return 0
		}
		var c int
		if c, err = orderOf(run, keys[i], keys[j], 0); reverse {
			return -c
		}
		return c
	})
	if err != nil {
		return nil, err
	}
	out := make([]starlark.Value, len(elems))
	for i, at := range order {
		out[i] = elems[at]
	}
	return starlark.NewList(out), run.Charge(0, 2*meter.SlotBytes*len(out))
}

func zipped(run *value.Run, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	own := slices.Clone(args)
	for i, a := range own {
		elems, err := collect(run, a)
		if err != nil {
			return nil, fmt.Errorf("zip: %w", err)
		}
		if err := run.Charge(len(elems), 3*meter.SlotBytes*len(elems)); err != nil {
			return nil, err
		}
		own[i] = starlark.NewList(elems)
	}
	return callUniverse(run, t, b, own, kwargs)
}

func sum(run *value.Run, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	var total starlark.Value = starlark.MakeInt(0)
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "numbers", &x, "start?", &total); err != nil {
		return nil, err
	}
	elems, err := collect(run, x)
	if err != nil {
		return nil, err
	}
	for _, e := range elems {
		if !areNumbers(total, e) {
			return nil, fmt.Errorf("sum: %s is not a number", meter.Article(e.Type()))
		}
		if total, err = checkNumber(starlark.Binary(syntax.PLUS, total, e)); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// rounded is round(x), an integer, or round(x, digits), half away from zero.
func rounded(run *value.Run, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	digits := -1
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "x", &x, "digits?", &digits); err != nil {
		return nil, err
	}
	if i, ok := x.(starlark.Int); ok {
		return i, nil
	}
	f, ok := x.(starlark.Float)
	switch {
	case !ok:
		return nil, fmt.Errorf("round: %s is not a number", meter.Article(x.Type()))
	case digits > 15:
		return nil, fmt.Errorf("round: digits must be at most 15")
	case digits >= 0:
		scale := math.Pow10(digits)
		if r := math.Round(float64(f)*scale) / scale; !math.IsInf(r, 0) {
			return starlark.Float(r), nil
		}
		return f, nil
	}
	i, err := starlark.NumberToInt(starlark.Float(math.Round(float64(f))))
	if err != nil {
		return nil, err
	}
	return checkNumber(i, nil)
}

func makeInt(run *value.Run, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	given := slices.Clone(args)
	for _, kv := range kwargs {
		given = append(given, kv[1])
	}
	for _, a := range given {
		if s, ok := a.(starlark.String); ok && len(s) > 100 {
			return nil, fmt.Errorf("int: a string of %d bytes is an integer that does not fit into 64 bits", len(s))
		}
	}
	return checkNumber(callUniverse(run, t, b, args, kwargs))
}

func makeFloat(run *value.Run, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 0 {
		if s, ok := args[0].(starlark.String); ok && len(s) > 1000 {
			return nil, fmt.Errorf("float: a string of %d bytes is not a number", len(s))
		}
	}
	return checkNumber(callUniverse(run, t, b, args, kwargs))
}

func makeOrd(run *value.Run, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 0 {
		if err := run.Charge(sizeOf(args[0])); err != nil {
			return nil, err
		}
	}
	return callUniverse(run, t, b, args, kwargs)
}

// nameOf is name_of(key): a valid name that stands for a key. A key that is not a valid name is hashed,
// a few bytes per step.
func nameOf(run *value.Run, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var key string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "key", &key); err != nil {
		return nil, err
	}
	if err := run.Charge(1+4*len(key)/meter.TextStep, 2*model.MaxNameLen); err != nil {
		return nil, err
	}
	return starlark.String(model.NameOf(key)), nil
}

func makeRange(run *value.Run, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	r, err := callUniverse(run, t, b, args, kwargs)
	if err == nil && (starlark.Len(r) < 0 || starlark.Len(r) > math.MaxInt32) {
		return nil, fmt.Errorf("range: the range has more than %d numbers", math.MaxInt32)
	}
	return r, err
}

func makeStr(run *value.Run, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	x, err := oneArgument(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	s, err := Text(run, x)
	return starlark.String(s), err
}

func makeRepr(run *value.Run, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	x, err := oneArgument(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	s, err := repr(run, x)
	return starlark.String(s), err
}

// typeName is type(x). A value that was read from a document is an "object" or an "array", which a dict
// and a list of the program are not.
func typeName(run *value.Run, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	x, err := oneArgument(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	if p, ok := x.(*value.Place); ok {
		x = value.FromModel(p.ReadShallow())
	}
	return starlark.String(x.Type()), nil
}

func getAttr(c *value.Current, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, def starlark.Value
	var name string
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 2, &x, &name, &def); err != nil {
		return nil, err
	}
	v, err := attribute(c, name, x)
	if (err != nil || v == starlark.None) && def != nil {
		return def, nil
	}
	if _, ok := v.(*starlark.Builtin); ok && isMethod(name) {
		return nil, fmt.Errorf("getattr: %s is a method; write x.%s(...)", name, name)
	}
	return v, err
}

func hasAttr(run *value.Run, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	var name string
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 2, &x, &name); err != nil {
		return nil, err
	}
	if v, err := asView(x); v != nil || err != nil {
		return starlark.Bool(v != nil && !v.V.Get(name).IsAbsent()), err
	}
	v, err := fieldOf(x, name)
	return starlark.Bool(v != nil && err == nil), nil
}

// Failure is the error with which fail(...) ends a run.
type Failure struct {
	message   string
	Transient bool
}

func (f *Failure) Error() string { return f.message }

// fail is fail(message..., transient = False).
func fail(run *value.Run, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var passing bool
	if err := starlark.UnpackArgs(b.Name(), nil, kwargs, "transient?", &passing); err != nil {
		return nil, err
	}
	var parts []string
	for _, a := range args {
		if s, ok := a.(starlark.String); ok && utf8.ValidString(string(s)) {
			parts = append(parts, meter.Clip(string(s)))
		} else {
			parts = append(parts, ShortText(run, a))
		}
	}
	return nil, &Failure{meter.Clip(strings.Join(parts, " ")), passing}
}

// reject is reject(code, message = "", data = None).
func reject(run *value.Run, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var code, message string
	var data starlark.Value = starlark.None
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "code", &code, "message?", &message, "data?", &data); err != nil {
		return nil, err
	}
	if data == starlark.None {
		return nil, receipts.Reject(code, meter.Clip(message), nil)
	}
	v, err := run.ToModel(data)
	if err != nil {
		return nil, fmt.Errorf("%s: data: %w", b.Name(), err)
	}
	return nil, receipts.Reject(code, meter.Clip(message), v)
}
