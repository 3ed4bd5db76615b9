package star

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/model"
)

// language are the builtins that compute: those of Starlark, charged for what they do.
var language = map[string]func(l *level, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error){}

// deeds are the builtins that are about spaces: what a program registers, reads, writes and
// sends.
var deeds = map[string]func(m *machine) builtinFunc{}

func init() {
	for name, f := range map[string]func(l *level, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error){
		"abs": universal, "bool": universal, "chr": universal, "len": universal,
		"all": allOf, "any": anyOf, "dict": makeDict, "enumerate": overElements, "fail": failed, "float": makeFloat,
		"getattr": getAttr, "hasattr": hasAttr, "int": makeInt, "list": makeList, "max": extreme, "min": extreme,
		"name_of": nameOf, "ord": makeOrd, "range": makeRange, "repr": makeRepr, "reversed": overElements, "round": rounded, "set": makeSet,
		"sorted": sorted, "str": makeStr, "sum": sum, "tuple": makeTuple, "type": typeName, "zip": zipped,
	} {
		language[name] = f
	}
	for name, f := range map[string]func(m *machine) builtinFunc{
		"cell": func(m *machine) builtinFunc { return m.cell }, "doc": func(m *machine) builtinFunc { return m.cell },
		"handle": func(m *machine) builtinFunc { return m.handle }, "compute": func(m *machine) builtinFunc { return m.compute },
		"effect": func(m *machine) builtinFunc { return m.effect }, "each": func(m *machine) builtinFunc { return m.each },
		"cron": func(m *machine) builtinFunc { return m.cron }, "send": func(m *machine) builtinFunc { return m.send },
		"set_timer": func(m *machine) builtinFunc { return m.setTimer }, "cancel_timer": func(m *machine) builtinFunc { return m.cancelTimer },
		"timer": func(m *machine) builtinFunc { return m.timer }, "now": func(m *machine) builtinFunc { return m.now },
		"event": func(m *machine) builtinFunc { return m.event }, "space": func(m *machine) builtinFunc { return m.spaceName },
		"log": func(m *machine) builtinFunc { return m.log }, "link": func(m *machine) builtinFunc { return m.link },
		"follow": func(m *machine) builtinFunc { return m.follow }, "link_at": func(m *machine) builtinFunc { return m.linkAt },
		"rfc3339": func(m *machine) builtinFunc { return rfc3339 }, "time_of": func(m *machine) builtinFunc { return timeOf },
		"action": func(m *machine) builtinFunc { return m.action }, "start_task": func(m *machine) builtinFunc { return m.startTask },
		"cancel_task": func(m *machine) builtinFunc { return m.cancelTask }, "forget_task": func(m *machine) builtinFunc { return m.forgetTask },
		"task":     func(m *machine) builtinFunc { return m.task },
		"duration": func(m *machine) builtinFunc { return durationBuiltin }, "group": func(m *machine) builtinFunc { return m.group },
	} {
		deeds[name] = f
	}
}

// withheld are the names of Starlark that a program does not get.
var withheld = []string{"print", "bytes", "hash", "dir"}

// known reports whether a name is there without the program's having defined it.
func known(name string) bool {
	return language[name] != nil || deeds[name] != nil || slices.Contains(withheld, name)
}

// builtins are what the files of a program find: one set per machine.
func (m *machine) builtins() starlark.StringDict {
	pre := starlark.StringDict{}
	for name, f := range language {
		pre[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return f(m.cur, t, b, args, kwargs)
		})
	}
	for name, f := range deeds {
		pre[name] = starlark.NewBuiltin(name, f(m))
	}
	if m.p.tests {
		for name, f := range testDeeds {
			pre[name] = starlark.NewBuiltin(name, f(m))
		}
	}
	for _, name := range withheld {
		pre[name] = starlark.NewBuiltin(name, func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			return nil, fmt.Errorf("%s", strings.TrimPrefix(hinted("undefined: "+name), "undefined: "+name+": "))
		})
	}
	for _, f := range m.p.files {
		for op := range f.ops { // any order: each is made once
			if pre[op] == nil {
				pre[op] = m.operation(op)
			}
		}
	}
	return pre
}

// operation makes the builtin of an operation that rewrite has put in.
func (m *machine) operation(op string) starlark.Value {
	if op == "%None" {
		return starlark.None
	}
	if name, ok := strings.CutPrefix(op, "%m."); ok {
		return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return m.cur.method(name, t, args[0], args[1:], kwargs)
		})
	}
	if name, ok := strings.CutPrefix(op, "%a."); ok {
		return starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return m.attribute(name, args[0])
		})
	}
	o := operations[op]
	return starlark.NewBuiltin(o.sign, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return o.run(m.cur, args)
	})
}

// attribute is x.name without a call, for a name that methods have: a field, or a method
// that is charged like one that is called at once.
func (m *machine) attribute(name string, x starlark.Value) (starlark.Value, error) {
	switch x.(type) {
	case *place, *view:
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
		return m.cur.method(name, t, x, args, kwargs)
	}).BindReceiver(x), nil // who freezes the method freezes x
}

// universal is a builtin of the library that costs one step.
func universal(l *level, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return starlark.Universe[b.Name()].(*starlark.Builtin).CallInternal(t, args, kwargs)
}

// one is the single argument of a builtin.
func one(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (x starlark.Value, err error) {
	err = starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &x)
	return x, err
}

// overElements is a builtin of the library over the elements of a sequence.
func overElements(l *level, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	own := slices.Clone(args)
	if len(own) > 0 {
		elems, err := l.collect(own[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name(), err)
		}
		if err := l.charge(len(elems), 4*slotBytes*len(elems)); err != nil {
			return nil, err
		}
		own[0] = starlark.NewList(elems)
	}
	return universal(l, t, b, own, kwargs)
}

// truth goes through a sequence until an element is as wanted.
func (l *level) truth(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple, until starlark.Bool) (starlark.Value, error) {
	x, err := one(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	if err := l.chargeLoop(x); err != nil {
		return nil, err
	}
	it := starlark.Iterate(x)
	if it == nil {
		return nil, fmt.Errorf("%s: %s value is not iterable", b.Name(), x.Type())
	}
	defer it.Done()
	var e starlark.Value
	for it.Next(&e) {
		if err := l.charge(1, 0); err != nil {
			return nil, err
		}
		if e.Truth() == until {
			return until, nil
		}
	}
	return !until, nil
}

func allOf(l *level, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return l.truth(b, args, kwargs, false)
}

func anyOf(l *level, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return l.truth(b, args, kwargs, true)
}

func makeList(l *level, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return starlark.NewList(nil), nil
	}
	x, err := one(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	elems, err := l.collect(x)
	return starlark.NewList(elems), err
}

func makeTuple(l *level, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return starlark.Tuple(nil), nil
	}
	x, err := one(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	elems, err := l.collect(x)
	return starlark.Tuple(elems), err
}

func makeSet(l *level, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return starlark.NewSet(0), l.charge(1, dictBytes)
	}
	x, err := one(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	elems, err := l.keysIn(x)
	if err != nil {
		return nil, err
	}
	s := starlark.NewSet(0)
	for _, e := range elems {
		if err := s.Insert(e); err != nil {
			return nil, err
		}
	}
	return s, l.charge(1, dictBytes)
}

// makeDict is dict(pairs or object, key = value).
func makeDict(l *level, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	own := slices.Clone(args)
	for i, a := range own {
		v, err := viewed(a)
		if err != nil {
			return nil, err
		}
		if v != nil && !isList(v) {
			if own[i], err = l.dictOf(v); err != nil {
				return nil, err
			}
			continue
		}
		if d, ok := a.(*starlark.Dict); ok {
			if err := l.charge(sizeOf(d)); err != nil {
				return nil, err
			}
			continue
		}
		pairs, err := l.pairs(a)
		if err != nil {
			return nil, err
		}
		own[i] = starlark.NewList(pairs)
	}
	if err := l.charge(1+len(kwargs), dictBytes+len(kwargs)*entryBytes); err != nil {
		return nil, err
	}
	return universal(l, t, b, own, kwargs)
}

// pairs are the entries that a dict is made of.
func (l *level) pairs(x starlark.Value) ([]starlark.Value, error) {
	elems, err := l.collect(x)
	if err != nil {
		return nil, err
	}
	for i, e := range elems {
		pair, err := l.collect(e)
		if err != nil || len(pair) != 2 {
			return nil, fmt.Errorf("dict: element %d is no pair of a key and a value", i)
		}
		if err := l.hashable(pair[0]); err != nil {
			return nil, err
		}
		elems[i] = starlark.Tuple(pair)
	}
	return elems, l.charge(len(elems), len(elems)*entryBytes)
}

// extreme is min and max.
func extreme(l *level, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var key starlark.Callable
	if err := starlark.UnpackArgs(b.Name(), nil, kwargs, "key?", &key); err != nil {
		return nil, err
	}
	var elems []starlark.Value = args
	if len(args) == 1 {
		var err error
		if elems, err = l.collect(args[0]); err != nil {
			return nil, err
		}
	}
	if len(elems) == 0 {
		return nil, fmt.Errorf("%s: there is nothing to choose from", b.Name())
	}
	keys, err := l.keysOf(t, elems, key)
	if err != nil {
		return nil, err
	}
	op := syntax.LT
	if b.Name() == "max" {
		op = syntax.GT
	}
	best := 0
	for i := range keys {
		better, err := l.compare(op, keys[i], keys[best])
		if err != nil {
			return nil, err
		}
		if better {
			best = i
		}
	}
	return elems[best], nil
}

func (l *level) keysOf(t *starlark.Thread, elems []starlark.Value, key starlark.Callable) ([]starlark.Value, error) {
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
func sorted(l *level, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	var key starlark.Callable
	var reverse bool
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "iterable", &x, "key?", &key, "reverse?", &reverse); err != nil {
		return nil, err
	}
	elems, err := l.collect(x)
	if err != nil {
		return nil, err
	}
	keys, err := l.keysOf(t, elems, key)
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
		if c, err = l.order(keys[i], keys[j], 0); reverse {
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
	return starlark.NewList(out), l.charge(0, 2*slotBytes*len(out))
}

func zipped(l *level, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	own := slices.Clone(args)
	for i, a := range own {
		elems, err := l.collect(a)
		if err != nil {
			return nil, fmt.Errorf("zip: %w", err)
		}
		if err := l.charge(len(elems), 3*slotBytes*len(elems)); err != nil {
			return nil, err
		}
		own[i] = starlark.NewList(elems)
	}
	return universal(l, t, b, own, kwargs)
}

func sum(l *level, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	var total starlark.Value = starlark.MakeInt(0)
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "numbers", &x, "start?", &total); err != nil {
		return nil, err
	}
	elems, err := l.collect(x)
	if err != nil {
		return nil, err
	}
	for _, e := range elems {
		if !isPlain(total, e) {
			return nil, fmt.Errorf("sum: a %s is no number", e.Type())
		}
		if total, err = fits(starlark.Binary(syntax.PLUS, total, e)); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// rounded is round(x), an integer, or round(x, digits), half away from zero.
func rounded(l *level, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
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
		return nil, fmt.Errorf("round: a %s is no number", x.Type())
	case digits > 15:
		return nil, fmt.Errorf("round: digits is 15 at most")
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
	return fits(i, nil)
}

func makeInt(l *level, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	given := slices.Clone(args)
	for _, kv := range kwargs {
		given = append(given, kv[1])
	}
	for _, a := range given {
		if s, ok := a.(starlark.String); ok && len(s) > 100 {
			return nil, fmt.Errorf("int: a text of %d bytes is no integer of 64 bits", len(s))
		}
	}
	return fits(universal(l, t, b, args, kwargs))
}

func makeFloat(l *level, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 0 {
		if s, ok := args[0].(starlark.String); ok && len(s) > 1000 {
			return nil, fmt.Errorf("float: a text of %d bytes is no number", len(s))
		}
	}
	return fits(universal(l, t, b, args, kwargs))
}

func makeOrd(l *level, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 0 {
		if err := l.charge(sizeOf(args[0])); err != nil {
			return nil, err
		}
	}
	return universal(l, t, b, args, kwargs)
}

// nameOf is name_of(key): a name that stands for a key. A key that is none is hashed, a few bytes
// to a step.
func nameOf(l *level, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var key string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "key", &key); err != nil {
		return nil, err
	}
	if err := l.charge(1+4*len(key)/textStep, 2*model.MaxNameLen); err != nil {
		return nil, err
	}
	return starlark.String(model.NameOf(key)), nil
}

func makeRange(l *level, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	r, err := universal(l, t, b, args, kwargs)
	if err == nil && (starlark.Len(r) < 0 || starlark.Len(r) > math.MaxInt32) {
		return nil, fmt.Errorf("range: it has more than %d numbers", math.MaxInt32)
	}
	return r, err
}

func makeStr(l *level, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	x, err := one(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	s, err := l.text(x)
	return starlark.String(s), err
}

func makeRepr(l *level, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	x, err := one(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	s, err := l.repr(x)
	return starlark.String(s), err
}

// typeName is type(x). What was read from a document has the type of its value: "object"
// or "array", which a dict and a list that the program made do not have.
func typeName(l *level, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	x, err := one(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	if p, ok := x.(*place); ok {
		x = show(p.outline())
	}
	return starlark.String(x.Type()), nil
}

func getAttr(l *level, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, def starlark.Value
	var name string
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 2, &x, &name, &def); err != nil {
		return nil, err
	}
	v, err := l.m.attribute(name, x)
	if (err != nil || v == starlark.None) && def != nil {
		return def, nil
	}
	if _, ok := v.(*starlark.Builtin); ok && methods[name] {
		return nil, fmt.Errorf("getattr: %s is a method; write x.%s(...)", name, name)
	}
	return v, err
}

func hasAttr(l *level, t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	var name string
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 2, &x, &name); err != nil {
		return nil, err
	}
	if v, err := viewed(x); v != nil || err != nil {
		return starlark.Bool(v != nil && !v.v.Get(name).IsAbsent()), err
	}
	v, err := fieldOf(x, name)
	return starlark.Bool(v != nil && err == nil), nil
}

// failure is what fail(...) ends a run with.
type failure struct {
	message string
	passing bool
}

func (f *failure) Error() string { return f.message }

// failed is fail(message..., transient = False).
func failed(l *level, _ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var passing bool
	if err := starlark.UnpackArgs(b.Name(), nil, kwargs, "transient?", &passing); err != nil {
		return nil, err
	}
	var parts []string
	for _, a := range args {
		if s, ok := a.(starlark.String); ok && utf8.ValidString(string(s)) {
			parts = append(parts, clip(string(s)))
		} else {
			parts = append(parts, l.shortText(a))
		}
	}
	return nil, &failure{clip(strings.Join(parts, " ")), passing}
}
