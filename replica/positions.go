package replica

import (
	"fmt"

	"github.com/settlehq/settle/model"
)

// positions tracks which of Inbound and Outbound must be saved. A space with few peers saves them in its
// mark. With many they would exceed the size of a message, and all be written again with every checkpoint;
// such a space saves them in pieces, by the name of the other space, and only those that changed.
//
// A piece that was saved without its mark is newer than the mark. Positions only grow, or continue in a later
// term, and replaying the log after the mark brings all others up to that piece, so of several values the
// furthest is valid.
type positions struct {
	split bool
	many  int          // up to this number the mark holds them
	dirty map[int]bool // pieces that changed since the last Checkpoint
}

// manyOthers is the maximum number of positions in a mark, about 50 KiB.
const manyOthers = 1000

// splitIfMany switches to pieces, all of which must then be saved. The switch is permanent.
func (p *positions) splitIfMany(r *Replica) {
	if p.split || len(r.Inbound)+len(r.Outbound) <= p.many {
		return
	}
	p.split = true
	for n := range model.Pieces {
		p.dirty[n] = true
	}
}

// changed returns the pieces to be saved, none if the mark holds the positions.
func (p *positions) changed(r *Replica) ([]model.StateDoc, error) {
	if !p.split || len(p.dirty) == 0 {
		return nil, nil
	}
	pieces := make([]model.Positions, model.Pieces)
	for space, in := range r.Inbound { // any order: into maps
		pieces[model.PieceOf(space)].Receive(space, &in)
	}
	for space, out := range r.Outbound { // any order: into maps
		pieces[model.PieceOf(space)].Send(space, out)
	}
	var docs []model.StateDoc
	for n := range pieces {
		if !p.dirty[n] {
			continue
		}
		data, err := pieces[n].Encode()
		if err != nil {
			return nil, err
		}
		docs = append(docs, model.StateDoc{Doc: model.StateKeyOfPiece(n), Data: data, Seq: r.Seq})
	}
	return docs, nil
}

// know merges saved positions.
func (r *Replica) know(p *model.Positions) {
	for origin, pos := range p.Inbound { // any order: each is independent
		in, known := model.ReceivedOf(pos, p.InTerms[origin], p.InAgain[origin]), r.Inbound[origin]
		if in.After(&known) {
			r.Inbound[origin] = in
		}
	}
	for to, pos := range p.Outbound { // any order: each is independent
		if pos > r.Outbound[to].Position {
			r.Outbound[to] = model.Sent{Position: pos, Term: p.OutTerms[to]}
		}
	}
}

// Handled returns the highest position of the events of an origin that a space had handled when it was last
// saved, 0 if unknown.
func Handled(st model.SpaceState, origin string) (uint64, error) {
	r, err := Load("", model.SpaceState{Mark: st.Mark, Pieces: st.Pieces})
	if err != nil {
		return 0, fmt.Errorf("positions: %w", err)
	}
	return r.Inbound[origin].Position, nil
}
