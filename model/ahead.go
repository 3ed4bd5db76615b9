package model

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// Ahead describes how far a partition is done with its lane except for a few spaces: every event up to UpTo
// is handled and saved, except those of the spaces in Aside (docs/adr/0033). It is a fact about the log, so
// it remains true.
type Ahead struct {
	UpTo  uint64  `json:"up_to"`
	Aside []Aside `json:"aside,omitzero"`
}

// Aside is a space that is set aside. Its events up to the lane sequence Done are done, later ones may not
// be. Last is the last of the later ones, before or after Ahead.UpTo; it is at most Done if there are none,
// and the space has something else to save.
type Aside struct {
	Space string `json:"space"`
	Done  uint64 `json:"done"`
	Last  uint64 `json:"last,omitzero"`
}

// AheadPosition is the name of the position under which an Ahead is stored. Moving the position to another
// sequence removes it.
const AheadPosition = "ahead"

// MaxAside bounds the spaces of a partition that are set aside.
const MaxAside = 1000

// AsideBytes bounds the stored size of a space in an Ahead.
func AsideBytes(space string) int { return len(space) + 72 }

// DoneWith returns the lane sequence up to which a space is done.
func (a *Ahead) DoneWith(space string) uint64 {
	for _, s := range a.Aside {
		if s.Space == space {
			return min(s.Done, a.UpTo)
		}
	}
	return a.UpTo
}

// Encode encodes a for DecodeAhead.
func (a *Ahead) Encode() ([]byte, error) { return json.Marshal(a) }

// DecodeAhead decodes an Ahead. After an error no part of it is valid.
func DecodeAhead(data []byte) (Ahead, error) {
	var a Ahead
	if err := json.Unmarshal(data, &a); err != nil {
		return Ahead{}, fmt.Errorf("spaces that are set aside: %w", err)
	}
	if len(a.Aside) > MaxAside {
		return Ahead{}, fmt.Errorf("%d spaces are set aside, %d may be", len(a.Aside), MaxAside)
	}
	if err := a.check(); err != nil {
		return Ahead{}, fmt.Errorf("spaces that are set aside: %w", err)
	}
	return a, nil
}
