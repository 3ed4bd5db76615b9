package model

import (
	"errors"
	"fmt"
)

// Link points to a location in a document. It is itself a value and can occur wherever a value can:
//
//	{"$link":{"doc":"flights","path":["BT600","gate"],"space":"RIX"}}
//
// This package never follows links. Comparing two links compares the addresses, not the values there.
type Link struct {
	// Space is the space of the document; "" is the space that contains the link.
	Space string
	Doc   string
	// Path is the location inside the document; the empty path is the whole document.
	Path Path
}

// The keys of the JSON form of a link.
const (
	linkKey   = "$link"
	linkDoc   = "doc"
	linkPath  = "path"
	linkSpace = "space"
)

// Value returns the link as a value. An empty Space or Path is omitted. A Link whose names CheckName refuses
// becomes plain data, which AsLink does not accept as a link; Of returns an error instead.
func (l Link) Value() Value {
	target := []Field{{linkDoc, String(l.Doc)}}
	if len(l.Path) > 0 {
		steps := make([]Value, len(l.Path))
		for i, step := range l.Path {
			steps[i] = String(step)
		}
		target = append(target, Field{linkPath, arrayOf(steps)})
	}
	if l.Space != "" {
		target = append(target, Field{linkSpace, String(l.Space)})
	}
	return Object(Field{linkKey, Object(target...)})
}

// IsLink reports whether v is a link, that is whether AsLink returns true. It does not allocate, and for
// anything but an object of one key it examines only v itself, because every step of every read calls it.
func (v Value) IsLink() bool {
	_, isObject := v.any.(objectptr)
	return isObject && v.num&lenMask == 1 && v.holdsLink()
}

// holdsLink is IsLink for an object of one key.
func (v Value) holdsLink() bool {
	keys, values := v.members()
	return keys[0] == linkKey && isTarget(values[0])
}

// isTarget reports whether v can be the value of "$link".
func isTarget(v Value) bool {
	named := false
	keys, values := v.members()
	for i, x := range values {
		fits := false
		switch keys[i] {
		case linkDoc:
			named = true
			fits = isNameValue(x)
		case linkSpace:
			fits = isNameValue(x)
		case linkPath:
			fits = isPathValue(x)
		}
		if !fits {
			return false
		}
	}
	return named
}

func isNameValue(v Value) bool {
	s, ok := v.AsString()
	return ok && isName(s)
}

func isPathValue(v Value) bool {
	for _, step := range v.elements() {
		if step.Kind() != KindString {
			return false
		}
	}
	return v.Kind() == KindArray
}

// AsLink returns v as a link, and false if v is plain data. It is strict: an object with more keys than a
// link, without one of them, or with other values under them, is plain data. An empty path is accepted,
// although Value omits it: [] and no path lead to the same location but are not Equal.
func (v Value) AsLink() (Link, bool) {
	if !v.IsLink() {
		return Link{}, false
	}
	_, values := v.members()
	target := values[0]
	var l Link
	l.Doc, _ = target.Get(linkDoc).AsString()
	l.Space, _ = target.Get(linkSpace).AsString()
	if steps := target.Get(linkPath).elements(); len(steps) > 0 {
		l.Path = make(Path, len(steps))
		for i, step := range steps {
			l.Path[i], _ = step.AsString()
		}
	}
	return l, true
}

// String formats the link for people: "-> @space/doc/path", without "@space/" for a link within its space.
func (l Link) String() string {
	if l.Space == "" {
		return "-> " + l.Doc + l.Path.String()
	}
	return "-> @" + l.Space + "/" + l.Doc + l.Path.String()
}

// check reports links that Value would turn into plain data or repair.
func (l Link) check() error {
	if err := CheckName("document", l.Doc); err != nil {
		return err
	}
	if l.Space != "" {
		if err := CheckName("space", l.Space); err != nil {
			return err
		}
	}
	for i := range l.Path {
		if err := checkKey(l.Path, i); err != nil {
			return err
		}
	}
	return nil
}

// MarshalJSON writes the text of Value, so that a struct may contain a Link. It refuses what AsLink would not
// accept.
func (l Link) MarshalJSON() ([]byte, error) {
	if err := l.check(); err != nil {
		return nil, fmt.Errorf("marshal link: %w", err)
	}
	return l.Value().AppendJSON(nil), nil
}

var errNoLink = errors.New(`a link must be {"$link":{"doc":"document","path":["step"],"space":"space"}}, path and space optional`)

// UnmarshalJSON reads a link, as strictly as AsLink, and nothing else.
func (l *Link) UnmarshalJSON(data []byte) error {
	v, err := ParseValue(data)
	if err != nil {
		return err
	}
	x, ok := v.AsLink()
	if !ok {
		return errNoLink
	}
	*l = x
	return nil
}
