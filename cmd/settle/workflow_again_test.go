package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

const fragile = `
reserve = action("reserve", watched = True)
charge = action("charge", watched = True)

def run(order, cents = 5):
    place = reserve(order)
    receipt = retry(charge(cents), attempts = 2)
    return {"place": place, "receipt": receipt}

workflow("order", run)
`

// performing performs actions with a shell until stop is called.
func performed(t *testing.T, action, script string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { // ends with ctx
		defer close(ended)
		command(ctx, t, "workflow", "perform", "shop", action, "--", "sh", "-c", script)
	}()
	return func() { cancel(); <-ended }
}

func TestWorkflow_HistoryRetryAndReset(t *testing.T) {
	t.Parallel()
	hosting(t)
	program := file(t, t.TempDir(), "shop.star", fragile)
	want(t, 0, "deployed", "deploy", program, "--space", "*")
	defer performed(t, "reserve", "echo 7")()
	stop := performed(t, "charge", "echo 'Declined: no money' >&2; exit 1")
	eventually(t, "o1: started", "workflow", "start", "shop", "order", `{"order":"tea"}`, "--id", "o1", "--attribute", "customer=c7", "--attribute", "total=5")
	want(t, 1, "run o1 has failed: Declined: no money", "workflow", "result", "shop", "o1")
	want(t, 0, "1 | start; 1 started | 2 | reserve (line 6, 0/0), attempt 1, done: 7; 1 started | 3 | charge (line 7, 1/0), attempt 1, failed: Declined: no money; 1 started | 4 | attempt 2, failed | o1: workflow order, failed after | 4 steps",
		"workflow", "history", "shop", "o1")
	lines := strings.Split(strings.TrimSpace(want(t, 0, "", "workflow", "history", "shop", "o1", "--json")), "\n")
	var e struct {
		Step, Attempt int
		Kind, Action  string
		Error         struct{ Type string }
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil || len(lines) != 4 || e.Step != 4 || e.Attempt != 2 || e.Kind != "failed" || e.Action != "charge" || e.Error.Type != "Declined" {
		t.Error(err, lines)
	}
	want(t, 1, "space shop has no run \"o9\"; `settle workflow list shop`", "workflow", "retry", "shop", "o9")
	want(t, 1, "there is no such run in space shop", "workflow", "history", "shop", "o9")
	want(t, 2, "run o1 has steps from 1 to 3", "workflow", "reset", "shop", "o1", "4")

	stop()
	defer performed(t, "charge", `echo "\"$SETTLE_KEY\""`)()
	want(t, 0, `{"place":7,"receipt":"shop/o1/1/0"}`, "workflow", "retry", "shop", "o1", "--wait")
	want(t, 1, "run o1 is done: only a run that has failed", "workflow", "retry", "shop", "o1")
	want(t, 0, `{"place":7,"receipt":"shop/o1/g1/1/0"}`, "workflow", "reset", "shop", "o1", "2", "--wait")
	want(t, 0, "o1: goes on from step 1", "workflow", "reset", "shop", "o1", "1")
	want(t, 0, `{"place":7,"receipt":"shop/o1/g2/1/0"}`, "workflow", "result", "shop", "o1")
	want(t, 0, "2 | reset, after", "workflow", "history", "shop", "o1")

	// A refused operation has an exit code and a message, and is no dead letter.
	want(t, 1, "run o1 has ended: it is done", "workflow", "signal", "shop", "o1", "go")
	want(t, 1, "run o1 has ended: it is done", "workflow", "cancel", "shop", "o1")
	want(t, 1, "run o1 exists, with workflow order", "workflow", "start", "shop", "order", "{}", "--id", "o1")
	want(t, 1, `no workflow "x"; it has order`, "workflow", "start", "shop", "x")
	want(t, 2, `attribute "a b": character`, "workflow", "start", "shop", "order", "--attribute", "a b=1")
	want(t, 0, "no dead letters", "dead")
}

func TestWorkflow_ListFindsRuns(t *testing.T) {
	t.Parallel()
	hosting(t)
	program := file(t, t.TempDir(), "shop.star", fragile)
	want(t, 0, "deployed", "deploy", program, "--space", "*")
	eventually(t, "o1: started", "workflow", "start", "shop", "order", `{"order":"tea"}`, "--id", "o1", "--attribute", "customer=c7", "--attribute", "total=5")
	want(t, 0, "o2: started", "workflow", "start", "shop", "order", `{"order":"tea"}`, "--id", "o2", "--attribute", "customer=c8", "--attribute", "total=5")
	want(t, 0, "o3: started", "workflow", "start", "shop", "order", `{"order":"tea"}`, "--id", "o3")
	want(t, 0, "o3: cancelled", "workflow", "cancel", "shop", "o3")
	for _, c := range []struct{ parts, args string }{
		{"o3 | o2 | o1", ""},
		{"o2 | o1", "--state running"},
		{"o2 | o1", "--attribute total=5"},
		{`o1 | {"customer":"c7","total":5}`, "--attribute total=5 --attribute customer=c7"},
		{"o3 | there are more: --after", "--limit 1"},
		{"o3 | o2 | o1", "--since 1h --workflow order"},
		{"there are no such runs in space shop", "--workflow other"},
		{"there are no such runs in space shop", `--attribute total="5"`},
		{`"run":"o1" | "attributes":{"customer":"c7","total":5}`, "--json --attribute customer=c7"},
	} {
		want(t, 0, c.parts, append([]string{"workflow", "list", "shop"}, strings.Fields(c.args)...)...)
	}
	want(t, 2, "from 1 to 1000 runs", "workflow", "list", "shop", "--limit", "1001")
	want(t, 2, "is not the end of a page", "workflow", "list", "shop", "--after", "x")
}
