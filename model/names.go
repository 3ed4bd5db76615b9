package model

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

const (
	// MaxNameLen bounds the names of spaces, documents, streams and workers, so that a subject built of them
	// stays well below the server's limit.
	MaxNameLen = 64
	// MaxEventIDLen bounds event ids, including those that Settle mints from a space name and three numbers.
	MaxEventIDLen = 160
	// MaxAnyEventIDLen bounds all ids of events: those that Settle mints, including those with a suffix (see NoticeID
	// and RedriveID), and those of principals.
	MaxAnyEventIDLen = MaxNameLen + 1 + MaxEventIDLen + 20
)

// NameError reports which name is invalid and why. Names become tokens of NATS subjects, so they are checked
// once, at the edge, and trusted afterwards.
type NameError struct {
	What   string // "space", "document", "stream", "event id", ...
	Name   string
	Reason string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("%s %q: %s", e.What, e.Name, e.Reason)
}

// CheckName returns an error unless name is valid for what (a space, a document, a stream, a worker): 1 to
// MaxNameLen letters, digits, '-' or '_'. The error is a *NameError that names the first invalid character.
func CheckName(what, name string) error {
	return checkToken(what, name, MaxNameLen, "")
}

// isName reports whether CheckName returns nil. It does not format an error, and so does not allocate.
func isName(name string) bool {
	if name == "" || len(name) > MaxNameLen {
		return false
	}
	for i := range len(name) {
		if !nameRune(rune(name[i])) { // no byte of a longer character is a letter
			return false
		}
	}
	return true
}

// nodeKeyPrefix is a prefix that no document's name has.
const nodeKeyPrefix = "=node."

// StateKeyOfNode returns the StateDoc.Doc of an item that is the observation of a node: it is saved
// like a document, under its own sequence.
func StateKeyOfNode(node string) string { return nodeKeyPrefix + node }

// NodeOfStateKey is the inverse of StateKeyOfNode, and false for a document's name.
func NodeOfStateKey(key string) (node string, ok bool) { return strings.CutPrefix(key, nodeKeyPrefix) }

// pieceKeyPrefix is the prefix of the keys of pieces of the positions.
const pieceKeyPrefix = "=origins."

// Pieces is the number of pieces in which the positions of a space are saved if there are many.
const Pieces = 256

// PieceOf returns the number of the piece that holds the positions of another space. The mapping is part of
// the stored format.
func PieceOf(space string) int { return PartitionOf(space, Pieces) }

// StateKeyOfPiece returns the StateDoc.Doc of a piece of the positions.
func StateKeyOfPiece(n int) string { return pieceKeyPrefix + strconv.Itoa(n) }

// PieceOfStateKey is the inverse of StateKeyOfPiece, and false for anything else.
func PieceOfStateKey(key string) (n int, ok bool) {
	text, ok := strings.CutPrefix(key, pieceKeyPrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n < Pieces && StateKeyOfPiece(n) == key
}

// DueKey is the StateDoc.Doc of the item that holds the time at which a space must be loaded for a
// waiting event: its data are the milliseconds since 1970, absent for never.
const DueKey = "=due"

// laterKeyPrefix is another prefix that no document's name has.
const laterKeyPrefix = "=later."

// StateKeyOfSlot returns the StateDoc.Doc of a waiting event (see Waiting), by its slot.
func StateKeyOfSlot(slot uint64) string { return laterKeyPrefix + strconv.FormatUint(slot, 10) }

// SlotOfStateKey is the inverse of StateKeyOfSlot, and false for any other key.
func SlotOfStateKey(key string) (slot uint64, ok bool) {
	digits, ok := strings.CutPrefix(key, laterKeyPrefix)
	if !ok {
		return 0, false
	}
	slot, err := strconv.ParseUint(digits, 10, 64)
	return slot, err == nil && slot > 0 && digits[0] != '0' && digits[0] != '+'
}

// CheckStateKey returns an error unless key is a valid StateDoc.Doc.
func CheckStateKey(key string) error {
	_, isPiece := PieceOfStateKey(key)
	_, isQuarantine := QuarantineOfStateKey(key)
	if _, isLater := SlotOfStateKey(key); isPiece || isLater || isQuarantine || key == DueKey {
		return nil
	}
	if node, ok := NodeOfStateKey(key); ok {
		return CheckName("node", node)
	}
	return CheckName("document", key)
}

// CheckEventID returns an error unless id may name an event from outside. The alphabet is that of CheckName.
// A ':' is reserved for ids that Settle mints (see TxID.Event), so that no client can choose one of those.
func CheckEventID(id string) error {
	return checkToken("event id", id, MaxEventIDLen, "")
}

// CheckAnyEventID accepts client ids, those of principals, and minted ones: all ids that can occur in a lane.
func CheckAnyEventID(id string) error {
	principal, rest, owned := strings.Cut(id, principalMark)
	if !owned {
		rest = id
	} else if err := CheckName("principal", principal); err != nil {
		return err
	}
	return checkToken("event id", rest, MaxEventIDLen+20, mintedMark)
}

func checkToken(what, name string, limit int, extra string) error {
	if name == "" {
		return &NameError{what, name, "is empty"}
	}
	if len(name) > limit {
		return &NameError{what, name, fmt.Sprintf("is %d characters long, %d are allowed", len(name), limit)}
	}
	for _, r := range name {
		if !nameRune(r) && !strings.ContainsRune(extra, r) {
			return &NameError{what, name, fmt.Sprintf("character %q is not allowed; use letters, digits, '-' and '_'", r)}
		}
	}
	return nil
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// PartitionOf maps a space to one of n partitions. The mapping is part of the stored format: it
// must never change for a deployment that has data.
func PartitionOf(space string, n int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(space))
	return int(h.Sum64() % uint64(n))
}

// TxID identifies a transaction that the runtime of Epoch sealed into a commit of Space. N counts these
// transactions, starting after BeforeFirstTx of the term that began with the epoch. Epoch is the log sequence
// of the commit by which that runtime took over or joined the space.
type TxID struct {
	Space string
	Epoch uint64
	N     uint64
}

func (t TxID) String() string {
	return t.Space + ":" + strconv.FormatUint(t.Epoch, 10) + ":" + strconv.FormatUint(t.N, 10)
}

// Event returns the id of the k-th event (from 0) that transaction t sent.
func (t TxID) Event(k int) string {
	return t.String() + ":" + strconv.Itoa(k)
}

// OriginOf returns the transaction that sent an event, and false for an event from outside. The space in it
// is as trustworthy as the lane: only users with permission to write to a lane can put a minted id there.
func OriginOf(eventID string) (TxID, bool) {
	parts := strings.Split(eventID, ":")
	if len(parts) != 4 {
		return TxID{}, false
	}
	epoch, err1 := strconv.ParseUint(parts[1], 10, 64)
	n, err2 := strconv.ParseUint(parts[2], 10, 64)
	_, err3 := strconv.ParseUint(parts[3], 10, 32)
	if parts[0] == "" || err1 != nil || err2 != nil || err3 != nil {
		return TxID{}, false
	}
	return TxID{Space: parts[0], Epoch: epoch, N: n}, true
}

// NameOf returns a name for a key: the key itself if it is a valid name (see CheckName), otherwise a name
// made of its hash, such as "-key-k0vhqo8m8nll7b8mo6nl8r50f4". The mapping is part of the stored format.
// Collisions are infeasible even for keys chosen by an adversary, because a key that looks like a hashed name
// is hashed, too.
func NameOf(key string) string {
	if isName(key) && !strings.HasPrefix(key, hashMark) {
		return key
	}
	return hashName(key)
}

const (
	hashMark = "-key-"
	// hashChars is the length of 128 bits of a hash in base 32.
	hashChars = 26
)

// hashName returns the name of a key that is not a valid name itself.
func hashName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hashMark + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// RowMark separates the name of a document of rows and a key in the id of the node that derives the
// row.
const RowMark = "--"

// RowNode returns the id of the node that derives the row of a key: it contains the key if the result is a
// valid node name, otherwise a hash of document and key. It contains only the beginning of a long document
// name.
func RowNode(doc, key string) string {
	if id := doc + RowMark + key; isName(id) && !strings.HasPrefix(key, hashMark) {
		return id
	}
	room := min(len(doc), MaxNameLen-len(RowMark)-len(hashMark)-hashChars)
	return doc[:room] + RowMark + hashName(doc+RowMark+key)
}
