package model

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Path is a location inside a document, as a sequence of object keys or array indices. The empty path is the
// root. Paths are shared: treat a Path as immutable once it was passed on.
type Path []string

// ParsePath parses a JSON Pointer (RFC 6901): "" is the root, "/flights/0/gate" three steps down.
// In a step, "~1" stands for '/' and "~0" for '~'.
func ParsePath(pointer string) (Path, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, fmt.Errorf("path %q: must be empty or begin with '/'", pointer)
	}
	if !utf8.ValidString(pointer) {
		return nil, fmt.Errorf("path %q: is not valid UTF-8", pointer)
	}
	p := make(Path, 0, strings.Count(pointer, "/"))
	for rest, more := pointer[1:], true; more; {
		var step string
		step, rest, more = strings.Cut(rest, "/")
		if !validEscapes(step) {
			return nil, fmt.Errorf("path %q: a '~' must be written ~0", pointer)
		}
		p = append(p, unescapeStep(step))
	}
	return p, nil
}

func validEscapes(step string) bool {
	for i := 0; i < len(step); i++ {
		if step[i] != '~' {
			continue
		}
		if i++; i == len(step) || step[i] != '0' && step[i] != '1' {
			return false
		}
	}
	return true
}

func unescapeStep(step string) string {
	if strings.IndexByte(step, '~') < 0 {
		return step
	}
	// ~1 first: "~01" is '~' and '1', not '/'.
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}

func escapeStep(step string) string {
	if !strings.ContainsAny(step, "~/") {
		return step
	}
	return strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1")
}

// String returns the JSON Pointer of p.
func (p Path) String() string {
	n := 0
	for _, step := range p {
		n += 1 + len(step)
	}
	pointer := make([]byte, 0, n)
	for _, step := range p {
		pointer = append(append(pointer, '/'), escapeStep(step)...)
	}
	return string(pointer)
}

// HasPrefix reports whether p is at or below prefix.
func (p Path) HasPrefix(prefix Path) bool {
	if len(prefix) > len(p) {
		return false
	}
	for i, step := range prefix {
		if p[i] != step {
			return false
		}
	}
	return true
}

// Overlaps reports whether one of the paths is at or below the other, so that a change at one is visible at
// the other.
func (p Path) Overlaps(q Path) bool {
	return p.HasPrefix(q) || q.HasPrefix(p)
}

// child returns p with one more step, in newly allocated memory.
func (p Path) child(step string) Path {
	own := make(Path, len(p)+1)
	copy(own, p)
	own[len(p)] = step
	return own
}

// arrayIndex parses a step as an array index as in RFC 6901: digits without leading zeros. "-" (after the
// last element) is not accepted, because a stored write must mean the same whenever it is applied.
func arrayIndex(step string) (int, bool) {
	if step == "" || len(step) > 9 || len(step) > 1 && step[0] == '0' {
		return 0, false
	}
	n := 0
	for i := 0; i < len(step); i++ {
		d := step[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int(d)
	}
	return n, true
}
