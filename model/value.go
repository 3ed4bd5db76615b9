package model

import (
	"math"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Value is an immutable JSON value. It is small (24 bytes) and cheap to copy;
// versions of a document share the parts that did not change between them. The zero
// Value is absent: the value of a key or a document that does not exist, which
// is not the same as null.
//
// A Value in memory is always exactly the value that its own JSON text parses to, so a program sees
// the same value before and after a round trip through the log:
//
//   - There is one representation per number: an integer within int64 is a KindInt with all its 64
//     bits, whether it was made by Int(1), Float(1) or from the texts 1, 1.0 and 1e0; every other
//     number is a KindFloat. There is no negative zero, no NaN and no infinity.
//   - Strings and keys are valid UTF-8; object keys are sorted and unique.
//   - Containers hold no absent values.
//
// Compare with Equal. The compiler refuses ==, and reflect.DeepEqual does not see a Value's
// content.
type Value struct {
	_ [0]func() // refuses ==

	// num is the content of a bool or a number, the length of a string, and for an array or object
	// its length and height as combined by pack.
	num uint64
	// any is nil (absent), a Kind (of null, a bool or a number), a stringptr, an
	// arrayptr or an objectptr. All are one word wide, so nothing is boxed.
	any any
}

// stringptr points to the first byte of a string, whose length is in num.
type stringptr *byte

// Kind is the JSON type of a Value.
type Kind uint8

// The kinds. The zero Value has KindAbsent.
const (
	KindAbsent Kind = iota
	KindNull
	KindBool
	KindInt
	KindFloat
	KindString
	KindArray
	KindObject
)

var kindNames = [...]string{"absent", "null", "bool", "int", "float", "string", "array", "object"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid kind"
}

// Null returns the JSON null.
func Null() Value { return Value{any: KindNull} }

// Bool returns true or false as a Value.
func Bool(b bool) Value {
	if b {
		return Value{num: 1, any: KindBool}
	}
	return Value{any: KindBool}
}

// Int returns an integer. All 64 bits are kept.
func Int(i int64) Value { return Value{num: uint64(i), any: KindInt} }

// Float returns a number; an integer within int64 becomes a KindInt. NaN and the infinities do not
// exist in JSON and become null, as in JavaScript; Of reports them as errors instead.
func Float(f float64) Value {
	if f >= -1<<63 && f < 1<<63 && f == math.Trunc(f) {
		return Int(int64(f))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Null()
	}
	return Value{num: math.Float64bits(f), any: KindFloat}
}

// String returns a string. Bytes that are not valid UTF-8 cannot be written as JSON and become
// U+FFFD; Of reports them as an error instead.
func String(s string) Value { return validString(validUTF8(s)) }

// validString is String for text known to be valid UTF-8.
func validString(s string) Value {
	return Value{num: uint64(len(s)), any: stringptr(unsafe.StringData(s))}
}

func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}

// Kind returns the kind of v.
func (v Value) Kind() Kind {
	switch a := v.any.(type) {
	case Kind:
		return a
	case stringptr:
		return KindString
	case arrayptr:
		return KindArray
	case objectptr:
		return KindObject
	}
	return KindAbsent
}

// IsAbsent reports whether v does not exist.
func (v Value) IsAbsent() bool { return v.any == nil }

// IsZero is IsAbsent under the name that the `omitzero` option looks for.
func (v Value) IsZero() bool { return v.any == nil }

// IsNull reports whether v is the JSON null. An absent value is not.
func (v Value) IsNull() bool { return v.any == KindNull }

// AsBool returns v, and false if v is not a bool.
func (v Value) AsBool() (b, ok bool) {
	if v.any != KindBool {
		return false, false
	}
	return v.num != 0, true
}

// AsInt returns v, and false unless v is a number that int64 holds exactly.
func (v Value) AsInt() (int64, bool) {
	if v.any != KindInt {
		return 0, false
	}
	return int64(v.num), true
}

// AsFloat returns v, and false unless v is a number. An integer beyond 2⁵³ is
// rounded to the nearest float64.
func (v Value) AsFloat() (float64, bool) {
	switch v.any {
	case KindInt:
		return float64(int64(v.num)), true
	case KindFloat:
		return math.Float64frombits(v.num), true
	}
	return 0, false
}

// AsString returns v, and false if v is not a string.
func (v Value) AsString() (string, bool) {
	p, ok := v.any.(stringptr)
	if !ok {
		return "", false
	}
	return unsafe.String(p, v.num), true
}

// Len returns the number of elements of an array or of keys of an object, and 0 for any other kind.
func (v Value) Len() int {
	switch v.any.(type) {
	case arrayptr, objectptr:
		return int(v.num & lenMask)
	}
	return 0
}
