package model

import (
	"fmt"
	"strings"
	"time"
)

// Record is what the deployment keeps under a key beside its spaces, such as a version of a
// program.
type Record struct {
	Key  string
	Data []byte
	// Rev is the revision under which it is stored, which grows with everything that is
	// stored there; 0 means that nothing is.
	Rev uint64
	// Stored is when, by the server's clock.
	Stored time.Time
}

// CheckRecordKey reports whether key can be a Record's: names, separated by dots.
func CheckRecordKey(key string) error {
	for part := range strings.SplitSeq(key, ".") {
		if err := CheckName("part of a record's key", part); err != nil {
			return fmt.Errorf("record %q: %w", key, err)
		}
	}
	return nil
}
