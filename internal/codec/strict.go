package codec

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/settlehq/settle/model"
)

// checker returns why a value is not exactly what a Go type describes, nil if it is. Decode reports what cannot be
// converted; a checker reports what would be lost.
type checker func(v model.Value) error

// Strict returns the check of values that come from outside and are to be decoded into a T. It refuses, with the place,
//
//   - an object with a key that the struct has no field for,
//   - an object without the key of a field, unless the field is a pointer, an any or a model.Value, or has omitzero or
//     omitempty,
//   - null, unless the type there can hold it: a pointer, a slice, a map, an interface, a model.Value,
//   - an absent value, unless T is a pointer, an interface or a model.Value.
//
// A T without fields may be null or absent. Values of other types than the one that is wanted are left to Decode. Types that define their own JSON, and structs with
// unusual tags, decide themselves; keys that such a struct does not have are refused.
func Strict[T any]() func(v model.Value) error { return strictOf(reflect.TypeFor[T]()) }

func strictOf(t reflect.Type) func(v model.Value) error {
	check := checkers{}.of(t)
	switch {
	case t.Kind() == reflect.Struct && t.NumField() == 0:
		return orNullOrAbsent(check)
	case !mayBeAbsent(t):
		return func(v model.Value) error {
			if err := check(v); err != nil || !v.IsAbsent() {
				return err
			}
			return misfit(v, "a "+t.String()) // of a type that decides itself
		}
	}
	return func(v model.Value) error {
		if v.IsAbsent() {
			return nil
		}
		return check(v)
	}
}

// mayBeAbsent reports whether the zero value of a type says that there is no value.
func mayBeAbsent(t reflect.Type) bool {
	return t == valueType || t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface
}

// checkers compiles the checker of one type and of those that it contains, which may contain it.
type checkers map[reflect.Type]*checker

func (cs checkers) of(t reflect.Type) checker {
	if c, ok := cs[t]; ok {
		return func(v model.Value) error { return (*c)(v) }
	}
	c := new(checker)
	cs[t] = c
	*c = cs.compile(t)
	return *c
}

func anything(model.Value) error { return nil }

func (cs checkers) compile(t reflect.Type) checker {
	switch {
	case t == valueType || t == linkType || hasMethods(t) && t != timeType:
		return anything
	case t == timeType:
		return notNull("a time")
	}
	switch t.Kind() {
	case reflect.Interface:
		return anything
	case reflect.Pointer:
		return orNullOrAbsent(cs.of(t.Elem()))
	case reflect.Slice, reflect.Array, reflect.Map:
		return cs.container(t)
	case reflect.Struct:
		return cs.structure(t)
	case reflect.Bool:
		return notNull("true or false")
	case reflect.String:
		return notNull("a string")
	case reflect.Float32, reflect.Float64:
		return notNull("a number")
	}
	return notNull("an integer")
}

func notNull(wanted string) checker {
	return func(v model.Value) error {
		if v.IsNull() || v.IsAbsent() {
			return misfit(v, wanted)
		}
		return nil
	}
}

func orNullOrAbsent(check checker) checker {
	return func(v model.Value) error {
		if v.IsNull() || v.IsAbsent() {
			return nil
		}
		return check(v)
	}
}

// container checks the elements of slices, arrays and maps.
func (cs checkers) container(t reflect.Type) checker {
	elem, wanted := cs.of(t.Elem()), "an array"
	if t.Kind() == reflect.Map {
		wanted = "an object"
	}
	return func(v model.Value) error {
		switch v.Kind() {
		case model.KindAbsent:
			return misfit(v, wanted)
		case model.KindArray:
			i := 0
			for x := range v.Elements() {
				if err := elem(x); err != nil {
					return atIndex(i, err)
				}
				i++
			}
		case model.KindObject:
			for k, x := range v.All() {
				if err := elem(x); err != nil {
					return at(clip(k), err)
				}
			}
		}
		return nil
	}
}

func (cs checkers) structure(t reflect.Type) checker {
	l := layoutOf(t)
	if l.odd {
		return inTextStrict(t)
	}
	fields := make([]strictField, len(l.fields))
	for i, f := range l.fields {
		fields[i] = strictField{name: f.name, check: cs.of(f.typ), optional: f.omitempty || f.omitzero || mayBeAbsent(f.typ)}
	}
	object := notNull("an object")
	return func(v model.Value) error {
		if v.Kind() != model.KindObject {
			return object(v)
		}
		return strictObject(v, fields, l.fields)
	}
}

// strictField is a field of a struct.
type strictField struct {
	name     string
	check    checker
	optional bool
}

// strictObject checks an object. A key without a field counts before a field without a key, because it is probably why
// that is missing.
func strictObject(v model.Value, fields []strictField, known []field) error {
	var missing error
	i := 0
	pass := func(until func(name string) bool) {
		for ; i < len(fields) && !until(fields[i].name); i++ {
			if missing == nil && !fields[i].optional {
				missing = at(fields[i].name, problem("the field is missing"))
			}
		}
	}
	for key, x := range v.All() { // sorted, as the fields are
		pass(func(name string) bool { return name >= key })
		if i == len(fields) || fields[i].name != key {
			key = clip(key)
			return at(key, fmt.Errorf("there is no such field; %w", unknown(key, known)))
		}
		if err := fields[i].check(x); err != nil {
			return at(key, err)
		}
		i++
	}
	pass(func(string) bool { return false })
	return missing
}

// inTextStrict leaves the check to the JSON package.
func inTextStrict(t reflect.Type) checker {
	return func(v model.Value) error {
		if v.Kind() != model.KindObject {
			return notNull("an object")(v)
		}
		return inText(json.Unmarshal(v.AppendJSON(nil), reflect.New(t).Interface(), json.RejectUnknownMembers(true)))
	}
}

// maxKey is the length of the longest key that an error shows. Keys come from outside.
const maxKey = 64

func clip(key string) string {
	if len(key) <= maxKey {
		return key
	}
	return strings.ToValidUTF8(key[:maxKey], "") + "..."
}
