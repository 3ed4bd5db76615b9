package flow

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// fits returns a check of the arguments of a run: they can be decoded, and each of them is a field of In, if In is a struct.
func fits[In any](workflow string) func(args jsontext.Value) error {
	fields, are := fieldsOf(reflect.TypeFor[In]())
	return func(args jsontext.Value) error {
		var in In
		if err := json.Unmarshal(args, &in); err != nil {
			return fmt.Errorf("the arguments do not fit workflow %s: %w", workflow, err)
		}
		var given map[string]json.RawMessage
		if err := json.Unmarshal(args, &given); err != nil || !are {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !slices.ContainsFunc(fields, func(f string) bool { return strings.EqualFold(f, name) }) {
				return fmt.Errorf("workflow %s has no argument %.100q; it has %s", workflow, name, strings.Join(fields, ", "))
			}
		}
		return nil
	}
}

// fieldsOf returns the names that encoding/json gives to the fields of a struct, false for a type that is none, or that decodes
// itself.
func fieldsOf(t reflect.Type) ([]string, bool) {
	if p := reflect.PointerTo(t); p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return nil, false
	}
	if t.Kind() == reflect.Pointer {
		return fieldsOf(t.Elem())
	}
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous || f.Anonymous && name == "":
		case name != "":
			names = append(names, name)
		default:
			names = append(names, f.Name)
		}
	}
	return names, true
}
