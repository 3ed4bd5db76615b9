package star

import (
	"slices"
	"strconv"
	"strings"
)

// Samples are an event for each handler, in the order of the file, with payloads that their schemas
// let through. Whether a handler takes its event depends on what the space has: rehearse it.
func (p *Program) Samples() []Sample { return slices.Clone(p.samples) }

// Sample is an event to try a handler with. Payload is JSON, "" if the handler does not say what it
// takes.
type Sample struct{ Stream, Payload string }

// sample is JSON that fits.
func (s *schema) sample() string {
	switch {
	case s.elem != nil:
		return "[" + s.elem.sample() + "]"
	case s.object:
		var parts []string
		for _, f := range s.fields {
			if !f.optional {
				parts = append(parts, strconv.Quote(f.name)+":"+f.inner.sample())
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	switch s.name {
	case "str":
		return `"x"`
	case "int", "float":
		return "1"
	case "bool":
		return "true"
	case "dict":
		return "{}"
	}
	return "null"
}
