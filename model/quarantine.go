package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// QuarantineVersion is the version of the encoding of a Quarantined.
const QuarantineVersion = 1

// Quarantined is the record of a commit that readers cannot get past: it is an item of the saved state of its
// space. The space is set aside until an operator decides (docs/adr/0041).
type Quarantined struct {
	Version int `json:"v"`
	// Seq is the log sequence of the commit, and Sum the hash of its bytes: the record does not apply to
	// another commit of that sequence.
	Seq uint64 `json:"seq"`
	Sum string `json:"sum"`
	// Reason is the reason, and By the process that found the commit, at Since by its clock.
	Reason string    `json:"why"`
	By     string    `json:"by,omitzero"`
	Since  time.Time `json:"since,omitzero"`
	// Decision is the operator's decision, made at Decided, "" if there is none, and Note the operator's
	// remark.
	Decision Decision  `json:"decision,omitzero"`
	Decided  time.Time `json:"decided,omitzero"`
	Note     string    `json:"note,omitzero"`
	// Commit is the commit that all readers use instead.
	Commit jsontext.Value `json:"commit,omitzero"`
}

// Decision is what an operator has decided about a commit in quarantine.
type Decision string

const (
	// Skipped: the space continues as if the commit were empty.
	Skipped Decision = "skipped"
	// Restored: the space continues with a copy of the commit.
	Restored Decision = "restored"
)

// QuarantinePrefix begins the StateDoc.Doc of each Quarantined.
const QuarantinePrefix = "=quarantine."

// StateKeyOfQuarantine returns the StateDoc.Doc of a Quarantined, by the sequence of its commit.
func StateKeyOfQuarantine(seq uint64) string {
	return QuarantinePrefix + strconv.FormatUint(seq, 10)
}

// QuarantineOfStateKey is the inverse of StateKeyOfQuarantine, and false for any other key.
func QuarantineOfStateKey(key string) (seq uint64, ok bool) {
	digits, ok := strings.CutPrefix(key, QuarantinePrefix)
	if !ok {
		return 0, false
	}
	seq, err := strconv.ParseUint(digits, 10, 64)
	return seq, err == nil && seq > 0 && StateKeyOfQuarantine(seq) == key
}

// SumOf returns Quarantined.Sum of the bytes of a commit.
func SumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// IsOf reports whether the record is about a commit in the log.
func (q *Quarantined) IsOf(e *LogEntry) bool { return q.Seq == e.Seq && q.Sum == SumOf(e.Data) }

// Substitute returns the commit that replaces an entry, nil if no operator has decided about that entry.
func (q *Quarantined) Substitute(e *LogEntry) (*Commit, error) {
	if q.Decision == "" || !q.IsOf(e) {
		return nil, nil
	}
	stands := *e
	stands.Data, stands.ID = q.Commit, ""
	return stands.Commit()
}

// Encode returns the record as it is saved.
func (q *Quarantined) Encode() ([]byte, error) {
	data, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("encode quarantine of commit %d: %w", q.Seq, err)
	}
	return data, nil
}

// DecodeQuarantined is the inverse of Encode.
func DecodeQuarantined(data []byte) (*Quarantined, error) {
	var q Quarantined
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, fmt.Errorf("decode quarantine: %w", err)
	}
	var b bounds
	b.number("seq", q.Seq)
	b.line("sum", q.Sum, 2*sha256.Size)
	b.line("why", q.Reason, maxLong)
	b.line("by", q.By, maxShort)
	b.line("decision", string(q.Decision), maxShort)
	b.line("note", q.Note, maxLong)
	switch {
	case b.err != nil:
		return nil, fmt.Errorf("decode quarantine: %w", b.err)
	case q.Version != QuarantineVersion:
		return nil, fmt.Errorf("decode quarantine: format version %d, this program reads %d; upgrade it", q.Version, QuarantineVersion)
	}
	return &q, nil
}
