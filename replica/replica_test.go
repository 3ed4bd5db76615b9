package replica

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/settlehq/settle/internal/seeded" // see the package
	"github.com/settlehq/settle/model"
)

const home = "home"

// genLog makes a log as owners write it: patches that apply, sends, receipts of follow-ups, positions,
// takeovers.
func genLog(t *rapid.T) []*model.Commit {
	g := logGen{docs: map[string]model.Value{}, in: map[string]uint64{}, out: map[string]uint64{}}
	for range rapid.IntRange(1, 12).Draw(t, "commits") {
		g.commit(t)
	}
	return g.log
}

type logGen struct {
	log     []*model.Commit
	docs    map[string]model.Value
	in, out map[string]uint64
	own     []model.Send
	n, lane uint64
}

func (g *logGen) commit(t *rapid.T) {
	seq := uint64(len(g.log) + 1)
	c := &model.Commit{Version: model.CommitVersion, Space: home, Runtime: "w1"}
	if seq == 1 || rapid.IntRange(0, 6).Draw(t, "takeover") == 0 {
		c.Takeover, c.Runtime = true, rapid.SampledFrom([]string{"w1", "w2"}).Draw(t, "runtime")
	} else {
		for range rapid.IntRange(1, 4).Draw(t, "transactions") {
			c.Txs = append(c.Txs, g.tx(t, seq))
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "trying") == 0 {
		if !c.Takeover {
			c.Epoch = seq
		}
		c.Trying = &model.Trying{By: "handle s", Event: "e", Tries: rapid.IntRange(0, 3).Draw(t, "tries"), Back: rapid.Bool().Draw(t, "back")}
	}
	g.lane += uint64(rapid.IntRange(0, 3).Draw(t, "handled"))
	c.Cursor.Floor = g.lane
	if g.lane > 2 && rapid.Bool().Draw(t, "held") {
		c.Cursor.Held = []uint64{g.lane - 1}
	}
	g.log = append(g.log, c)
}

func (g *logGen) tx(t *rapid.T, seq uint64) model.Tx {
	g.n++
	tx := model.Tx{N: g.n}
	for range rapid.IntRange(0, 3).Draw(t, "writes") {
		if w, ok := g.write(t); ok {
			tx.Writes = append(tx.Writes, w)
		}
	}
	switch rapid.SampledFrom([]string{"computed", "external", "follow-up", "from north"}).Draw(t, "kind") {
	case "external":
		tx.Receipt = &model.Receipt{Event: fmt.Sprintf("e%d", g.n), Lane: g.n, Outcome: model.Handled}
	case "from north":
		g.in["north"]++
		id := model.TxID{Space: "north", Epoch: 1, N: g.n}.Event(0)
		tx.Receipt = &model.Receipt{Event: id, Lane: g.n, Pos: g.in["north"], Outcome: model.Failed, Error: "no"}
	case "follow-up":
		if len(g.own) > 0 {
			tx.Receipt = &model.Receipt{Event: g.own[0].ID, Outcome: model.Handled}
			g.own = g.own[1:]
		}
	}
	for k := range rapid.IntRange(0, 2).Draw(t, "sends") {
		s := model.Send{ID: model.TxID{Space: home, Epoch: seq, N: g.n}.Event(k), Stream: "s", Payload: model.Int(int64(k))}
		if rapid.Bool().Draw(t, "leaves") {
			g.out["south"]++
			s.To, s.Position = "south", g.out["south"]
		} else {
			s.To, s.Behind = home, g.lane
			g.own = append(g.own, s)
		}
		tx.Sends = append(tx.Sends, s)
	}
	return tx
}

// write draws a write that is possible in the documents.
func (g *logGen) write(t *rapid.T) (model.Write, bool) {
	keys := rapid.SampledFrom([]string{"a", "b", "c"})
	w := model.Write{
		Doc:    rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "doc"),
		Path:   rapid.SliceOfN(keys, 0, 2).Draw(t, "path"),
		Value:  model.Int(int64(rapid.IntRange(0, 3).Draw(t, "value"))),
		Delete: rapid.IntRange(0, 4).Draw(t, "delete") == 0,
	}
	after, err := w.Apply(g.docs[w.Doc])
	if err != nil {
		return w, false
	}
	g.docs[w.Doc] = after
	return w, true
}

func applyAll(t *rapid.T, r *Replica, log []*model.Commit) *Replica {
	for i, c := range log {
		if _, err := r.Apply(uint64(i+1), c); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// describe returns everything in a replica as text.
func describe(r *Replica) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "began %v receiptless %d fruitful %v tried by %d ", r.Began, r.WithoutReceipt, r.HasReceipt, r.TriedBy)
	if r.Trying != nil {
		fmt.Fprintf(&b, "%+v ", *r.Trying)
	}
	fmt.Fprintf(&b, "seq %d epoch %d owner %s term %d cursor %+v in %v out %v own", r.Seq, r.Epoch, r.Owner, r.Term, r.Cursor, r.Inbound, r.Outbound)
	for i := range r.Own {
		fmt.Fprintf(&b, " %s/%s/%s/%s/%d", r.Own[i].Space, r.Own[i].Stream, r.Own[i].ID, r.Own[i].Payload, r.Own[i].Behind)
	}
	for _, id := range slices.Sorted(maps.Keys(r.docs)) {
		fmt.Fprintf(&b, "\n%s %s@%d", id, r.docs[id].Value, r.docs[id].Seq)
	}
	return b.String()
}

func mustEqual(t *rapid.T, what string, got, want *Replica) {
	t.Helper()
	if g, w := describe(got), describe(want); g != w {
		t.Fatalf("%s:\n%s\nwant\n%s", what, g, w)
	}
}

// saved is a bucket: documents and the mark, each as it was last written, in whatever order that happened and
// however often it was interrupted.
type saved struct {
	docs map[string]model.StateDoc
	mark model.StateDoc
}

// save writes the documents of a checkpoint, then the mark, and may crash between any two of them.
func (s *saved) save(t *rapid.T, c Checkpoint) (whole bool) {
	for _, d := range c.Docs {
		if rapid.IntRange(0, 5).Draw(t, "crash") == 0 {
			return false
		}
		if old, ok := s.docs[d.Doc]; !ok || old.Seq < d.Seq {
			s.docs[d.Doc] = d
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "crash before the mark") == 0 {
		return false
	}
	s.mark = c.Mark
	return true
}

func (s *saved) load(t *rapid.T) *Replica {
	st := model.SpaceState{Mark: s.mark}
	for _, id := range slices.Sorted(maps.Keys(s.docs)) {
		list := st.ListOf(id)
		*list = append(*list, s.docs[id])
	}
	r, err := Load(home, st)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A space is loaded from a checkpoint and the log after it; it does not matter when checkpoints were made, or
// where saving them was interrupted.
func TestCheckpointAndLogTailAreTheLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := genLog(t)
		want := applyAll(t, New(home), log)
		bucket := &saved{docs: map[string]model.StateDoc{}}
		r := New(home)
		many := rapid.SampledFrom([]int{0, 1, manyOthers}).Draw(t, "many others")
		r.positions.many = many
		for i, c := range log {
			if _, err := r.Apply(uint64(i+1), c); err != nil {
				t.Fatal(err)
			}
			switch rapid.SampledFrom([]string{"go on", "save", "crash"}).Draw(t, "then") {
			case "save":
				cp, err := r.Checkpoint()
				if err != nil {
					t.Fatal(err)
				}
				if !bucket.save(t, cp) {
					r.MarkUnsaved(cp)
				}
			case "crash":
				r = applyAll(t, bucket.load(t), log[:i+1])
				r.positions.many = many
			}
		}
		mustEqual(t, "the survivor", r, want)
		mustEqual(t, "loaded anew", applyAll(t, bucket.load(t), log), want)
	})
}

// A document that was saved ahead of the mark is not changed twice by the log between the two, even by
// several writes of one commit.
func TestApply_SkipsWritesThatASavedDocumentReflects(t *testing.T) {
	write := func(key string, v int64) model.Write {
		return model.Write{Doc: "x", Path: model.Path{key}, Value: model.Int(v)}
	}
	r, err := Load(home, model.SpaceState{Docs: []model.StateDoc{{Doc: "x", Data: []byte(`{"a":9,"b":9}`), Seq: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	for seq, c := range []*model.Commit{
		{Txs: []model.Tx{{N: 1, Writes: []model.Write{write("a", 1)}}}},
		{Txs: []model.Tx{{N: 2, Writes: []model.Write{write("a", 2), write("b", 2)}}}},
		{Txs: []model.Tx{{N: 3, Writes: []model.Write{write("b", 3), write("c", 3)}}}},
	} {
		if _, err := r.Apply(uint64(seq+1), c); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Doc("x"); got.Value.String() != `{"a":9,"b":3,"c":3}` || got.Seq != 3 {
		t.Errorf("document %s at %d", got.Value, got.Seq)
	}
}

// The owner adopts its own commits without applying them.
func TestAdoptIsApply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := genLog(t)
		applied, adopted := New(home), New(home)
		for i, c := range log {
			seq := uint64(i + 1)
			changed, err := applied.Apply(seq, c)
			if err != nil {
				t.Fatal(err)
			}
			after := map[string]model.Value{}
			for _, id := range changed {
				after[id] = applied.Doc(id).Value
			}
			adopted.Adopt(seq, c, after)
			mustEqual(t, "adopted", adopted, applied)
			a, err1 := applied.Checkpoint()
			b, err2 := adopted.Checkpoint()
			if err1 != nil || err2 != nil || fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("checkpoints differ: %v, %v\n%v\n%v", err1, err2, a, b)
			}
		}
	})
}

func TestApply_AgainHasNoEffect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := genLog(t)
		r := applyAll(t, New(home), log)
		want := describe(r)
		applyAll(t, r, log)
		if got := describe(r); got != want {
			t.Fatalf("applied twice:\n%s\nonce:\n%s", got, want)
		}
	})
}

func TestClone_IsIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := genLog(t)
		at := rapid.IntRange(0, len(log)).Draw(t, "at")
		r := applyAll(t, New(home), log[:at])
		want := describe(r)
		applyAll(t, r.Clone(), log)
		if got := describe(r); got != want {
			t.Fatalf("the original changed with its clone:\n%s\nwas\n%s", got, want)
		}
	})
}

// A document that is followed by itself shows the same as the whole replica.
func TestDocument_FollowsTheReplica(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := genLog(t)
		want := applyAll(t, New(home), log)
		bucket := &saved{docs: map[string]model.StateDoc{}}
		at := rapid.IntRange(0, len(log)).Draw(t, "saved at")
		cp, err := applyAll(t, New(home), log[:at]).Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		if at > 0 {
			bucket.save(t, cp)
		}
		st := model.SpaceState{Mark: bucket.mark, Docs: slices.Collect(maps.Values(bucket.docs))}
		for _, id := range []string{"x", "y", "z", "never"} {
			d, err := LoadDocument(id, st)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range log {
				e := model.LogEntry{Space: home, Seq: uint64(i + 1), Data: model.AppendCommit(nil, c, nil)}
				if _, err := d.Apply(e); err != nil {
					t.Fatal(err)
				}
			}
			if got := want.Doc(id); !model.Equal(d.Value, got.Value) || d.Seq != got.Seq {
				t.Fatalf("%s: %s@%d, the replica has %s@%d", id, d.Value, d.Seq, got.Value, got.Seq)
			}
		}
	})
}

// LaneDone promises that reading the lane after it finds all work: nothing at or below it is set aside, and
// no follow-up of those events is left.
func TestLaneDone_IsBelowEverythingThatIsOpen(t *testing.T) {
	for _, c := range []struct {
		cursor model.Cursor
		own    []model.Event
		want   uint64
	}{
		{model.Cursor{}, nil, 0},
		{model.Cursor{Floor: 9}, nil, 9},
		{model.Cursor{Floor: 9, Held: []uint64{4, 7}}, nil, 3},
		{model.Cursor{Floor: 9}, []model.Event{{Behind: 6}}, 5},
		{model.Cursor{Floor: 9}, []model.Event{{Behind: 12}}, 9},
		{model.Cursor{Floor: 9}, []model.Event{{Behind: 0}}, 0},
	} {
		r := New(home)
		r.Cursor, r.Own = c.cursor, c.own
		if got := r.LaneDone(); got != c.want {
			t.Errorf("cursor %+v, follow-ups %+v: %d, want %d", c.cursor, c.own, got, c.want)
		}
	}
}

func TestLoad_RefusesUnreadableState(t *testing.T) {
	for _, st := range []model.SpaceState{
		{Docs: []model.StateDoc{{Doc: "x", Data: []byte(`{"a":`)}}},
		{Mark: model.StateDoc{Data: []byte(`{"v":99}`), Seq: 3}},
		{Mark: model.StateDoc{Data: []byte(`nonsense`), Seq: 3}},
	} {
		if _, err := Load(home, st); err == nil {
			t.Errorf("%+v was loaded", st)
		}
	}
}

func TestApply_OfAnImpossibleWriteIsAnError(t *testing.T) {
	r := New(home)
	scalar := model.Write{Doc: "x", Value: model.Int(1)}
	inside := model.Write{Doc: "x", Path: model.Path{"k"}, Value: model.Int(1)}
	if _, err := r.Apply(1, &model.Commit{Txs: []model.Tx{{N: 1, Writes: []model.Write{scalar, inside}}}}); err == nil {
		t.Error("a write into a scalar was applied")
	}
}
