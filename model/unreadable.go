package model

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// UnreadableError reports a stored message that a space cannot get past: it cannot be decoded, or does not
// fit its place. The space is set aside until an operator decides (docs/adr/0041).
type UnreadableError struct {
	Space string
	// Seq is the sequence of the commit in the log. For an item of the saved state it is the revision, and
	// Item its key.
	Seq  uint64
	Item string
	// Sum is the hash of the bytes of the commit, see Quarantined.
	Sum    string
	Reason error
}

func (e *UnreadableError) Error() string {
	if e.Item != "" {
		return fmt.Sprintf("saved state of space %s, item %s, revision %d: %v", e.Space, e.Item, e.Seq, e.Reason)
	}
	return fmt.Sprintf("log of space %s, sequence %d: %v", e.Space, e.Seq, e.Reason)
}

// Unwrap returns the reason.
func (e *UnreadableError) Unwrap() error { return e.Reason }

// Unreadable returns an UnreadableError about a commit.
func (e *LogEntry) Unreadable(why error) *UnreadableError {
	return &UnreadableError{Space: e.Space, Seq: e.Seq, Sum: SumOf(e.Data), Reason: why}
}

// IsKnownForm reports whether the entry begins like the commits that this program reads. Only in those is it known how texts are written.
func (e *LogEntry) IsKnownForm() bool {
	return bytes.HasPrefix(e.Data, knownForm) || bytes.HasPrefix(e.Data, knownRanged)
}

var knownForm, knownRanged = []byte(`{"v":1,`), []byte(`{"v":2,`)

// MayName reports whether an entry of a known form may contain a text. It is cheaper than to decode the entry, and never wrong if it returns false.
func (e *LogEntry) MayName(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return true // it may be escaped
		}
	}
	return bytes.Contains(e.Data, unsafe.Slice(unsafe.StringData(text), len(text)))
}

// Commit decodes the commit of an entry, and checks it against the subject and the id under which it was
// appended. The error is an *UnreadableError.
func (e *LogEntry) Commit() (*Commit, error) {
	if e.decoded != nil {
		return e.decoded()
	}
	return e.decode()
}

// Shared returns the entry for several readers: its commit is decoded once for all copies of it, by the first call of Commit, and no reader
// may change it. once makes a function that calls another one once, such as sync.OnceValues.
func (e LogEntry) Shared(once func(decode func() (*Commit, error)) func() (*Commit, error)) LogEntry {
	own := e
	e.decoded = once(own.decode)
	return e
}

func (e *LogEntry) decode() (*Commit, error) {
	c, err := DecodeCommit(e.Data)
	if err != nil {
		return nil, e.Unreadable(err)
	}
	if c.Space != e.Space {
		return nil, e.Unreadable(fmt.Errorf("it is a commit of space %s", clipped(c.Space)))
	}
	// The id is that of the commit followed by a nonce. Entries that were not read from a store have none.
	if id := c.ID(); e.ID != "" && e.ID != id && !strings.HasPrefix(e.ID, id+"/") {
		return nil, e.Unreadable(fmt.Errorf("it was appended as %s, and is %s", clipped(e.ID), clipped(id)))
	}
	return c, nil
}
