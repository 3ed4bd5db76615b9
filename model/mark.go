package model

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// MarkVersion is the version of a checkpoint mark's encoding, SplitMarkVersion that of one
// whose positions are saved in pieces beside it: programs that do not know of those would
// take the space to have none. The others are those of a mark whose cursor is stored in the
// longer form; they are not seen outside of this file.
const (
	MarkVersion      = 1
	SplitMarkVersion = 2

	rangedMarkVersion      = 3
	rangedSplitMarkVersion = 4
)

// Mark is the part of a checkpoint that is not documents: what the commits of a
// space up to StateDoc.Seq add up to besides.
type Mark struct {
	Version int    `json:"v"`
	Epoch   uint64 `json:"ep"`
	Owner   string `json:"rt"`
	Cursor  Cursor `json:"cur"`
	// Barren, Fruitful, Trying and Tried are those of replica.Lives.
	Barren   int     `json:"bar,omitzero"`
	Fruitful bool    `json:"fru,omitzero"`
	Trying   *Trying `json:"try,omitzero"`
	Tried    uint64  `json:"tryep,omitzero"`
	// First is the bucket's revision of the first mark of this epoch, 0 in that one. Before
	// are revision and log sequence of the mark that the owner has loaded. See Standing.
	First  uint64   `json:"fst,omitzero"`
	Before Standing `json:"bef,omitzero"`
	// Purged are marks of this owner behind which markers of deleted documents were purged.
	Purged []Standing `json:"pur,omitzero"`
	Positions
	// Own are the follow-ups that are committed and not handled, in order.
	Own []Send `json:"own,omitzero"`
}

// Standing is where a mark stood in its bucket, and what it covered. Everything that it
// covers was stored before it.
type Standing struct {
	Rev uint64 `json:"r,omitzero"`
	Seq uint64 `json:"s,omitzero"`
}

// Positions are what a space has exchanged with others: Inbound is the highest position
// handled per origin space, Outbound the highest position sent per target space. They only
// grow, so of two that are known the larger one holds.
type Positions struct {
	Inbound  map[string]uint64 `json:"in,omitzero"`
	Outbound map[string]uint64 `json:"out,omitzero"`
}

// Encode is a piece of the positions as it is stored.
func (p *Positions) Encode() ([]byte, error) {
	data, err := json.Marshal(p, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode positions: %w", err)
	}
	return data, nil
}

// DecodePositions is the inverse of Encode.
func DecodePositions(data []byte) (*Positions, error) {
	var p Positions
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("decode positions: %w", err)
	}
	return &p, nil
}

// Encode is the mark as it is stored: JSON, the same bytes for the same mark.
func (m *Mark) Encode() ([]byte, error) {
	stored := *m
	if m.Cursor.ranged() {
		stored.Version += rangedMarkVersion - MarkVersion
	}
	data, err := json.Marshal(&stored, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode checkpoint mark: %w", err)
	}
	return data, nil
}

// DecodeMark is the inverse of Encode. It refuses what a newer version wrote.
func DecodeMark(data []byte) (*Mark, error) {
	var m Mark
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("decode checkpoint mark: %w", err)
	}
	if m.Version < MarkVersion || m.Version > rangedSplitMarkVersion {
		return nil, fmt.Errorf("decode checkpoint mark: format version %d, this program reads %d to %d; upgrade it", m.Version, MarkVersion, rangedSplitMarkVersion)
	}
	if m.Version >= rangedMarkVersion {
		m.Version -= rangedMarkVersion - MarkVersion
	}
	return &m, nil
}
