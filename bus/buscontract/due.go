package buscontract

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

var dueChecks = []check{
	{"events that wait are saved one by one and loaded apart from documents", laterApart},
	{"the spaces that want to be woken are listed by partition", dueSpaces},
	{"thousands of spaces that want to be woken are listed", manyDueSpaces},
	{"one item is loaded by its key, and the mark", loadItem},
	{"an event carries the time that it waits for", notBefore},
}

func dueOf(at string, seq uint64) model.StateDoc { return doc(model.DueKey, at, seq) }

func laterApart(w *world) {
	c := w.connect("c1")
	mark := doc("", `{}`, 9)
	gone := model.StateDoc{Doc: model.StateKeyOfSlot(12), Seq: 8}
	w.must(w.save(c, "s", &mark, doc("d", "1", 9), doc(model.StateKeyOfSlot(7), `{"id":"e"}`, 5), gone, dueOf("1800000000000", 9)))
	s, err := c.LoadState(w.ctx, "s")
	w.must(err)
	var keys []string
	for _, d := range s.Later {
		keys = append(keys, d.Doc+" "+draw(d))
	}
	if want := []string{`=later.12 none@8`, `=later.7 {"id":"e"}@5`}; !slices.Equal(keys, want) {
		w.Errorf("loaded %v, want %v", keys, want)
	}
	if len(s.Docs) != 1 || len(s.Due) != 1 || draw(s.Due[0]) != "1800000000000@9" {
		w.Errorf("documents %v, due %v", s.Docs, s.Due)
	}
}

func dueSpaces(w *world) {
	c := w.connect("c1")
	want := make([][]model.Due, c.Partitions())
	for i := range 20 {
		space := fmt.Sprint("s", i)
		w.must(w.save(c, space, nil, dueOf(fmt.Sprint(1000+i), 5)))
		if i%4 == 0 {
			w.must(w.save(c, space, nil, model.StateDoc{Doc: model.DueKey, Seq: 6}))
			continue
		}
		p := model.PartitionOf(space, c.Partitions())
		want[p] = append(want[p], model.Due{Space: space, At: int64(1000 + i)})
	}
	w.must(w.save(c, "other", nil, doc("due", "1", 1)))
	for p := range want {
		got, err := c.DueSpaces(w.ctx, p)
		w.must(err)
		byTime := func(a, b model.Due) int { return int(a.At - b.At) }
		slices.SortFunc(got, byTime)
		slices.SortFunc(want[p], byTime)
		if !slices.Equal(got, want[p]) {
			w.Errorf("partition %d: %v, want %v", p, got, want[p])
		}
	}
	if _, err := c.DueSpaces(w.ctx, c.Partitions()); err == nil {
		w.Errorf("there is no such partition, and its spaces are listed")
	}
}

func manyDueSpaces(w *world) {
	c := w.connect("c1")
	n := 0
	for i := range 1500 { // more than a server lists in one answer
		space := fmt.Sprint("s", i)
		if model.PartitionOf(space, c.Partitions()) == 0 {
			n++
		}
		w.must(w.save(c, space, nil, dueOf("5", 1)))
	}
	got, err := c.DueSpaces(w.ctx, 0)
	w.must(err)
	if len(got) != n {
		w.Errorf("%d are listed, want %d", len(got), n)
	}
}

func loadItem(w *world) {
	c := w.connect("c1")
	mark := doc("", `{"m":1}`, 4)
	w.must(w.save(c, "s", &mark, doc("d", "1", 3), dueOf("77", 4)))
	for key, want := range map[string]string{"d": "1@3", model.DueKey: "77@4", "": `{"m":1}@4`, "none": "none@0"} {
		d, err := c.LoadItem(w.ctx, "s", key)
		w.must(err)
		if d.Doc != key || draw(d) != want {
			w.Errorf("item %q is %q %s, want %s", key, d.Doc, draw(d), want)
		}
	}
	if _, err := c.LoadItem(w.ctx, "s", "=nothing"); err == nil {
		w.Errorf("an impossible key was accepted")
	}
}

func notBefore(w *world) {
	c := w.connect("c1")
	w.mustSend(c, model.Message{Space: "s", Stream: "st", ID: "e1", NotBefore: 1_800_000_000_123, Expires: 1_900_000_000_456})
	w.mustSend(c, model.Message{Space: "s", Stream: "st", ID: "e2"})
	found, err := c.ReadLane(w.ctx, "s", 0, 10)
	w.must(err)
	if len(found) != 2 || found[0].NotBefore != 1_800_000_000_123 || found[0].Expires != 1_900_000_000_456 || found[1].NotBefore != 0 || found[1].Expires != 0 {
		w.Errorf("read %+v", found)
	}
}
