package codec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/settlehq/settle/model"
)

// Field returns the Go type at a path in a t: of a struct field by its JSON name, of an element of
// a map or slice, and through pointers. At a path in a model.Value it is model.Value, in an any it
// is any. The error lists the fields that exist.
func Field(t reflect.Type, path ...string) (reflect.Type, error) {
	place := t
	for i, step := range path {
		next, err := fieldAt(place, step)
		if err != nil {
			return nil, fmt.Errorf("%s has no %s: %w", t, model.Path(path[:i+1]), err)
		}
		place = next
	}
	return place, nil
}

// fieldAt is Field for one step.
func fieldAt(t reflect.Type, step string) (reflect.Type, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == valueType || t == anyType:
		return t, nil
	case hasMethods(t):
		return nil, fmt.Errorf("a %s writes its JSON itself", t)
	case t.Kind() == reflect.Struct:
		return structFieldAt(t, step)
	case t.Kind() == reflect.Map:
		return t.Elem(), nil
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		if n, err := strconv.Atoi(step); err != nil || n < 0 || strconv.Itoa(n) != step {
			return nil, fmt.Errorf("a %s is an array, and %q is no index", t, step)
		}
		return t.Elem(), nil
	}
	return nil, fmt.Errorf("a %s has no parts", t)
}

func structFieldAt(t reflect.Type, name string) (reflect.Type, error) {
	l := layoutOf(t)
	i := slices.IndexFunc(l.fields, func(f field) bool { return f.name == name })
	switch {
	case i < 0:
		return nil, unknown(name, l.fields)
	case l.fields[i].asString:
		return nil, fmt.Errorf("the tag of that field makes a string of it")
	}
	return l.fields[i].typ, nil
}

// unknown returns the error of a name that no field has.
func unknown(name string, fields []field) error {
	if len(fields) == 0 {
		return fmt.Errorf("there are no fields")
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	there := "there is " + strings.Join(names, ", ")
	if near, ok := model.Nearest(name, names); ok {
		return fmt.Errorf("did you mean %q? %s", near, there)
	}
	return fmt.Errorf("%s", there)
}
