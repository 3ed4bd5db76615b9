package compile

import (
	"testing"

	"github.com/settlehq/settle/workflow"
)

// Work that is tried again has as many attempts as its policy has, counted from there; its attempts go on in number,
// and the end of an earlier one has no effect.
func TestAgain_CountsAttemptsAnew(t *testing.T) {
	t.Parallel()
	b, e := begin(t, "    x = retry(a(n), attempts = 2, backoff = \"1m\")\n    return x")
	first := e.Start[0]
	b.failed(first, "Offline")
	e = b.step(workflow.Input{Again: first.ID}) // during the pause before the second attempt
	if len(e.Start) != 1 || e.Start[0].Attempt != 2 || len(e.Drop) != 1 {
		t.Fatalf("%+v", e)
	}
	second := e.Start[0]
	e = b.step(workflow.Input{Again: first.ID})
	third := e.Start[0]
	if w, is := b.run.Work(first.ID); third.Attempt != 3 || !is || w.Attempt != 3 {
		t.Fatalf("%+v, %v", e, is)
	}
	if e = b.done(second, "1"); len(e.Start) > 0 || e.Outcome != nil {
		t.Errorf("the end of attempt 2 has an effect: %+v", e)
	}
	if e = b.failed(third, "Offline"); len(e.Timers) != 1 || e.Outcome != nil {
		t.Fatalf("attempt 3 is the first of two: %+v", e)
	}
	if _, is := b.run.Work(first.ID); is {
		t.Error("an attempt is under way in the pause")
	}
	e = b.step(workflow.Input{Timer: e.Timers[0].ID})
	if e = b.failed(e.Start[0], "Offline"); e.Outcome == nil || e.Outcome.Error.Name != "Offline" {
		t.Errorf("%+v", e)
	}
}

func TestAgain_OfAWaitSetsItsTimerAnew(t *testing.T) {
	t.Parallel()
	b, e := begin(t, "    x = wait(\"go\", timeout = \"1m\")\n    return x")
	b.now = 50_000
	e = b.step(workflow.Input{Again: e.Timers[0].ID})
	if len(e.Timers) != 1 || e.Timers[0].At != 110_000 || len(e.Drop) != 0 {
		t.Fatalf("%+v", e)
	}
	if e = b.step(workflow.Input{Signal: &workflow.Signal{Name: "go"}}); e.Outcome == nil || string(e.Outcome.Result) != "null" {
		t.Errorf("%+v", e)
	}
	if e = b.step(workflow.Input{Again: "0/0"}); e.Outcome != nil || len(e.Start) > 0 {
		t.Errorf("a run that has ended: %+v", e)
	}
}

// The action of a work is found in the graph by the ID alone.
func TestActionOf_FindsEachCall(t *testing.T) {
	t.Parallel()
	b, e := begin(t, "    for i in range(2):\n        x = parallel(b(i), two(i), a(i))\n    ys = parallel([two(i) for i in range(3) if i > 0])\n    return a(1)")
	found := 0
	for queue := e.Start; len(queue) > 0; found++ {
		w := queue[0]
		if got, line := b.p.Graph.ActionOf(w.ID); got != w.Action || line == 0 {
			t.Errorf("%s is of %s, and %s was found, in line %d", w.ID, w.Action, got, line)
		}
		queue = append(queue[1:], b.done(w, "1").Start...)
	}
	if found != 13 {
		t.Errorf("%d calls", found)
	}
	for _, id := range []string{"", "0", "x/0", "99/0", "0/9", "-1/0", "0/0.0/0", "2[0]/0.0/0", "2[0]/1.7/0", "2[0]/1."} {
		if got, _ := b.p.Graph.ActionOf(id); got != "" {
			t.Errorf("%q is of %s", id, got)
		}
	}
}
