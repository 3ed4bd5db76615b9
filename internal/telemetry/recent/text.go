package recent

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.opentelemetry.io/otel/attribute"

	"github.com/settlehq/settle/internal/telemetry"
)

// Text returns the trace as an indented tree, with the time that each span took.
func (t *Trace) Text() string {
	var b strings.Builder
	for _, s := range t.Roots {
		s.write(&b, 0, func(s *Span) string { return s.label() + "  " + s.Took.Round(time.Microsecond).String() }, false)
	}
	return b.String()
}

// Shape returns the names of the spans as an indented tree, with the spaces, and the kinds of links and events, and without what differs from run
// to run: siblings are sorted, and those that are alike are one. The children of spans whose names are left out take their place.
func (t *Trace) Shape(without ...string) string {
	var b strings.Builder
	for _, s := range t.Roots {
		s.write(&b, 0, (*Span).shape, true, without...)
	}
	return b.String()
}

func (s *Span) write(b *strings.Builder, depth int, label func(*Span) string, alike bool, without ...string) {
	if slices.Contains(without, s.Name) {
		depth--
	} else {
		fmt.Fprintf(b, "%s%s\n", strings.Repeat("  ", depth), label(s))
	}
	if !alike {
		for _, c := range s.Children {
			c.write(b, depth+1, label, alike)
		}
		return
	}
	var parts []string
	for _, c := range s.Children {
		var own strings.Builder
		c.write(&own, depth+1, label, alike, without...)
		parts = append(parts, own.String())
	}
	slices.Sort(parts)
	for _, p := range slices.Compact(parts) {
		b.WriteString(p)
	}
}

// shown are the attributes of a label.
var shown = []attribute.Key{telemetry.Space, telemetry.Node, telemetry.Document, telemetry.Outcome}

func (s *Span) label() string {
	parts := []string{s.Name}
	for _, key := range shown {
		if v := s.Attribute(key); v != "" {
			parts = append(parts, v)
		}
	}
	if s.Error != "" {
		parts = append(parts, "("+s.ErrorType+": "+s.Error+")")
	}
	return plain(strings.Join(parts, " "))
}

// plain returns a text without characters that control a terminal: parts of it come from outside.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

func (s *Span) shape() string {
	text := fmt.Sprintf("%s [%s]", s.label(), s.Kind)
	if n := len(s.Links); n > 0 {
		text += " linked"
	}
	for _, e := range s.Events {
		text += "; " + e.Name
		for _, a := range e.Attributes {
			text += " " + a.Value.String()
		}
	}
	return text
}
