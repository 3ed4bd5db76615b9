package model

import (
	"errors"
	"fmt"
)

// OutdatedError is ErrOutdated with what is stored: a state as of the same log sequence, or of a
// later one.
type OutdatedError struct {
	Have, Want uint64 // the log sequences of what is stored, and of what was to be
	Rev        uint64 // the revision of what is stored
}

func (e *OutdatedError) Error() string {
	return fmt.Sprintf("the state of %d is stored, and that of %d was to be: %v", e.Have, e.Want, ErrOutdated)
}

// Unwrap makes it ErrOutdated.
func (e *OutdatedError) Unwrap() error { return ErrOutdated }

// MarkSaved takes the answer to a save of a mark alone. A mark that another runtime has saved at
// the same log sequence is as good: a mark is what the log adds up to, and stands over documents
// that are saved. The mark gets the revision of that one then, and there is no error.
func MarkSaved(err error, mark *StateDoc) error {
	var there *OutdatedError
	if !errors.As(err, &there) || there.Have != mark.Seq {
		return err
	}
	mark.Rev = there.Rev
	return nil
}
