package model

import (
	"fmt"
	"strings"
)

// Nearest returns the most similar of some names, if one is similar enough to be meant.
func Nearest(name string, names []string) (string, bool) {
	const longest = 200 // names from outside can be of any length, and the comparison takes the product of two lengths
	if len(name) > longest {
		return "", false
	}
	best, least := "", max(1, len(name)/3)+1
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return n, true
		}
		if more := len(n) - len(name); more >= least || -more >= least {
			continue
		}
		if d := distance(strings.ToLower(name), strings.ToLower(n)); d < least && d < max(len(name), len(n)) {
			best, least = n, d
		}
	}
	return best, best != ""
}

// distance returns the number of bytes to add, remove or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := left
			if a[i] != b[j] {
				cost = 1 + min(left, row[j], row[j+1])
			}
			left, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// DidYouMean returns the end of an error about a name that is not known: `; did you mean "charge"?` if one of the names is similar, "" if none is.
func DidYouMean(name string, names []string) string {
	if near, ok := Nearest(name, names); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}
