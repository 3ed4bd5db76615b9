package value

import "github.com/settlehq/settle/internal/shape"

// Type describes the schema. An optional field may be null as well.
func (s *Schema) Type() *shape.Type {
	switch {
	case s.elem != nil:
		return &shape.Type{Kind: shape.List, Elem: s.elem.Type()}
	case s.object:
		t := &shape.Type{Kind: shape.Object}
		for _, f := range s.fields {
			inner := f.inner.Type()
			inner.Nullable = f.optional
			t.Fields = append(t.Fields, shape.Field{Name: f.name, Type: inner, Optional: f.optional})
		}
		return t
	case s.name == "dict":
		return &shape.Type{Kind: shape.Dict, Elem: &shape.Type{Kind: shape.Any}}
	}
	return &shape.Type{Kind: shape.Kind(s.name)} // they have the same names
}
