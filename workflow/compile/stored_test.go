package compile

import (
	"testing"

	"github.com/settlehq/settle/workflow"
)

// What was stored before graphs had undo steps and deadlines: the version of a graph, and the state of its run.
const (
	storedVersion = "c563a5dff758dd90"
	storedRun     = `{"format":1,"version":"c563a5dff758dd90","begun":true,"frames":[{"vars":{"n":3,"r":{"a":{"error":{"type":"X"}}},"xs":{"r":0}},"wait":{"node":3,"need":2,"results":{"1":5}}},{"id":"3/0.","fn":1,"vars":{"x":1},"called":true,"wait":{"node":0,"need":1,"results":{}}}],"works":[{"id":"3/0.0/0","frame":"3/0.","node":0,"n":1,"args":[1],"named":{}}],"heap":[{"l":[3]}]}`
	storedSource  = "load('actions', 'a', 'b', 'undo')\ndef two(x):\n    y = a(x)\n    return b(y)\ndef run(n = 3):\n    r = attempt(retry(a(n), attempts = 3, backoff = '1s', factor = 2, max_backoff = '1m', on = ['E']))\n    xs = [n]\n    parallel(two(1), b(2))\n    w = attempt(wait('go', timeout = '1h'))\n    for i in range(n):\n        xs.append(i)\n        sleep(1)\n    return [xs, r.ok]\nworkflow('w', run)\n"
)

// A program that uses nothing new has the version that it had, and its runs continue.
func TestLoad_ARunThatWasStoredBeforeContinues(t *testing.T) {
	t.Parallel()
	g, err := Compile("w.star", []byte(storedSource))
	if err != nil {
		t.Fatal(err)
	}
	p, err := workflow.Prepare(g)
	if err != nil {
		t.Fatal(err)
	}
	if p.Version != storedVersion {
		t.Fatalf("the version is %s, and was %s", p.Version, storedVersion)
	}
	run, err := workflow.Load(p, []byte(storedRun))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, p: p, run: run}
	e := b.want(b.step(workflow.Input{Done: &workflow.Done{Work: "3/0.0/0", Attempt: 1}}), "start b [null]#1")
	b.want(b.done(e.Start[0], "1"), "timer 3600000")
	e = b.want(b.step(workflow.Input{Signal: &workflow.Signal{Name: "go"}}), "timer 1000, drop")
	for range 2 {
		e = b.want(b.step(workflow.Input{Timer: e.Timers[0].ID}), "timer 1000")
	}
	b.want(b.step(workflow.Input{Timer: e.Timers[0].ID}), "result [[3,0,1,2],false]")
}
