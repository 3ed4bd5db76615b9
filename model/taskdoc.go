package model

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// taskDocMark begins the names of documents that hold one task each. Only the actions of a program write to them.
const taskDocMark = "-task-"

// TaskDoc returns the name of the document of a task that has one of its own: made of a hash of the action and the key. The
// mapping is part of the stored format.
func TaskDoc(action, key string) string {
	sum := sha256.Sum256([]byte(action + "\x00" + key))
	var name [len(taskDocMark) + 22]byte
	copy(name[:], taskDocMark)
	base64.RawURLEncoding.Encode(name[len(taskDocMark):], sum[:16])
	return string(name[:])
}

// IsTaskDoc reports whether the name of a document is one of those that TaskDoc returns.
func IsTaskDoc(doc string) bool { return strings.HasPrefix(doc, taskDocMark) }
