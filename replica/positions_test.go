package replica

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/settlehq/settle/model"
)

// A space that has exchanged events with 40,000 others could not be saved in one message.
func TestPositions_OfManyPeersAreSavedInChangedPieces(t *testing.T) {
	const others = 40_000
	r := New(home)
	handles := func(seq uint64, names ...string) {
		c := &model.Commit{}
		for i, name := range names {
			id := model.TxID{Space: name, Epoch: 1, N: seq}.Event(0)
			c.Txs = append(c.Txs, model.Tx{N: uint64(i + 1), Receipt: &model.Receipt{Event: id, Lane: seq, Pos: seq}})
		}
		if _, err := r.Apply(seq, c); err != nil {
			t.Fatal(err)
		}
	}
	name := func(i int) string { return fmt.Sprintf("a-space-with-a-name-of-some-length-%d", i) }
	var all []string
	for i := range others {
		all = append(all, name(i))
	}
	handles(1, all...)
	first, err := r.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Docs) != model.Pieces || len(first.Mark.Data) > 1000 {
		t.Errorf("%d items and a mark of %d bytes", len(first.Docs), len(first.Mark.Data))
	}
	for _, d := range first.Docs {
		if len(d.Data) > 64<<10 {
			t.Errorf("%s has %d bytes", d.Doc, len(d.Data))
		}
	}
	handles(2, name(7), name(8))
	second, err := r.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if len(second.Docs) > 2 {
		t.Errorf("%d items are saved again after 2 events", len(second.Docs))
	}
	saved := map[string]model.StateDoc{}
	for _, d := range append(first.Docs, second.Docs...) {
		saved[d.Doc] = d
	}
	st := model.SpaceState{Mark: second.Mark}
	for _, d := range saved { // any order: each is independent
		st.Pieces = append(st.Pieces, d)
	}
	loaded, err := Load(home, st)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(loaded.Inbound, r.Inbound) || loaded.Seq != r.Seq {
		t.Error("what was loaded is not what was saved")
	}
	if n, err := Handled(st, name(7)); n != 2 || err != nil {
		t.Errorf("Handled returned %d, %v", n, err)
	}
	again, err := loaded.Checkpoint()
	if err != nil || len(again.Docs) != 0 {
		t.Errorf("%d unchanged items, %v", len(again.Docs), err)
	}
}

// The mark holds the positions until there are too many. The pieces then contain all of them, including
// unchanged ones.
func TestPositions_TheFirstPiecesHoldThePositionsOfTheMark(t *testing.T) {
	r := New(home)
	handles := func(seq uint64, first, last int) Checkpoint {
		c := &model.Commit{}
		for i := first; i <= last; i++ {
			id := model.TxID{Space: fmt.Sprint("s", i), Epoch: 1, N: seq}.Event(0)
			c.Txs = append(c.Txs, model.Tx{N: uint64(i + 1), Receipt: &model.Receipt{Event: id, Lane: seq, Pos: seq}})
		}
		if _, err := r.Apply(seq, c); err != nil {
			t.Fatal(err)
		}
		saved, err := r.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		return saved
	}
	if saved := handles(1, 1, manyOthers); len(saved.Docs) > 0 {
		t.Errorf("%d pieces are saved of positions that fit into the mark", len(saved.Docs))
	}
	saved := handles(2, manyOthers+1, manyOthers+1)
	loaded, err := Load(home, model.SpaceState{Mark: saved.Mark, Pieces: saved.Docs})
	if err != nil || !reflect.DeepEqual(loaded.Inbound, r.Inbound) {
		t.Errorf("%[2]d of %[1]d positions were saved, %[3]v", len(r.Inbound), len(loaded.Inbound), err)
	}
}

// A piece that is older than the known positions does not lower them.
func TestPositions_TheFurthestOfSeveralIsValid(t *testing.T) {
	r := New(home)
	var older, newer model.Positions
	for space, pos := range map[string][2]uint64{"a": {3, 5}, "b": {7, 2}} { // any order: each is independent
		older.Receive(space, &model.Received{Position: pos[0]})
		older.Send(space, model.Sent{Position: pos[0]})
		newer.Receive(space, &model.Received{Position: pos[1]})
		newer.Send(space, model.Sent{Position: pos[1]})
	}
	r.know(&older)
	r.know(&newer)
	for space, want := range map[string]uint64{"a": 5, "b": 7} { // any order: each is independent
		if in, out := r.Inbound[space].Position, r.Outbound[space].Position; in != want || out != want {
			t.Errorf("for %s, position %d was received and %d sent, want %d", space, in, out, want)
		}
	}
}

func TestPositions_APieceThatCannotBeReadIsAnError(t *testing.T) {
	st := model.SpaceState{Pieces: []model.StateDoc{{Doc: model.StateKeyOfPiece(3), Data: []byte(`{`), Seq: 3}}}
	if _, err := Load(home, st); err == nil {
		t.Error("an unreadable piece was loaded")
	}
	if _, err := Handled(st, "s"); err == nil {
		t.Error("an unreadable piece was ignored")
	}
}
