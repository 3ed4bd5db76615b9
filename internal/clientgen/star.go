package clientgen

import (
	"github.com/settlehq/settle/internal/shape"
	"github.com/settlehq/settle/program/star"
)

// Of describes a program in Starlark. Nothing is known of what its handlers return and of its documents.
func Of(p *star.Program) *shape.Program {
	s := &shape.Program{Name: p.Name(), Doc: p.Doc()}
	for _, sample := range p.Samples() {
		s.Streams = append(s.Streams, shape.Stream{Name: sample.Stream, Payload: p.PayloadType(sample.Stream)})
	}
	for _, d := range p.Documents() {
		s.Documents = append(s.Documents, shape.Document{Name: d.Name, Derived: d.Derived})
	}
	return s
}
