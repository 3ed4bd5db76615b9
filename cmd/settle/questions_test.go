package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/questions"
)

// answered decodes what a command prints with --json.
func answered[A any](t *testing.T, url string, args ...string) *A {
	t.Helper()
	a := new(A)
	if text := succeeds(t, url, append(args, "--json")...); json.Unmarshal([]byte(text), a) != nil {
		t.Fatalf("settle %v prints\n%s", args, text)
	}
	return a
}

// contains reports each text that an output lacks, however it is aligned.
func contains(t *testing.T, output string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(unbroken(output), unbroken(w)) {
			t.Errorf("%q is missing in\n%s", w, output)
		}
	}
}

func TestWhy_PrintsTheAnswerFirst(t *testing.T) {
	t.Parallel()
	url, client := deployed(t, shelf())
	fillShelf(t, client)
	node := succeeds(t, url, "why", "s", "double")
	contains(t, node, "double computation", "why it ran last", "wrote double - -> 6", "reads books", "space s on")
	if now, last := strings.Index(node, "now"), strings.Index(node, "the node"); now < 0 || last < now {
		t.Errorf("the answer is not first:\n%s", node)
	}
	contains(t, succeeds(t, url, "why", "s", "books"), "books document", `value {"count":3,"note":""}`, "event add2 of stream add", "count 1 -> 3", "settle history s books")
	contains(t, succeeds(t, url, "why", "s", "add1"), "add1 event of stream add handled", "result 1", "settle tree add1 --space s --stream add")
	contains(t, succeeds(t, url, "why", "s", "add-1"), "failed at revision", "books are not removed")
	if w := answered[questions.Why](t, url, "why", "s", "double"); w.Kind != questions.KindNode || w.Node.Last == nil || w.Worker == "" {
		t.Errorf("%+v", w)
	}
	for _, c := range []struct{ args, want string }{
		{"why s nosuch", "its nodes are double"},
		{"why nosuch x", "there is no space nosuch"},
		{"why s x --as spoon", "name a node, a document or an event"},
		{"graph s --node nosuch", "no node nosuch"},
		{"graph s --depth 17 --node double", "a depth of 17"},
		{"lane s --limit 501", "use 1 to 500"},
	} {
		var out, errs strings.Builder
		if code := run(t.Context(), append(strings.Fields(c.args), "--nats", url), &out, &errs); code == 0 || !strings.Contains(errs.String(), c.want) {
			t.Errorf("settle %s ends with %d: %s", c.args, code, &errs)
		}
	}
}

func TestGraph_PrintsEachFormat(t *testing.T) {
	t.Parallel()
	url, client := deployed(t, shelf())
	fillShelf(t, client)
	contains(t, succeeds(t, url, "graph", "s"), "1 node", "HEIGHT NODE STATE NEEDED RUNS READS", "double", "books")
	contains(t, succeeds(t, url, "graph", "s", "--format", "dot"), `digraph "s" {`, `"doc books" -> "double"`)
	contains(t, succeeds(t, url, "graph", "s", "--format", "mermaid"), "flowchart LR", `d0(["books"])`, "d0 --> n1")
	if g := answered[questions.Graph](t, url, "graph", "s", "--node", "double"); len(g.Nodes) != 1 || g.State != questions.Awake {
		t.Errorf("%+v", g)
	}
}

func TestLane_PrintsWhatWaits(t *testing.T) {
	t.Parallel()
	url, client := deployed(t, shelf())
	fillShelf(t, client)
	contains(t, succeeds(t, url, "lane", "s"), "nothing waits to be handled")
	if l := answered[questions.Lane](t, url, "lane", "s"); l.State != questions.Awake || l.Head != nil {
		t.Errorf("%+v", l)
	}
}

func TestTop_PrintsWhatTakesTime(t *testing.T) {
	t.Parallel()
	url, client := deployed(t, shelf())
	fillShelf(t, client)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() { // ends with done
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			if _, err := client.Call(t.Context(), settle.Outgoing{Space: "s", Stream: "add", ID: settle.ID(fmt.Sprint("more", n)), Payload: 1}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	// A machine may be too busy to handle an event within one measurement.
	text, begun := "", time.Now()
	for !strings.Contains(text, "event add") && time.Since(begun) < patience {
		text = succeeds(t, url, "top", "--once", "--every", "100ms")
	}
	m := &questions.Measurement{}
	for (len(m.Spaces) == 0 || len(m.Nodes) == 0) && time.Since(begun) < patience {
		m = answered[questions.Measurement](t, url, "top", "--once", "--every", "100ms", "--sort", "runs")
	}
	close(done)
	<-stopped
	contains(t, text, "1 worker", "TIME RUNS/S EACH WASTED WRITTEN/S ERRORS/S SPACE NODE", "event add")
	if len(m.Workers) != 1 || len(m.Spaces) == 0 || len(m.Nodes) == 0 || m.Spaces[0].Runs <= 0 || m.Nodes[0].Time <= 0 || m.Seconds <= 0 {
		t.Errorf("%+v", m)
	}
}

// A graph is put into quotes for the program that draws it, whatever names its documents have.
func TestGraph_QuotesNames(t *testing.T) {
	t.Parallel()
	g := &questions.Graph{
		About: questions.About{Space: "s"}, Nodes: []questions.GraphNode{{ID: "a", Kind: "computation", State: "up to date", Live: true, Error: `"x" \ <b>` + "\n#1"}},
		Edges: []questions.GraphEdge{{From: "a", To: "a", Address: `d/"k"`, Order: true}},
	}
	var dot, mermaid strings.Builder
	writeDOT(&dot, g)
	writeMermaid(&mermaid, g)
	contains(t, dot.String(), `label="a\nfailed: \"x\" \\ <b> #1"`, `label="d/\"k\"", style=dotted`)
	contains(t, mermaid.String(), `n0["a<br>failed: &quot;x&quot; \ &lt;b&gt; &num;1"]`, `n0 -.->|"d/&quot;k&quot;"| n0`)
}
