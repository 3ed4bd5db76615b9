// Package shape turns Go values into documents and documents into Go values, without JSON
// text between them.
//
// [model.Of] and [model.Value.Decode] define what a Go value is as a document: what
// github.com/go-json-experiment/json makes of it, `json` tags included. They go through
// text, which is written only to be read again at once. A Shape gives the same results
// directly. It is compiled once per type, so what can be known about the type is not found
// out with every value.
//
// # How
//
// A codec exists for each type that is reachable from T: a pair of functions, from a
// reflect.Value and to one. Those of structs, maps, slices, arrays and pointers call the
// codecs of what they contain; a type that contains itself finds its own codec, half made,
// in the table of the one who compiles. Strings, and values of type model.Value, are shared
// with the document and not copied. A struct walks its fields and the keys of the object,
// both of which are sorted, side by side, so keys that it does not have cost nothing but a
// comparison. The objects that a struct becomes share their keys.
//
// Whatever is not plain goes through text, at the place where it stands: types with methods
// such as MarshalJSON, UnmarshalText or AppendText, maps whose keys are no strings, []byte,
// and structs with unusual tags or with embedded pointers. What is around it stays direct.
//
// # What follows from the text
//
// The results are equal to those of the text in the corners too, and tests hold them to it:
//
//   - A float inside a container is its shortest decimal text, which for a float32, or for
//     an integer beyond 2⁵³, is another number than the one in memory.
//   - A nil slice is [] and a nil map {}. A nil pointer is null.
//   - omitempty leaves out what is null, "", [] or {}, and neither 0 nor false; omitzero
//     leaves out the zero value, or what an IsZero method says is one.
//   - null makes anything the zero value. A key that is missing leaves it.
//   - Keys that a struct does not have are ignored; names are compared exactly.
//
// # Errors
//
// Of refuses what can never be a document (a channel, a function, a complex number, a
// time.Duration, tags that make no sense) with its place in T. Decode and Encode name the
// place in the value as a JSON Pointer, what is there, and what is wanted:
//
//	/legs/0/delay: "x" is a string; an integer is wanted
package shape
