package buscontract

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

var logChecks = []check{
	{"an unknown space has no head and no entries", func(w *world) {
		c := w.connect("a")
		w.equal("head", w.head(c, cart), uint64(0))
		w.wantLog(c, cart)
	}},
	{"appends that expect the head form a chain", appendsFormAChain},
	{"an append that expects anything but the head is refused and stores nothing", wrongExpectation},
	{"of two racing writers exactly one wins every round", oneWinsEveryRound},
	{"writers that retry after every refusal lose no commit", writersThatRetry},
	{"spaces of one partition are independent", spacesAreIndependent},
	{"the sequences of a partition are those of one stream", sequencesArePartitionWide},
	{"every client reads what another's acknowledgement reported", othersReadWhatWasAcknowledged},
	{"ReadLog pages from any sequence", readLogPages},
	{"buffers are not shared between the bus and its callers", bytesAreOwned},
	{"data is any bytes", dataIsAnyBytes},
}

func appendsFormAChain(w *world) {
	c := w.connect("a")
	first := w.mustAppend(c, commit(cart, "a/0/1", 0))
	second := w.mustAppend(c, commit(cart, "a/0/2", first))
	if first == 0 || second <= first {
		w.Fatalf("sequences %d, %d", first, second)
	}
	w.equal("head", w.head(c, cart), second)
	log := w.log(c, cart)
	if log[0].Stored.IsZero() || log[1].Stored.Before(log[0].Stored) {
		w.Errorf("stored at %v and %v", log[0].Stored, log[1].Stored)
	}
	w.equal("log", undated(log), []model.LogEntry{
		{Space: cart, Seq: first, ID: "a/0/1", Data: []byte("data of a/0/1")},
		{Space: cart, Seq: second, ID: "a/0/2", Data: []byte("data of a/0/2"), Prev: first},
	})
}

// undated returns entries without their times.
func undated(entries []model.LogEntry) []model.LogEntry {
	for i := range entries {
		entries[i].Stored = time.Time{}
	}
	return entries
}

func wrongExpectation(w *world) {
	c, other := w.connect("a"), space(0, 1)
	first := w.mustAppend(c, commit(cart, "a/0/1", 0))
	elsewhere := w.mustAppend(c, commit(other, "a/0/2", 0))
	head := w.mustAppend(c, commit(cart, "a/0/3", first))
	wrong := map[string]uint64{"nothing": 0, "the past": first, "another space's head": elsewhere, "the future": head + 1}
	for what, expect := range wrong {
		if _, err := w.append(c, commit(cart, "a/0/4", expect)); !errors.Is(err, model.ErrRefused) {
			w.Errorf("expecting %s: %v, want ErrRefused", what, err)
		}
	}
	if _, err := w.append(c, commit(space(0, 2), "a/0/5", head)); !errors.Is(err, model.ErrRefused) {
		w.Errorf("expecting a head of an empty space: %v, want ErrRefused", err)
	}
	w.equal("head", w.head(c, cart), head)
	w.wantLog(c, cart, "a/0/1", "a/0/3")
	w.wantLog(c, space(0, 2))
}

func oneWinsEveryRound(w *world) {
	a, b := w.connect("a"), w.connect("b")
	var head uint64
	var winners []string
	for round := range 60 {
		ids := []string{fmt.Sprintf("a/0/%d", round), fmt.Sprintf("b/0/%d", round)}
		answers := []*answer[uint64]{w.startAppend(a, commit(cart, ids[0], head)), w.startAppend(b, commit(cart, ids[1], head))}
		seqA, errA := answers[0].wait()
		seqB, errB := answers[1].wait()
		switch {
		case errA == nil && errors.Is(errB, model.ErrRefused):
			winners, head = append(winners, ids[0]), seqA
		case errB == nil && errors.Is(errA, model.ErrRefused):
			winners, head = append(winners, ids[1]), seqB
		default:
			w.Fatalf("round %d: %v and %v, want one success and one ErrRefused", round, errA, errB)
		}
	}
	w.wantLog(a, cart, winners...)
}

// writersThatRetry tests for lost updates: every commit with an acknowledgement must be in the log, under the
// acknowledged sequence.
func writersThatRetry(w *world) {
	const writers, each = 4, 15
	finished := make(chan map[string]uint64, writers)
	for i := range writers {
		name := string(rune('a' + i))
		c := w.connect(name)
		go func() { finished <- appendUntilDone(w, c, name, each) }() // ends when all its commits are in
	}
	told := map[string]uint64{}
	for range writers {
		for id, seq := range <-finished {
			told[id] = seq
		}
	}
	w.equal("commits that were acknowledged", len(told), writers*each)
	w.equal("the log", logged(w.log(w.connect("reader"), cart)), told)
}

// appendUntilDone appends n commits, reads the head again after every refusal, and returns the sequences of the
// commits. It runs in its own goroutine.
func appendUntilDone(w *world, c Client, name string, n int) map[string]uint64 {
	stored := map[string]uint64{}
	for i, try := 0, 0; i < n && w.ctx.Err() == nil; try++ {
		head, err := c.Head(w.ctx, cart)
		if err != nil {
			w.Error(err)
			return stored
		}
		id := fmt.Sprintf("%s/%d/%d", name, i, try)
		got := make(chan result[uint64], 1)
		c.Append(commit(cart, id, head), func(seq uint64, err error) { got <- result[uint64]{seq, err} })
		r := <-got
		switch {
		case r.err == nil:
			stored[id] = r.value
			i++
		case !errors.Is(r.err, model.ErrRefused):
			w.Errorf("append %s: %v", id, r.err)
			return stored
		}
	}
	return stored
}

func logged(entries []model.LogEntry) map[string]uint64 {
	found := map[string]uint64{}
	for _, e := range entries {
		found[e.ID] = e.Seq
	}
	return found
}

func spacesAreIndependent(w *world) {
	c := w.connect("a")
	one, two := space(0, 0), space(0, 1)
	var heads [2]uint64
	for i := range 10 {
		heads[0] = w.mustAppend(c, commit(one, fmt.Sprintf("one/0/%d", i), heads[0]))
		heads[1] = w.mustAppend(c, commit(two, fmt.Sprintf("two/0/%d", i), heads[1]))
	}
	w.equal("heads", [2]uint64{w.head(c, one), w.head(c, two)}, heads)
	w.equal("entries", [2]int{len(w.log(c, one)), len(w.log(c, two))}, [2]int{10, 10})
}

func sequencesArePartitionWide(w *world) {
	c := w.connect("a")
	var seqs []uint64
	for i, s := range []string{space(0, 0), space(0, 1), space(0, 2)} {
		seqs = append(seqs, w.mustAppend(c, commit(s, fmt.Sprintf("a/0/%d", i), 0)))
	}
	w.equal("sequences", seqs, []uint64{1, 2, 3})
	w.equal("first sequence of another partition", w.mustAppend(c, commit(space(1, 0), "a/0/9", 0)), uint64(1))
}

func othersReadWhatWasAcknowledged(w *world) {
	a, b := w.connect("a"), w.connect("b")
	var head uint64
	for _, id := range numbered("a/0/", 30) {
		head = w.mustAppend(a, commit(cart, id, head))
		w.equal("head seen by another", w.head(b, cart), head)
		found, err := b.ReadLog(w.ctx, cart, head-1, 1)
		w.must(err)
		w.equal("entry seen by another", entryIDs(found), []string{id})
	}
}

func readLogPages(w *world) {
	c := w.connect("a")
	var mine []uint64
	for i := range 25 { // between the entries of another space
		w.chain(c, space(0, 1), w.head(c, space(0, 1)), fmt.Sprintf("other/0/%d", i))
		mine = append(mine, w.chain(c, cart, w.head(c, cart), fmt.Sprintf("a/0/%d", i)))
	}
	var read []uint64
	pages := []int{}
	for after := uint64(0); ; after = read[len(read)-1] {
		page, err := c.ReadLog(w.ctx, cart, after, 10)
		w.must(err)
		pages = append(pages, len(page))
		for _, e := range page {
			read = append(read, e.Seq)
		}
		if len(page) < 10 {
			break
		}
	}
	w.equal("sequences", read, mine)
	w.equal("pages", pages, []int{10, 10, 5})
	for _, after := range []uint64{mine[24], mine[24] + 1, mine[24] + 1000} {
		page, err := c.ReadLog(w.ctx, cart, after, 10)
		w.must(err)
		w.equal(fmt.Sprintf("entries behind %d", after), len(page), 0)
	}
}

// bytesAreOwned: a caller may reuse its buffer once the append is acknowledged, and may write into what it has
// read.
func bytesAreOwned(w *world) {
	a, b := w.connect("a"), w.connect("b")
	buffer := []byte("first")
	head := w.mustAppend(a, model.Append{Space: cart, ID: "a/0/1", Data: buffer})
	copy(buffer, "XXXXX")
	scribble(w.log(a, cart)[0].Data)
	w.equal("entry", string(w.log(b, cart)[0].Data), "first")

	followed := recordSpace(w, a, cart, head)
	w.mustAppend(b, model.Append{Space: cart, ID: "b/0/1", Expect: head, Data: []byte("second")})
	scribble(followed.next().Data)
	w.equal("entry", string(w.log(b, cart)[1].Data), "second")
}

func scribble(b []byte) {
	for i := range b {
		b[i] = 'X'
	}
}

func dataIsAnyBytes(w *world) {
	c := w.connect("a")
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	w.mustAppend(c, model.Append{Space: cart, ID: "a/0/1", Data: all})
	if got := w.log(c, cart)[0].Data; !slices.Equal(got, all) {
		w.Fatalf("data came back as %q", got)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), c.MaxPayload()/32) // half of what fits
	w.mustAppend(c, model.Append{Space: space(0, 1), ID: "a/0/2", Data: large})
	if got := w.log(c, space(0, 1))[0].Data; !bytes.Equal(got, large) {
		w.Fatalf("%d bytes of data came back as %d others", len(large), len(got))
	}
}
