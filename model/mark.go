package model

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// MarkVersion is the version of a checkpoint mark's encoding, SplitMarkVersion that of a mark whose positions
// are saved in pieces beside it: a program that does not read the pieces would assume that there are no
// positions. The other two are those of marks whose cursor is stored as ranges; they are used in this file
// only.
const (
	MarkVersion      = 1
	SplitMarkVersion = 2

	rangedMarkVersion      = 3
	rangedSplitMarkVersion = 4
)

// Mark is the part of a checkpoint that is not documents: the rest of the state after the commits of a space
// up to StateDoc.Seq.
type Mark struct {
	Version int    `json:"v"`
	Epoch   uint64 `json:"ep"`
	Owner   string `json:"rt"`
	Term    uint64 `json:"trm,omitzero"` // of the last takeover or join
	Cursor  Cursor `json:"cur"`
	// WithoutReceipt, HasReceipt, Trying and Tried are those of replica.Lives.
	WithoutReceipt int     `json:"bar,omitzero"`
	HasReceipt     bool    `json:"fru,omitzero"`
	Trying         *Trying `json:"try,omitzero"`
	Tried          uint64  `json:"tryep,omitzero"`
	// First is the bucket's revision of the first mark of this epoch, 0 in that mark. Before holds revision
	// and log sequence of the mark that the owner loaded. See Standing.
	First  uint64       `json:"fst,omitzero"`
	Before MarkPosition `json:"bef,omitzero"`
	// Purged lists marks of this owner that are older than the purged markers of deleted documents.
	Purged []MarkPosition `json:"pur,omitzero"`
	// Floor is the bucket's revision before which no document is stored that exists. See replica.Floor.
	Floor uint64 `json:"flr,omitzero"`
	Positions
	// Own lists the follow-ups that are committed but not handled, in order.
	Own []Send `json:"own,omitzero"`
}

// MarkPosition is the revision of a mark in its bucket, and the log sequence that it covers. Everything
// that it covers was stored before it.
type MarkPosition struct {
	Rev uint64 `json:"r,omitzero"`
	Seq uint64 `json:"s,omitzero"`
}

// Positions are the positions of events exchanged with other spaces: Inbound is the highest position handled
// per origin space, Outbound the highest position sent per target space. InTerms and InAgain are
// Received.Numbers per origin space, OutTerms the terms of the highest positions sent; versions without terms
// omit them. Of two known values for a space, the further one is valid (Received.After).
type Positions struct {
	Inbound  map[string]uint64   `json:"in,omitzero"`
	InTerms  map[string][]uint64 `json:"intrm,omitzero"`
	InAgain  map[string][]uint64 `json:"inagn,omitzero"`
	Outbound map[string]uint64   `json:"out,omitzero"`
	OutTerms map[string]uint64   `json:"outtrm,omitzero"`
}

// Receive records the handled events of an origin.
func (p *Positions) Receive(origin string, r *Received) {
	if p.Inbound == nil {
		p.Inbound = map[string]uint64{}
	}
	p.Inbound[origin] = r.Position
	terms, again := r.Numbers()
	if len(terms) > 0 {
		if p.InTerms == nil {
			p.InTerms = map[string][]uint64{}
		}
		p.InTerms[origin] = terms
	}
	if len(again) > 0 {
		if p.InAgain == nil {
			p.InAgain = map[string][]uint64{}
		}
		p.InAgain[origin] = again
	}
}

// Send records the last position sent to a target.
func (p *Positions) Send(to string, s Sent) {
	if p.Outbound == nil {
		p.Outbound = map[string]uint64{}
	}
	p.Outbound[to] = s.Position
	if s.Term > 0 {
		if p.OutTerms == nil {
			p.OutTerms = map[string]uint64{}
		}
		p.OutTerms[to] = s.Term
	}
}

// Encode returns a piece of the positions as it is stored.
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
	var b bounds
	if p.check(&b); b.err != nil {
		return nil, fmt.Errorf("decode positions: %w", b.err)
	}
	return &p, nil
}

// Encode returns the mark as it is stored: JSON, with the same bytes for the same mark.
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

// DecodeMark is the inverse of Encode. It refuses a newer format version.
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
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("decode checkpoint mark: %w", err)
	}
	return &m, nil
}
