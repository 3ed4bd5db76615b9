package console

import (
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/flow"
)

// garage is a program whose handler declines events: with data, or without.
func garage() *settle.Program {
	p := office(nil)
	p.Handle("park", func(_ *settle.Tx, ev *settle.Event) (settle.Value, error) {
		return settle.Value{}, settle.Reject("FULL", "all places are taken", map[string]int{"places": 40})
	})
	return p
}

// An event that its handler has rejected has an answer: the page shows its code and its data, and no failure; there is no dead letter.
func TestEvent_ARejectionIsAnAnswer(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(garage())})
	w.send("a", "park", "p1", nil)
	text := w.until("/spaces/a/events/park/p1", "p1 was rejected: FULL: all places are taken")
	for _, part := range []string{"Rejected by its handler; nothing was changed", "Answer", `"places": 40`} {
		if !strings.Contains(visible(text), part) && !strings.Contains(text, strings.ReplaceAll(part, `"`, "&#34;")) {
			t.Errorf("the page does not say %q: %s", part, visible(text))
		}
	}
	if main := bodies.FindString(text); strings.Contains(main, "s-failed") || strings.Contains(main, "Redrive") || strings.Contains(visible(main), "Error") {
		t.Errorf("the page shows a failure: %s", main)
	}
	w.want("/spaces/a", 200, "rejected: FULL: all places are taken")
	w.want("/dead", 200, "No event has failed")
	form := url.Values{"space": {"a"}, "stream": {"park"}, "token": {w.token()}, "back": {"/spaces/a"}}
	if answer, text := w.post("/-/do/send", form); answer.StatusCode != 200 || !strings.Contains(html.UnescapeString(visible(text)), `was rejected: FULL: all places are taken, with the data {"places":40}`) {
		t.Errorf("%d %s", answer.StatusCode, visible(text))
	}
}

// While a handler runs, the page of its space names its event, and those behind it.
func TestSpace_SaysWhatWaitsWhileAHandlerRuns(t *testing.T) {
	d := &doors{make(chan struct{})}
	w := operate(t, settle.Config{Programs: settle.Always(office(d))})
	open := w.opens(d)
	w.send("a", "add", "a0", 1)
	w.until("/spaces/a/events/add/a0", "a0 was handled")
	w.send("a", "hang", "h1", nil)
	w.send("a", "add", "a1", 1)
	text := w.until("/spaces/a", "running hang h1")
	if lane := lastBetween(text, `<section id="what-waits">`, "<h2>Send an event"); !strings.Contains(lane, "a1") || strings.Contains(lane, "a0") || strings.Contains(lane, "Nothing waits") || !strings.Contains(lane, "has not returned") {
		t.Errorf("what waits: %s", visible(lane))
	}
	w.changes("/spaces/a", open, "Nothing waits")
}

const weighing = `
load("actions", "weigh")

def run(item):
    return weigh(item = item)

workflow("weighing", run)
`

// The tasks of workflows have a document each. The page of a space shows them as tasks, by their action, and not among its documents; the page of such
// a document says which task it is.
func TestSpace_TasksOfWorkflowsAreNoDocuments(t *testing.T) {
	p := office(nil)
	f := flow.New(p)
	f.Starlark("weighing.star", []byte(weighing))
	f.External("weigh")
	if err := f.Register(); err != nil {
		t.Fatal(err)
	}
	w := operate(t, settle.Config{Programs: settle.Always(p)})
	for _, id := range []string{"r1", "r2"} {
		if _, err := flow.In(w.d.Client().Space("a")).Start(w.Context(), "weighing", id, map[string]any{"item": "tea"}); err != nil {
			t.Fatal(err)
		}
	}
	text := w.until("/spaces/a", "weigh 2 pending")
	documents := lastBetween(text, `<table class="rows docs"`, "</table>")
	if strings.Contains(visible(text), "-task-") || documents == "" || strings.Contains(documents, "-task-") {
		t.Errorf("a document of a task is listed: %s", visible(text))
	}
	if to := link(text, "weigh"); !strings.HasPrefix(to, "/spaces/a/documents/-task-") {
		t.Errorf("a task leads to %q", to)
	} else {
		w.want(to, 200, "of weigh is pending", "tea")
	}
	w.until("/spaces/a/runs/r1", "r1 waits for weigh")
}
