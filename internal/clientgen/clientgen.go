// Package clientgen writes clients of a program: the names of its streams and documents, and the types of their payloads, in TypeScript and in Go.
package clientgen

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// names makes identifiers that differ.
type names map[string]bool

// of returns an identifier for a name: in camel case, with the suffix if it is taken without, and then with a number.
func (n names) of(name, suffix string) string {
	id := camel(name)
	for i := 1; n[id]; i++ {
		id = camel(name) + suffix
		if i > 1 {
			id += strconv.Itoa(i)
		}
	}
	n[id] = true
	return id
}

// camel returns an exported identifier: LotClosed for lot-closed.
func camel(name string) string {
	var b strings.Builder
	up := true
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			up = true
		case up:
			b.WriteRune(unicode.ToUpper(r))
			up = false
		default:
			b.WriteRune(r)
		}
	}
	id := b.String()
	if id == "" || !unicode.IsUpper([]rune(id)[0]) {
		return "X" + id
	}
	return id
}

// identifier is a name that needs no quotes in TypeScript.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// comment returns the first paragraph of a text, for a comment.
func comment(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
	return strings.ReplaceAll(strings.Join(strings.Fields(first), " "), "*/", "* /")
}
