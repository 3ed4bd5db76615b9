// Package codec converts between Go values and documents without JSON text in between.
//
// [model.Of] and [model.Value.Decode] define the document of a Go value: the result of
// github.com/go-json-experiment/json, with `json` tags. They go through text, which is written only
// to be parsed again. A Codec gives the same results directly. It is compiled once per type, so
// that facts about the type are not determined again for every value.
//
// # How
//
// Each type reachable from T has a converter: a pair of functions, from a reflect.Value and to one.
// Those of structs, maps, slices, arrays and pointers call the converters of their elements; a type
// that contains itself finds its own incomplete converter in the builder's table. Strings, and values
// of type model.Value, are shared with the document and not copied. Decoding a struct walks its
// fields and the keys of the object, both sorted, in parallel, so that unknown keys cost only a
// comparison. The objects made from a struct type share their keys.
//
// Everything else goes through text at its place: types with methods such as MarshalJSON,
// UnmarshalText or AppendText, maps whose keys are not strings, []byte, and structs with unusual
// tags or embedded pointers. The surrounding values are still converted directly.
//
// # Consequences of the text
//
// The results equal those of the text in corner cases, too, as tests verify:
//
//   - A float inside a container is its shortest decimal text, which for a float32, or for
//     an integer beyond 2⁵³, is another number than the one in memory.
//   - A nil slice is [] and a nil map {}. A nil pointer is null.
//   - omitempty leaves out null, "", [] and {}, but neither 0 nor false; omitzero leaves out the
//     zero value, as defined by an IsZero method if there is one.
//   - null decodes to the zero value. A missing key leaves the field unchanged.
//   - Keys that a struct does not have are ignored; names are compared exactly.
//
// # Errors
//
// Of refuses types that cannot be documents (a channel, a function, a complex number, a
// time.Duration, invalid tags) and names their place in T. Decode and Encode name the place in the
// value as a JSON Pointer, the value there, and what was expected:
//
//	/legs/0/delay: a string is here; an integer is wanted
package codec
