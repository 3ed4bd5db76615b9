package model

import (
	"errors"
	"fmt"
)

// OutdatedError is an ErrOutdated that describes what is stored: a state with the same log sequence, or a
// later one.
type OutdatedError struct {
	Have, Want uint64 // the log sequences of the stored state and of the one to be saved
	Rev        uint64 // the revision of the stored state
}

func (e *OutdatedError) Error() string {
	return fmt.Sprintf("the state of sequence %d is stored, that of %d is not newer: %v", e.Have, e.Want, ErrOutdated)
}

// Unwrap returns ErrOutdated.
func (e *OutdatedError) Unwrap() error { return ErrOutdated }

// MarkSaved interprets the result of saving a mark alone. If another runtime has saved a mark at the same log
// sequence, that mark is equivalent: a mark is a function of the log, and is saved after its documents. The
// mark then gets the revision of the stored one, and there is no error.
func MarkSaved(err error, mark *StateDoc) error {
	var there *OutdatedError
	if !errors.As(err, &there) || there.Have != mark.Seq {
		return err
	}
	mark.Rev = there.Rev
	return nil
}
