package model

import "fmt"

// VersionKey is the key of an object that holds the version of its form, if that is not 1. An object without it has version 1.
const VersionKey = "$version"

// VersionOf returns the version of the form of a document, or of a row.
func VersionOf(v Value) int { return VersionIn(v.Get(VersionKey)) }

// VersionIn returns the version that a value of VersionKey means.
func VersionIn(v Value) int {
	if n, ok := v.AsInt(); ok && n > 1 && n <= MaxVersion {
		return int(n)
	}
	return 1
}

// MaxVersion is the largest version of a document's form.
const MaxVersion = 1_000_000

// NewerError reports a document, or a row, that a later version of the program has written. An event whose handler meets one
// waits until a worker with that version serves the space.
type NewerError struct {
	// Place is where it is, Version its version, and Known the latest one that this program reads.
	Place          string
	Version, Known int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s has version %d, and this program reads version %d: a later version of the program has written it; deploy that program", e.Place, e.Version, e.Known)
}
