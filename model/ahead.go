package model

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// Ahead is how far a partition is done with its lane, but for a few spaces: every event up to UpTo
// is handled and saved, except those of the spaces in Aside (docs/adr/0033). It is a fact about the
// log, so it stays true whatever happens afterwards.
type Ahead struct {
	UpTo  uint64  `json:"up_to"`
	Aside []Aside `json:"aside,omitzero"`
}

// Aside is a space that is set aside. It is done with its events up to the lane sequence Done, and
// may not be done with those behind it. Last is the last of them, at or before Ahead.UpTo or
// behind it; it is not above Done if there are none, and the space has something else to save.
type Aside struct {
	Space string `json:"space"`
	Done  uint64 `json:"done"`
	Last  uint64 `json:"last,omitzero"`
}

// AheadPosition is the name of the position under which an Ahead is kept. Moved to another
// sequence, it holds none.
const AheadPosition = "ahead"

// MaxAside bounds how many spaces of a partition are set aside.
const MaxAside = 1000

// AsideBytes bounds what the spaces of an Ahead take when it is stored.
func AsideBytes(space string) int { return len(space) + 72 }

// DoneWith is the lane sequence up to which a space is done.
func (a *Ahead) DoneWith(space string) uint64 {
	for _, s := range a.Aside {
		if s.Space == space {
			return min(s.Done, a.UpTo)
		}
	}
	return a.UpTo
}

// Encode is the inverse of DecodeAhead.
func (a *Ahead) Encode() ([]byte, error) { return json.Marshal(a) }

// DecodeAhead reads what is stored. An error says that nothing of it is to be believed.
func DecodeAhead(data []byte) (Ahead, error) {
	var a Ahead
	if err := json.Unmarshal(data, &a); err != nil {
		return Ahead{}, fmt.Errorf("spaces that are set aside: %w", err)
	}
	if len(a.Aside) > MaxAside {
		return Ahead{}, fmt.Errorf("%d spaces are set aside, %d may be", len(a.Aside), MaxAside)
	}
	for _, s := range a.Aside {
		if err := CheckName("space", s.Space); err != nil {
			return Ahead{}, fmt.Errorf("spaces that are set aside: %w", err)
		}
	}
	return a, nil
}
