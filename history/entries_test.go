package history_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// neighbour lets another space of the same partition make commits, so that sequences of the first one have gaps.
func (a *author) neighbour(n int) {
	other := author{server: a.server, space: "other", lane: a.lane, handled: map[string]uint64{}}
	for _, e := range a.server.ReadLog("other", 0, 1<<20) {
		other.head = e.Seq
	}
	for range n {
		other.append(&model.Commit{Runtime: "r"})
	}
}

// drawWrite returns a write that applies to the documents.
func drawWrite(t *rapid.T, docs map[string]model.Value) model.Write {
	doc := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "document")
	n := model.Int(int64(rapid.IntRange(0, 3).Draw(t, "value")))
	w := model.Write{Doc: doc}
	switch rapid.IntRange(0, 4).Draw(t, "write") {
	case 0:
		w.Value = model.Object(model.F("m", n), model.F("n", n))
	case 1:
		w.Delete = true
	case 2:
		w.Path, w.Value = model.Path{"m"}, n
	case 3:
		w.Path, w.Delete = model.Path{"n"}, true
	case 4:
		w.Path, w.Value = model.Path{"deep", "er"}, n
	}
	docs[doc], _ = w.Apply(docs[doc])
	return w
}

// Whatever was written, and wherever the log was cut off, each change has the value that was there before, or reports that it is not known;
// it is known for what the log determines. Pages put together are the log.
func TestEntries_AChangeHasTheValueThatWasThere(t *testing.T) {
	var unknown, known int
	rapid.Check(t, func(t *rapid.T) {
		a := newAuthor(1, "s")
		docs := map[string]model.Value{}
		was := map[uint64]map[string]model.Value{} // the documents before a commit
		for n := range rapid.IntRange(1, 25).Draw(t, "commits") {
			if gap := rapid.SampledFrom([]int{0, 0, 1, 90}).Draw(t, "gap"); gap > 0 {
				a.neighbour(gap)
			}
			before := map[string]model.Value{"a": docs["a"], "b": docs["b"]}
			c := &model.Commit{Runtime: "r", Takeover: n == 0}
			for range rapid.IntRange(0, 3).Draw(t, "writes") {
				c.Txs = append(c.Txs, model.Tx{N: uint64(len(c.Txs) + 1), By: "test", Writes: []model.Write{drawWrite(t, docs)}})
			}
			a.append(c)
			was[a.head] = before
		}
		log := a.server.ReadLog("s", 0, 1<<20)
		bus := a.reader(t)
		if rapid.Bool().Draw(t, "purged") {
			bus.purged = log[rapid.IntRange(0, len(log)-1).Draw(t, "purged up to")].Seq - 1
		}
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		var all []*history.Entry
		for next := uint64(0); ; {
			p, err := history.ReadEntries(t.Context(), bus, "s", history.LogQuery{Before: next, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			all = append(slices.Clone(p.Entries), all...)
			if next = p.Next; p.End != history.EndLimit {
				first := bus.purged < log[0].Seq
				if (p.End == history.EndFirst) != first {
					t.Fatalf("ends with %s, and the log begins at %d, cut off at %d", p.End, log[0].Seq, bus.purged)
				}
				break
			}
		}
		left := slices.DeleteFunc(slices.Clone(log), func(e model.LogEntry) bool { return e.Seq <= bus.purged })
		if len(all) != len(left) {
			t.Fatalf("%d commits, the log has %d", len(all), len(left))
		}
		for i, e := range all {
			if e.Revision != left[i].Seq {
				t.Fatalf("commit %d is %d, in the log %d", i, e.Revision, left[i].Seq)
			}
			now := was[e.Revision]
			for _, s := range e.Steps {
				for _, c := range s.Changes {
					path, err := model.ParsePath(c.Path)
					if err != nil {
						t.Fatal(err)
					}
					before := now[c.Document].At(path)
					if c.Unknown {
						unknown++
						if bus.purged < log[0].Seq {
							t.Fatalf("at %d the value of %s%s is not known, and the whole log is there", e.Revision, c.Document, c.Path)
						}
					} else if known++; !model.Equal(c.From, before) {
						t.Fatalf("at %d %s%s was %v, not %v", e.Revision, c.Document, c.Path, before, c.From)
					}
					now[c.Document], err = model.Write{Doc: c.Document, Path: path, Value: c.To, Delete: c.To.IsAbsent()}.Apply(now[c.Document])
					if err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	})
	if known == 0 || unknown == 0 {
		t.Errorf("%d values before changes were known and %d not: the test needs both", known, unknown)
	}
}

// A page of commits of a space that shares its partition with busy ones is found with few reads.
func TestEntries_ASparseLogIsReadInFewRequests(t *testing.T) {
	a := newAuthor(1, "s")
	for n := range 400 {
		a.append(&model.Commit{Runtime: "r", Takeover: n == 0, Txs: []model.Tx{{N: uint64(n), By: "test", Writes: []model.Write{{Doc: "d", Value: model.Int(int64(n))}}}}})
		a.neighbour(1 + n%3*15)
	}
	bus := a.reader(t)
	p, err := history.ReadEntries(t.Context(), bus, "s", history.LogQuery{Limit: 300})
	if err != nil || len(p.Entries) != 300 || p.End != history.EndLimit || p.Entries[0].Steps[0].Changes[0].Unknown {
		t.Fatalf("%+v, %v", p, err)
	}
	if bus.reads > 25 {
		t.Errorf("%d reads", bus.reads)
	}
}

// A run belongs to the event whose handling has changed what made it run, also through another run.
func TestEntries_ARunNamesTheEventThatItFollowsFrom(t *testing.T) {
	a := newAuthor(1, "s")
	a.takeOver()
	set := func(doc string, n int64) []model.Write { return []model.Write{{Doc: doc, Value: model.Int(n)}} }
	rc := receipts.Handled(&model.Event{Space: "s", Stream: "add", ID: "order-17"}, model.Int(3))
	a.append(&model.Commit{Runtime: "r", Txs: []model.Tx{
		{N: 1, By: "handle add", Receipt: rc, Writes: set("count", 3)},
		{N: 2, By: "compute double", Causes: []string{"count"}, Writes: set("double", 6)},
		{N: 3, By: "compute quad", Causes: []string{"double#"}, Writes: set("quad", 12)},
		{N: 4, By: "compute far", Causes: []string{"@other/count"}, Writes: set("far", 1)},
		{N: 5, By: "repair", Writes: set("count", 4)},
		{N: 6, By: "compute double", Causes: []string{"count"}, Writes: set("double", 8)},
		{N: 7, By: "handle later", Later: &model.Waiting{ID: "l1", Stream: "later", NotBefore: 5, Slot: 1}},
	}})
	p, err := history.ReadEntries(t.Context(), a.reader(t), "s", history.LogQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Entries[1].Steps {
		event := "-"
		if s.Event != nil {
			event = s.Event.Event
		}
		got = append(got, fmt.Sprintf("%s %s %s", s.Kind, s.Name, event))
	}
	want := "handler add order-17, computation double order-17, computation quad order-17, computation far -, direct repair -, computation double -, later later l1"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("the steps are\n%s\nwant\n%s", text, want)
	}
}

// The commits of a node are those of its runs, and what they change has the value that was there, whatever other commits have written since
// the run before.
func TestEntries_OfANodeHaveTheValuesThatWereThere(t *testing.T) {
	for _, limit := range []int{1, 2, 20} {
		a := newAuthor(1, "s")
		a.takeOver()
		put := func(by string, n int64) {
			a.append(&model.Commit{Runtime: "r", Txs: []model.Tx{{N: uint64(n + 1), By: by, Causes: []string{"in"}, Writes: []model.Write{{Doc: "sum", Value: model.Int(n)}}}}})
		}
		put("repair", 1)
		put("compute sum", 2)
		put("repair", 3)
		put("compute summary", 4)
		put("compute sum", 5)
		p, err := history.ReadEntries(t.Context(), a.reader(t), "s", history.LogQuery{Node: "sum", Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range p.Entries {
			for _, s := range e.Steps {
				got = append(got, fmt.Sprintf("%v-%v", s.Changes[0].From, s.Changes[0].To))
			}
		}
		want := []string{"1-2", "4-5"}
		if want = want[max(0, 2-limit):]; !slices.Equal(got, want) {
			t.Errorf("with limit %d the runs have changed %v, want %v", limit, got, want)
		}
	}
}

// The commits of one document, or of one place in it, are those that change it.
func TestEntries_OfADocumentAreThoseThatChangeIt(t *testing.T) {
	a := newAuthor(1, "s")
	a.takeOver()
	for n := range int64(40) {
		w := model.Write{Doc: "a", Path: model.Path{"n"}, Value: model.Int(n / 10)}
		if n%2 == 1 {
			w = model.Write{Doc: "b", Value: model.Int(n)}
		}
		a.append(&model.Commit{Runtime: "r", Txs: []model.Tx{{N: uint64(n + 1), By: "test", Writes: []model.Write{w}}}})
	}
	for _, c := range []struct {
		q    history.LogQuery
		want string
	}{
		{history.LogQuery{Document: "a"}, "/n:-0 /n:01 /n:12 /n:23"},
		{history.LogQuery{Document: "a", Path: model.Path{"n"}}, "/n:-0 /n:01 /n:12 /n:23"},
		{history.LogQuery{Document: "a", Path: model.Path{"m"}}, ""},
		{history.LogQuery{Document: "b", Limit: 2}, ":3537 :3739"},
		{history.LogQuery{Document: "nosuch"}, ""},
	} {
		p, err := history.ReadEntries(t.Context(), a.reader(t), "s", c.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range p.Entries {
			for _, s := range e.Steps {
				for _, at := range s.Changes {
					got = append(got, strings.ReplaceAll(fmt.Sprintf("%s:%v%v", at.Path, at.From, at.To), "absent", "-"))
				}
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%+v: %q, want %q", c.q, text, c.want)
		}
	}
}

// A page is followed by the commits after it, with the values before; the end of the context ends that.
func TestEntries_FollowContinuesAPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthor(1, "s")
		put := func(n int64) {
			a.append(&model.Commit{Runtime: "r", Takeover: n == 0, Txs: []model.Tx{{N: uint64(n + 1), By: "test", Writes: []model.Write{{Doc: "d", Value: model.Int(n)}}}}})
		}
		put(0)
		put(1)
		bus := a.reader(t)
		p, err := history.ReadEntries(t.Context(), bus, "s", history.LogQuery{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		ended := make(chan error, 1)
		go func() { // ends with ctx
			ended <- p.Follow(ctx, bus, history.LogQuery{}, func(e *history.Entry) bool {
				c := e.Steps[0].Changes[0]
				got = append(got, fmt.Sprintf("%v-%v", c.From, c.To))
				return true
			})
		}()
		put(2)
		put(3)
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
		if text := strings.Join(got, " "); text != "1-2 2-3" {
			t.Errorf("the changes after the page are %q", text)
		}
	})
}

func TestEntries_AQueryIsChecked(t *testing.T) {
	bus := newAuthor(1, "s").reader(t)
	for _, c := range []struct {
		space string
		q     history.LogQuery
		want  string
	}{
		{"bad name", history.LogQuery{}, "space"},
		{"s", history.LogQuery{Document: "a/b"}, "document"},
		{"s", history.LogQuery{Limit: history.MaxEntries + 1}, "limit"},
		{"s", history.LogQuery{Limit: -1}, "limit"},
		{"s", history.LogQuery{Path: model.Path{"a"}}, "name a document"},
	} {
		if _, err := history.ReadEntries(t.Context(), bus, c.space, c.q); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %+v: %v", c.space, c.q, err)
		}
	}
	if p, err := history.ReadEntries(t.Context(), bus, "s", history.LogQuery{}); err != nil || len(p.Entries) != 0 || p.End != history.EndFirst {
		t.Errorf("a space without a log: %+v, %v", p, err)
	}
}
