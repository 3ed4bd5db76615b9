package value

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/meter"
)

// Schema describes the payloads that a handler accepts. A program writes it as payload = ...:
//
//	str int float bool any    a scalar of that type; an int is a float too, any is anything
//	[s]                       an array of s
//	{"a": s, "b?": s}         an object with these fields and no others; b may be missing or null
//	dict                      an object with any fields
type Schema struct {
	name   string // str, int, float, bool, any, dict; "" for the others
	elem   *Schema
	fields []field
	object bool
	text   string
	// open reports that the object may have further fields.
	open bool
}

// Open has the schema of an object allow further fields, at the top. It is for payloads that Settle makes, to which later versions may add.
func (s *Schema) Open() { s.open = true }

type field struct {
	name     string
	optional bool
	inner    *Schema
}

// SchemaOf reads a schema.
func SchemaOf(x starlark.Value) (*Schema, error) {
	room := maxSchema
	return schemaAt(x, 0, &room)
}

// maxSchema bounds the parts of a schema: one that contains another twice, which contains another
// twice, has very many.
const maxSchema = 2000

func schemaAt(x starlark.Value, depth int, room *int) (*Schema, error) {
	if depth > 20 {
		return nil, fmt.Errorf("the schema is nested more than 20 deep")
	}
	if *room--; *room < 0 {
		return nil, fmt.Errorf("the schema has more than %d parts", maxSchema)
	}
	switch x := x.(type) {
	case *starlark.Builtin:
		switch x.Name() {
		case "str", "int", "float", "bool", "any", "dict":
			return &Schema{name: x.Name(), text: x.Name()}, nil
		}
	case *starlark.List:
		if x.Len() != 1 {
			return nil, fmt.Errorf("the schema of an array is a list with one element, such as [str]")
		}
		elem, err := schemaAt(x.Index(0), depth+1, room)
		if err != nil {
			return nil, err
		}
		return &Schema{elem: elem, text: "[" + elem.text + "]"}, nil
	case *starlark.Dict:
		return objectSchema(x, depth, room)
	}
	return nil, fmt.Errorf("%s is not a schema; use str, int, float, bool, any, dict, [schema] or {\"field\": schema}", x.Type())
}

func objectSchema(d *starlark.Dict, depth int, room *int) (*Schema, error) {
	s := &Schema{object: true, fields: []field{}}
	for k, v := range d.Entries() {
		name, ok := starlark.AsString(k)
		if !ok {
			return nil, fmt.Errorf("a field of a schema must be named by a string, not %s", meter.Article(k.Type()))
		}
		inner, err := schemaAt(v, depth+1, room)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
		name, optional := strings.CutSuffix(name, "?")
		s.fields = append(s.fields, field{name, optional, inner})
	}
	slices.SortFunc(s.fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	for i := range s.fields {
		if i > 0 && s.fields[i].name == s.fields[i-1].name {
			return nil, fmt.Errorf("field %s is declared twice", s.fields[i].name)
		}
	}
	s.text = "{" + s.names() + "}"
	return s, nil
}

func (s *Schema) all() []string {
	names := make([]string, len(s.fields))
	for i, f := range s.fields {
		names[i] = f.name
	}
	return names
}

func (s *Schema) names() string { return strings.Join(s.all(), ", ") }

func (s *Schema) field(name string) *field {
	for i := range s.fields {
		if s.fields[i].name == name {
			return &s.fields[i]
		}
	}
	return nil
}

// Check refuses a value that does not match the schema. at is the path of the value, for errors.
func (s *Schema) Check(v model.Value, at string) error {
	switch {
	case s.object:
		return s.checkObject(v, at)
	case s.elem != nil:
		if v.Kind() != model.KindArray {
			return wrong(at, "an array", v)
		}
		i := 0
		for e := range v.Elements() {
			if err := s.elem.Check(e, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
			i++
		}
		return nil
	}
	return s.checkScalar(v, at)
}

func (s *Schema) checkScalar(v model.Value, at string) error {
	k := v.Kind()
	fits, want := true, s.name
	switch s.name {
	case "str":
		fits, want = k == model.KindString, "a string"
	case "int":
		fits, want = k == model.KindInt, "an integer"
	case "float":
		fits, want = k == model.KindInt || k == model.KindFloat, "a number"
	case "bool":
		fits, want = k == model.KindBool, "true or false"
	case "dict":
		fits, want = k == model.KindObject, "an object"
	}
	if !fits {
		return wrong(at, want, v)
	}
	return nil
}

func (s *Schema) checkObject(v model.Value, at string) error {
	if v.Kind() != model.KindObject {
		return wrong(at, "an object", v)
	}
	for i := range s.fields {
		f := &s.fields[i]
		x := v.Get(f.name)
		if x.IsAbsent() || x.IsNull() && f.optional {
			if !f.optional {
				return fmt.Errorf("%s.%s is missing", at, f.name)
			}
			continue
		}
		if err := f.inner.Check(x, at+"."+f.name); err != nil {
			return err
		}
	}
	for k := range v.All() {
		if !s.open && s.field(k) == nil {
			return fmt.Errorf("%s.%s is not expected; the schema has %s", at, meter.Clip(k), s.names())
		}
	}
	return nil
}

func wrong(at, want string, v model.Value) error {
	switch {
	case v.IsAbsent():
		return fmt.Errorf("%s must be %s, and is missing", at, want)
	case v.IsNull():
		return fmt.Errorf("%s must be %s, not null", at, want)
	}
	return fmt.Errorf("%s must be %s, not %s", at, want, meter.Article(v.Kind().String()))
}

// Sample returns JSON that matches the schema.
func (s *Schema) Sample() string {
	switch {
	case s.elem != nil:
		return "[" + s.elem.Sample() + "]"
	case s.object:
		var parts []string
		for _, f := range s.fields {
			if !f.optional {
				parts = append(parts, strconv.Quote(f.name)+":"+f.inner.Sample())
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

// Fields calls f with the fields of an object, in order: their names, the text of what they hold, and whether they may be missing. It reports
// whether the schema is that of an object with fields.
func (s *Schema) Fields(f func(name, holds string, optional bool)) bool {
	for i := range s.fields {
		f(s.fields[i].name, s.fields[i].inner.text, s.fields[i].optional)
	}
	return len(s.fields) > 0
}
