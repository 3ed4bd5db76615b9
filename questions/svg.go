package questions

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/settlehq/settle/internal/layered"
	"github.com/settlehq/settle/space/inspect"
)

// MaxDrawn is the largest number of nodes of a graph that is drawn.
const MaxDrawn = 1_000

// Measures of a drawing, in pixels.
const (
	drawnChar   = 7.2 // the width of a character of a label, in a monospace font of 12 px
	drawnHeight = 42.0
	drawnGap    = 18.0 // between two nodes of a layer
	layerGap    = 70.0
	drawnMargin = 20.0
	drawnHead   = 30.0
	drawnLabel  = 34 // characters of a label
)

// SVG returns a drawing of the graph, from left to right: each node is to the right of those that it reads, except around a circle. It refers to
// nothing outside, has colours for light and for dark, and is the same for the same graph.
func (g *Graph) SVG() (string, error) {
	if len(g.Nodes) > MaxDrawn {
		return "", fmt.Errorf("space %s has %d nodes, and a drawing at most %d: use the neighbourhood of a node, or another format", g.Space, len(g.Nodes), MaxDrawn)
	}
	d := newGraphDrawing(g)
	d.arrange()
	var b strings.Builder
	width, height := d.right+2*drawnMargin, d.layout.Size()+drawnHead+2*drawnMargin+d.below
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>graph of space %s</title>\n<style>%s</style>\n", drawnText(g.Space), graphStyle)
	fmt.Fprintf(&b, `<rect class="sg-paper" width="%.0f" height="%.0f"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text class="sg-head" x="%.0f" y="%.0f">%s</text>`+"\n", drawnMargin, drawnMargin+12, drawnText(d.headline()))
	for i := range d.layout.Paths {
		d.edge(&b, i)
	}
	for i := range d.nodes {
		d.node(&b, i)
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// graphStyle has the colours. Its classes have a prefix, since a page may contain the drawing.
const graphStyle = `
.sg-paper{fill:#fff}
.sg-text,.sg-small,.sg-head{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;font-size:12px;fill:#1a1d21}
.sg-head{font-weight:bold}.sg-small{font-size:10px;fill:#4d545e}
.sg-edge{fill:none;stroke:#5b636e;stroke-width:1.3}.sg-tip{fill:#5b636e}.sg-order{stroke-dasharray:2 3}.sg-back{stroke-dasharray:6 3}
.sg-round{stroke:#b35900;stroke-width:2}
.sg-box{fill:#f3f5f8;stroke:#7a828e}
.sg-document .sg-box{fill:#fff;stroke:#98a1ad}
.sg-clean .sg-box{fill:#e3f4e6;stroke:#2e7d3c}.sg-held .sg-box{fill:#ece6fb;stroke:#6a45b8}
.sg-due .sg-box{fill:#fff3cf;stroke:#946200}.sg-failed .sg-box{fill:#fde5e3;stroke:#b3261e;stroke-width:2.5}
.sg-dormant .sg-box{stroke-dasharray:4 3}.sg-turns .sg-box{stroke:#b35900;stroke-width:2.5}
@media (prefers-color-scheme:dark){
.sg-paper{fill:#14171b}.sg-text,.sg-head{fill:#eceff3}.sg-small{fill:#b3bac4}
.sg-edge{stroke:#98a1ad}.sg-tip{fill:#98a1ad}.sg-round{stroke:#ffa657}
.sg-box{fill:#22272e;stroke:#78818d}.sg-document .sg-box{fill:#14171b;stroke:#78818d}
.sg-clean .sg-box{fill:#173a1f;stroke:#5fbf72}.sg-held .sg-box{fill:#2e2350;stroke:#a98bf0}
.sg-due .sg-box{fill:#453300;stroke:#f0b429}.sg-failed .sg-box{fill:#4c1714;stroke:#f2786f}.sg-turns .sg-box{stroke:#ffa657}
}
`

// drawnNode is a node in a drawing, or a document that no node writes.
type drawnNode struct {
	name, state, class string
	effect, observed   bool
	layer              int
	circle             int // of several nodes, or over several spaces; 0 for none
}

type drawnEdge struct {
	layered.Edge
	order, turns bool
	address      string
}

// graphDrawing is a graph while it is drawn.
type graphDrawing struct {
	graph  *Graph
	nodes  []drawnNode
	edges  []drawnEdge
	layout *layered.Layout
	// left and width are those of the layers, right is where the last one ends, below how far edges back reach below the nodes.
	left, width  []float64
	right, below float64
}

func newGraphDrawing(g *Graph) *graphDrawing {
	d := &graphDrawing{graph: g}
	number := map[string]int{}
	var heights []int32
	for i := range g.Nodes {
		heights = append(heights, g.Nodes[i].Height)
		for _, s := range g.Nodes[i].Sources {
			if _, known := number[" "+s]; !known {
				number[" "+s] = len(d.nodes)
				d.nodes = append(d.nodes, drawnNode{name: s, class: "sg-document"})
			}
		}
	}
	slices.Sort(heights)
	heights = slices.Compact(heights)
	documents := min(len(d.nodes), 1)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		number[n.ID] = len(d.nodes)
		rank, _ := slices.BinarySearch(heights, n.Height)
		d.nodes = append(d.nodes, drawn(n, documents+rank))
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for _, s := range n.Sources {
			d.edges = append(d.edges, drawnEdge{Edge: layered.Edge{From: number[" "+s], To: number[n.ID]}, address: s, turns: n.Round > 0 && strings.HasPrefix(s, "@")})
		}
	}
	for _, e := range g.Edges {
		from, known := number[e.From]
		to, also := number[e.To]
		if known && also {
			circle := d.nodes[from].circle
			d.edges = append(d.edges, drawnEdge{Edge: layered.Edge{From: from, To: to}, address: e.Address, order: e.Order, turns: circle > 0 && circle == d.nodes[to].circle})
		}
	}
	return d
}

// drawn returns the node of a drawing.
func drawn(n *GraphNode, layer int) drawnNode {
	out := drawnNode{name: n.ID, effect: n.Kind == "effect", observed: n.Observed, layer: layer, circle: n.Circle}
	if n.Round > 0 {
		out.circle = -n.Round
	}
	switch {
	case n.Error != "":
		out.class, out.state = "sg-failed", "failed: "+n.Error
	case n.Gate != "":
		out.class, out.state = "sg-held", "held by its "+n.Gate
	case n.Waits != "":
		out.class, out.state = "sg-held", "waits for "+n.Waits
	case n.State == inspect.UpToDate.String():
		out.class, out.state = "sg-clean", n.State
	default:
		out.class, out.state = "sg-due", n.State
	}
	if !n.Live {
		out.class = "sg-dormant"
	}
	if out.circle != 0 {
		out.class += " sg-turns"
	}
	out.state = cmp.Or(out.state, "unknown")
	return out
}

func (n *drawnNode) label() string { return shortened(n.name, drawnLabel) }

func (n *drawnNode) small() string {
	text := shortened(n.state, drawnLabel)
	switch {
	case n.circle < 0:
		text += fmt.Sprintf(" · round %d", -n.circle)
	case n.circle > 0:
		text += fmt.Sprintf(" · circle %d", n.circle)
	}
	if n.observed {
		text += " · observed"
	}
	return text
}

func (n *drawnNode) width() float64 {
	return max(float64(utf8.RuneCountInString(n.label()))*drawnChar, float64(utf8.RuneCountInString(n.small()))*drawnChar*10/12, 60) + 24
}

// arrange places nodes and layers.
func (d *graphDrawing) arrange() {
	nodes := make([]layered.Node, len(d.nodes))
	for i := range d.nodes {
		nodes[i] = layered.Node{Layer: d.nodes[i].layer, Size: drawnHeight}
	}
	edges := make([]layered.Edge, len(d.edges))
	for i := range d.edges {
		edges[i] = d.edges[i].Edge
	}
	d.layout = layered.Arrange(nodes, edges, drawnGap)
	d.width, d.left = make([]float64, len(d.layout.Layers)), make([]float64, len(d.layout.Layers))
	for i := range d.nodes {
		d.width[d.nodes[i].layer] = max(d.width[d.nodes[i].layer], d.nodes[i].width())
	}
	for i, w := range d.width {
		if i > 0 {
			d.left[i] = d.left[i-1] + d.width[i-1] + layerGap
		}
		d.right = d.left[i] + w
	}
	for i := range d.layout.Paths {
		if d.layout.Paths[i].Back {
			d.below = drawnHeight
		}
	}
	d.right = max(d.right, float64(utf8.RuneCountInString(d.headline()))*drawnChar)
}

func (d *graphDrawing) headline() string {
	text := fmt.Sprintf("space %s: %d of %d nodes", d.graph.Space, len(d.graph.Nodes), d.graph.Total)
	if n := len(d.graph.Circles); n > 0 {
		text += fmt.Sprintf(", %d circles", n)
	}
	if n := len(d.graph.Rounds); n > 0 {
		text += fmt.Sprintf(", %d rounds over several spaces", n)
	}
	return text
}

// place returns the left end and the middle of a box.
func (d *graphDrawing) place(box int) (x, y float64) {
	b := &d.layout.Boxes[box]
	return drawnMargin + d.left[b.Layer], drawnMargin + drawnHead + b.At
}

// end returns where edges leave a box.
func (d *graphDrawing) end(box int) float64 {
	x, _ := d.place(box)
	if n := d.layout.Boxes[box].Node; n >= 0 {
		return x + d.nodes[n].width()
	}
	return x + d.width[d.layout.Boxes[box].Layer]
}

func (d *graphDrawing) edge(b *strings.Builder, number int) {
	p, e := &d.layout.Paths[number], &d.edges[number]
	class := "sg-edge"
	if e.order {
		class += " sg-order"
	}
	if e.turns {
		class += " sg-round"
	}
	if p.Back {
		class += " sg-back"
	}
	_, y := d.place(p.Boxes[0])
	x := d.end(p.Boxes[0])
	fmt.Fprintf(b, `<g><title>%s</title><path class="%s" d="M%.1f %.1f`, drawnText(d.nodes[e.From].name+" → "+d.nodes[e.To].name+" ("+e.address+")"), class, x, y)
	for i, box := range p.Boxes[1:] {
		tx, ty := d.place(box)
		if i == len(p.Boxes)-2 {
			tx -= 5 // for the tip
		}
		if p.Back { // below the nodes
			low := max(y, ty) + drawnHeight
			fmt.Fprintf(b, ` C%.1f %.1f %.1f %.1f %.1f %.1f`, x+layerGap/2, low, tx-layerGap/2, low, tx, ty)
		} else {
			fmt.Fprintf(b, ` C%.1f %.1f %.1f %.1f %.1f %.1f`, x+layerGap/2, y, tx-layerGap/2, ty, tx, ty)
		}
		if x, y = tx, ty; d.layout.Boxes[box].Node < 0 {
			x = d.end(box)
			fmt.Fprintf(b, ` H%.1f`, x)
		}
	}
	fmt.Fprintf(b, `"/><path class="sg-tip" d="M%.1f %.1f l-7 -4 v8 Z"/></g>`+"\n", x+5, y)
}

func (d *graphDrawing) node(b *strings.Builder, i int) {
	n := &d.nodes[i]
	x, y := d.place(i)
	radius := 4.0
	if n.effect {
		radius = drawnHeight / 2
	}
	fmt.Fprintf(b, `<g class="%s"><title>%s</title><rect class="sg-box" x="%.1f" y="%.1f" width="%.1f" height="%.0f" rx="%.0f"/>`,
		n.class, drawnText(strings.TrimSuffix(n.name+": "+n.state, ": ")), x, y-drawnHeight/2, n.width(), drawnHeight, radius)
	if n.state == "" {
		fmt.Fprintf(b, `<text class="sg-text" x="%.1f" y="%.1f">%s</text>`, x+12, y+4, drawnText(n.label()))
	} else {
		fmt.Fprintf(b, `<text class="sg-text" x="%.1f" y="%.1f">%s</text><text class="sg-small" x="%.1f" y="%.1f">%s</text>`, x+12, y-3, drawnText(n.label()), x+12, y+12, drawnText(n.small()))
	}
	b.WriteString("</g>\n")
}

// shortened returns at most so many characters of a text.
func shortened(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// drawnText returns a text as XML has it, without what XML cannot have.
func drawnText(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0xfffe || r == 0xffff {
			return utf8.RuneError
		}
		return r // an invalid byte is a RuneError
	}, text))
}
