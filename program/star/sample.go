package star

import (
	"strconv"
	"strings"
)

// Sample is a stream to try, with a payload that its schema lets through; the payload is "" if
// the handler has no schema. One without a schema is preferred only to none.
func (p *Program) Sample() (stream, payload string) {
	for _, h := range p.samples {
		if h.payload != "" {
			return h.stream, h.payload
		}
		if stream == "" {
			stream = h.stream
		}
	}
	return stream, ""
}

type sample struct{ stream, payload string }

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
