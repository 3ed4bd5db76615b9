package codec

import (
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"

	"github.com/settlehq/settle/internal/shape"
)

// Describer describes Go types as they are in JSON: as Strict takes them and as a Codec encodes them.
type Describer struct {
	// Types are the structs with a name that were found.
	Types map[string]*shape.Type
	names map[reflect.Type]string
	// within are the types that are being described, except structs: one within itself without a struct between is any value.
	within map[reflect.Type]bool
}

// Describe returns the description of a type; of a struct without fields, that there is no value. Of nil nothing is known, and the description is nil.
func (d *Describer) Describe(t reflect.Type) *shape.Type {
	if t == nil {
		return nil
	}
	if t.Kind() == reflect.Struct && t.NumField() == 0 {
		return &shape.Type{Kind: shape.None}
	}
	return d.of(t)
}

var (
	textMarshaler  = reflect.TypeFor[encoding.TextMarshaler]()
	jsonMarshalers = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.MarshalerTo]()}
)

func (d *Describer) of(t reflect.Type) *shape.Type {
	switch {
	case t == timeType:
		return &shape.Type{Kind: shape.String}
	case t == valueType || t == linkType:
		return &shape.Type{Kind: shape.Any}
	case hasMethods(t):
		if t.Implements(textMarshaler) && !slices.ContainsFunc(jsonMarshalers, t.Implements) {
			return &shape.Type{Kind: shape.String}
		}
		return &shape.Type{Kind: shape.Any}
	}
	if t.Kind() != reflect.Struct {
		if d.within[t] {
			return &shape.Type{Kind: shape.Any}
		}
		if d.within == nil {
			d.within = map[reflect.Type]bool{}
		}
		d.within[t] = true
		defer delete(d.within, t)
	}
	return d.ofKind(t)
}

func (d *Describer) ofKind(t reflect.Type) *shape.Type {
	switch t.Kind() {
	case reflect.Pointer:
		elem := *d.of(t.Elem())
		elem.Nullable = elem.Kind != shape.Any
		return &elem
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &shape.Type{Kind: shape.String} // base64
		}
		return &shape.Type{Kind: shape.List, Elem: d.of(t.Elem())}
	case reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &shape.Type{Kind: shape.Any}
		}
		return &shape.Type{Kind: shape.List, Elem: d.of(t.Elem())}
	case reflect.Map:
		return &shape.Type{Kind: shape.Dict, Elem: d.of(t.Elem())}
	case reflect.Struct:
		return d.structure(t)
	case reflect.Bool:
		return &shape.Type{Kind: shape.Bool}
	case reflect.String:
		return &shape.Type{Kind: shape.String}
	case reflect.Float32, reflect.Float64:
		return &shape.Type{Kind: shape.Float}
	case reflect.Interface:
		return &shape.Type{Kind: shape.Any}
	}
	return &shape.Type{Kind: shape.Int}
}

func (d *Describer) structure(t reflect.Type) *shape.Type {
	l := layoutOf(t)
	if l.odd {
		return &shape.Type{Kind: shape.Any}
	}
	if name, known := d.names[t]; known {
		return &shape.Type{Kind: shape.Named, Name: name}
	}
	object := &shape.Type{Kind: shape.Object}
	named := object
	if t.Name() != "" {
		named = &shape.Type{Kind: shape.Named, Name: d.name(t, object)}
	}
	outer := d.within
	d.within = nil
	defer func() { d.within = outer }()
	for _, f := range l.fields {
		object.Fields = append(object.Fields, shape.Field{Name: f.name, Type: d.of(f.typ), Optional: f.omitempty || f.omitzero || mayBeAbsent(f.typ)})
	}
	return named
}

// name gives a struct its name, with a number if it is taken by a type of another package.
func (d *Describer) name(t reflect.Type, object *shape.Type) string {
	if d.Types == nil {
		d.Types, d.names = map[string]*shape.Type{}, map[reflect.Type]string{}
	}
	base := strings.Map(func(r rune) rune { // of a type with parameters
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, t.Name())
	name := base
	for n := 2; d.Types[name] != nil; n++ {
		name = base + strconv.Itoa(n)
	}
	d.Types[name], d.names[t] = object, name
	return name
}
