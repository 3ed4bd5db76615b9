package questions_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/settlehq/settle/questions"
)

// wellFormed returns the texts of a drawing, which must be XML that refers to nothing outside.
func wellFormed(t *testing.T, drawing string) (texts []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(drawing))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the drawing is no XML: %v\n%s", err, drawing)
		}
		if c, is := tok.(xml.CharData); is && strings.TrimSpace(string(c)) != "" {
			texts = append(texts, string(c))
		}
	}
	if strings.Contains(drawing, "url(") || strings.Contains(drawing, "href") || strings.Contains(drawing, "<script") {
		t.Error("the drawing refers to something outside")
	}
	return texts
}

func drawnGraph() *questions.Graph {
	g := &questions.Graph{About: questions.About{Space: "front", State: questions.Awake}, Total: 5, Circles: [][]string{{"b", "c"}}, Rounds: [][]string{{"back/z", "front/d"}}}
	node := func(id string, height int32, change func(*questions.GraphNode)) {
		n := questions.GraphNode{ID: id, Kind: "computation", State: "up to date", Live: true, Height: height}
		if change != nil {
			change(&n)
		}
		g.Nodes = append(g.Nodes, n)
	}
	node("a", 0, func(n *questions.GraphNode) { n.Sources = []string{"count", "@back/z"} })
	node("b", 4, func(n *questions.GraphNode) { n.Circle, n.Gate, n.State = 1, "backoff", "gated" })
	node("c", 5, func(n *questions.GraphNode) { n.Circle, n.Error = 1, `<b> & "quotes"`+"\x01" })
	node("d", 9, func(n *questions.GraphNode) { n.Round, n.Observed = 1, true })
	node("show <it>", 10, func(n *questions.GraphNode) { n.Kind, n.Live, n.State = "effect", false, "dormant" })
	for _, e := range [][2]string{{"a", "b"}, {"b", "c"}, {"c", "b"}, {"a", "d"}, {"d", "show <it>"}} {
		g.Edges = append(g.Edges, questions.GraphEdge{From: e[0], To: e[1], Address: e[0]})
	}
	return g
}

// A drawing has each node with its state, each edge, and marks of circles; it is the same for the same graph.
func TestSVG_HasNodesWithStatesAndMarks(t *testing.T) {
	drawing, err := drawnGraph().SVG()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(wellFormed(t, drawing), "|")
	for _, want := range []string{"count", "@back/z", "held by its backoff · circle 1", `failed: <b> & "quotes"` + "\ufffd", "up to date · round 1 · observed", "show <it>", "dormant", "5 of 5 nodes, 1 circles, 1 rounds over several spaces"} {
		if !strings.Contains(all, want) {
			t.Errorf("the drawing has no %q: %s", want, all)
		}
	}
	for class, n := range map[string]int{"sg-clean": 2, "sg-held sg-turns": 1, "sg-failed sg-turns": 1, "sg-dormant": 1, "sg-document": 2, "sg-edge sg-round sg-back": 1} { // any order
		if got := strings.Count(drawing, `class="`+class); got != n {
			t.Errorf("%d elements of class %s, want %d", got, class, n)
		}
	}
	if n := strings.Count(drawing, `class="sg-edge`); n != 7 {
		t.Errorf("%d edges, want 7", n)
	}
	if again, _ := drawnGraph().SVG(); again != drawing {
		t.Error("the same graph has another drawing")
	}
}

var boxPlace = regexp.MustCompile(`<rect class="sg-box" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"`)

// Boxes of a large graph do not overlap.
func TestSVG_BoxesDoNotOverlap(t *testing.T) {
	g := &questions.Graph{About: questions.About{Space: "s"}, Total: 300}
	for i := range 300 {
		n := questions.GraphNode{ID: fmt.Sprintf("node-%d-%s", i, strings.Repeat("x", i%40)), Kind: "computation", State: "up to date", Live: true, Height: int32(i / 12)}
		if i < 24 {
			n.Sources = []string{fmt.Sprint("doc", i%7)}
		}
		g.Nodes = append(g.Nodes, n)
		for k := range 3 {
			if from := (i/12-1-k)*12 + i*7%12; from >= 0 {
				g.Edges = append(g.Edges, questions.GraphEdge{From: g.Nodes[from].ID, To: n.ID})
			}
		}
	}
	drawing, err := g.SVG()
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, drawing)
	var boxes [][4]float64
	for _, m := range boxPlace.FindAllStringSubmatch(drawing, -1) {
		var b [4]float64
		for i := range b {
			b[i], _ = strconv.ParseFloat(m[i+1], 64)
		}
		for _, o := range boxes {
			if b[0] < o[0]+o[2] && o[0] < b[0]+b[2] && b[1] < o[1]+o[3] && o[1] < b[1]+b[3] {
				t.Fatalf("the boxes %v and %v overlap", b, o)
			}
		}
		boxes = append(boxes, b)
	}
	if len(boxes) != 307 {
		t.Errorf("%d boxes, want 307", len(boxes))
	}
}

func TestSVG_TooManyNodesAreRefused(t *testing.T) {
	g := &questions.Graph{Nodes: make([]questions.GraphNode, questions.MaxDrawn+1)}
	if _, err := g.SVG(); err == nil || !strings.Contains(err.Error(), "neighbourhood") {
		t.Errorf("the error is %v", err)
	}
	if drawing, err := (&questions.Graph{}).SVG(); err != nil {
		t.Error(err)
	} else {
		wellFormed(t, drawing)
	}
}
