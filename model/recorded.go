package model

import (
	"fmt"
	"strings"
	"time"
)

// Record is a value that the deployment stores under a key, independent of its spaces, such as a version of a
// program.
type Record struct {
	Key  string
	Data []byte
	// Rev is the revision under which it is stored, which grows with every write to the store; 0 means that
	// nothing is stored.
	Rev uint64
	// Stored is when it was stored, by the server's clock.
	Stored time.Time
}

// CheckRecordKey returns an error unless key is a valid key of a Record: names, separated by dots.
func CheckRecordKey(key string) error {
	for part := range strings.SplitSeq(key, ".") {
		if err := CheckName("part of a record's key", part); err != nil {
			return fmt.Errorf("record %q: %w", key, err)
		}
	}
	return nil
}
