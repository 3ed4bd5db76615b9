package clientgen

import (
	"github.com/settlehq/settle/internal/shape"
	"github.com/settlehq/settle/program/star"
)

// Of describes a program in Starlark. Nothing is known of what its handlers return and of its documents.
func Of(p *star.Program) *shape.Program {
	s := &shape.Program{Name: p.Name(), Doc: p.Doc()}
	for _, sample := range p.Samples() {
		s.Streams = append(s.Streams, shape.Stream{Name: sample.Stream, Payload: typeOf(p.PayloadType(sample.Stream))})
	}
	for _, d := range p.Documents() {
		s.Documents = append(s.Documents, shape.Document{Name: d.Name, Derived: d.Derived})
	}
	return s
}

// typeOf describes a schema, nil if there is none.
func typeOf(t *star.Type) *shape.Type {
	switch {
	case t == nil:
		return nil
	case t.Kind == "dict":
		return &shape.Type{Kind: shape.Dict, Elem: &shape.Type{Kind: shape.Any}}
	}
	s := &shape.Type{Kind: shape.Kind(t.Kind), Elem: typeOf(t.Elem)}
	for _, f := range t.Fields {
		inner := typeOf(f.Type)
		inner.Nullable = f.Optional
		s.Fields = append(s.Fields, shape.Field{Name: f.Name, Type: inner, Optional: f.Optional})
	}
	return s
}
