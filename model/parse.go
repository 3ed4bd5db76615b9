package model

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	errTooDeep = fmt.Errorf("nested deeper than %d", MaxDepth)
	errRange   = errors.New("number out of range")
	errUTF8    = errors.New("invalid UTF-8")
	errMore    = errors.New("more after the end of the value")
)

// ParseValue parses one JSON text, strictly: a duplicate key in an object, invalid UTF-8 (including half a
// surrogate pair), a number beyond float64, nesting deeper than MaxDepth and anything after the value are
// errors, which name the byte offset. The Value does not keep data alive.
func ParseValue(data []byte) (Value, error) {
	if v, is := quickValue(data); is {
		return v, nil
	}
	p := parsers.get()
	defer p.release()
	v, err := p.document(data)
	if err != nil {
		return Value{}, parseError(err, data)
	}
	return v, nil
}

// parseError returns an error with the same text, whether the decoder or the parser found it.
func parseError(err error, data []byte) error {
	if errors.Is(err, io.EOF) { // not even the beginning of a value
		err = &jsontext.SyntacticError{ByteOffset: int64(len(data)), Err: io.ErrUnexpectedEOF}
	}
	var at *jsontext.SyntacticError
	if !errors.As(err, &at) {
		return fmt.Errorf("parse JSON: %w", err)
	}
	const readable = 100 // a longer pointer is not readable
	if at.JSONPointer != "" && len(at.JSONPointer) <= readable {
		return fmt.Errorf("parse JSON: byte %d, at %q: %w", at.ByteOffset, at.JSONPointer, at.Err)
	}
	return fmt.Errorf("parse JSON: byte %d: %w", at.ByteOffset, at.Err)
}

// UnmarshalJSON is ParseValue for encoding/json.
func (v *Value) UnmarshalJSON(data []byte) error {
	x, err := ParseValue(data)
	if err != nil {
		return err
	}
	*v = x
	return nil
}

// UnmarshalJSONFrom reads the next value. It is as strict as ParseValue, except
// that a decoder with AllowInvalidUTF8 gets U+FFFD instead of an error.
func (v *Value) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	p := parsers.get()
	defer p.release()
	p.dec = dec
	p.mends, _ = json.GetOption(dec.Options(), jsontext.AllowInvalidUTF8)
	x, err := p.value(0)
	if err != nil {
		return err
	}
	*v = x
	return nil
}

// parser builds a Value out of tokens. It is pooled for its buffers and its interned keys.
type parser struct {
	dec   *jsontext.Decoder
	mends bool // invalid UTF-8 is replaced instead of refused

	// own and input are the decoder and reader for a text given as bytes.
	own   jsontext.Decoder
	input bytes.Buffer

	// The members and elements of the containers that are not complete yet, those of an inner container after
	// those of the outer one.
	members  []member
	elements []Value
	unquoted []byte

	interned interned
}

// member is a key and its value while its object is being read.
type member struct {
	key    string
	hash   uint64 // of the key
	offset int64  // of the key in the input
	value  Value
}

var parsers pool[parser]

// release resets p and returns it to the pool.
func (p *parser) release() {
	const keep = 1 << 10 // in entries; larger buffers, grown for one huge document, are dropped
	if p.dec == &p.own {
		p.input = bytes.Buffer{}
		p.own.Reset(&p.input)
	}
	p.dec, p.mends = nil, false
	if cap(p.members) > keep {
		p.members = nil
	}
	if cap(p.elements) > keep {
		p.elements = nil
	}
	if cap(p.unquoted) > keep {
		p.unquoted = nil
	}
	// Only errors leave entries here: complete containers are popped.
	p.members, p.elements = pop(p.members, 0), pop(p.elements, 0)
	parsers.put(p)
}

// pop shortens a stack to n entries and clears the others.
func pop[T any](stack []T, n int) []T {
	clear(stack[n:])
	return stack[:n]
}

// document reads data as a whole.
func (p *parser) document(data []byte) (Value, error) {
	p.input = *bytes.NewBuffer(data)
	// Building the object finds duplicate names anyway.
	p.own.Reset(&p.input, jsontext.AllowDuplicateNames(true))
	p.dec = &p.own
	v, err := p.value(0)
	if err != nil {
		return Value{}, err
	}
	end := p.dec.InputOffset()
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return Value{}, p.fail(end, errMore)
	}
	return v, nil
}

// fail returns err with a byte offset in the input.
func (p *parser) fail(offset int64, err error) error {
	return &jsontext.SyntacticError{ByteOffset: offset, JSONPointer: p.dec.StackPointer(), Err: err}
}

// failHere returns err with the offset of the token just read.
func (p *parser) failHere(token []byte, err error) error {
	return p.fail(p.dec.InputOffset()-int64(len(token)), err)
}

// value reads the next value, which is nested in depth containers.
func (p *parser) value(depth int) (Value, error) {
	switch p.dec.PeekKind() {
	case jsontext.KindBeginObject:
		return p.object(depth + 1)
	case jsontext.KindBeginArray:
		return p.array(depth + 1)
	}
	raw, err := p.dec.ReadValue()
	if err != nil {
		return Value{}, err
	}
	switch raw[0] {
	case 'n':
		return Null(), nil
	case 't':
		return Bool(true), nil
	case 'f':
		return Bool(false), nil
	case '"':
		s, err := p.text(raw)
		return validString(string(s)), err
	}
	v, ok := number(raw)
	if !ok {
		return Value{}, p.failHere(raw, errRange)
	}
	return v, nil
}

// open reads the token that begins a container at the given depth.
func (p *parser) open(depth int) error {
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	if depth > MaxDepth {
		return p.fail(p.dec.InputOffset()-1, errTooDeep)
	}
	return nil
}

func (p *parser) array(depth int) (Value, error) {
	if err := p.open(depth); err != nil {
		return Value{}, err
	}
	base := len(p.elements)
	for p.dec.PeekKind() != jsontext.KindEndArray {
		v, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		p.elements = append(p.elements, v)
	}
	v := arrayOf(append([]Value(nil), p.elements[base:]...))
	p.elements = pop(p.elements, base)
	_, err := p.dec.ReadToken()
	return v, err
}

func (p *parser) object(depth int) (Value, error) {
	if err := p.open(depth); err != nil {
		return Value{}, err
	}
	base, sorted := len(p.members), true
	for p.dec.PeekKind() != jsontext.KindEndObject {
		m, err := p.member(depth)
		if err != nil {
			return Value{}, err
		}
		sorted = sorted && (len(p.members) == base || p.members[len(p.members)-1].key < m.key)
		p.members = append(p.members, m)
	}
	if !sorted {
		if err := p.sort(p.members[base:]); err != nil {
			return Value{}, err
		}
	}
	v := p.build(p.members[base:])
	p.members = pop(p.members, base)
	_, err := p.dec.ReadToken()
	return v, err
}

func (p *parser) member(depth int) (member, error) {
	raw, err := p.dec.ReadValue()
	if err != nil {
		return member{}, err
	}
	offset := p.dec.InputOffset() - int64(len(raw))
	if raw[0] != '"' {
		return member{}, p.fail(offset, jsontext.ErrNonStringName)
	}
	name, err := p.text(raw)
	if err != nil {
		return member{}, err
	}
	key, hash := p.interned.key(name)
	v, err := p.value(depth)
	return member{key, hash, offset, v}, err
}

// sort orders the members of one object by key, and finds duplicates.
func (p *parser) sort(members []member) error {
	slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	for i := 1; i < len(members); i++ {
		if m := members[i]; m.key == members[i-1].key {
			at := p.dec.StackPointer().Parent().AppendToken(m.key)
			return &jsontext.SyntacticError{ByteOffset: m.offset, JSONPointer: at, Err: jsontext.ErrDuplicateName}
		}
	}
	return nil
}

// build returns the object of sorted members.
func (p *parser) build(members []member) Value {
	cells := newCells(len(members))
	for i := range members {
		cells[i+1] = members[i].value
	}
	return objectOf(p.interned.keys(members), cells)
}

// text returns the content of a JSON string, valid until the next call.
func (p *parser) text(raw []byte) ([]byte, error) {
	s := raw[1 : len(raw)-1]
	if bytes.IndexByte(s, '\\') < 0 && (!p.mends || utf8.Valid(s)) {
		return s, nil
	}
	s, err := jsontext.AppendUnquote(p.unquoted[:0], raw)
	p.unquoted = s
	if err != nil && !p.mends {
		return nil, p.failHere(raw, errUTF8)
	}
	return s, nil
}

// number returns the value of a JSON number, and false if it is beyond float64.
func number(raw []byte) (Value, bool) {
	if !bytes.ContainsAny(raw, ".eE") {
		if i, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
			return Int(i), true
		}
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return Float(f), err == nil
}
