package replica

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/settlehq/settle/model"
)

// withTerms returns a replica of a space that has exchanged events with others in several terms, including an
// origin that has gone back, and that has sent some to itself.
func withTerms(t *testing.T) *Replica {
	t.Helper()
	r := New(home)
	apply := func(seq uint64, c *model.Commit) {
		t.Helper()
		if _, err := r.Apply(seq, c); err != nil {
			t.Fatal(err)
		}
	}
	receipt := func(pos, term uint64) *model.Receipt {
		return &model.Receipt{Event: model.TxID{Space: "north", Epoch: term, N: pos}.Event(0), Lane: pos, Pos: pos, Term: term, Outcome: model.Handled}
	}
	apply(1, &model.Commit{Takeover: true, Term: 100})
	apply(2, &model.Commit{Txs: []model.Tx{
		{N: 1, Receipt: receipt(1, 10)},
		{N: 2, Receipt: receipt(2, 10)},
		{N: 3, Receipt: receipt(3, 10)},
		{N: 4, Sends: []model.Send{
			{ID: "home:1:4:0", To: "south", Position: 1, Term: 100, PrevTerm: model.NoTerm}, {ID: "home:1:4:1", To: home, Stream: "own", ReplayKey: 44},
		}},
	}})
	apply(3, &model.Commit{Join: true, Term: 200})
	apply(4, &model.Commit{Txs: []model.Tx{{N: 1, Receipt: receipt(2, 20)}, {N: 2, Sends: []model.Send{{ID: "home:3:2:0", To: "south", Position: 2, Term: 200}}}}})
	return r
}

func termsOf(r *Replica) string {
	return fmt.Sprintf("%d %+v %+v %+v", r.Term, r.Inbound, r.Outbound, r.Own)
}

func TestTerms_AreSavedAndLoaded(t *testing.T) {
	for _, many := range []int{manyOthers, 1} { // in the mark, and in pieces
		r := withTerms(t)
		r.positions.many = many
		c, err := r.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		st := model.SpaceState{Mark: c.Mark}
		for _, d := range c.Docs {
			list := st.ListOf(d.Doc)
			*list = append(*list, d)
		}
		loaded, err := Load(home, st)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := termsOf(loaded), termsOf(r); got != want {
			t.Errorf("loaded\n%s\nwant\n%s", got, want)
		}
	}
	want := model.Received{Position: 2, Terms: []model.TermStart{{Term: 10, First: 1}, {Term: 20, First: 2}}, Again: model.Again{Term: 20, First: 2, Last: 3}}
	if r := withTerms(t); !reflect.DeepEqual(r.Inbound["north"], want) || r.Term != 200 || r.Outbound["south"] != (model.Sent{Position: 2, Term: 200}) {
		t.Errorf("%+v, want %+v of north", termsOf(r), want)
	}
}

// A piece that was saved without its mark may have a lower position in a later term, and is still further.
func TestTerms_OfTwoSavedPositionsTheLaterTermWins(t *testing.T) {
	r := withTerms(t)
	mark := &model.Mark{Version: model.MarkVersion}
	before := model.Received{Position: 3, Terms: []model.TermStart{{Term: 10, First: 1}}}
	mark.Receive("north", &before)
	data, err := mark.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var p model.Positions
	now := r.Inbound["north"]
	p.Receive("north", &now)
	piece, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(home, model.SpaceState{Mark: model.StateDoc{Data: data, Seq: 2}, Pieces: []model.StateDoc{{Doc: model.StateKeyOfPiece(model.PieceOf("north")), Data: piece, Seq: 4}}})
	if err != nil || !reflect.DeepEqual(loaded.Inbound["north"], now) {
		t.Errorf("loaded %+v, %v, want %+v", loaded.Inbound, err, now)
	}
}
