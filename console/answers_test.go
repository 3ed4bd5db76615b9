package console

import (
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/questions"
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

// Events that a space has sent to itself have their turns between those of the lane; the head is the event that the worker names.
func TestLane_TurnsFromTheLog(t *testing.T) {
	t.Parallel()
	names := func(d *laneData) (all []string) {
		for _, p := range d.Waiting {
			all = append(all, p.Event)
		}
		return all
	}
	lane := func() []questions.Pending {
		return []questions.Pending{{Stream: "s", Event: "l4", Lane: 4}, {Stream: "s", Event: "l6", Lane: 6}, {Stream: "s", Event: "l9", Lane: 9}}
	}
	own := []model.Event{{Stream: "s", ID: "o3", Behind: 3}, {Stream: "s", ID: "o6", Behind: 6}, {Stream: "s", ID: "o7", Behind: 6}, {Stream: "s", ID: "o9", Behind: 9}}
	d := &laneData{Lane: &questions.Lane{About: questions.About{State: questions.Running, Note: "the space does not answer: the handler of event l4 of stream s has not returned"}}}
	d.queue(lane(), own)
	if got := strings.Join(names(d), " "); got != "o3 l4 l6 o6 o7 l9 o9" || d.Head.Event != "l4" || d.Head.Cause != "running" || d.Head.Reason != "the handler of event l4 of stream s has not returned" || d.More {
		t.Errorf("%s, head %+v", got, d.Head)
	}
	asleep := &laneData{Lane: &questions.Lane{About: questions.About{State: questions.Asleep}}}
	if asleep.queue(lane(), own); asleep.Head.Event != "o3" || asleep.Head.Cause != "queued" {
		t.Errorf("head %+v", asleep.Head)
	}
	many := &laneData{Lane: &questions.Lane{}}
	if many.queue(make([]questions.Pending, listedWaiting+1), nil); !many.More || len(many.Waiting) != listedWaiting {
		t.Errorf("%d are listed", len(many.Waiting))
	}
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
