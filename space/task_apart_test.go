package space

import (
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

// apart is a program with an action whose tasks have documents of their own, and the tasks that have ended.
func apart(t *testing.T, ended *[]string) *Program {
	t.Helper()
	p := newProgram(t).handle("start", func(tx *Tx, ev *model.Event) any {
		n, _ := ev.Payload.AsInt()
		for i := range n {
			tx.StartTask("work", fmt.Sprintf("%s-%06d", ev.ID, i), strings.Repeat("x", 100))
		}
		return nil
	}).handle("write", func(tx *Tx, _ *model.Event) any {
		tx.Set(model.TaskDoc("work", "k-000000"), 1)
		return nil
	})
	a := &ActionSpec{Name: "work", Discard: true, External: true, Remote: &Remote{}, Done: func(_ *Tx, task Task) error {
		*ended = append(*ended, task.Key+"="+task.Out.String()+task.Err)
		return nil
	}}
	if err := p.Action(a); err != nil {
		t.Fatal(err)
	}
	return p.Program
}

// stored returns the bytes that a change adds to the log and to the saved state, without the mark and the document of the action,
// which do not depend on what is pending.
func stored(h *host, change func()) (n int) {
	h.t.Helper()
	before := len(h.w.logs[home])
	change()
	h.run()
	for _, e := range h.w.logs[home][before:] {
		n += len(e.Data)
	}
	c, err := h.core.Checkpoint()
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	for i := range c.Docs {
		n += len(c.Docs[i].Doc) + len(c.Docs[i].Data)
	}
	return n
}

// Starting and ending a task costs the same, in the log and in the saved state, however many are pending.
func TestApart_ATaskCostsTheSameHoweverManyArePending(t *testing.T) {
	t.Parallel()
	var costs []int
	for _, pending := range []int{10, 10_000} {
		var ended []string
		w := newWorld(t)
		h := w.owner("w1", apart(t, &ended))
		for i := range pending / 10 {
			w.send(home, "start", fmt.Sprintf("p%05d", i), 10)
		}
		h.run()
		if n := len(h.core.Tasks("work")); n != pending {
			t.Fatalf("%d tasks are pending", n)
		}
		stored(h, func() {}) // saved
		n := stored(h, func() { w.send(home, "start", "one", 1) })
		n += stored(h, func() {
			c := Completion{Key: "one-000000", N: 1, Out: model.Int(7)}
			w.send(home, "work", "end", c.Value())
		})
		if len(ended) != 1 || len(h.core.Tasks("work")) != pending {
			t.Fatalf("ended %v", ended)
		}
		costs = append(costs, n)
	}
	if few, many := costs[0], costs[1]; many > few*11/10 || few > many*11/10 {
		t.Errorf("a task costs %d bytes with 10 pending, and %d with 10,000", few, many)
	} else {
		t.Logf("a task costs %d bytes with 10 pending, and %d with 10,000", few, many)
	}
}

// Many tasks that have begun and ended leave nothing: no document in memory, and no message in the saved state.
func TestApart_EndedTasksLeaveNothing(t *testing.T) {
	t.Parallel()
	var ended []string
	w := newWorld(t)
	h := w.owner("w1", apart(t, &ended))
	for i := range 500 {
		id := fmt.Sprint("s", i)
		w.send(home, "start", id, 1)
		h.run()
		c := Completion{Key: id + "-000000", Out: model.Int(int64(i))}
		w.send(home, "work", "end-"+id, c.Value())
	}
	h.run()
	c, err := h.core.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if len(ended) != 500 || len(c.Docs) != 1 || c.Docs[0].Doc != "work" || len(h.core.graph.tasks) != 0 {
		t.Errorf("%d have ended, %d documents are saved", len(ended), len(c.Docs))
	}
}

// Pending tasks that an earlier version has stored in the document of their action end as before, and new ones are stored apart.
// The bytes are what that version has saved.
func TestApart_TasksOfAnEarlierVersionAreEnded(t *testing.T) {
	t.Parallel()
	var ended []string
	w := newWorld(t)
	w.saved[home] = model.SpaceState{Docs: []model.StateDoc{{
		Doc: "work", Seq: 0, Rev: 1,
		Data: []byte(`{"gen":3,"tasks":{"old-000000":{"state":"pending","n":4,"in":"` + strings.Repeat("x", 100) + `","attempts":2,"error":"no"},"bad":{"state":"failed","n":2,"error":"e","unhandled":true}}}`),
	}}}
	h := w.owner("w1", apart(t, &ended))
	if list := h.core.Tasks("work"); len(list) != 2 || list[1].Key != "old-000000" || list[1].N != 4 || list[1].Attempts != 2 {
		t.Fatalf("there are %+v", list)
	}
	w.send(home, "start", "old", 1) // it is pending: this has no effect
	w.send(home, "start", "new", 1)
	h.run()
	if n := h.core.Value("work").Get(inTasks).Len(); n != 2 || len(h.core.graph.tasks) != 1 {
		t.Errorf("%d tasks are in the document, %d apart", n, len(h.core.graph.tasks))
	}
	for i, c := range []Completion{{Key: "old-000000", N: 4, Out: model.Int(1)}, {Key: "new-000000", N: 4, Out: model.Int(2)}, {Key: "bad", N: 2, Out: model.Int(3)}} {
		for again := range 2 {
			w.send(home, "work", fmt.Sprint("end", i, again), c.Value())
		}
	}
	h.run()
	if got := strings.Join(ended, " "); got != "old-000000=1 new-000000=2 bad=3" {
		t.Errorf("ended: %s", got)
	}
	if left := h.core.Tasks("work"); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
}

// The documents of tasks are written by their action only, and no computation depends on one.
func TestApart_NoOtherCodeWritesThem(t *testing.T) {
	t.Parallel()
	var ended []string
	w := newWorld(t)
	p := apart(t, &ended)
	doc := model.TaskDoc("work", "k-000000")
	if err := p.Add(NodeSpec{ID: "n", Kind: Computation, Output: doc, Run: func(*Tx) (model.Value, error) { return model.Int(1), nil }}); err == nil || !strings.Contains(err.Error(), "reserved for tasks") {
		t.Errorf("an output with the name of a task: %v", err)
	}
	if err := p.Add(NodeSpec{ID: "reads", Kind: Computation, Output: "seen", Run: func(tx *Tx) (model.Value, error) { return tx.Get(doc), nil }}); err != nil {
		t.Fatal(err)
	}
	h := w.owner("w1", p)
	if err := h.core.Observe("seen"); err != nil {
		t.Fatal(err)
	}
	w.send(home, "write", "w", nil)
	h.run()
	if rc := w.receipt(home, "w"); rc.Outcome != model.Failed || !strings.Contains(rc.Error, "this document holds a task") {
		t.Errorf("a write: %+v", rc)
	}
	if e, _ := h.core.Inspect().Node("reads"); e.Stats.LastErr == nil || !strings.Contains(fmt.Sprint(e.Stats.LastErr), "it holds a task") {
		t.Errorf("a read: %v", e.Stats.LastErr)
	}
}

// A document that says it is another task than its name does is not believed.
func TestApart_ADocumentWithAWrongNameIsNoTask(t *testing.T) {
	t.Parallel()
	task := Task{Key: "k", State: TaskPending, N: 1}
	entry := task.entry("work")
	if action, got, is := TaskIn(model.TaskDoc("work", "k"), entry); !is || action != "work" || got.Key != "k" || got.State != TaskPending {
		t.Errorf("it is %s %+v", action, got)
	}
	for _, doc := range []string{model.TaskDoc("work", "l"), model.TaskDoc("other", "k"), "work"} {
		if _, _, is := TaskIn(doc, entry); is {
			t.Errorf("%s is taken for the task", doc)
		}
	}
}

// A pending task can be replaced by one with another input, and dropped; ends of the former one have no effect.
func TestApart_ReplaceAndDrop(t *testing.T) {
	t.Parallel()
	var ended []string
	p := apart(t, &ended)
	for stream, f := range map[string]func(tx *Tx){ // any order
		"replace": func(tx *Tx) { tx.StartTask("work", "k", 2, Replace()) },
		"other":   func(tx *Tx) { tx.StartTask("work", "k", 3) },
		"first":   func(tx *Tx) { tx.StartTask("work", "k", 1, Priority(5)) },
		"drop":    func(tx *Tx) { tx.DropTask("work", "k") },
		"wrong":   func(tx *Tx) { tx.StartTask("work", "l", 1, Priority(maxPriority+1)) },
	} {
		if err := p.Handle(stream, func(tx *Tx, _ *model.Event) (model.Value, error) { f(tx); return model.Value{}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	h := w.owner("w1", p)
	for _, stream := range []string{"first", "other", "wrong", "replace"} {
		w.send(home, stream, stream, nil)
		h.run()
		if stream == "first" && h.core.Tasks("work")[0].Priority != 5 {
			t.Errorf("it is %+v", h.core.Tasks("work"))
		}
	}
	if got := fmt.Sprint(w.receipts(home)); got != "[first handled other failed wrong failed replace handled]" {
		t.Error(got)
	}
	stale := Completion{Key: "k", N: 1, Out: model.Int(1)}
	w.send(home, "work", "stale", stale.Value())
	h.run()
	if list := h.core.Tasks("work"); len(list) != 1 || list[0].N != 2 || len(ended) != 0 {
		t.Errorf("there are %+v, ended %v", list, ended)
	}
	w.send(home, "drop", "drop", nil)
	late := Completion{Key: "k", N: 2, Out: model.Int(1)}
	w.send(home, "work", "late", late.Value())
	h.run()
	if list := h.core.Tasks("work"); len(list) != 0 || len(ended) != 0 {
		t.Errorf("there are %+v, ended %v", list, ended)
	}
}
