package dev

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/shape"
	"github.com/settlehq/settle/model"
)

// space returns the space that the program is asked about.
func (g *golang) space() string {
	if model.CheckName("space", g.title()) != nil {
		return "home"
	}
	return g.title()
}

// shape returns what the program has, as far as that is known.
func (g *golang) shape() *shape.Program {
	s := &shape.Program{}
	if text, err := os.ReadFile(described(g.exe)); err != nil || json.Unmarshal(text, s) != nil {
		return &shape.Program{}
	}
	return s
}

// line says what runs.
func (g *golang) line() string {
	if g.running == nil {
		return "nothing runs yet"
	}
	s := g.shape()
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{len(s.Streams), "stream"}, {len(s.Documents), "document"}} {
		if part.n > 0 {
			parts = append(parts, display.Count(part.n, part.what))
		}
	}
	if len(parts) == 0 {
		return "run " + g.title()
	}
	return fmt.Sprintf("run %s (program %s: %s)", g.title(), s.Name, strings.Join(parts, ", "))
}

// example returns a document to watch: a derived one, or else any. What is not known is left to fill in.
func (g *golang) example() (space, doc string) {
	s := g.shape()
	space, doc = g.space(), "DOCUMENT"
	if s.Name == "" { // it may run another program in this space, or none
		space = "SPACE"
	}
	for _, d := range s.Documents {
		if d.Derived {
			return space, d.Name
		}
		doc = d.Name
	}
	return space, doc
}

// event returns an event to send, nil if none is known.
func (g *golang) event() *suggestion {
	s := g.shape()
	at := slices.IndexFunc(s.Streams, func(of shape.Stream) bool { return !of.Internal })
	if at < 0 {
		return nil
	}
	first := &suggestion{}
	first.Stream = s.Streams[at].Name
	if t := s.Streams[at].Payload; t != nil && t.Kind != shape.None {
		first.Payload = sample(t, s.Types, 0)
	}
	return first
}

// try returns commands to try.
func (g *golang) try(space, doc string, s *suggestion) []string {
	tries := []string{"settle watch " + space + " " + doc}
	if s != nil {
		send := "settle send " + space + " " + s.Stream
		if s.Payload != "" {
			send += " " + quoted(s.Payload)
		}
		tries = append([]string{send + " --wait"}, tries...)
	}
	return append(tries, "settle get "+space, "settle why "+space+" "+doc, "settle chaos kill --owner "+space)
}

// maxSample bounds the depth of a value to fill in.
const maxSample = 4

// sample returns a value of a type in JSON, to fill in.
func sample(t *shape.Type, types map[string]*shape.Type, depth int) string {
	if depth > maxSample || t == nil {
		return "null"
	}
	switch t.Kind {
	case shape.String:
		return `"..."`
	case shape.Int, shape.Float:
		return "1"
	case shape.Bool:
		return "true"
	case shape.List:
		return "[]"
	case shape.Dict:
		return "{}"
	case shape.Named:
		return sample(types[t.Name], types, depth+1)
	case shape.Object:
		var fields []string
		for _, f := range t.Fields {
			if !f.Optional {
				fields = append(fields, fmt.Sprintf("%q:%s", f.Name, sample(f.Type, types, depth+1)))
			}
		}
		return "{" + strings.Join(fields, ",") + "}"
	}
	return "null"
}
