package space

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/inspect"
)

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkTables compares the tables with a plain walk over the hot records.
func checkTables(t fataler, s *Space) *inspect.Snapshot {
	t.Helper()
	got, want := s.Inspect(), walkOf(s)
	var ids []string
	for _, n := range got.Nodes() {
		ids = append(ids, n.ID)
		w, ok := want.Node(n.ID)
		if !ok {
			t.Fatalf("the tables have node %s, which does not exist", n.ID)
		}
		if a, b := want.reads(n.ID), n.Reads; len(a)+len(b) > 0 && !reflect.DeepEqual(a, b) {
			t.Fatalf("the tables say that %s reads %+v, it does %+v", n.ID, b, a)
		}
		n.Reads, n.Writes = nil, nil // the edges contain them
		if !reflect.DeepEqual(n, w) {
			t.Fatalf("the tables show\n%+v, the hot records say\n%+v", n, w)
		}
		compareEdges(t, n.ID+" is read by", got.Readers(n.ID), want.Readers(n.ID))
		compareEdges(t, n.ID+" reads from", got.Writers(n.ID), want.Writers(n.ID))
	}
	for id := range s.graph.byID { // any order: each is independent
		if !slices.Contains(ids, id) {
			t.Fatalf("node %s is not in the tables", id)
		}
	}
	compareLane(t, got, s)
	return got
}

func compareEdges(t fataler, what string, got, want []inspect.Edge) {
	t.Helper()
	text := func(edges []inspect.Edge) []string {
		var out []string
		for _, e := range edges {
			out = append(out, fmt.Sprintf("%+v", e))
		}
		slices.Sort(out)
		return out
	}
	if a, b := text(got), text(want); !slices.Equal(a, b) {
		t.Fatalf("%s %q in the tables, %q in the hot records", what, a, b)
	}
}

// compareLane examines the lane as a space does: one event after the other.
func compareLane(t fataler, got *inspect.Snapshot, s *Space) {
	t.Helper()
	l, lane := got.Lane(), s.ledger.Lane()
	if len(l.Queue) != lane.Waiting() || len(l.Early) != lane.Held() || len(l.Undecided) != lane.Undecided() {
		t.Fatalf("the tables have %d queued, %d early and %d undecided events; the lane %d, %d and %d",
			len(l.Queue), len(l.Early), len(l.Undecided), lane.Waiting(), lane.Held(), lane.Undecided())
	}
	if lane.Peek() != nil && l.Queue[0] != lane.Peek() {
		t.Fatalf("the tables have %v first, the lane %v", l.Queue[0], lane.Peek())
	}
	if lane.Quiet() != (len(l.Queue)+len(l.Early)+len(l.FollowUps) == 0 && !l.Unread) {
		t.Fatalf("the lane is quiet: %v, the tables have %+v", lane.Quiet(), l)
	}
	if ev := s.ledger.Head(); (ev == nil) != (l.Head == nil) || ev != nil && (l.Head.Event != ev.ID || l.Head.Stream != ev.Stream) {
		t.Fatalf("the head is %v, the tables have %+v", ev, l.Head)
	}
	if st := got.State(); st.Seq != s.ledger.Replica().Seq || st.Passes != s.runner.budgets.passes || st.At != s.graph.now {
		t.Fatalf("the tables have the state %+v", st)
	}
}

// compareWaiting compares the events that wait for a time with the log, where the log alone determines them;
// no event may wait twice.
func compareWaiting(t fataler, w *world, h *host) {
	t.Helper()
	lane, waits := h.core.Inspect().Lane(), map[string]bool{}
	for _, p := range lane.Pending() {
		key := fmt.Sprint(p.Stream, " ", p.ID)
		if waits[key] && p.Reason == inspect.ForItsTime {
			t.Fatalf("%s is pending twice: %+v", key, lane.Pending())
		}
		waits[key] = waits[key] || p.Reason != inspect.Uncommitted // an uncommitted event may not be in the log yet
	}
	if !h.core.Settled() || h.core.Seq() != uint64(len(w.logs[home])) {
		return
	}
	var got, want []string
	for _, it := range lane.Scheduled {
		got = append(got, fmt.Sprintf("%d %s %s %d", it.Slot, it.ID, it.Timer, it.NotBefore))
	}
	w.replica(home).Later.Each(func(it *model.Waiting) {
		want = append(want, fmt.Sprintf("%d %s %s %d", it.Slot, it.ID, it.Timer, it.NotBefore))
	})
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("the tables have %q waiting for a time, the log %q", got, want)
	}
}

// reads returns the places that a node reads, according to the edges of the graph.
func (v plainWalk) reads(id string) (out []inspect.Read) {
	for _, d := range v.graph.byID[id].deps {
		if slices.Contains(d.doc.readers, d) {
			out = append(out, inspect.Read{Space: d.doc.key.space, Doc: d.doc.key.doc, Path: d.path, Shallow: d.shallow, Declared: d.declared})
		}
	}
	return out
}

// shown returns everything that a snapshot shows, as text.
func shown(s *inspect.Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", s.State())
	for _, n := range s.Nodes() {
		fmt.Fprintf(&b, "%+v\n%+v\n%+v\n", n, s.Readers(n.ID), s.Writers(n.ID))
		e, _ := s.Explain(n.ID)
		b.WriteString(e.String() + "\n")
	}
	for _, p := range s.Lane().Pending() {
		fmt.Fprintf(&b, "%+v\n", p)
	}
	p, _ := s.Parked()
	h := s.History()
	fmt.Fprintf(&b, "%s\n%+v\n%+v\n%+v\n%v\n%v\n%+v\n", p, h.Runs, h.Triggers, h.Markers, h.NonSettling, h.Circles(), s.Tasks())
	return b.String()
}

// After every move of a random program the tables agree with a plain walk over the hot records, and earlier
// snapshots show what they showed before. Another goroutine reads one of them all the time.
func TestInspect_TheTablesAgreeWithTheHotRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := genFormulas(t)
		p := fs.program(t)
		if err := addTrouble(p); err != nil {
			t.Fatalf("%v", err)
		}
		m := newMachine(t, fs, p, func(c *Config) { c.RunBudget, c.LaneLimit = 3, rapid.SampledFrom([]int{2, 4096}).Draw(t, "lane limit") })
		for _, h := range m.hosts {
			h.core.Recorder().RecordRuns(true)
			h.core.Recorder().RecordTriggers(true)
			h.core.Recorder().Diagnose(true)
		}
		type taken struct {
			later *inspect.Snapshot // not read before the end
			was   string
		}
		var snapshots []taken
		var done []chan string
		looks := rapid.SampledFrom([]int{1, 2, 7}).Draw(t, "moves between looks")
		for i := range 40 {
			m.move(t)
			if i%looks > 0 {
				continue
			}
			for _, h := range m.hosts {
				s := checkTables(t, h.core)
				snapshots = append(snapshots, taken{h.core.Inspect(), shown(s)})
				elsewhere, shows := h.core.Inspect(), make(chan string, 1)
				go func() { shows <- shown(elsewhere) }()
				done = append(done, shows)
			}
		}
		for i, s := range snapshots {
			if now := shown(s.later); now != s.was {
				t.Fatalf("a snapshot showed\n%s\nand shows now\n%s", s.was, now)
			}
			if there := <-done[i]; there != s.was {
				t.Fatalf("a snapshot showed\n%s\nand in another goroutine\n%s", s.was, there)
			}
		}
	})
}

// The tables show waiting events with their state: before they are in the log, after that, and when they
// become due.
func TestInspect_TheTablesListWaitingEvents(t *testing.T) {
	w := newWorld(t)
	h := w.plans(t, "w1")
	pending := func() (out []string) {
		for _, p := range h.core.Inspect().Lane().Pending() {
			line := p.Stream + " " + p.ID
			if p.Timer != "" {
				line = "timer " + p.Timer
			}
			if p.At != 0 {
				line += fmt.Sprint(" +", p.At-noon)
			}
			out = append(out, fmt.Sprintf("%s: %s, %d ahead", line, p.Reason, p.Ahead))
		}
		return out
	}
	want := func(when string, lines ...string) {
		t.Helper()
		if got := pending(); !slices.Equal(got, lines) {
			t.Errorf("%s: %q, want %q", when, got, lines)
		}
	}
	want("at first")
	w.send(home, "plan", "e1", "set tick 2000\nset tock 1000\nset soon 1")
	w.sendAt("e2", noon+500, "")
	w.send(home, "plan", "e3", "cancel soon")
	h.deliver()
	want("delivered", "plan e1: at the head, 0 ahead", "plan e2 +500: queued, 1 ahead", "plan e3: queued, 2 ahead")
	h.settle()
	want("handled", "plan e1: uncommitted, 0 ahead", "plan e2 +500: uncommitted, 0 ahead", "plan e3: uncommitted, 0 ahead",
		"plan e2 +500: for its time, 0 ahead", "timer tock +1000: for its time, 0 ahead", "timer tick +2000: for its time, 0 ahead")
	h.run()
	rest := []string{"timer tock +1000: for its time, 0 ahead", "timer tick +2000: for its time, 0 ahead"}
	want("confirmed", append([]string{"plan e2 +500: for its time, 0 ahead"}, rest...)...)
	h.pass(500)
	h.core.Clock(time.UnixMilli(h.wall))
	h.core.Settle(h.now)
	want("its time has come", append([]string{"plan e2 +500: uncommitted, 0 ahead"}, rest...)...)
}

// An event whose time has come is in the queue, and not among the waiting events as well.
func TestInspect_ADueEventIsListedOnce(t *testing.T) {
	w := newWorld(t)
	h := w.plans(t, "w1", func(c *Config) { c.MaxGroup = 1 })
	w.send(home, "plan", "e1", "set a 1000\nset b 1000\nset c 5000")
	h.run()
	h.pass(1000)
	h.core.Clock(time.UnixMilli(h.wall))
	h.core.Settle(h.now)
	lane := h.core.Inspect().Lane()
	if len(lane.Undecided) != 1 || len(lane.Queue) != 1 || lane.Queue[0].Timer != "b" {
		t.Fatalf("%d undecided, in the queue %+v", len(lane.Undecided), lane.Queue)
	}
	if later := lane.Later(); len(later) != 1 || later[0].Timer != "c" {
		t.Errorf("%d events wait for their time, want only c", len(later))
	}
	if n := len(lane.Pending()); n != 3 {
		t.Errorf("%d events are pending, want 3: %+v", n, lane.Pending())
	}
}

// Changes by another runtime's commits are shown before the space processes them.
func TestInspect_EventsThatOthersCancelledDoNotWait(t *testing.T) {
	w := newWorld(t)
	one := w.plans(t, "w1")
	w.send(home, "plan", "e1", "set a 1000\nset b 2000")
	one.run()
	if n := len(one.core.Inspect().Lane().Later()); n != 2 {
		t.Fatalf("%d events wait for their time, want 2", n)
	}
	two := w.plans(t, "w2")
	w.send(home, "plan", "e2", "cancel a\nset b 3000")
	two.run()
	one.integrate()
	later := one.core.Inspect().Lane().Later()
	if len(later) != 1 || later[0].Timer != "b" || later[0].NotBefore != noon+3000 {
		t.Errorf("the events %+v wait for their time, want b at 3000", later)
	}
}

// A shallow reader of a document is not a reader of a place deep inside it, a deep reader is.
func TestInspect_EdgesAreWherePlacesMeet(t *testing.T) {
	p := newProgram(t)
	value := func(*Tx) (model.Value, error) { return model.Value{}, nil }
	for _, at := range []model.Path{nil, {"a"}, {"a", "b"}, {"a", "b", "c"}, {"z"}} {
		p.add(NodeSpec{ID: "writes" + strings.Join(at, ""), Kind: Computation, Writes: []Address{{Doc: "doc", Path: at}}, Run: value})
		p.add(NodeSpec{ID: "reads" + strings.Join(at, ""), Kind: Effect, Run: func(tx *Tx) (model.Value, error) { return tx.Get("doc", at...), nil }})
		p.add(NodeSpec{ID: "looks" + strings.Join(at, ""), Kind: Effect, Run: func(tx *Tx) (model.Value, error) { return tx.GetShallow("doc", at...), nil }})
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	h.run()
	s := checkTables(t, h.core)
	var got []string
	for _, e := range s.Readers("writesab") {
		got = append(got, e.Node)
	}
	want := []string{"reads", "readsa", "looksa", "readsab", "looksab", "readsabc", "looksabc"}
	if !slices.Equal(got, want) {
		t.Errorf("what is written at a/b is read by %q, want %q", got, want)
	}
}

// The tables have the tasks of each action, with the value in the document that TaskOf decodes.
func TestInspect_TheTablesHaveTasks(t *testing.T) {
	p := newProgram(t).handle("start", func(tx *Tx, ev *model.Event) any {
		tx.StartTask("pay", ev.ID, ev.Payload)
		return nil
	})
	if err := p.Action(&ActionSpec{Name: "pay"}); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	before := h.core.Inspect()
	w.send(home, "start", "t1", 7)
	h.run()
	tasks := h.core.Inspect().Tasks()
	if len(tasks) != 1 || tasks[0].Action != "pay" || tasks[0].Input || len(tasks[0].Docs) != 1 || tasks[0].Docs[0].Doc != "pay" {
		t.Fatalf("the tables have %+v", tasks)
	}
	task := TaskOf("t1", tasks[0].Docs[0].Tasks.Get("t1"))
	if task.State != TaskPending || num(task.In) != 7 {
		t.Errorf("the task is %+v", task)
	}
	if was := before.Tasks()[0].Docs[0].Tasks; !was.IsAbsent() {
		t.Errorf("the earlier snapshot has %s", was)
	}
}

// The state of a space names the program that runs and its handlers, and the reason why the space runs
// nothing.
func TestInspect_TheStateOfTheSpace(t *testing.T) {
	w := newWorld(t)
	p := chain(t).Program
	h := w.host("w1", p)
	st := h.core.Inspect().State()
	if st.Space != home || st.Program != p.Name || !slices.Equal(st.Handlers, []string{"set"}) || st.Halt != "this runtime does not own it" {
		t.Errorf("state before the takeover: %+v", st)
	}
	h.observe("a")
	if n, _ := h.core.Inspect().Node("observe:a"); n.RunState != inspect.Halted || n.Halt != st.Halt {
		t.Errorf("a node that cannot run for this reason has standing %s, %q", n.RunState, n.Halt)
	}
	h.takeOver()
	if st := h.core.Inspect().State(); st.Halt != "" || st.Seq == 0 {
		t.Errorf("state as the owner: %+v", st)
	}
	h.core.Hold()
	if st := h.core.Inspect().State(); st.Halt != "it is finishing" {
		t.Errorf("state while finishing: %+v", st)
	}
}

// Documents lead to the nodes that read and write them.
func TestInspect_DocumentsLeadToNodes(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", chain(t).Program)
	h.observe("b")
	h.run()
	s := h.core.Inspect()
	if got := s.WritersOf("a"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("a is written by %v", got)
	}
	if got := s.ReadersOf("", "a"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("a is read by %v", got)
	}
	if got := s.ReadersOf("bank", "rate"); got != nil {
		t.Errorf("a document that nothing reads is read by %v", got)
	}
}
