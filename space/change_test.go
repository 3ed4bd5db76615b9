package space

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// versioned adds a computation that returns k more than the sum of what it reads.
func (p program) versioned(id, output, version string, k int64, reads ...string) program {
	p.t.Helper()
	return p.add(NodeSpec{ID: id, Kind: Computation, Output: output, Version: version, Run: func(tx *Tx) (model.Value, error) {
		total := k
		for _, in := range reads {
			total += num(tx.Get(in))
		}
		return model.Int(total), nil
	}})
}

func (h *host) change(p program) {
	h.t.Helper()
	if err := h.core.Change(p.Program); err != nil {
		h.t.Fatalf("change: %v", err)
	}
	h.program = p.Program
	checkGraph(h.t, h.core.graph)
}

// Unchanged nodes do not run, and changed ones run only if they are needed.
func TestChange_RunsNeededNodesOfAnotherVersion(t *testing.T) {
	base := func() program { return newProgram(t).set().versioned("same", "same", "1", 0, "in") }
	w := newWorld(t)
	h := w.owner("r1", base().versioned("other", "other", "1", 0, "in").versioned("dormant", "dormant", "1", 0, "in").
		versioned("gone", "gone", "1", 0, "in").versioned("none", "none", "", 0, "in").Program)
	w.send(home, "set", "e1", map[string]any{"in": 1})
	for _, doc := range []string{"same", "other", "gone", "none"} {
		h.observe(doc)
	}
	h.run()
	h.told()
	h.change(base().versioned("other", "other", "2", 10, "in").versioned("dormant", "dormant", "2", 10, "in").
		versioned("none", "none", "", 20, "in").versioned("new", "new", "1", 30, "in"))
	h.observe("new")
	h.run()
	wantStory(t, h.told(), "run other, changed", "run none, changed", "run new, changed", "run observe:new", "run observe:other", "run observe:none")
	for doc, want := range map[string]string{"same": "1", "other": "11", "gone": "1", "none": "21", "new": "31", "dormant": "absent"} {
		wantValue(t, h, doc, want)
	}
	h.observe("dormant")
	h.run()
	wantValue(t, h, "dormant", "11")
}

// A change that is reverted before any run needs no run.
func TestChange_BackToTheVersionThatRanLastRunsNothing(t *testing.T) {
	v := func(version string) program {
		return newProgram(t).set().versioned("sum", "sum", version, int64(len(version)), "in").versioned("idle", "idle", version, 0, "in")
	}
	w := newWorld(t)
	h := w.owner("r1", v("1").Program)
	w.send(home, "set", "e1", map[string]any{"in": 1})
	h.observe("sum")
	h.observe("idle")
	h.run()
	h.core.Unobserve("idle")
	h.run()
	h.told()
	h.change(v("22"))
	h.change(v("333"))
	h.change(v("1"))
	h.run()
	wantStory(t, h.told())
	h.change(v("22"))
	h.run()
	h.change(v("1"))
	h.run()
	wantStory(t, h.told(), "run sum, changed", "run observe:sum", "run sum, changed", "run observe:sum")
	h.observe("idle") // dormant under both: nothing has changed for it
	h.run()
	wantStory(t, h.told(), "run observe:idle")
}

// The roles of documents change: derived ones become written ones, and the other way round.
func TestChange_DerivedAndWrittenDocumentsMaySwapRoles(t *testing.T) {
	w := newWorld(t)
	h := w.owner("r1", newProgram(t).set().versioned("a", "a", "1", 0, "in").Program)
	w.send(home, "set", "e1", map[string]any{"in": 1, "b": 7})
	h.observe("a")
	h.observe("b")
	h.run()
	h.change(newProgram(t).set().versioned("b", "b", "1", 100, "a"))
	h.run()
	wantValue(t, h, "a", "1") // it stays
	wantValue(t, h, "b", "101")
	w.send(home, "set", "e2", map[string]any{"a": 5})
	h.run()
	wantValue(t, h, "b", "105")
	w.send(home, "set", "e3", map[string]any{"b": 5})
	h.run()
	if rc := w.receipt(home, "e3"); rc.Outcome != model.Failed {
		t.Errorf("a handler has written a derived document: %+v", rc)
	}
	h.change(newProgram(t).set().versioned("x", "a", "1", 0, "in")) // under another name
	w.send(home, "set", "e4", map[string]any{"b": 6})
	h.run()
	wantValue(t, h, "a", "1")
	wantValue(t, h, "b", "6")
}

// One program has made all transactions of a commit, and the log names it.
func TestI8_ACommitIsOfOneProgramNamedInTheLog(t *testing.T) {
	v := func(version string) program {
		p := newProgram(t).handle("who", func(tx *Tx, _ *model.Event) any { tx.Set("by", version); return version })
		p.Version = version
		return p
	}
	w := newWorld(t)
	h := w.owner("r1", v("one").Program)
	send := func(ids ...string) {
		for _, id := range ids {
			w.send(home, "who", id, nil)
		}
		h.deliver()
		h.settleAll()
	}
	send("e1")         // is sealed, and under way
	send("e2")         // is open
	h.change(v("two")) // waits for that
	send("e3")
	if !h.decide() {
		t.Fatal("refused")
	}
	h.settleAll() // seals e2 and e3, and changes over
	send("e4")
	h.run()
	h.change(v("three"))
	h.change(v("four"))
	send("e5") // under way when it is refused
	h.change(v("five"))
	h.refuse(put("else", 1)) // and is repeated
	h.run()
	got, by := map[string]string{}, ""
	for _, e := range w.logs[home] {
		c := w.commit(e)
		if c.Program != "" {
			by = c.Program
		}
		for _, tx := range c.Txs {
			if tx.Receipt != nil {
				got[tx.Receipt.Event] = tx.Receipt.Result.String() + " " + by
			}
		}
	}
	want := map[string]string{"e1": `"one" one`, "e2": `"one" one`, "e3": `"one" one`, "e4": `"two" two`, "e5": `"five" five`}
	for id := range want { // any order: each is independent
		if got[id] != want[id] {
			t.Errorf("%s was handled by %s, want %s", id, got[id], want[id])
		}
	}
}

// An event that waits under one program is handled by the next.
func TestChange_TheEventAtTheHeadIsTriedByTheNewProgramAtOnce(t *testing.T) {
	w := newWorld(t)
	h := w.owner("r1", newProgram(t).handle("go", func(tx *Tx, _ *model.Event) any {
		tx.Get("lacks")
		return Transient(errors.New("not yet"))
	}).Program)
	w.send(home, "go", "e1", nil)
	h.run()
	wantStory(t, h.told(), "park e1")
	h.change(newProgram(t).handle("go", func(*Tx, *model.Event) any { return nil }))
	h.run()
	wantStory(t, h.told(), "handled e1")
	if rc := w.receipt(home, "e1"); rc.Attempts != 0 {
		t.Errorf("%d attempts", rc.Attempts)
	}
	w.send(home, "go", "e2", nil)
	h.change(newProgram(t))
	h.run()
	wantStory(t, h.told(), "refused e2")
}

// listed returns a program whose effect makes a computation for each name in the document names.
func listed(t *testing.T, maker, version string, k int64, output func(name string) string) program {
	return newProgram(t).set().add(NodeSpec{ID: "list", Kind: Effect, Version: maker, Run: func(tx *Tx) (model.Value, error) {
		for e := range tx.Get("names").Elements() {
			name, _ := e.AsString()
			tx.Node(NodeSpec{ID: "row-" + name, Kind: Computation, Output: output(name), Version: version, Run: func(tx *Tx) (model.Value, error) {
				return model.Int(num(tx.Get("in-"+name)) + k), nil
			}})
		}
		return model.Value{}, nil
	}})
}

// The new program makes the children again: those of the same version do not run.
func TestChange_OfAThousandChildrenOfTheSameVersionNoneRuns(t *testing.T) {
	names, set := []any{}, map[string]any{}
	for i := range 1000 {
		names = append(names, fmt.Sprint(i))
		set[fmt.Sprint("in-", i)] = i
	}
	set["names"] = names
	out := func(name string) string { return "out-" + name }
	w := newWorld(t)
	h := w.owner("r1", listed(t, "1", "1", 0, out).Program)
	w.send(home, "set", "e1", set)
	h.run()
	h.observe("out-7")
	h.run()
	h.told()
	h.change(listed(t, "1", "1", 0, out))
	h.run()
	wantStory(t, h.told(), "run list")
	w.send(home, "set", "e2", map[string]any{"in-7": 70})
	h.run()
	wantStory(t, h.told(), "handled e2", "run row-7, changed", "run observe:out-7")
	h.change(listed(t, "1", "2", 1000, out)) // all with another version; one is observed
	h.run()
	wantStory(t, h.told(), "run list", "run row-7, changed", "run observe:out-7")
	wantValue(t, h, "out-7", "1070")
	h.change(listed(t, "1", "", 2000, out)) // and without a version
	h.run()
	h.change(listed(t, "1", "", 3000, out))
	h.run()
	wantValue(t, h, "out-7", "3070")
	h.told()
	h.change(listed(t, "1", "2", 1000, func(name string) string { return "new-" + name }))
	h.run()
	wantValue(t, h, "new-8", "1008") // with another output each is a new node, and runs once
	wantValue(t, h, "out-8", "8")
	h.change(newProgram(t).set())
	h.run()
	if n := len(h.core.graph.byID); n != 1 { // the observer
		t.Errorf("%d nodes are left", n)
	}
}

// A child of the previous program does not run old code just because its maker is not needed, even if the
// maker is held for a while.
func TestChange_ADormantMakerRunsOnceSoThatItsChildrenAreOfTheNewProgram(t *testing.T) {
	v := func(k int64) program {
		return newProgram(t).set().add(NodeSpec{ID: "maker", Kind: Computation, Output: "made", Gate: GateSpec{Debounce: time.Second}, Run: func(tx *Tx) (model.Value, error) {
			tx.Node(NodeSpec{ID: "row", Kind: Computation, Output: "row", Version: fmt.Sprint(k), Run: func(tx *Tx) (model.Value, error) {
				return model.Int(num(tx.Get("in")) + k), nil
			}})
			return model.Int(1), nil
		}})
	}
	w := newWorld(t)
	h := w.owner("r1", v(0).Program)
	h.observe("made")
	h.observe("row")
	h.run()
	h.core.Unobserve("made")
	h.run()
	h.told()
	h.change(v(10))
	h.run()
	wantValue(t, h, "row", "0")
	h.advance(2 * time.Second)
	h.run()
	wantValue(t, h, "row", "10")
	h.run()
	if n := h.core.graph.byID["maker"]; n.live {
		t.Error("the maker is live, although nothing needs it")
	}
}

// Gates are those of the new program, and backoffs that the previous program caused are lifted.
func TestChange_TheGatesAreTheNewOnes(t *testing.T) {
	v := func(version string, debounce time.Duration) program {
		return newProgram(t).set().add(NodeSpec{ID: "sum", Kind: Computation, Output: "sum", Version: version, Gate: GateSpec{Debounce: debounce}, Run: func(tx *Tx) (model.Value, error) {
			return tx.Get("in"), nil
		}})
	}
	w := newWorld(t)
	h := w.owner("r1", v("1", time.Hour).Program)
	h.observe("sum")
	h.run()
	w.send(home, "set", "e1", map[string]any{"in": 1})
	h.run()
	wantValue(t, h, "sum", "absent")
	h.change(v("1", 0))
	h.run()
	wantValue(t, h, "sum", "1")
}

// Jobs are those of the new program.
func TestChange_JobsGetTheNewSchedules(t *testing.T) {
	v := func(jobs ...string) program {
		p := newProgram(t).handle("tick", func(tx *Tx, ev *model.Event) any { return ev.Payload.Get("cron") })
		for _, j := range jobs {
			d, err := time.ParseDuration(j)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Cron(CronSpec{Name: "j" + j[len(j)-1:], Stream: "tick", Schedule: interval(d), Spec: j}); err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	w := newWorld(t)
	h := w.host("r1", v("1h", "10m").Program)
	h.wall = time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC).UnixMilli()
	h.takeOver()
	h.run()
	at := func() (list []string) {
		for _, name := range h.core.ledger.Timers() {
			list = append(list, name+" "+time.UnixMilli(h.core.ledger.Timer(name).NotBefore).UTC().Format("15:04"))
		}
		return list
	}
	want := func(want ...string) {
		t.Helper()
		h.run()
		if got := at(); !slices.Equal(got, want) {
			t.Errorf("the timers are %v, want %v", got, want)
		}
	}
	want("=cron.jh 01:00", "=cron.jm 00:10")
	h.change(v("1h", "30m"))
	want("=cron.jh 01:00", "=cron.jm 00:30")
	h.change(v("30m"))
	want("=cron.jm 00:30")
	h.change(v("2h"))
	want("=cron.jh 02:00")
}

// interval is a schedule with equal intervals, counted from 1970.
type interval time.Duration

func (i interval) Next(after time.Time) time.Time {
	return after.Truncate(time.Duration(i)).Add(time.Duration(i))
}

// A child without a version runs the previous program's code until its maker, which is held for a while, has
// registered it again. Until then its observation is not valid for runtimes with the new program.
func TestChange_ObservationsOfAPreviousProgramsChildAreNotSaved(t *testing.T) {
	v := func(k int64) program {
		return newProgram(t).set().add(NodeSpec{ID: "maker", Kind: Computation, Output: "made", Gate: GateSpec{Debounce: time.Hour}, Run: func(tx *Tx) (model.Value, error) {
			tx.Node(NodeSpec{ID: "row", Kind: Computation, Output: "row", Run: func(tx *Tx) (model.Value, error) {
				return model.Int(num(tx.Get("in")) + k), nil
			}})
			return model.Int(1), nil
		}})
	}
	saved := func(h *host) (ids []string) {
		t.Helper()
		if !h.core.Settled() {
			t.Fatal("observations are returned while an append is under way")
		}
		out, _ := h.core.Observations()
		for _, o := range out {
			ids = append(ids, o.Node)
		}
		return ids
	}
	w := newWorld(t)
	h := w.owner("r1", v(0).Program)
	h.observe("made")
	h.observe("row")
	h.run()
	h.advance(2 * time.Hour)
	h.run()
	if got := saved(h); !slices.Contains(got, "row") {
		t.Fatalf("the saved observations are of %v", got)
	}
	h.change(v(100))
	w.send(home, "set", "e1", map[string]any{"in": 5})
	h.run()
	wantValue(t, h, "row", "5") // by the previous code
	if got := saved(h); slices.Contains(got, "row") {
		t.Errorf("the saved observations are of %v, although row has run the previous program's code", got)
	}
	h.advance(2 * time.Hour)
	h.run()
	wantValue(t, h, "row", "105")
	if got := saved(h); !slices.Contains(got, "row") {
		t.Errorf("the saved observations are of %v", got)
	}
}
