package buscontract

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/settlehq/settle/model"
)

var stateChecks = []check{
	{"an unknown space loads as nothing", unknownState},
	{"a saved state is loaded as it was saved", stateRoundTrip},
	{"saving again continues from the revision that was set in place", saveAgain},
	{"a newer sequence replaces a document whatever revision its saver knew", newerReplaces},
	{"a document as new or newer is left alone and reported", outdatedIsLeftAlone},
	{"a deposed owner cannot put an old document over a new one", deposedOwner},
	{"of two savers the newer sequence stays, whichever is first", racingSavers},
	{"the mark is not written when a document is outdated", noMarkWhenOutdated},
	{"the other documents are written when one is outdated", othersAreWritten},
	{"an outdated mark is left alone and reported", outdatedMark},
	{"a mark can be saved without documents and documents without a mark", markAlone},
	{"a deleted document stays known with its sequence", deletedDocument},
	{"null is a document and not the lack of one", nullIsADocument},
	{"observations of nodes are saved like documents and loaded apart from them", observationsApart},
	{"pieces of the positions are neither documents nor observations", piecesApart},
	{"the states of spaces are apart", statesAreApart},
	{"a space of more than 1100 documents loads completely", manyDocuments},
	{"a document that is stored again without a change replaces only the revision that its saver knows", keptReplacesItself},
	{"a part of a state is the mark and one item, as they are loaded with the rest", partOfState},
	{"a part of a state is of one moment: never an old item with a new mark", partOfOneMoment},
	{"a lost acknowledgement of a save is a success", func(w *world) { saveInDoubt(w, DropAck) }},
	{"a lost request of a save resolves by sending it again", func(w *world) { saveInDoubt(w, DropRequest) }},
	{"a duplicated save is a success", func(w *world) { saveInDoubt(w, Duplicate) }},
	{"a save whose acknowledgement was lost does not hide a newer one", overtakenSave},
}

// keptReplacesItself: an owner that was deposed must not bring back what others have changed, deleted or purged.
func keptReplacesItself(w *world) {
	a, b := w.connect("a"), w.connect("b")
	docs := []model.StateDoc{doc("same", `1`, 1), doc("changed", `1`, 1), doc("deleted", `1`, 1), doc("purged", `1`, 1)}
	w.must(a.SaveState(w.ctx, cart, docs, nil))
	gone := model.StateDoc{Doc: "purged", Seq: 3}
	w.must(w.save(b, cart, nil, doc("changed", `2`, 2), model.StateDoc{Doc: "deleted", Seq: 2}))
	items := []model.StateDoc{gone}
	w.must(b.SaveState(w.ctx, cart, items, nil))
	w.must(b.PurgeState(w.ctx, cart, items))
	for i := range docs {
		docs[i].Kept, docs[i].Seq = model.Kept{Rev: docs[i].Rev, Seq: docs[i].Seq}, 10
		err := a.SaveState(w.ctx, cart, docs[i:i+1], nil)
		if docs[i].Doc == "same" {
			w.must(err)
		} else if !errors.Is(err, model.ErrOutdated) {
			w.Errorf("%s is stored again: %v, want ErrOutdated", docs[i].Doc, err)
		}
	}
	w.wantState(b, cart, "=none@0", "changed=2@2", "deleted=none@2", "same=1@10")
	st, err := b.LoadState(w.ctx, cart)
	w.must(err)
	for _, d := range st.Docs {
		if d.Doc == "same" && (d.Changed() != 1 || d.First() == 0 || d.First() >= d.Rev) {
			w.Errorf("what was stored again is %+v, want a change at 1 and an earlier first revision", d)
		}
	}
}

// doc returns a document as of a log sequence.
func doc(name, json string, seq uint64) model.StateDoc {
	return model.StateDoc{Doc: name, Data: []byte(json), Seq: seq}
}

func (w *world) save(c Client, space string, mark *model.StateDoc, docs ...model.StateDoc) error {
	return c.SaveState(w.ctx, space, docs, mark)
}

func (w *world) wantOutdated(err error) {
	w.Helper()
	if !errors.Is(err, model.ErrOutdated) {
		w.Errorf("save: %v, want ErrOutdated", err)
	}
	var there *model.OutdatedError
	if !errors.As(err, &there) || there.Have < there.Want || there.Rev == 0 {
		w.Errorf("save: %v, want an OutdatedError with the stored revision", err)
	}
}

// load returns the documents by name, drawn as "data@seq", and the mark.
func (w *world) load(c Client, space string) (docs map[string]string, mark string) {
	w.Helper()
	s, err := c.LoadState(w.ctx, space)
	w.must(err)
	docs = map[string]string{}
	for _, d := range s.Docs {
		if _, twice := docs[d.Doc]; twice {
			w.Errorf("document %s was loaded twice", d.Doc)
		}
		docs[d.Doc] = draw(d)
	}
	return docs, draw(s.Mark)
}

func draw(d model.StateDoc) string {
	if d.Data == nil {
		return fmt.Sprintf("none@%d", d.Seq)
	}
	return fmt.Sprintf("%s@%d", d.Data, d.Seq)
}

// wantState compares name=data@seq for every document; the mark comes first and has no name.
func (w *world) wantState(c Client, space string, want ...string) {
	w.Helper()
	docs, mark := w.load(c, space)
	got := []string{"=" + mark}
	for name, d := range docs {
		got = append(got, name+"="+d)
	}
	slices.Sort(got)
	slices.Sort(want)
	w.equal("state of "+space, got, want)
}

func unknownState(w *world) {
	s, err := w.connect("a").LoadState(w.ctx, cart)
	w.must(err)
	if len(s.Docs) != 0 || s.Mark.Data != nil || s.Mark.Seq != 0 || s.Mark.Rev != 0 {
		w.Fatalf("state %+v, want none", s)
	}
}

func stateRoundTrip(w *world) {
	c := w.connect("a")
	docs := []model.StateDoc{doc("items", `{"a":[1,2]}`, 3), doc("total", `12`, 4)}
	mark := model.StateDoc{Data: []byte(`{"cursor":7}`), Seq: 4}
	w.must(c.SaveState(w.ctx, cart, docs, &mark))
	w.wantState(c, cart, `={"cursor":7}@4`, `items={"a":[1,2]}@3`, `total=12@4`)

	loaded, err := c.LoadState(w.ctx, cart)
	w.must(err)
	if mark.Rev == 0 || loaded.Mark.Rev != mark.Rev {
		w.Errorf("revision of the mark: %d was saved, %d loaded", mark.Rev, loaded.Mark.Rev)
	}
	for _, d := range loaded.Docs {
		i := slices.IndexFunc(docs, func(saved model.StateDoc) bool { return saved.Doc == d.Doc })
		if d.Rev == 0 || docs[i].Rev != d.Rev {
			w.Errorf("revision of %s: %d was saved, %d loaded", d.Doc, docs[i].Rev, d.Rev)
		}
	}
}

func saveAgain(w *world) {
	c := w.connect("a")
	docs := []model.StateDoc{doc("items", `1`, 1), doc("total", `2`, 1)}
	mark := model.StateDoc{Data: []byte(`1`), Seq: 1}
	for seq := uint64(1); seq <= 5; seq++ {
		for i := range docs {
			docs[i].Seq, docs[i].Data = seq, fmt.Appendf(nil, "%d", seq)
		}
		mark.Seq, mark.Data = seq, fmt.Appendf(nil, "%d", seq)
		w.must(c.SaveState(w.ctx, cart, docs, &mark))
	}
	w.wantState(c, cart, "=5@5", "items=5@5", "total=5@5")
	loaded, err := c.LoadState(w.ctx, cart) // and another continues from that state
	w.must(err)
	for i := range loaded.Docs {
		loaded.Docs[i].Seq = 6
	}
	loaded.Mark.Seq = 6
	w.must(w.connect("b").SaveState(w.ctx, cart, loaded.Docs, &loaded.Mark))
	w.wantState(c, cart, "=5@6", "items=5@6", "total=5@6")
}

// newerReplaces: the sequence decides. An unknown or outdated revision must not keep a newer state out.
func newerReplaces(w *world) {
	c := w.connect("a")
	w.must(w.save(c, cart, nil, doc("items", `1`, 1)))
	w.must(w.save(c, cart, nil, doc("items", `2`, 2))) // revision 0: never seen
	passed := []model.StateDoc{doc("items", `3`, 3)}
	w.must(c.SaveState(w.ctx, cart, passed, nil))
	w.must(w.save(c, cart, nil, doc("items", `4`, 4)))
	passed[0].Data, passed[0].Seq = []byte(`5`), 5 // its revision is of 3
	w.must(c.SaveState(w.ctx, cart, passed, nil))
	w.wantState(c, cart, "=none@0", "items=5@5")
}

func outdatedIsLeftAlone(w *world) {
	c := w.connect("a")
	saved := []model.StateDoc{doc("items", `5`, 5)}
	w.must(c.SaveState(w.ctx, cart, saved, nil))
	for _, seq := range []uint64{1, 4, 5} {
		known := saved[0]
		known.Data, known.Seq = []byte(`"old"`), seq
		w.wantOutdated(w.save(c, cart, nil, doc("items", `"old"`, seq)))
		w.wantOutdated(w.save(c, cart, nil, known))
	}
	w.wantState(c, cart, "=none@0", "items=5@5")
}

func deposedOwner(w *world) {
	old, fresh := w.connect("old"), w.connect("fresh")
	held := []model.StateDoc{doc("items", `1`, 1)}
	w.must(old.SaveState(w.ctx, cart, held, nil))
	loaded, err := fresh.LoadState(w.ctx, cart)
	w.must(err)
	loaded.Docs[0].Data, loaded.Docs[0].Seq = []byte(`9`), 9
	mark := model.StateDoc{Data: []byte(`9`), Seq: 9}
	w.must(fresh.SaveState(w.ctx, cart, loaded.Docs, &mark))

	held[0].Data, held[0].Seq = []byte(`5`), 5 // which the old owner had not saved yet
	oldMark := model.StateDoc{Data: []byte(`5`), Seq: 5}
	w.wantOutdated(old.SaveState(w.ctx, cart, held, &oldMark))
	w.wantOutdated(old.SaveState(w.ctx, cart, held, &oldMark)) // a second attempt fails as well
	w.wantState(old, cart, "=9@9", "items=9@9")
}

func racingSavers(w *world) {
	a, b := w.connect("a"), w.connect("b")
	for seq := uint64(1); seq <= 20; seq += 2 {
		answers := make(chan error, 2)
		go func() { answers <- w.save(a, cart, nil, doc("items", fmt.Sprint(seq), seq)) }()     // ends with its save
		go func() { answers <- w.save(b, cart, nil, doc("items", fmt.Sprint(seq+1), seq+1)) }() // likewise
		for range 2 {
			if err := <-answers; err != nil && !errors.Is(err, model.ErrOutdated) {
				w.Error(err)
			}
		}
		w.wantState(a, cart, "=none@0", fmt.Sprintf("items=%d@%d", seq+1, seq+1))
	}
}

func noMarkWhenOutdated(w *world) {
	c := w.connect("a")
	w.must(w.save(c, cart, nil, doc("items", `5`, 5)))
	mark := model.StateDoc{Data: []byte(`4`), Seq: 4}
	w.wantOutdated(w.save(c, cart, &mark, doc("items", `4`, 4)))
	w.wantState(c, cart, "=none@0", "items=5@5")
}

func othersAreWritten(w *world) {
	c := w.connect("a")
	w.must(w.save(c, cart, nil, doc("b", `5`, 5)))
	w.wantOutdated(w.save(c, cart, nil, doc("a", `6`, 6), doc("b", `4`, 4), doc("c", `6`, 6)))
	w.wantState(c, cart, "=none@0", "a=6@6", "b=5@5", "c=6@6")
}

func outdatedMark(w *world) {
	c := w.connect("a")
	newer, older := model.StateDoc{Data: []byte(`5`), Seq: 5}, model.StateDoc{Data: []byte(`4`), Seq: 4}
	w.must(w.save(c, cart, &newer))
	w.wantOutdated(w.save(c, cart, &older, doc("items", `1`, 1)))
	w.wantState(c, cart, "=5@5", "items=1@1")
}

func markAlone(w *world) {
	c := w.connect("a")
	mark := model.StateDoc{Data: []byte(`1`), Seq: 1}
	w.must(c.SaveState(w.ctx, cart, nil, &mark))
	w.wantState(c, cart, "=1@1")
	w.must(w.save(c, cart, nil, doc("items", `2`, 2)))
	w.wantState(c, cart, "=1@1", "items=2@2")
	w.must(c.SaveState(w.ctx, cart, nil, nil))
}

// deletedDocument: if a deletion were forgotten, an old owner could restore the document.
func deletedDocument(w *world) {
	c := w.connect("a")
	docs := []model.StateDoc{doc("items", `1`, 1)}
	w.must(c.SaveState(w.ctx, cart, docs, nil))
	docs[0].Data, docs[0].Seq = nil, 2
	w.must(c.SaveState(w.ctx, cart, docs, nil))
	w.wantState(c, cart, "=none@0", "items=none@2")
	w.wantOutdated(w.save(c, cart, nil, doc("items", `1`, 1)))
	w.wantState(c, cart, "=none@0", "items=none@2")
	docs[0].Data, docs[0].Seq = []byte(`3`), 3
	w.must(c.SaveState(w.ctx, cart, docs, nil))
	w.wantState(c, cart, "=none@0", "items=3@3")

	never := model.StateDoc{Doc: "never", Seq: 4} // deleted before it was ever saved
	w.must(w.save(c, cart, nil, never))
	w.wantState(c, cart, "=none@0", "items=3@3", "never=none@4")
}

func observationsApart(w *world) {
	c := w.connect("a")
	node := func(name, json string, seq uint64) model.StateDoc {
		return doc(model.StateKeyOfNode(name), json, seq)
	}
	saved := []model.StateDoc{node("total", `{"b":3}`, 3), doc("total", `12`, 4), node("alarm", `{"b":4}`, 4)}
	w.must(w.save(c, cart, nil, saved...))
	w.wantState(c, cart, "=none@0", "total=12@4")
	w.wantObserved(c, `=node.alarm={"b":4}@4`, `=node.total={"b":3}@3`)
	w.wantOutdated(w.save(c, cart, nil, node("total", `{"b":2}`, 2)))
	w.must(w.save(c, cart, nil, model.StateDoc{Doc: model.StateKeyOfNode("alarm"), Seq: 5}))
	w.wantObserved(c, `=node.alarm=none@5`, `=node.total={"b":3}@3`)
	if err := w.save(c, cart, nil, doc("=node.a.b", `1`, 1)); err == nil {
		w.Error("an observation of a node whose name is none was saved")
	}
}

// piecesApart: pieces of the positions are not documents, but are saved like them.
func piecesApart(w *world) {
	c := w.connect("a")
	key := model.StateKeyOfPiece
	mark := model.StateDoc{Data: []byte(`1`), Seq: 4}
	w.must(w.save(c, cart, &mark, doc(key(7), `{"in":{"s":1}}`, 3), doc("total", `12`, 4), doc(key(255), `{}`, 4)))
	w.wantOutdated(w.save(c, cart, nil, doc(key(7), `{}`, 2)))
	w.wantState(c, cart, "=1@4", "total=12@4")
	s, err := c.LoadState(w.ctx, cart)
	w.must(err)
	var got []string
	for _, d := range s.Pieces {
		got = append(got, d.Doc+"="+draw(d))
	}
	w.equal("pieces", got, []string{`=origins.255={}@4`, `=origins.7={"in":{"s":1}}@3`})
	if err := w.save(c, cart, nil, doc("=origins.256", `1`, 1)); err == nil {
		w.Error("a piece that cannot be was saved")
	}
}

func (w *world) wantObserved(c Client, want ...string) {
	w.Helper()
	s, err := c.LoadState(w.ctx, cart)
	w.must(err)
	var got []string
	for _, d := range s.Observations {
		got = append(got, d.Doc+"="+draw(d))
	}
	w.equal("observations", got, want)
}

func nullIsADocument(w *world) {
	c := w.connect("a")
	w.must(w.save(c, cart, nil, doc("n", `null`, 1), doc("e", `""`, 1), doc("f", `false`, 1), doc("o", `{}`, 1)))
	w.wantState(c, cart, "=none@0", "n=null@1", `e=""@1`, "f=false@1", "o={}@1")
}

func statesAreApart(w *world) {
	c := w.connect("a")
	// names that begin like each other, in whichever partitions they fall
	spaces := []string{"shop", "shop-1", "shop-", "shop_1", "sho", space(0, 0), space(0, 1), space(1, 0)}
	for i, s := range spaces {
		mark := model.StateDoc{Data: fmt.Appendf(nil, "%d", i), Seq: uint64(i + 1)}
		w.must(w.save(c, s, &mark, doc("items", fmt.Sprint(i), uint64(i+1)), doc("only-"+s, `1`, 1)))
	}
	for i, s := range spaces {
		at := fmt.Sprintf("%d@%d", i, i+1)
		w.wantState(c, s, "="+at, "items="+at, "only-"+s+"=1@1")
	}
}

func manyDocuments(w *world) {
	const n = 1130
	c := w.connect("a")
	var docs []model.StateDoc
	var want []string
	for i := range n {
		docs = append(docs, doc(fmt.Sprintf("d%d", i), fmt.Sprint(i), uint64(i+1)))
		want = append(want, fmt.Sprintf("d%d=%d@%d", i, i, i+1))
	}
	w.must(w.save(c, space(0, 1), nil, slices.Clone(docs[:50])...)) // of another space: it must not be loaded
	mark := model.StateDoc{Data: []byte(`1`), Seq: n}
	w.must(c.SaveState(w.ctx, cart, docs, &mark))
	w.wantState(c, cart, append(want, fmt.Sprintf("=1@%d", n))...)
	for i := range docs {
		docs[i].Data, docs[i].Seq = []byte(strings.Repeat("9", 100)), n+1
	}
	w.must(c.SaveState(w.ctx, cart, docs[:n-1], nil)) // so no revisions were swapped
}

func saveInDoubt(w *world, fault Fault) {
	c := w.connect("a")
	docs := []model.StateDoc{doc("items", `1`, 1)}
	mark := model.StateDoc{Data: []byte(`1`), Seq: 1}
	w.inject(c, Save, fault)
	w.must(c.SaveState(w.ctx, cart, docs, &mark))
	w.inject(c, Save, fault)
	w.must(c.SaveState(w.ctx, cart, nil, &model.StateDoc{Data: []byte(`2`), Seq: 2, Rev: mark.Rev}))
	w.wantState(c, cart, "=2@2", "items=1@1")

	docs[0].Data, docs[0].Seq = []byte(`3`), 3
	w.inject(c, Save, fault)
	w.must(c.SaveState(w.ctx, cart, docs, nil))
	w.wantState(c, cart, "=2@2", "items=3@3")
	loaded, err := c.LoadState(w.ctx, cart)
	w.must(err)
	w.equal("revision", docs[0].Rev, loaded.Docs[0].Rev)
}

func overtakenSave(w *world) {
	old, fresh := w.connect("old"), w.connect("fresh")
	for i, fault := range []Fault{DropAck, DropRequest} {
		s := space(0, i)
		at := w.holdAfter(old, Save, fault)
		answered := make(chan error, 1)
		go func() { answered <- w.save(old, s, nil, doc("items", `1`, 1)) }() // ends with its save
		at.await()
		w.must(w.save(fresh, s, nil, doc("items", `2`, 2)))
		at.over()
		w.wantOutdated(<-answered)
		w.wantState(old, s, "=none@0", "items=2@2")
	}
}

func partOfState(w *world) {
	c := w.connect("a")
	part := func(space, key string) model.SpaceState {
		w.Helper()
		s, err := c.LoadPart(w.ctx, space, key)
		w.must(err)
		return s
	}
	want := func(key string, wanted ...string) {
		w.Helper()
		s := part(cart, key)
		got := []string{"=" + draw(s.Mark)}
		for _, items := range [][]model.StateDoc{s.Docs, s.Observations, s.Pieces, s.Later, s.Due, s.Quarantine} {
			for _, d := range items {
				got = append(got, d.Doc+"="+draw(d))
			}
		}
		w.equal("the part "+key, got, wanted)
	}
	want("items", "=none@0")

	docs := []model.StateDoc{doc("items", `1`, 1), doc("items-", `2`, 1), doc("item", `3`, 1), {Doc: "gone", Seq: 2}, doc(model.StateKeyOfNode("total"), `{}`, 2), doc(model.StateKeyOfPiece(7), `{"in":{"s":1}}`, 2)}
	mark := model.StateDoc{Data: []byte(`9`), Seq: 2}
	w.must(w.save(c, cart, &mark, docs...))
	w.must(w.save(c, space(0, 1), nil, doc("items", `"another"`, 1)))
	want("items", "=9@2", "items=1@1")
	want("gone", "=9@2", "gone=none@2")
	want("never", "=9@2")
	want(model.StateKeyOfNode("total"), "=9@2", "=node.total={}@2")
	want(model.StateKeyOfPiece(7), "=9@2", `=origins.7={"in":{"s":1}}@2`)
	want(model.StateKeyOfPiece(8), "=9@2")
	all, err := c.LoadState(w.ctx, cart)
	w.must(err)
	if s := part(cart, "items"); s.Mark.Rev == 0 || s.Mark.Rev != all.Mark.Rev || s.Docs[0].Rev != all.Part("items").Docs[0].Rev {
		w.Errorf("the revisions are %+v, and in the state %+v", s, all)
	}
	if s := part(space(0, 1), "items"); s.Mark.Rev != 0 || len(s.Docs) != 1 {
		w.Errorf("of a space without a mark: %+v", s)
	}
	for _, key := range []string{"", "*", ">", "items.*", "a.b", "=checkpoint", "=origins.*"} {
		if s, err := c.LoadPart(w.ctx, cart, key); err == nil {
			w.Errorf("the part %q is %+v", key, s)
		}
	}
	if s, err := c.LoadPart(w.ctx, "*", "items"); err == nil {
		w.Errorf("the part of space * is %+v", s)
	}
}

// partOfOneMoment: a document is saved before the mark that covers it, so no mark may be ahead of it.
func partOfOneMoment(w *world) {
	saver, reader := w.connect("saver"), w.connect("reader")
	const last = 200
	saved := make(chan error, 1)
	go func() { // ends with the saves, or with their context
		mark, docs := model.StateDoc{Data: []byte(`1`)}, []model.StateDoc{doc("items", `1`, 0)}
		for seq := uint64(1); seq <= last; seq++ {
			mark.Seq, docs[0].Seq = seq, seq
			if err := saver.SaveState(w.ctx, cart, docs, &mark); err != nil {
				saved <- err
				return
			}
		}
		saved <- nil
	}()
	for at := uint64(0); at < last; {
		s, err := reader.LoadPart(w.ctx, cart, "items")
		w.must(err)
		if len(s.Docs) == 0 {
			if at > 0 || s.Mark.Rev > 0 {
				w.Fatalf("no document, with the mark %d", s.Mark.Seq)
			}
			continue
		}
		if at = s.Mark.Seq; s.Docs[0].Seq < at || s.Docs[0].Seq > at+1 {
			w.Fatalf("the document of sequence %d with the mark of %d", s.Docs[0].Seq, at)
		}
	}
	w.must(<-saved)
}
