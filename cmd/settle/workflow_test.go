package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

const approval = `
price = action("price", watched = True)

def run(items, patience = "1h"):
    prices = parallel([retry(price(item), attempts = 2, on = ["Offline"]) for item in items])
    by = wait("approve", timeout = patience)
    return {"total": sum(prices), "by": by}

workflow("approval", run)
`

func TestWorkflow_FromTheStartToTheResult(t *testing.T) {
	t.Parallel()
	hosting(t)
	dir := t.TempDir()
	program := file(t, dir, "shop.star", approval)
	want(t, 0, "deployed", "deploy", program, "--space", "*")
	watched := make(chan string)
	go func() { // ends with the run
		_, stdout, _ := command(t.Context(), t, "workflow", "watch", "shop", "o1")
		watched <- stdout
	}()
	eventually(t, "o1: started", "workflow", "start", "shop", "approval", `{"items":["a","bb"]}`, "--id", "o1")
	want(t, 0, "o1: exists already", "workflow", "start", "shop", "approval", `{"items":["a","bb"]}`, "--id", "o1")
	want(t, 1, "run o1 exists, with workflow approval", "workflow", "start", "shop", "approval", `{"items":[]}`, "--id", "o1")
	want(t, 1, `no workflow "x"; it has approval`, "workflow", "start", "shop", "x")
	want(t, 2, "the argument is not JSON", "workflow", "start", "shop", "approval", "{")
	want(t, 1, "there is no such run in space shop; `settle workflow list shop`", "workflow", "status", "shop", "o2")
	want(t, 0, "o1: workflow approval, running for | 1 step\n | waits for price: 0 of 2 done (line 5) | ····················   0 %, 2 pending", "workflow", "status", "shop", "o1")
	want(t, 0, "● | parallel price | 0 of 2", "workflow", "status", "shop", "o1", "--graph")
	want(t, 0, "<svg | >running</text> | </svg>", "workflow", "status", "shop", "o1", "--graph", "--format", "svg")
	want(t, 0, "RUN  WORKFLOW  STATE    STARTED | o1   approval  running", "workflow", "list", "shop", "--state", "running")

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan string)
	go func() {
		_, stdout, _ := command(ctx, t, "workflow", "perform", "shop", "price", "--", "sh", "-c",
			`case "$SETTLE_IDEMPOTENCY_KEY" in settle.shop.price.-key-*) ;; *) exit 1;; esac; test -n "$SETTLE_EVENT" || exit 1; grep -q bb && test "$SETTLE_ATTEMPT" = 1 && echo "Offline: no route" >&2 && exit 1; echo 7`)
		ended <- stdout
	}()
	eventually(t, "waits for signal approve for", "workflow", "status", "shop", "o1")
	stop()
	if out := <-ended; !strings.Contains(out, "price shop/o1/1/0: done") || !strings.Contains(out, "price shop/o1/1/1: Offline: no route") || !strings.Contains(out, "price shop/o1/1/1: done") {
		t.Error(out)
	}
	want(t, 1, "run o1 has not ended within 2s; it goes on", "workflow", "result", "shop", "o1", "--timeout", "2s")
	want(t, 0, "o1: signal approve received", "workflow", "signal", "shop", "o1", "approve", `"ann"`)
	want(t, 0, `{"by":"ann","total":14}`, "workflow", "result", "shop", "o1")
	story := <-watched
	for _, text := range []string{"o1: workflow approval, done after", `  result {"by":"ann","total":14}`} {
		if !strings.Contains(story, text) {
			t.Errorf("watch does not print %q:\n%s", text, story)
		}
	}
	want(t, 0, `o1: workflow approval, done after | result {"by":"ann","total":14}`, "workflow", "watch", "shop", "o1")
	want(t, 0, `"run":"o1","workflow":"approval" | "state":"done"`, "workflow", "watch", "shop", "o1", "--json")
	want(t, 0, `"state":"done" | "result":{"by":"ann","total":14}`, "workflow", "status", "shop", "o1", "--json")
	want(t, 0, "parallel | done | wait | done | return | done", "workflow", "status", "shop", "o1", "--graph")
	want(t, 1, "run o1 has ended: it is done", "workflow", "signal", "shop", "o1", "approve")

	want(t, 0, "o3: started", "workflow", "start", "shop", "approval", `{"items":[]}`, "--id", "o3")
	want(t, 0, "o3: cancelled", "workflow", "cancel", "shop", "o3", "--reason", "too late")
	want(t, 1, "run o3 is cancelled: CancelledError: too late", "workflow", "result", "shop", "o3")
	want(t, 0, "o3: workflow approval, cancelled after | error CancelledError: too late", "workflow", "watch", "shop", "o3") // it has shown the end, whatever it is
	want(t, 0, "o3: goes on where it was cancelled", "workflow", "retry", "shop", "o3")
	want(t, 2, "the step is 0; `settle workflow history shop o3` numbers them from 1 on", "workflow", "reset", "shop", "o3", "0")
	want(t, 0, "o3: signal aprove received | the run waits for signal approve now; signal aprove is kept until it waits for it", "workflow", "signal", "shop", "o3", "aprove")
	want(t, 0, "o3: cancelled", "workflow", "cancel", "shop", "o3", "--reason", "too late")
	want(t, 0, "runs | documents of runs of workflows are not listed: --all lists them", "get", "shop")
	want(t, 0, "runlog_o1_0", "get", "shop", "--all")
	want(t, 0, "o3 | cancelled", "workflow", "list", "shop", "--state", "cancelled")
	want(t, 0, "o3 | o1", "workflow", "list", "shop", "--workflow", "approval", "--json")

	want(t, 0, "o4: started", "workflow", "start", "bazaar", "approval", `{"items":[]}`, "--id", "o4", "--priority", "3", "--attribute", "customer=c7")
	want(t, 2, "the priority is 10; it must be from -9 to 9", "workflow", "start", "bazaar", "approval", "--priority", "10")
	want(t, 0, `"priority":3`, "workflow", "status", "bazaar", "o4", "--json")
	want(t, 0, "SPACE   RUN  WORKFLOW  STATE | bazaar  o4   approval  running | shop    o3 | shop    o1", "workflow", "search")
	want(t, 0, `"space":"bazaar","run":"o4" | "customer":"c7"`, "workflow", "search", "ba*", "shop", "--attribute", "customer=c7", "--json")
	want(t, 0, "there are more: --after shop.", "workflow", "search", "sh*", "--limit", "1")
	want(t, 0, "there are no such runs in 1 space", "workflow", "search", "ba*", "--state", "done")
	want(t, 2, `the pattern of spaces "a/b": write a name, with * for any characters`, "workflow", "search", "a/b")
	want(t, 2, "is not the end of a page of a search", "workflow", "search", "--after", "x")
}

const build = `
build = action("build")

def run(n):
    return parallel([build(i) for i in range(n)])

workflow("build", run)
`

// The state of a run, and its watch, name an action that has no performer, until it has one.
func TestWorkflow_SaysThatNoPerformerIsThere(t *testing.T) {
	t.Parallel()
	hosting(t)
	want(t, 0, "deployed", "deploy", file(t, t.TempDir(), "build.star", build), "--space", "*")
	eventually(t, "b1: started", "workflow", "start", "shop", "build", `{"n":2}`, "--id", "b1")
	watched := make(chan string)
	go func() { // ends with the run
		_, stdout, _ := command(t.Context(), t, "workflow", "watch", "shop", "b1")
		watched <- stdout
	}()
	const none = "no performer: no performer of build is connected; tasks wait for"
	eventually(t, none, "workflow", "status", "shop", "b1")
	want(t, 0, "0 of 2 done (line 5) | 0 %, 2 pending | "+none+" | start one: settle perform build -- COMMAND", "workflow", "status", "shop", "b1")
	want(t, 0, `"unperformed":[{"action":"build","since":"`, "workflow", "status", "shop", "b1", "--json")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		command(ctx, t, "perform", "build", "--", "echo", "7")
	}()
	want(t, 0, "[7,7]", "workflow", "result", "shop", "b1", "--timeout", "2m")
	stop()
	<-ended
	if story := <-watched; strings.Count(story, "no performer of build is connected") > 1 || !strings.Contains(story, "b1: workflow build, done after") {
		t.Errorf("watch prints\n%s", story)
	}
}

const saga = `
free = action("free")
book = action("book")

def run(seat):
    compensate(free(seat))
    return book(seat)

workflow("saga", run)
`

func TestWorkflow_UndoStepsAndDeadlines(t *testing.T) {
	t.Parallel()
	hosting(t)
	want(t, 0, "deployed", "deploy", file(t, t.TempDir(), "saga.star", saga), "--space", "*")
	eventually(t, "r1: started", "workflow", "start", "shop", "saga", `{"seat":1}`, "--id", "r1")
	want(t, 0, "r1: executes its undo steps; then it is cancelled", "workflow", "cancel", "shop", "r1", "--reason", "no")
	want(t, 0, "r1: workflow saga, running for | 2 steps | executes its undo steps, because of CancelledError: no | waits for action free", "workflow", "status", "shop", "r1")
	want(t, 0, `"undoing":{"type":"CancelledError","message":"no"}`, "workflow", "status", "shop", "r1", "--json")
	want(t, 0, "r1: cancelled", "workflow", "cancel", "shop", "r1", "--at-once", "--reason", "hopeless")
	want(t, 0, "r1: workflow saga, cancelled after | error CancelledError: no | undo steps: 0 done, 0 failed, 1 skipped", "workflow", "status", "shop", "r1")
	want(t, 0, "r3: started", "workflow", "start", "shop", "saga", `{"seat":1}`, "--id", "r3", "--deadline", "1h")
	want(t, 0, "running for | has to end", "workflow", "status", "shop", "r3")
	want(t, 0, "r2: started", "workflow", "start", "shop", "saga", `{"seat":1}`, "--id", "r2", "--deadline", "1ms")
	eventually(t, "because of DeadlineError: the run has not ended within 1ms", "workflow", "status", "shop", "r2")
	want(t, 0, "r2: had failed before, and executes its undo steps; then it ends with DeadlineError: the run has not ended within 1ms; --at-once ends it now", "workflow", "cancel", "shop", "r2")
	want(t, 0, "r2: has ended: it has failed with DeadlineError: the run has not ended within 1ms", "workflow", "cancel", "shop", "r2", "--at-once")
	want(t, 2, "the deadline is 0s; it must be positive", "workflow", "start", "shop", "saga", `{"seat":1}`, "--deadline", "0s")
	want(t, 2, "--id is empty; give the run an ID, or leave --id out", "workflow", "start", "shop", "saga", `{"seat":1}`, "--id", "")
	want(t, 2, `workflow saga has no argument "seet"; it has seat`, "workflow", "start", "shop", "saga", `{"seet":1}`)
	want(t, 2, "the deadline is -1s; it must be positive", "workflow", "start", "shop", "saga", `{"seat":1}`, "--deadline=-1s")
}

func TestWorkflow_GraphInEveryFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := file(t, dir, "shop.star", approval)
	want(t, 0, "workflow approval | run(items, patience) | parallel price for each of items | wait \"approve\", timeout = patience | version", "workflow", "graph", program)
	want(t, 0, "digraph \"approval\" | n0_0 -> n0_1", "workflow", "graph", program, "--format", "dot")
	want(t, 0, "flowchart TD | n0_0 --> n0_1", "workflow", "graph", program, "approval", "--format", "mermaid")
	want(t, 0, "<svg | <title>workflow approval</title> | >wait &#34;approve&#34;, timeout = patience< | </svg>", "workflow", "graph", program, "--format", "svg")
	want(t, 0, `"name": "approval"`, "workflow", "graph", program, "--format", "json")
	want(t, 2, "has the workflows approval; name one", "workflow", "graph", program, "x")
	want(t, 1, "has no workflow", "workflow", "graph", file(t, dir, "none.star", "x = 1\n"))
	want(t, 1, "p.star:2:12: now is not available in a workflow", "workflow", "graph", file(t, dir, "p.star", "def run():\n    return now()\nworkflow('w', run)\n"))
}

// stopper stops a command once it has written.
type stopper struct {
	strings.Builder

	stop func()
}

func (s *stopper) Write(p []byte) (int, error) {
	defer s.stop()
	return s.Builder.Write(p)
}

// The tasks of an action that performers get are in no document that could be watched, and a command that waited for them would say nothing.
func TestWorkflow_PerformSaysWhichTasksItExpects(t *testing.T) {
	t.Parallel()
	hosting(t)
	want(t, 0, "deployed", "deploy", file(t, t.TempDir(), "saga.star", saga), "--space", "*")
	eventually(t, "r1: started", "workflow", "start", "shop", "saga", `{"seat":1}`, "--id", "r1")
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	out := &stopper{stop: stop}
	if code := runAt(ctx, []string{"workflow", "perform", "shop", "book", "--", "true"}, streams{out: out, err: out, now: time.Now}, deploymentOf(t)); code != 0 || !strings.Contains(out.String(), "`settle perform book` gets the others") {
		t.Errorf("code %d, %s", code, out.String())
	}
}
