package simkit

import (
	"slices"
	"strings"

	"github.com/settlehq/settle/model"
)

// A space exists from the first event that it has handled, or the first document that a test has written, on. Readers of lists of
// spaces learn of it at once; in a deployment they do within seconds.

// exist records that a space exists.
func (w *World) exist(s *Space) {
	i, known := slices.BinarySearch(w.existing, s.name)
	if known {
		return
	}
	w.existing = slices.Insert(w.existing, i, s.name)
	for _, reader := range w.order { // in order: it decides which space is settled first
		for _, pattern := range w.patternsOf(reader) {
			if model.MatchesPattern(pattern, s.name) {
				reader.core.Mirror(pattern, model.SpacesDoc, w.listOf(pattern))
				w.touch(reader)
			}
		}
	}
}

// patternsOf returns the patterns whose lists a space reads, sorted.
func (w *World) patternsOf(s *Space) (patterns []string) {
	for pattern, readers := range w.listings { // any order: sorted below
		if slices.Contains(readers, s) {
			patterns = append(patterns, pattern)
		}
	}
	slices.Sort(patterns)
	return patterns
}

// listOf returns the document model.SpacesDoc of a pattern.
func (w *World) listOf(pattern string) model.Value {
	var names []model.Field
	for _, name := range w.existing {
		if model.MatchesPattern(pattern, name) {
			names = append(names, model.Field{Key: name, Value: model.Bool(true)})
		}
	}
	return model.Object(names...)
}

// makes reports whether a transaction makes its space exist. What a read has computed does not, unless its program names the space for that.
func (s *Space) makes(tx *model.Tx) bool {
	byNode := strings.HasPrefix(tx.By, "compute ") || strings.HasPrefix(tx.By, "effect ")
	return s.program.IsMadeByReads(s.name) || tx.Receipt != nil || len(tx.Writes) > 0 && !byNode
}
