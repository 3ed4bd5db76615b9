// Package shape describes what a program takes and has, for clients that are generated from it: its streams, its documents, and their types in JSON.
package shape

// Program is the interface of a program.
type Program struct {
	Name string `json:"name"`
	// Doc says what it is, for people.
	Doc       string     `json:"doc,omitempty"`
	Streams   []Stream   `json:"streams"`
	Documents []Document `json:"documents"`
	// Types are those that have a name, and by which others refer to them.
	Types map[string]*Type `json:"types,omitempty"`
}

// Stream is a stream of events.
type Stream struct {
	Name string `json:"name"`
	// Payload and Result are nil if nothing is known of them.
	Payload *Type `json:"payload,omitempty"`
	Result  *Type `json:"result,omitempty"`
	// Internal is set if only spaces send on it, so that generated clients do not have it.
	Internal bool `json:"internal,omitempty"`
}

// Document is a document of a space.
type Document struct {
	Name string `json:"name"`
	// Derived is set if a computation derives it.
	Derived bool `json:"derived,omitempty"`
	// Type is nil if nothing is known of it.
	Type *Type `json:"type,omitempty"`
}

// Kind is a kind of JSON values.
type Kind string

// The kinds.
const (
	Any    Kind = "any"
	None   Kind = "none" // no value at all
	String Kind = "str"
	Int    Kind = "int"
	Float  Kind = "float"
	Bool   Kind = "bool"
	List   Kind = "list"   // of Elem
	Dict   Kind = "dict"   // an object with any keys, and Elem as values
	Object Kind = "object" // with Fields, and no others
	Named  Kind = "named"  // the type that Program.Types has as Name
)

// Type is a type of JSON values.
type Type struct {
	Kind Kind  `json:"kind"`
	Elem *Type `json:"elem,omitempty"`
	// Fields are those of an object, in the order of its source.
	Fields []Field `json:"fields,omitempty"`
	Name   string  `json:"name,omitempty"`
	// Nullable is set if the value may be null.
	Nullable bool `json:"nullable,omitempty"`
}

// Field is a field of an object.
type Field struct {
	Name string `json:"name"`
	Type *Type  `json:"type"`
	// Optional is set if the field may be missing.
	Optional bool `json:"optional,omitempty"`
}
