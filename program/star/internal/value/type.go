package value

// Type is a schema for other programs to read.
type Type struct {
	// Kind is str, int, float, bool, any, dict, list or object.
	Kind string
	// Elem is the type of the elements of a list.
	Elem *Type
	// Fields are those of an object, by name. It has no others.
	Fields []TypeField
}

// TypeField is a field of an object.
type TypeField struct {
	Name string
	Type *Type
	// Optional is set if the field may be missing or null.
	Optional bool
}

// Type returns the schema as a Type.
func (s *Schema) Type() *Type {
	switch {
	case s.elem != nil:
		return &Type{Kind: "list", Elem: s.elem.Type()}
	case s.object:
		t := &Type{Kind: "object"}
		for _, f := range s.fields {
			t.Fields = append(t.Fields, TypeField{f.name, f.inner.Type(), f.optional})
		}
		return t
	}
	return &Type{Kind: s.name}
}
