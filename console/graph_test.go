package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/questions"
	"github.com/settlehq/settle/replica"
)

// nobus is a deployment that is not asked.
type nobus struct{ Bus }

// wide is a graph of n nodes in columns of 60, each of which reads two of the column before.
func wide(n int) *questions.Graph {
	g := &questions.Graph{Total: n}
	for i := range n {
		node := questions.GraphNode{ID: fmt.Sprintf("n%03d", i), State: "clean", Live: true, Runs: 1, Height: int32(i / 60)}
		if i < 60 {
			node.Sources = []string{"source"}
		} else {
			for k := range 2 {
				g.Edges = append(g.Edges, questions.GraphEdge{From: fmt.Sprintf("n%03d", (i/60-1)*60+(i*7+k)%60), To: node.ID})
			}
		}
		g.Nodes = append(g.Nodes, node)
	}
	return g
}

// queryFor is the query of an address without parameters.
func queryFor(path string) *query { return &query{values: url.Values{}, at: &url.URL{Path: path}} }

// graphOn returns a function that shows a graph, and renders it as the page does.
func graphOn(t testing.TB) (*graphView, func(*questions.Graph) []rendered) {
	c, err := New(Config{Bus: nobus{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	g := &graphView{spaceReader: spaceReader{c: c, space: "a", contents: replica.New("a")}, q: queryFor("/spaces/a/graph"), runs: map[string]uint64{}}
	at := &topic{hub: c.hub}
	var last *version
	return g, func(whole *questions.Graph) []rendered {
		out := &shown{}
		g.show(whole, &graphSummary{}, out)
		parts, err := at.render(out, last)
		if err != nil {
			t.Fatal(err)
		}
		number := uint64(1)
		if last != nil {
			number = last.number + 1
		}
		last = &version{number: number, parts: parts}
		return parts
	}
}

// When one of 300 nodes has run, its box and its row are rendered and sent, and no other ones, nor the picture or the list as a whole. It is laid out once.
func TestGraph_AnUpdateSendsTheBoxesThatHaveChanged(t *testing.T) {
	g, render := graphOn(t)
	whole := wide(300)
	first := render(whole)
	if n := len(slices.DeleteFunc(slices.Clone(first), func(p rendered) bool { return !strings.HasPrefix(p.id, "gn-") })); n != 301 {
		t.Fatalf("%d boxes are drawn, of 300 nodes and a document", n)
	}
	picture := g.last
	whole.Nodes[77].Runs++
	before := g.c.looks.rendered.Load()
	var sent []string
	for _, p := range (&version{parts: render(whole)}).newer(1) {
		sent = append(sent, p.id)
	}
	if !slices.Equal(sent, []string{"heading", "summary", "gn-77", "ln-n077"}) {
		t.Errorf("sent are %v", sent)
	}
	// Besides these four, the picture and the list around them are put together anew, for visitors that open the page.
	if n := g.c.looks.rendered.Load() - before; n != 6 {
		t.Errorf("%d parts are rendered", n)
	}
	if g.last != picture {
		t.Error("it was laid out again, and its structure is the same")
	}
}

// Above the largest number that is drawn, the part around one node is: the chosen one, or that with the most neighbours.
func TestGraph_ALargeOneIsDrawnInParts(t *testing.T) {
	g, render := graphOn(t)
	for _, why := range []string{"", "n311"} {
		g.q.values.Set("why", why)
		drawn := 0
		for _, p := range render(wide(600)) {
			if strings.HasPrefix(p.id, "gn-") {
				drawn++
			}
		}
		if drawn < 5 || drawn > drawMost+1 {
			t.Errorf("%d boxes are drawn around %q", drawn, why)
		}
	}
}

// BenchmarkGraph_Update is an update of a graph of 300 nodes: from the answer of the worker to the parts that are sent.
func BenchmarkGraph_Update(b *testing.B) {
	_, render := graphOn(b)
	whole := wide(300)
	render(whole)
	for b.Loop() {
		whole.Nodes[77].Runs++
		render(whole)
	}
}

// BenchmarkGraph_LayOut is the layout of 300 nodes, which happens when the structure of the graph changes.
func BenchmarkGraph_LayOut(b *testing.B) {
	whole := wide(300)
	for b.Loop() {
		_, render := graphOn(b)
		render(whole)
	}
}
