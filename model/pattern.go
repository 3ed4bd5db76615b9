package model

import "strings"

// patternMark ends a pattern of names, and stands for any further characters.
const patternMark = "*"

// SpacesDoc names the list of the spaces that match a pattern, where a reader names the pattern as the space: an object with a key for
// each. No space has such a document, since no name of a space is a pattern; the host of a runtime that reads one delivers it.
const SpacesDoc = "spaces"

// IsPattern reports whether a name is a pattern, such as "lot-*". No valid name is.
func IsPattern(name string) bool { return strings.HasSuffix(name, patternMark) }

// PatternOf returns the pattern of the names that begin with a prefix.
func PatternOf(prefix string) string { return prefix + patternMark }

// CheckPattern returns an error unless a pattern is a prefix of valid names for what, with an asterisk behind it, which alone stands
// for every name.
func CheckPattern(what, pattern string) error {
	prefix, starred := strings.CutSuffix(pattern, patternMark)
	switch {
	case !starred:
		return &NameError{what, pattern, "is no pattern; a pattern ends in *, as lot-* does"}
	case prefix == "":
		return nil
	}
	return checkToken(what, prefix, MaxNameLen, "")
}

// CheckNameOrPattern returns an error unless a text is a valid name for what, or a pattern of such names.
func CheckNameOrPattern(what, text string) error {
	if IsPattern(text) {
		return CheckPattern(what, text)
	}
	return CheckName(what, text)
}

// MatchesPattern reports whether a name matches a pattern, or is the name itself.
func MatchesPattern(pattern, name string) bool {
	prefix, starred := strings.CutSuffix(pattern, patternMark)
	return pattern == name || starred && strings.HasPrefix(name, prefix)
}

// Spaces are all spaces whose names match a pattern.
type Spaces struct{ pattern string }

// SpacesOf returns the spaces of a pattern, such as "lot-*", or "*" for all.
func SpacesOf(pattern string) (Spaces, error) {
	return Spaces{pattern}, CheckPattern("spaces", pattern)
}

// Pattern returns the pattern.
func (s Spaces) Pattern() string { return s.pattern }

// Matches reports whether a space is one of them, by its name.
func (s Spaces) Matches(space string) bool { return MatchesPattern(s.pattern, space) }

// Among returns those of the names that match.
func (s Spaces) Among(names []string) (some []string) {
	for _, name := range names {
		if s.Matches(name) {
			some = append(some, name)
		}
	}
	return some
}

// Names returns the names of those that exist, in order, as the worker knows them, which learns of a new space within seconds. A computation
// depends on which there are. r is the transaction of a handler, or the view of a node.
func (s Spaces) Names(r interface {
	GetFrom(space, doc string, path ...string) Value
}, page ...Page,
) []string {
	var p Page
	if len(page) > 0 {
		p = page[0]
	}
	return p.Of(r.GetFrom(s.pattern, SpacesDoc).Keys())
}
