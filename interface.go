package settle

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/settlehq/settle/cron"
	"github.com/settlehq/settle/internal/codec"
	"github.com/settlehq/settle/internal/devserver"
	"github.com/settlehq/settle/internal/shape"
	"github.com/settlehq/settle/model"
)

// described is a stream or a document with its types in Go: those of a payload and of a result, or that of a document as out.
type described struct {
	name    string
	in, out reflect.Type
	derived bool
	// internal reports that clients may not send on the stream.
	internal bool
}

// hasStream notes a stream, unless it is known.
func (p *Program) hasStream(s described) {
	if !slices.ContainsFunc(p.streams, func(known described) bool { return known.name == s.name }) {
		p.streams = append(p.streams, s)
	}
}

// typed is a place whose type is known.
type typed interface{ described() described }

// family is a place of all documents whose names match its pattern: a collection.Collection, which stands on this package.
type family interface{ ElementType() reflect.Type }

func (p place[T]) described() described { return described{name: p.doc, out: reflect.TypeFor[T]()} }

func (r rows[T]) described() described {
	return described{name: r.Name(), out: reflect.TypeFor[map[string]T]()}
}

// Documents names documents that handlers of the program write, for clients that are generated from it (`settle generate`); derived ones
// are known without. A collection.Collection stands for its documents. It changes nothing else.
//
//	house.Documents(door, visits)
func (p *Program) Documents(places ...Place) *Program {
	for _, place := range places {
		a := place.Address()
		switch t := place.(type) {
		case typed:
			if a.Space == "" && len(a.Path) == 0 {
				p.documents = append(p.documents, t.described())
				continue
			}
		case family:
			p.documents = append(p.documents, described{name: a.Doc, out: t.ElementType()})
			continue
		}
		p.note(fmt.Errorf("program %s: %s is no whole document of its own spaces", p.Name(), a))
	}
	return p
}

// Describe writes the Interface of the program of a space into a file if the environment asks for it, as `settle generate` and `settle dev` do, and
// reports whether the process has nothing else to do. Main calls it, and so does package spaceworker.
func (p Programs) Describe(getenv func(string) string) (only bool, err error) {
	return devserver.Describe(getenv, func(space string) ([]byte, error) {
		if p == nil {
			return nil, errors.New("there is no program in Go: it runs deployed ones")
		}
		of := p(space)
		if of == nil {
			return nil, fmt.Errorf("space %q has no program in Go; name one that has (settle generate ts --space)", space)
		}
		if err := of.Err(); err != nil {
			return nil, err
		}
		return of.Interface()
	})
}

// Interface describes the streams and documents of the program and their types, in JSON, for `settle generate`.
func (p *Program) Interface() ([]byte, error) {
	var d codec.Describer
	s := shape.Program{Name: p.Name(), Streams: []shape.Stream{}, Documents: []shape.Document{}}
	for _, stream := range p.streams {
		if stream.name == model.Undelivered || stream.in == reflect.TypeFor[cron.Tick]() {
			continue // Settle sends its events
		}
		s.Streams = append(s.Streams, shape.Stream{Name: stream.name, Payload: d.Describe(stream.in), Result: d.Describe(stream.out), Internal: stream.internal})
	}
	for _, doc := range p.documents {
		s.Documents = append(s.Documents, shape.Document{Name: doc.name, Derived: doc.derived, Type: d.Describe(doc.out)})
	}
	slices.SortStableFunc(s.Documents, func(a, b shape.Document) int { return cmp.Compare(a.Name, b.Name) })
	s.Documents = slices.CompactFunc(s.Documents, func(a, b shape.Document) bool { return a.Name == b.Name })
	s.Types = d.Types
	return json.Marshal(s)
}
