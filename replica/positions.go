package replica

import (
	"fmt"

	"github.com/settlehq/settle/model"
)

// positions is what has to be saved of Inbound and Outbound. A space that knows few others
// has them in its mark. One that knows many would outgrow what a message may be, and write
// all of them again with every checkpoint; it saves them in pieces, by the name of the other
// space, and only those that have changed.
//
// A piece that was saved and whose mark was not is newer than the mark. Positions only grow,
// and the log behind the mark, which is replayed, brings up all others to where that piece is:
// so of everything that is found, the largest holds.
type positions struct {
	split bool
	many  int          // as many are not split
	dirty map[int]bool // pieces that changed since the last Checkpoint
}

// manyOthers is how many positions a mark holds at most: some 50 KiB.
const manyOthers = 1000

// raise notes a position.
func (p *positions) raise(in map[string]uint64, space string, pos uint64) {
	if pos > in[space] {
		in[space] = pos
		p.dirty[model.PieceOf(space)] = true
	}
}

// splitIfMany goes over to pieces, all of which are then to be saved. There is no way back.
func (p *positions) splitIfMany(r *Replica) {
	if p.split || len(r.Inbound)+len(r.Outbound) <= p.many {
		return
	}
	p.split = true
	for n := range model.Pieces {
		p.dirty[n] = true
	}
}

// changed are the pieces to be saved, none if the mark holds the positions.
func (p *positions) changed(r *Replica) ([]model.StateDoc, error) {
	if !p.split || len(p.dirty) == 0 {
		return nil, nil
	}
	pieces := make([]model.Positions, model.Pieces)
	for n := range pieces {
		pieces[n] = model.Positions{Inbound: map[string]uint64{}, Outbound: map[string]uint64{}}
	}
	for space, pos := range r.Inbound { // any order: into maps
		pieces[model.PieceOf(space)].Inbound[space] = pos
	}
	for space, pos := range r.Outbound { // any order: into maps
		pieces[model.PieceOf(space)].Outbound[space] = pos
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

// know takes in positions that were saved.
func (r *Replica) know(p *model.Positions) {
	for origin, pos := range p.Inbound { // any order: each on its own
		r.Inbound[origin] = max(r.Inbound[origin], pos)
	}
	for to, pos := range p.Outbound { // any order: each on its own
		r.Outbound[to] = max(r.Outbound[to], pos)
	}
}

// Handled is the highest position of what an origin has sent to a space that the space had
// handled when it was saved last, 0 if that is not known.
func Handled(st model.SpaceState, origin string) (uint64, error) {
	r, err := Load("", model.SpaceState{Mark: st.Mark, Pieces: st.Pieces})
	if err != nil {
		return 0, fmt.Errorf("positions: %w", err)
	}
	return r.Inbound[origin], nil
}
