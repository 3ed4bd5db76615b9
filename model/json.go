package model

import (
	"fmt"
	"math"
	"strconv"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendJSON appends the JSON text of v to dst. The text is canonical: values are Equal if and only if their
// texts are. Keys are sorted bytewise, there is no white space, numbers are written as encoding/json writes
// an int64 or a float64, and strings escape only what JSON requires (not '<', for example). An absent value
// is written as null.
func (v Value) AppendJSON(dst []byte) []byte {
	switch a := v.any.(type) {
	case stringptr:
		return appendQuoted(dst, unsafe.String(a, v.num))
	case Kind:
		return v.appendScalar(dst, a)
	case arrayptr:
		return v.appendArray(dst)
	case objectptr:
		return v.appendObject(dst)
	}
	return append(dst, "null"...)
}

func (v Value) appendScalar(dst []byte, k Kind) []byte {
	switch k {
	case KindInt:
		return strconv.AppendInt(dst, int64(v.num), 10)
	case KindFloat:
		return jsontext.AppendFloat(dst, math.Float64frombits(v.num), 64)
	case KindBool:
		return strconv.AppendBool(dst, v.num != 0)
	}
	return append(dst, "null"...)
}

func (v Value) appendArray(dst []byte) []byte {
	dst = append(dst, '[')
	for i, e := range v.elements() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = e.AppendJSON(dst)
	}
	return append(dst, ']')
}

func (v Value) appendObject(dst []byte) []byte {
	dst = append(dst, '{')
	keys, values := v.members()
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(dst, k)
		dst = append(dst, ':')
		dst = values[i].AppendJSON(dst)
	}
	return append(dst, '}')
}

// appendQuoted appends s, which must be valid UTF-8, as a JSON string with the escapes of RFC 8785
// only.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, s)
	return append(dst, '"')
}

// appendEscaped is appendQuoted without the quotes.
func appendEscaped(dst []byte, s string) []byte {
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, c)
		start = i + 1
	}
	return append(dst, s[start:]...)
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// String returns the JSON text of v, or "absent".
func (v Value) String() string {
	if v.IsAbsent() {
		return "absent"
	}
	return string(v.AppendJSON(nil))
}

// GoString returns String, to make %#v readable.
func (v Value) GoString() string { return v.String() }

// MarshalJSON is AppendJSON for encoding/json. It refuses a value nested deeper than MaxDepth,
// because ParseValue could not read it.
func (v Value) MarshalJSON() ([]byte, error) {
	if err := checkDepth(v, 0); err != nil {
		return nil, fmt.Errorf("marshal value: %w", err)
	}
	return v.AppendJSON(nil), nil
}

// MarshalJSONTo writes v, as MarshalJSON would.
func (v Value) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := checkDepth(v, 0); err != nil {
		return fmt.Errorf("marshal value: %w", err)
	}
	return encode(enc, v.AppendJSON)
}

// texts are buffers for text that is copied as soon as it is written.
var texts pool[[]byte]

// withText calls use with the text that write appends. The text is invalid afterwards.
func withText(write func([]byte) []byte, use func([]byte) error) error {
	buf := texts.get()
	defer texts.put(buf)
	text := write((*buf)[:0])
	if cap(text) <= 64<<10 { // larger buffers, grown for one huge document, are dropped
		*buf = text
	}
	return use(text)
}

// encode writes to enc the text that write appends.
func encode(enc *jsontext.Encoder, write func([]byte) []byte) error {
	return withText(write, func(text []byte) error { return enc.WriteValue(text) })
}
