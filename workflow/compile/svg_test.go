package compile

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/settlehq/settle/internal/randomstar"
	"github.com/settlehq/settle/workflow"
)

var svgFile = flag.String("svg", "", "where to write the drawing of a test, to look at it")

const drawn = `
load("actions", "reserve", "release", "charge", "remind")

def lines(order):
    compensate(release(order["id"]))
    return parallel([reserve(sku = line["sku"], n = line["n"]) for line in order["lines"]])

def run(order, patience = "24h"):
    reserved = lines(order)
    paid = attempt(retry(charge(cents = order["cents"]), attempts = 5, backoff = "10s", factor = 2, on = ["Offline"]))
    if paid.failed("Declined"):
        return {"state": "declined", "text": "a <b> & \"c\" of 日本語"}
    elif paid.failed():
        fail(paid.error)
    for n in range(3):
        approval = attempt(wait("approve", timeout = patience))
        if approval.ok:
            break
        if n == 2:
            continue
        remind(n = n + 1)
    sleep("1h")
    while order["cents"] > 3 and order["cents"] < 10:
        for k in range(2):
            remind(n = k)
    return {"state": "approved", "lines": len(reserved)}

workflow("order <1>", run)
`

// wellFormed fails the test if a text is no XML, or refers to anything outside.
func wellFormed(t *testing.T, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		if start, is := token.(xml.StartElement); is {
			for _, a := range start.Attr {
				if a.Name.Local == "href" || a.Name.Local == "src" || strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Value, "url(") {
					t.Errorf("%s has the attribute %s = %s", start.Name.Local, a.Name.Local, a.Value)
				}
			}
			if start.Name.Local == "script" || start.Name.Local == "image" || start.Name.Local == "foreignObject" {
				t.Errorf("there is a %s", start.Name.Local)
			}
		}
	}
	if strings.Contains(svg, "@import") || strings.Contains(svg, "url(") || strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Errorf("it refers to something outside, or has a place that is no number: %s", svg)
	}
}

func draw(t *testing.T, g *workflow.Graph, mark func(fn, node int) workflow.Mark) string {
	t.Helper()
	svg, err := g.SVG(mark)
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, svg)
	return svg
}

func TestSVG_HasEveryNodeAndEscapesTexts(t *testing.T) {
	t.Parallel()
	g, err := Compile("w.star", []byte(drawn))
	if err != nil {
		t.Fatal(err)
	}
	states := []workflow.Mark{"", workflow.MarkDone, workflow.MarkRunning, workflow.MarkWaiting, workflow.MarkFailed}
	svg := draw(t, g, func(_, node int) workflow.Mark { return states[node%len(states)] })
	nodes, edges := 0, 0
	for _, f := range g.Funcs {
		nodes += len(f.Nodes)
		for _, n := range f.Nodes {
			edges += len(n.Edges)
		}
	}
	if got := strings.Count(svg, "</g>"); got != nodes {
		t.Errorf("%d nodes, want %d", got, nodes)
	}
	if got := strings.Count(svg, `class="wf-tip"`); got != edges {
		t.Errorf("%d edges, want %d", got, edges)
	}
	for _, want := range []string{
		"<title>workflow order &lt;1&gt;</title>", "a &lt;b&gt; &amp;", ">run(order, patience)<", ">lines(order)<", ">compensate release<",
		">parallel reserve for each of order[&#34;l...<", "prefers-color-scheme:dark", ">BACK<", ">BREAK<", ">true<", ">false<",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, state := range states[1:] { // a word and a sign, beside the colour
		if strings.Count(svg, ">"+string(state)+"</text>") == 0 || strings.Count(svg, `<g class="wf-`+string(state)+`">`) != strings.Count(svg, ">"+string(state)+"</text>") {
			t.Errorf("state %s has no word", state)
		}
	}
	if got := strings.Count(svg, "wf-icon") - 2; got != strings.Count(svg, `<g class="wf-`) { // two are in the style
		t.Errorf("%d signs", got)
	}
	if *svgFile != "" {
		if err := os.WriteFile(*svgFile, []byte(svg), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSVG_IsTheSameForEqualGraphs(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		var svgs [2]string
		for i := range svgs {
			g, err := Compile("w.star", []byte(randomstar.Program(seed)))
			if err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				data, err := g.Encode()
				if err != nil {
					t.Fatal(err)
				}
				if g, err = workflow.Decode(data); err != nil {
					t.Fatal(err)
				}
			}
			svgs[i] = draw(t, g, nil)
		}
		if svgs[0] != svgs[1] {
			t.Fatalf("seed %d: there are two drawings of one graph", seed)
		}
	}
}

// What a workflow says cannot change the drawing, and what XML cannot have is replaced.
func TestSVG_TextsFromOutsideStayTexts(t *testing.T) {
	t.Parallel()
	g, err := Compile("w.star", []byte("load('actions', 'a')\ndef run(n = 1):\n    a(n)\n    return n\nworkflow('w', run)\n"))
	if err != nil {
		t.Fatal(err)
	}
	g.Name = "</title><script>alert(1)</script>\x00\x1b"
	g.Funcs[0].Name = `"><image href="http://example.com/x"/>`
	g.Funcs[0].Params[0].Name = "\xff\xfe"
	g.Funcs[0].Nodes[0].Calls[0].Action = "<script>]]>"
	draw(t, g, func(int, int) workflow.Mark { return `"><script>` })
}

func TestSVG_OfAGraphThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("load('actions', 'a')\ndef run(n = 1):\n")
	for range 650 {
		b.WriteString("    for i in range(2):\n        a(i)\n        break\n")
	}
	text := b.String() + "    return n\nworkflow('w', run)\n"
	g, err := Compile("w.star", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.SVG(nil); err == nil || !strings.Contains(err.Error(), "a drawing at most 1000: use the format dot or text") {
		t.Error(len(g.Funcs[0].Nodes), err)
	}
}

// Many edges that pass many layers, the most that one can draw.
func TestSVG_OfTheWorstGraph(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("load('actions', 'a')\ndef run(n = 1):\n    while True:\n")
	for i := range 300 {
		fmt.Fprintf(&b, "        x = a(%d)\n        if x: break\n", i)
	}
	g, err := Compile("w.star", []byte(b.String()+"    return n\nworkflow('w', run)\n"))
	if err != nil {
		t.Fatal(err)
	}
	draw(t, g, nil)
}
