package buscontract

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

var purgeLogChecks = []check{
	{"a purge removes the entries of one space below its bound", purgeBelow},
	{"a purge never removes the head, and an append is compared with it as before", purgeKeepsTheHead},
	{"a repeated or late purge of a log changes nothing", purgeLogAgain},
	{"every commit names its predecessor, whichever way it is read", commitsNameTheirPredecessor},
	{"a reader can detect a purge", readOverALogPurge},
	{"following a space over a purge ends with an error", followSpaceOverALogPurge},
	{"a follower of a space that has seen all purged entries continues", followSpaceBehindALogPurge},
	{"a follower of a partition gets the remaining entries", followLogOverAPurge},
	{"an append in doubt whose place was purged is refused", doubtOverALogPurge},
	{"the size of a log is known, and shrinks with a purge", logStateOfAPurge},
	{"the age of log entries is measured by the server's clock", logStateByAge},
	{"the spaces are listed that have more than one commit", logSpaces},
	{"the markers of deleted items are purged, and nothing else", purgeMarkers},
	{"a mark is read alone, with the time at which it was stored", loadMark},
}

func (w *world) purgeLog(c Client, space string, below uint64) {
	w.Helper()
	w.must(c.PurgeLog(w.ctx, space, below))
}

// interleaved appends n commits to each of two spaces, in turns, and returns the sequences
// of the first.
func (w *world) interleaved(c Client, one, two string, n int) []uint64 {
	w.Helper()
	var seqs []uint64
	var head, other uint64
	for i := range n {
		head = w.chain(c, one, head, fmt.Sprintf("one/0/%d", i+1))
		other = w.chain(c, two, other, fmt.Sprintf("two/0/%d", i+1))
		seqs = append(seqs, head)
	}
	return seqs
}

func purgeBelow(w *world) {
	c, other := w.connect("a"), space(0, 1)
	seqs := w.interleaved(c, cart, other, 9)
	for _, below := range []uint64{0, 1, seqs[0]} {
		w.purgeLog(c, cart, below)
		w.equal("entries", len(w.log(c, cart)), 9)
	}
	w.purgeLog(c, cart, seqs[4])
	w.wantLog(c, cart, numbered("one/0/", 9)[4:]...)
	w.wantLog(c, other, numbered("two/0/", 9)...)
	w.purgeLog(c, other, seqs[7]) // between two of its own
	w.wantLog(c, other, numbered("two/0/", 9)[7:]...)
	w.equal("head", w.head(c, cart), seqs[8])
	w.purgeLog(c, space(0, 2), 100) // of which there is nothing
	if err := c.PurgeLog(w.ctx, "no space", 1); err == nil {
		w.Error("a space that cannot be was purged")
	}
}

func purgeKeepsTheHead(w *world) {
	c := w.connect("a")
	head := w.chain(c, cart, 0, numbered("a/0/", 5)...)
	w.purgeLog(c, cart, 1<<60)
	w.wantLog(c, cart, "a/0/5")
	w.equal("head", w.head(c, cart), head)
	for _, wrong := range []uint64{0, head - 1, head + 1} {
		if _, err := w.append(c, commit(cart, "b/0/1", wrong)); !errors.Is(err, model.ErrRefused) {
			w.Errorf("expecting %d: %v, want ErrRefused", wrong, err)
		}
	}
	w.chain(c, cart, head, "a/0/6")
	w.purgeLog(c, cart, 1<<60)
	w.wantLog(c, cart, "a/0/6")
}

func purgeLogAgain(w *world) {
	a, b := w.connect("a"), w.connect("b")
	seqs := w.interleaved(a, cart, space(0, 1), 6)
	w.purgeLog(a, cart, seqs[4])
	w.purgeLog(b, cart, seqs[4])
	w.purgeLog(b, cart, seqs[1]) // by a client with an older bound
	w.wantLog(a, cart, numbered("one/0/", 6)[4:]...)
}

func commitsNameTheirPredecessor(w *world) {
	c, other := w.connect("a"), space(0, 1)
	live := recordSpace(w, c, cart, 0)
	seqs := w.interleaved(c, cart, other, 3)
	want := []uint64{0, seqs[0], seqs[1]}
	for what, entries := range map[string][]model.LogEntry{
		"read":          w.log(c, cart),
		"followed live": live.take(3),
		"followed late": recordSpace(w, c, cart, 0).take(3),
	} {
		w.equal(what, predecessors(entries), want)
	}
	w.equal("of the partition", predecessors(recordLog(w, c, 0, 0).take(6)), []uint64{0, 0, seqs[0], seqs[0] + 1, seqs[1], seqs[1] + 1})
	w.purgeLog(c, cart, seqs[2])
	w.equal("after a purge", predecessors(w.log(c, cart)), []uint64{seqs[1]})
}

func predecessors(entries []model.LogEntry) []uint64 {
	var list []uint64
	for _, e := range entries {
		list = append(list, e.Prev)
	}
	return list
}

func readOverALogPurge(w *world) {
	c := w.connect("a")
	seqs := w.interleaved(c, cart, space(0, 1), 8)
	w.purgeLog(c, cart, seqs[5])
	for known, want := range map[uint64]error{0: model.ErrPurged, seqs[3]: model.ErrPurged, seqs[4] - 1: model.ErrPurged, seqs[4]: nil, seqs[5]: nil, seqs[6]: nil} {
		page, err := c.ReadLog(w.ctx, cart, known, 1)
		w.must(err)
		if err := page[0].Follows(known); !errors.Is(err, want) {
			w.Errorf("a reader that knows the log up to %d reads %d: %v, want %v", known, page[0].Seq, err, want)
		}
	}
}

func followSpaceOverALogPurge(w *world) {
	c := w.connect("a")
	seqs := w.interleaved(c, cart, space(0, 1), 8)
	w.purgeLog(c, cart, seqs[5])
	late := recordSpace(w, c, cart, seqs[2])
	if err := late.reason(); !errors.Is(err, model.ErrPurged) {
		w.Errorf("the follower ended with %v", err)
	}
	w.equal("entries that were delivered over the gap", len(late.rest()), 0)
}

func followSpaceBehindALogPurge(w *world) {
	c := w.connect("a")
	seqs := w.interleaved(c, cart, space(0, 1), 8)
	live := recordSpace(w, c, cart, seqs[6])
	w.equal("what is there", entryIDs(live.take(1)), []string{"one/0/8"})
	w.purgeLog(c, cart, seqs[7])
	late := recordSpace(w, c, cart, seqs[6])
	head := w.chain(c, cart, seqs[7], "one/0/9")
	w.equal("what is new", entryIDs(live.take(1)), []string{"one/0/9"})
	w.equal("what is left and new", entryIDs(late.take(2)), []string{"one/0/8", "one/0/9"})
	w.purgeLog(c, cart, head)
	w.chain(c, cart, head, "one/0/10")
	w.equal("what is new", entryIDs(live.take(1)), []string{"one/0/10"})
}

func followLogOverAPurge(w *world) {
	c := w.connect("a")
	seqs := w.interleaved(c, cart, space(0, 1), 4)
	w.purgeLog(c, cart, seqs[3])
	whole := recordLog(w, c, 0, 0)
	w.equal("the partition", entryIDs(whole.take(5)), []string{"two/0/1", "two/0/2", "two/0/3", "one/0/4", "two/0/4"})
	head := w.chain(c, cart, seqs[3], "one/0/5")
	w.purgeLog(c, cart, head)
	w.chain(c, cart, head, "one/0/6")
	next := whole.next()
	if next.ID == "one/0/5" { // it may have been on its way
		next = whole.next()
	}
	w.equal("what is new", next.ID, "one/0/6")
}

// doubtOverALogPurge: after the purge nothing shows that the commit was stored. The client gets an error, reads
// the log, and finds the gap.
func doubtOverALogPurge(w *world) {
	c, other := w.connect("a"), w.connect("b")
	head := w.chain(c, cart, 0, "a/0/1")
	at := w.holdAfter(c, Append, DropAck)
	a := w.startAppend(c, commit(cart, "a/0/2", head))
	at.await()
	mine := w.head(other, cart)
	last := w.chain(other, cart, mine, "b/0/1", "b/0/2")
	w.purgeLog(other, cart, last)
	at.over()
	if _, err := a.wait(); !errors.Is(err, model.ErrRefused) {
		w.Errorf("the answer is %v, want ErrRefused", err)
	}
	w.wantLog(c, cart, "b/0/2")
}

func (w *world) logState(c Client, partition int, age time.Duration) model.LogState {
	w.Helper()
	st, err := c.LogState(w.ctx, partition, age)
	w.must(err)
	return st
}

func logStateOfAPurge(w *world) {
	c := w.connect("a")
	empty := w.logState(c, 0, 0)
	w.equal("empty log", [4]uint64{empty.First, empty.Last, empty.Commits, empty.Bytes}, [4]uint64{})
	seqs := w.interleaved(c, cart, space(0, 1), 5)
	full := w.logState(c, 0, 0)
	w.equal("full log", [3]uint64{full.First, full.Last, full.Commits}, [3]uint64{1, 10, 10})
	w.purgeLog(c, cart, seqs[4])
	w.purgeLog(c, space(0, 1), seqs[4]) // its head but one
	less := w.logState(c, 0, 0)
	w.equal("purged log", [3]uint64{less.First, less.Last, less.Commits}, [3]uint64{9, 10, 2})
	if full.Bytes < 10*10 || less.Bytes*4 > full.Bytes || less.Bytes == 0 {
		w.Errorf("%d bytes, and %d after a purge", full.Bytes, less.Bytes)
	}
	if _, err := c.LogState(w.ctx, partitions, 0); err == nil {
		w.Error("the log of a partition that does not exist has a size")
	}
}

func logStateByAge(w *world) {
	c := w.connect("a")
	w.interleaved(c, cart, space(0, 1), 5)
	st := w.logState(c, 0, time.Hour)
	w.equal("what is older than an hour", st.Old, uint64(0))
	if stored := w.log(c, cart)[4].Stored; st.Now.Before(stored) {
		w.Errorf("it is %v, and a commit was stored at %v", st.Now, stored)
	}
	w.equal("what was there before an hour from now", w.logState(c, 0, -time.Hour).Old, uint64(10))
	w.equal("the same of an empty log", w.logState(c, 1, -time.Hour).Old, uint64(0))
}

func logSpaces(w *world) {
	c := w.connect("a")
	one, two, three := space(0, 0), space(0, 1), space(0, 2)
	list := func() []string {
		spaces, err := c.LogSpaces(w.ctx, 0)
		w.must(err)
		return spaces
	}
	w.equal("of an empty log", len(list()), 0)
	head := w.chain(c, one, 0, numbered("a/0/", 3)...)
	w.chain(c, two, 0, "a/0/1")
	w.chain(c, three, 0, numbered("a/0/", 2)...)
	w.chain(c, space(1, 0), 0, numbered("a/0/", 2)...)
	want := []string{one, three}
	if three < one {
		want = []string{three, one}
	}
	w.equal("spaces", list(), want)
	w.purgeLog(c, one, head)
	w.equal("spaces", list(), []string{three})
	all, err := c.Spaces(w.ctx)
	w.must(err)
	every := []string{one, two, three, space(1, 0)}
	slices.Sort(every)
	w.equal("all spaces, of every partition", all, every)
}

func loadMark(w *world) {
	c := w.connect("a")
	mark, stored, err := c.LoadMark(w.ctx, cart)
	w.must(err)
	if mark.Seq != 0 || mark.Data != nil || !stored.IsZero() {
		w.Errorf("a space that was never saved has the mark %+v of %v", mark, stored)
	}
	saved := model.StateDoc{Data: []byte(`7`), Seq: 7}
	w.must(w.save(c, cart, &saved, doc("items", `1`, 3)))
	mark, stored, err = c.LoadMark(w.ctx, cart)
	w.must(err)
	w.equal("mark", fmt.Sprintf("%s@%d", mark.Data, mark.Seq), "7@7")
	if now := w.logState(c, 0, 0).Now; stored.IsZero() || now.Before(stored) {
		w.Errorf("it was stored at %v, and now it is %v", stored, now)
	}
}

// purgeMarkers: a purge checks what is stored, so that a mistaken bound costs no document.
func purgeMarkers(w *world) {
	a, b := w.connect("a"), w.connect("b")
	docs := []model.StateDoc{doc("gone", `1`, 1), doc("back", `1`, 1), doc("there", `1`, 1)}
	w.must(a.SaveState(w.ctx, cart, docs, nil))
	for i := range docs[:2] {
		docs[i].Data, docs[i].Seq = nil, 2
	}
	w.must(a.SaveState(w.ctx, cart, docs[:2], nil))
	w.must(w.save(b, cart, nil, doc("back", `3`, 3)))
	for range 2 {
		w.must(a.PurgeState(w.ctx, cart, append(slices.Clone(docs), model.StateDoc{Doc: "never", Rev: 7})))
		w.wantState(b, cart, "=none@0", "back=3@3", "there=1@1")
	}
	w.must(w.save(b, cart, nil, model.StateDoc{Doc: "back", Seq: 5})) // deleted again: this marker is another one
	w.must(a.PurgeState(w.ctx, cart, docs))
	w.wantState(b, cart, "=none@0", "back=none@5", "there=1@1")
	docs[0].Data, docs[0].Seq = []byte(`4`), 4 // by a client that knows the revision of the marker
	w.must(a.SaveState(w.ctx, cart, docs[:1], nil))
	w.wantState(b, cart, "=none@0", "back=none@5", "gone=4@4", "there=1@1")
	if err := a.PurgeState(w.ctx, cart, []model.StateDoc{doc("no name", ``, 1)}); err == nil {
		w.Error("a name that cannot be was purged")
	}
}
