package space

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// concerned are the columns of the table of rejections.
var concerned = []string{"computation", "handler", "piece", "caller"}

func (c consequences) of(column string) consequence {
	return map[string]consequence{
		"computation": c.computation, "handler": c.handler, "piece": c.piece, "caller": c.caller,
	}[column]
}

// The table in docs/rejections.md equals that of the code, and the page explains every class and consequence.
func TestRejections_ThePageShowsTheTable(t *testing.T) {
	page, err := os.ReadFile("../docs/rejections.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("| class | computation, effect | handler | piece | caller |\n|---|---|---|---|---|\n")
	for r := ByConflict; r < rejectionCount; r++ {
		fmt.Fprintf(&want, "| %s ", r)
		for _, column := range concerned {
			fmt.Fprintf(&want, "| %s ", r.consequences().of(column))
		}
		want.WriteString("|\n")
	}
	if !strings.Contains(string(page), want.String()) {
		t.Errorf("docs/rejections.md does not have this table:\n%s", &want)
	}
	for c := thenAgain; c < consequenceCount; c++ {
		if !strings.Contains(string(page), "**"+c.String()+"**") {
			t.Errorf("docs/rejections.md does not explain %q", c)
		}
	}
}

// For every cell, the effect of a rejection is what the table states.
func TestRejections(t *testing.T) {
	for r := ByConflict; r < rejectionCount; r++ {
		for _, column := range concerned {
			t.Run(strings.ReplaceAll(r.String(), " ", "-")+"/"+column, func(t *testing.T) {
				c := reject(t, r)
				switch said := r.consequences().of(column); column {
				case "computation":
					c.checkComputation(said)
				case "handler":
					c.checkHandler(said)
				case "piece":
					c.checkPiece(said)
				case "caller":
					c.checkCaller(said)
				}
			})
		}
	}
}

// rejection is a story in which the handling of one event, the run of a node, and a piece that the event
// started are rejected.
type rejection struct {
	*testing.T
	w     *world
	h     *host
	class Rejection
	// event is the event whose handling is rejected; attempts counts the attempts at each event.
	event    string
	attempts map[string]int
	// rejected is the number of deliberate rejections: more than any budget.
	rejected int
	// during is the state while the rejection stood, after the state when everything was over.
	during, after moment
	told          []Rejection
}

// moment is the state at one time.
type moment struct {
	receipts []string
	runs     int
	output   string
	child    bool
}

func (c *rejection) look(node string) moment {
	return moment{
		receipts: c.w.receipts(home), runs: c.h.runs[node], output: c.h.value(node),
		child: c.h.core.graph.byID["child-"+strings.ReplaceAll(c.event, ":", "-")] != nil,
	}
}

// reject plays the story of a class.
func reject(t *testing.T, class Rejection) *rejection {
	c := &rejection{T: t, w: newWorld(t), class: class, event: "e1", attempts: map[string]int{}}
	c.h = c.w.owner("w1", c.program(), func(cfg *Config) {
		cfg.Trace.Rejected = func(i RejectInfo) { c.told = append(c.told, i.Class) }
	})
	c.h.core.cfg.Trace.HandleEnd = func(i HandleInfo) {
		if i.Rejection == ByHandler { // it is no error
			c.told = append(c.told, i.Rejection)
		}
	}
	c.h.core.OnError(func(i ErrorInfo) {
		if i.Event != "" {
			c.told = append(c.told, i.Rejection)
		}
	})
	c.h.observe("sum")
	c.h.observe("moody")
	c.h.observe("children")
	c.h.run()
	c.tell()
	if !slices.Contains(c.told, class) {
		t.Fatalf("no hook received a rejection %q: %v", class, c.told)
	}
	return c
}

// program returns a program in which an event writes count, starts a piece, and sends itself on once; sum is
// derived from count, moody fails as the document mode says, and children makes a node for each piece.
func (c *rejection) program() *Program {
	fail := func(tx *Tx, how string) error {
		switch how {
		case "rule":
			tx.Set("sum", 1) // fails: it is derived
		case "transient":
			return Transient(errors.New("busy"))
		case "error":
			return errors.New("sold out")
		case "no":
			return receipts.Reject("full", "no place is left", 3)
		case "newer":
			return &model.NewerError{Place: "order", Version: 3, Known: 2}
		}
		return nil
	}
	p := newProgram(c.T).sum("sum", "count").compute("still", func(tx *Tx) any { return num(tx.Get("base")) + 7 })
	p.handle("do", func(tx *Tx, ev *model.Event) any {
		c.attempts[ev.ID]++
		tx.Set("count", num(tx.Get("count"))+1)
		tx.Set("pieces", true, strings.ReplaceAll(ev.ID, ":", "-"))
		how, _ := ev.Payload.AsString()
		if how == "on" {
			tx.Send(home, "do", "")
		}
		if how == "newer" {
			if c.rejected == 15 {
				return nil // as the worker that knows the version does
			}
			c.rejected++
		}
		if err := fail(tx, how); err != nil {
			return err
		}
		return nil
	})
	p.compute("moody", func(tx *Tx) any {
		how, _ := tx.Get("mode").AsString()
		if how == "rule" {
			tx.Set("nobody", 1)
			return 0
		}
		if err := fail(tx, how); err != nil {
			return err
		}
		return how
	})
	return p.compute("children", func(tx *Tx) any {
		keys := tx.GetShallow("pieces").Keys()
		for _, k := range keys {
			tx.Node(NodeSpec{ID: "child-" + k, Kind: Computation, Output: "out-" + k, Run: func(*Tx) (model.Value, error) { return model.Int(1), nil }})
		}
		return len(keys)
	}).Program
}

func (c *rejection) tell() {
	switch c.class {
	case ByConflict:
		c.begin("on")
		for range 15 {
			c.h.refuse(put("other", c.rejected))
			c.rejected++
			c.h.settle()
			if c.rejected == 2 { // it pauses
				c.during = c.look("sum")
			}
			c.h.now = max(c.h.now, c.h.last.Wake)
			c.h.settle()
		}
	case ByReceipt:
		c.begin("")
		c.handledElsewhere()
		c.during = c.look("sum")
	case ByOrigin:
		c.begin("on")
		if len(c.attempts) != 2 {
			c.Fatalf("the follow-up was not attempted: %v", c.attempts)
		}
		for id := range c.attempts { // any order: only one is not e1
			if id != "e1" {
				c.event = id
			}
		}
		c.handledElsewhere()
		c.during = c.look("sum")
	default:
		how := map[Rejection]string{ByRule: "rule", ByTransientError: "transient", ByHandler: "no", ByVersion: "newer", ByError: "error"}[c.class]
		c.w.put(home, put("mode", "fine"))
		c.h.integrate()
		c.h.run()
		c.w.put(home, put("mode", how))
		c.h.integrate()
		before := c.h.runs["moody"]
		c.begin(how)
		c.h.decide()
		c.during = c.look("moody")
		c.during.runs -= before
	}
	for c.h.run(); !c.h.core.ledger.Lane().Done(); c.h.run() {
		if c.h.last.Wake <= c.h.now {
			c.Fatalf("an event is left, but there is nothing to wait for")
		}
		c.h.now = c.h.last.Wake
	}
	c.after = c.look("sum")
}

// begin makes the first attempt at the event; its commit is then under way.
func (c *rejection) begin(how string) {
	c.h.observe("still") // it runs once, and nothing that it reads changes
	c.w.send(home, "do", "e1", how)
	c.h.deliver()
	c.h.settle()
}

// handledElsewhere makes a commit win that has handled e1 already, without starting a piece.
func (c *rejection) handledElsewhere() {
	r := c.w.replica(home)
	ev := c.w.lanes[home][0]
	commit := &model.Commit{
		Version: model.CommitVersion, Space: home, Runtime: "elsewhere", Epoch: r.Epoch, Attempt: 99,
		Txs: []model.Tx{{
			N: 1000, By: receipts.By("do"), Writes: []model.Write{put("count", 100)},
			Receipt: receipts.Handled(&ev, model.Int(7)),
		}},
		Cursor: model.Cursor{Floor: ev.Lane},
	}
	c.w.append(home, &Append{Expect: c.w.head(home), Commit: commit, Data: model.AppendCommit(nil, commit, nil)})
	c.h.decide()
	c.h.settle()
}

func (c *rejection) checkComputation(said consequence) {
	c.Helper()
	switch said {
	case thenAgain:
		want := map[Rejection]string{ByConflict: "2", ByReceipt: "100", ByOrigin: "100"}[c.class]
		if c.after.runs < 2+c.rejected/2 || c.after.output != want {
			c.Errorf("the computation ran %d times with the result %s, want %s", c.after.runs, c.after.output, want)
		}
		if still := c.look("still"); still.runs < 2 || c.w.replica(home).Doc("still").Value.String() != "7" {
			c.Errorf("a computation with unchanged inputs ran %d times; the log says %s", still.runs, c.w.replica(home).Doc("still").Value)
		}
	case thenAgainWithinBudget:
		if c.during.runs != 1+c.h.core.cfg.RunRetries || c.during.output != `"fine"` {
			c.Errorf("the computation ran %d times and shows %s", c.during.runs, c.during.output)
		}
		c.recovers()
	case thenWaitsForChange:
		if c.during.runs != 1 || c.during.output != `"fine"` {
			c.Errorf("the computation ran %d times and shows %s", c.during.runs, c.during.output)
		}
		c.recovers()
	default:
		c.Errorf("no test covers that a computation %s", said)
	}
}

func (c *rejection) recovers() {
	c.Helper()
	c.w.put(home, put("mode", "well"))
	c.h.integrate()
	c.h.run()
	if got := c.h.value("moody"); got != `"well"` {
		c.Errorf("after a change the computation shows %s", got)
	}
}

func (c *rejection) checkHandler(said consequence) {
	c.Helper()
	n := c.attempts[c.event]
	handled := slices.Contains(c.after.receipts, c.event+" handled")
	switch said {
	case thenAgain:
		if n != 1+c.rejected || c.rejected <= c.h.core.cfg.EventRetries || !handled {
			c.Errorf("%d attempts after %d rejections, receipts %v", n, c.rejected, c.after.receipts)
		}
	case thenAgainWithinBudget:
		if n != c.h.core.cfg.EventRetries || !slices.Contains(c.after.receipts, c.event+" failed") {
			c.Errorf("%d attempts, receipts %v", n, c.after.receipts)
		}
	case thenDropped:
		if n != 1 || c.class == ByOrigin && len(c.after.receipts) != 1 {
			c.Errorf("%d attempts, receipts %v", n, c.after.receipts)
		}
	case thenConcluded:
		if n != 1 || handled || c.h.value("count") != "absent" || len(c.after.receipts) != 1 {
			c.Errorf("%d attempts, receipts %v, count %s", n, c.after.receipts, c.h.value("count"))
		}
	default:
		c.Errorf("no test covers that a handler %s", said)
	}
}

func (c *rejection) checkPiece(said consequence) {
	c.Helper()
	switch said {
	case thenFollowsDocument:
		if c.during.child {
			c.Error("the piece exists while the attempt that started it is undone")
		}
		if c.class != ByConflict {
			c.w.put(home, model.Write{Doc: "pieces", Path: model.Path{strings.ReplaceAll(c.event, ":", "-")}, Value: model.MustOf(true)})
			c.h.integrate()
			c.h.run()
		}
		if !c.look("sum").child {
			c.Error("the document exists, but the piece does not")
		}
	case thenNeverMade:
		if c.during.child || c.after.child || c.h.runs["child-e1"] > 0 {
			c.Error("the piece was made")
		}
	default:
		c.Errorf("no test covers that a piece %s", said)
	}
}

func (c *rejection) checkCaller(said consequence) {
	c.Helper()
	switch said {
	case thenWaits:
		if len(c.during.receipts) > 0 || len(c.after.receipts) == 0 {
			c.Errorf("receipts %v while it is rejected, %v in the end", c.during.receipts, c.after.receipts)
		}
	case thenAnswered:
		rc, outcome := c.w.receipt(home, c.event), model.Failed
		if c.class == ByHandler {
			outcome = model.Rejected
		}
		if rc.Outcome != outcome || rc.Error == "" || len(c.after.receipts) != 1 {
			c.Errorf("receipts %v, %+v", c.after.receipts, rc)
		}
	case thenAnsweredByOther:
		if rc := c.w.receipt(home, c.event); rc.Result.String() != "7" || len(c.after.receipts) != 1 {
			c.Errorf("receipts %v, %+v", c.after.receipts, rc)
		}
	case thenNone:
		known := slices.ContainsFunc(c.w.lanes[home], func(ev model.Event) bool { return ev.ID == c.event })
		if known || slices.Contains(c.after.receipts, c.event+" handled") {
			c.Errorf("in the lane: %v, receipts %v", known, c.after.receipts)
		}
	default:
		c.Errorf("no test covers that a caller %s", said)
	}
}

func TestRejections_EachReasonHasItsClass(t *testing.T) {
	told := map[string]Rejection{}
	w := newWorld(t)
	p := counter(t).handle("twice", func(tx *Tx, _ *model.Event) any { tx.Set("out", 1); return nil }).
		handle("large", func(*Tx, *model.Event) any { return strings.Repeat("x", 600<<10) }).
		handle("panic", func(*Tx, *model.Event) any { panic("no") }).
		sum("out", "count")
	h := w.owner("w1", p.Program)
	h.core.cfg.Trace.HandleEnd = func(i HandleInfo) {
		if i.Receipt != nil {
			told[i.Event.Stream] = i.Rejection
		}
		h.story = append(h.story, i.Event.ID) // run checks whether anything happens
	}
	for _, stream := range []string{"add", "twice", "large", "panic", "nobody"} {
		w.send(home, stream, stream, 1)
	}
	h.run()
	for stream, want := range map[string]Rejection{"add": 0, "twice": ByRule, "large": ByRule, "panic": ByError, "nobody": ByRule} {
		if got, ok := told[stream]; !ok || got != want {
			t.Errorf("%s: %q, want %q", stream, got, want)
		}
	}
}
