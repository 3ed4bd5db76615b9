package model

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Write is one change to one document.
//
// Its JSON form is an array, because a commit holds many: ["stats","/seen",5]
// sets, ["stats","/seen"] deletes. The path "" is the whole document.
type Write struct {
	Doc  string
	Path Path
	// Value is the value to set at Path. Absent means the same as Delete.
	Value Value
	// Delete removes the value at Path; Value is ignored.
	Delete bool
}

// deletes reports whether w removes a value.
func (w Write) deletes() bool { return w.Delete || w.Value.IsAbsent() }

// Apply returns the document root after w. It fails like Set and Delete, and then returns root.
func (w Write) Apply(root Value) (Value, error) {
	x := w.Value
	if w.Delete {
		x = Value{}
	}
	after, err := root.Set(w.Path, x)
	if err != nil {
		return root, fmt.Errorf("document %s: %w", w.Doc, err)
	}
	return after, nil
}

// String returns the JSON form of w.
func (w Write) String() string { return string(w.appendJSON(nil)) }

func (w Write) appendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	dst = appendQuoted(dst, validUTF8(w.Doc))
	dst = append(dst, ',', '"')
	for _, step := range w.Path {
		dst = appendEscaped(append(dst, '/'), validUTF8(escapeStep(step)))
	}
	dst = append(dst, '"')
	if !w.deletes() {
		dst = append(dst, ',')
		dst = w.Value.AppendJSON(dst)
	}
	return append(dst, ']')
}

// check reports a write that could be encoded but not decoded unchanged.
func (w Write) check() error {
	if w.Doc == "" {
		return errNoDoc
	}
	if validUTF8(w.Doc) != w.Doc {
		return fmt.Errorf("document %q: %w", w.Doc, errUTF8)
	}
	for i := range w.Path {
		if err := checkKey(w.Path, i); err != nil {
			return err
		}
	}
	if w.deletes() {
		return nil
	}
	return checkDepth(w.Value, len(w.Path))
}

var (
	errNoDoc   = errors.New("a write must name a document")
	errNoWrite = errors.New(`a write must be ["document","path",value] or ["document","path"]`)
)

// MarshalJSON is MarshalJSONTo for encoding/json.
func (w Write) MarshalJSON() ([]byte, error) {
	if err := w.check(); err != nil {
		return nil, fmt.Errorf("marshal write: %w", err)
	}
	return w.appendJSON(nil), nil
}

// MarshalJSONTo writes the JSON form of w. It refuses what UnmarshalJSONFrom would not accept.
func (w Write) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := w.check(); err != nil {
		return fmt.Errorf("marshal write: %w", err)
	}
	return encode(enc, w.appendJSON)
}

// UnmarshalJSON is UnmarshalJSONFrom for encoding/json.
func (w *Write) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, w)
}

// UnmarshalJSONFrom reads the JSON form of a write, strictly: a wrong number of elements, an empty document
// name or a path that is not a JSON Pointer is an error.
func (w *Write) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if k := dec.PeekKind(); k != jsontext.KindBeginArray && k != jsontext.KindInvalid {
		return errNoWrite
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	var x Write
	var err error
	if x.Doc, err = readString(dec); err != nil {
		return err
	}
	if x.Doc == "" {
		return errNoDoc
	}
	pointer, err := readString(dec)
	if err != nil {
		return err
	}
	if x.Path, err = ParsePath(pointer); err != nil {
		return err
	}
	if x.Delete = dec.PeekKind() == jsontext.KindEndArray; !x.Delete {
		if err := x.Value.UnmarshalJSONFrom(dec); err != nil {
			return err
		}
	}
	if k := dec.PeekKind(); k != jsontext.KindEndArray && k != jsontext.KindInvalid {
		return errNoWrite
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	*w = x
	return nil
}

// readString reads the next element of a write, which must be a string.
func readString(dec *jsontext.Decoder) (string, error) {
	if k := dec.PeekKind(); k != jsontext.KindString && k != jsontext.KindInvalid {
		return "", errNoWrite
	}
	tok, err := dec.ReadToken()
	if err != nil {
		return "", err
	}
	return tok.String(), nil
}
