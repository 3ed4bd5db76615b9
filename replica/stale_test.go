package replica

import (
	"testing"

	"github.com/settlehq/settle/model"
)

// A mark of the owner that took the space over at 60, after loading the mark that covered up to 50 with
// revision 100. Its own first mark has revision 200, this one, up to 90, has 300. It has purged markers
// behind the mark of 65, which had revision 220, and the mark of 75, which had 260.
func TestStale_RestoredDocumentsAreIdentifiedByTheirRevision(t *testing.T) {
	data, err := (&model.Mark{Version: model.MarkVersion, Epoch: 60, First: 200, Before: model.MarkPosition{Rev: 100, Seq: 50}, Purged: []model.MarkPosition{{Rev: 220, Seq: 65}, {Rev: 260, Seq: 75}}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err := readStale(&model.StateDoc{Data: data, Rev: 300, Seq: 90})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what     string
		rev, seq uint64
		back     bool
	}{
		{"saved by an earlier owner in its time", 90, 40, false},
		{"committed before this owner, saved by it before its first mark", 150, 55, false},
		{"committed by this owner, saved late", 250, 70, false},
		{"ahead of the mark", 310, 95, false},
		{"put back behind the mark", 310, 80, true},
		{"put back between the first and the last mark", 250, 40, true},
		{"put back there, of after the mark that was loaded", 250, 55, true},
		{"put back before the first mark", 150, 40, true},
		{"stored by this owner, and not behind the marks that it purged behind", 255, 70, false},
		{"put back by this owner, behind the first mark that it purged behind", 230, 64, true},
		{"put back by this owner, behind the second one", 270, 74, true},
		{"stored by this owner behind the second one, which does not cover it", 270, 76, false},
	} {
		d := &model.StateDoc{Doc: "d", Data: []byte("1"), Rev: c.rev, Seq: c.seq}
		if got := s.has(d); got != c.back {
			t.Errorf("%s: put back %v, want %v", c.what, got, c.back)
		}
		d.Data = nil
		if s.has(d) {
			t.Errorf("%s: a marker should be there", c.what)
		}
	}
}

// What was stored before the floor was deleted, whatever its sequence; what was stored again counts as what it was first.
func TestStale_WhatIsStoredBeforeTheFloorWasDeleted(t *testing.T) {
	load := func(floor, rev uint64) (stale, error) {
		data, err := (&model.Mark{Version: model.MarkVersion, Epoch: 60, First: 200, Floor: floor}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		return readStale(&model.StateDoc{Data: data, Rev: rev, Seq: 90})
	}
	s, err := load(250, 300)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		doc  model.StateDoc
		gone bool
	}{
		{"before the floor", model.StateDoc{Rev: 249, Seq: 70}, true},
		{"at the floor", model.StateDoc{Rev: 250, Seq: 70}, false},
		{"stored again behind the floor, and saved first by an earlier owner", model.StateDoc{Rev: 260, Seq: 80, Kept: model.Kept{Rev: 150, Seq: 40}}, false},
		{"stored again behind the mark", model.StateDoc{Rev: 310, Seq: 89, Kept: model.Kept{Rev: 150, Seq: 40}}, false},
		{"stored again, and put back before that", model.StateDoc{Rev: 310, Seq: 89, Kept: model.Kept{Rev: 255, Seq: 40}}, true},
	} {
		c.doc.Doc, c.doc.Data = "d", []byte("1")
		if got := s.has(&c.doc); got != c.gone {
			t.Errorf("%s: gone %v, want %v", c.what, got, c.gone)
		}
	}
	if _, err := load(301, 300); err == nil {
		t.Error("a mark has a floor after itself")
	}
}

// A mark that was being saved when the space was taken over is not the new owner's first mark.
func TestStale_AMarkFromBeforeTheTakeoverIsNotTheOwnersFirst(t *testing.T) {
	r := New("s")
	take := func(seq uint64) {
		c := &model.Commit{Space: "s", Runtime: "w", Takeover: true}
		if _, err := r.Apply(seq, c); err != nil {
			t.Fatal(err)
		}
	}
	take(10)
	r.MarkStored(model.MarkPosition{Rev: 5, Seq: 9})
	if r.first != 0 {
		t.Errorf("the first mark is %d, although none covers the takeover", r.first)
	}
	r.MarkStored(model.MarkPosition{Rev: 6, Seq: 10})
	r.MarkStored(model.MarkPosition{Rev: 7, Seq: 11})
	if r.first != 6 {
		t.Errorf("the first mark is %d, want 6", r.first)
	}
	take(20)
	if r.first != 0 {
		t.Errorf("the first mark of the next owner is %d", r.first)
	}
}
