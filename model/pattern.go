package model

import "strings"

// patternMark ends a pattern of names, and stands for any further characters.
const patternMark = "*"

// SpacesDoc names the list of the spaces that match a pattern, where a reader names the pattern as the space: an object with a key for
// each. No space has such a document, since no name of a space is a pattern; runtimes that read one are told of the spaces by their host.
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

// MatchesPattern reports whether a name matches a pattern, or is the name itself.
func MatchesPattern(pattern, name string) bool {
	prefix, starred := strings.CutSuffix(pattern, patternMark)
	return pattern == name || starred && strings.HasPrefix(name, prefix)
}
