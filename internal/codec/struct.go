package codec

import (
	"reflect"

	"github.com/settlehq/settle/model"
)

// structField is a field that is a key of the object, and the converter of its type.
type structField struct {
	field
	converter *converter
	isZero    func(reflect.Value) bool // of a field with omitzero
}

// structConverter converts between a struct and an object.
type structConverter struct {
	fields []structField // sorted by name
	keys   model.Keys    // the names
}

func (b builder) structure(c *converter, t reflect.Type) error {
	if err := probe(t); err != nil {
		return err
	}
	l := layoutOf(t)
	if l.refused != nil {
		return l.refused
	}
	s := &structConverter{fields: make([]structField, len(l.fields))}
	names := make([]string, len(l.fields))
	for i, f := range l.fields {
		fc, err := b.converter(f.typ)
		if err != nil {
			return at(f.name, err)
		}
		names[i] = f.name
		s.fields[i] = structField{field: f, converter: fc}
		if f.omitzero {
			s.fields[i].isZero = zeroTest(f.typ)
		}
	}
	var err error
	if s.keys, err = model.KeysOf(names); err != nil || l.odd {
		*c = textConverter
		return err
	}
	c.decode, c.encode = s.decode, s.encode
	return nil
}

func (s *structConverter) decode(v model.Value, to reflect.Value) error {
	if v.Kind() != model.KindObject {
		return orNull(v, "an object")
	}
	if v.Len() > 8*len(s.fields) {
		return s.pick(v, to)
	}
	i := 0
	for key, x := range v.All() {
		for i < len(s.fields) && s.fields[i].name < key {
			i++
		}
		if i == len(s.fields) {
			break
		}
		if f := &s.fields[i]; f.name == key {
			if err := f.converter.decode(x, f.of(to)); err != nil {
				return at(key, err)
			}
			i++
		}
	}
	return nil
}

// pick is decode for an object with many more keys than the struct has fields.
func (s *structConverter) pick(v model.Value, to reflect.Value) error {
	for i := range s.fields {
		f := &s.fields[i]
		x := v.Get(f.name)
		if x.IsAbsent() {
			continue
		}
		if err := f.converter.decode(x, f.of(to)); err != nil {
			return at(f.name, err)
		}
	}
	return nil
}

func (s *structConverter) encode(from reflect.Value, depth int) (model.Value, error) {
	if err := tooDeep(depth); err != nil {
		return model.Value{}, err
	}
	return s.keys.Object(func(i int) (model.Value, error) { return s.fields[i].encode(from, depth+1) })
}

// encode returns the value of the field in a struct, absent if it is left out.
func (f *structField) encode(of reflect.Value, depth int) (model.Value, error) {
	from := f.of(of)
	if f.isZero != nil && f.isZero(from) {
		return model.Value{}, nil
	}
	x, err := f.converter.encode(from, depth)
	if err != nil {
		return model.Value{}, at(f.name, err)
	}
	if f.omitempty && empty(x) {
		return model.Value{}, nil
	}
	return orNullValue(x), nil
}

// of returns the field of a struct.
func (f *field) of(s reflect.Value) reflect.Value {
	for _, i := range f.index {
		s = s.Field(i)
	}
	return s
}

// empty reports whether omitempty leaves v out.
func empty(v model.Value) bool {
	switch v.Kind() {
	case model.KindAbsent, model.KindNull:
		return true
	case model.KindString:
		s, _ := v.AsString()
		return s == ""
	case model.KindArray, model.KindObject:
		return v.Len() == 0
	}
	return false
}

// isZeroer is implemented by types that define their own zero value.
type isZeroer interface{ IsZero() bool }

// zeroTest returns the test of omitzero for a field of type t.
func zeroTest(t reflect.Type) func(reflect.Value) bool {
	zeroer := reflect.TypeFor[isZeroer]()
	switch {
	case t.Kind() == reflect.Interface && t.Implements(zeroer):
		return func(v reflect.Value) bool {
			return v.IsNil() || v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() || v.Interface().(isZeroer).IsZero()
		}
	case t.Kind() == reflect.Pointer && t.Implements(zeroer):
		return func(v reflect.Value) bool { return v.IsNil() || v.Interface().(isZeroer).IsZero() }
	case reflect.PointerTo(t).Implements(zeroer):
		return func(v reflect.Value) bool { return addressed(v).Interface().(isZeroer).IsZero() }
	}
	return reflect.Value.IsZero
}
