package workflow

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Mark is the state of a node in a run.
type Mark string

// States of a node. One that has not been reached has none.
const (
	MarkDone    Mark = "done"    // it was passed at least once
	MarkRunning Mark = "running" // an action is performed, or waits for its performer
	MarkWaiting Mark = "waiting" // a sleep, a signal, a pause before another attempt, or an action that is queued
	MarkFailed  Mark = "failed"  // the last time that it was passed
)

// maxDrawn is the largest number of nodes of a graph that is drawn.
const maxDrawn = 1_000

// Measures of a drawing, in pixels.
const (
	charWidth  = 7.2 // of a character of a label, in a monospace font of 12 px
	nodeHeight = 44.0
	layerGap   = 42.0
	margin     = 20.0
	headHeight = 44.0 // of the title of a function
	laneWidth  = 14.0 // between two edges back
	iconWidth  = 12.0
	labelWidth = 40 // in characters
)

// Drawing says how a graph is drawn. The zero value draws it without states.
type Drawing struct {
	// Mark returns the state of a node, Note a few characters more about it, such as "37 of 100", and Link the address that it leads to; "" for
	// none. Each may be nil.
	Mark       func(fn, node int) Mark
	Note, Link func(fn, node int) string
	// Bare leaves the colours to the page that contains the drawing. Its nodes have ids then: "wf-FUNCTION-NODE".
	Bare bool
}

// SVG returns a drawing of the graph, with the state of its nodes: mark may be nil. It refers to nothing outside, has
// colours for light and for dark, and is the same for the same graph and marks.
func (g *Graph) SVG(mark func(fn, node int) Mark) (string, error) { return g.Draw(Drawing{Mark: mark}) }

// Draw is SVG with more about nodes.
func (g *Graph) Draw(how Drawing) (string, error) {
	nodes := 0
	for i := range g.Funcs {
		nodes += len(g.Funcs[i].Nodes)
	}
	if nodes > maxDrawn {
		return "", fmt.Errorf("workflow %s has %d nodes, and a drawing at most %d: use the format dot or text", g.Name, nodes, maxDrawn)
	}
	d := &drawing{how: how}
	width, height := 0.0, margin
	for i := range g.Funcs {
		d.fn = i
		w, h := d.function(&g.Funcs[i], height)
		width, height = max(width, w), height+h+margin
	}
	width += 2 * margin
	var b strings.Builder
	role := "img"
	if how.Link != nil { // an image cannot have links
		role = "group"
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="%s">`+"\n", width, height, width, height, role)
	fmt.Fprintf(&b, "<title>workflow %s</title>\n", escaped(g.Name))
	if !how.Bare {
		fmt.Fprintf(&b, "<style>%s</style>\n"+`<rect class="wf-paper" width="%.0f" height="%.0f"/>`+"\n", style, width, height)
	}
	b.WriteString(d.b.String())
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// style has the colours. Its classes have a prefix, since a page may contain the drawing.
const style = `
.wf-paper{fill:#fff}.wf-frame{fill:none;stroke:#c4c9d1}
.wf-text,.wf-small,.wf-head{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;font-size:12px;fill:#1a1d21}
.wf-head{font-weight:bold}.wf-small{font-size:10px;fill:#4d545e}.wf-name{stroke:#fff;stroke-width:4;paint-order:stroke}
.wf-edge{fill:none;stroke:#5b636e;stroke-width:1.3}.wf-tip{fill:#5b636e}
.wf-back{stroke-dasharray:5 3}
.wf-box{fill:#f3f5f8;stroke:#7a828e}.wf-call{fill:#e2eefc;stroke:#2f6db5}.wf-time{stroke-dasharray:4 2}
.wf-done .wf-box{fill:#e3f4e6;stroke:#2e7d3c}.wf-running .wf-box{fill:#fff3cf;stroke:#946200;stroke-width:2.5}
.wf-waiting .wf-box{fill:#ece6fb;stroke:#6a45b8;stroke-width:2.5}.wf-failed .wf-box{fill:#fde5e3;stroke:#b3261e;stroke-width:2.5}
.wf-icon{fill:none;stroke:#1a1d21;stroke-width:1.8}
@media (prefers-color-scheme:dark){
.wf-paper{fill:#14171b}.wf-frame{stroke:#3d444d}
.wf-text,.wf-head{fill:#eceff3}.wf-small{fill:#b3bac4}.wf-name{stroke:#14171b}
.wf-edge{stroke:#98a1ad}.wf-tip{fill:#98a1ad}
.wf-box{fill:#22272e;stroke:#78818d}.wf-call{fill:#17304d;stroke:#6aa5ea}
.wf-done .wf-box{fill:#173a1f;stroke:#5fbf72}.wf-running .wf-box{fill:#453300;stroke:#f0b429}
.wf-waiting .wf-box{fill:#2e2350;stroke:#a98bf0}.wf-failed .wf-box{fill:#4c1714;stroke:#f2786f}
.wf-icon{stroke:#eceff3}
}
`

// icons are the signs of marks, 10 by 10 pixels.
var icons = map[Mark]string{
	MarkDone:    "M1 5 L4 8 L9 1",
	MarkRunning: "M2 1 L9 5 L2 9 Z",
	MarkWaiting: "M3 1 V9 M7 1 V9",
	MarkFailed:  "M1 1 L9 9 M9 1 L1 9",
}

// escaped returns a text as XML has it, without what XML cannot have.
func escaped(text string) string {
	return escapes.Replace(strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff {
			return utf8.RuneError
		}
		return r // an invalid byte is a RuneError
	}, text))
}

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

// columns returns how many columns of a monospace font a text needs.
func columns(text string) (n int) {
	for _, r := range text {
		if n++; r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xffe6 || r >= 0x1f300) { // wide characters
			n++
		}
	}
	return n
}

// drawing draws functions.
type drawing struct {
	how   Drawing
	fn    int // the function that is being drawn
	b     strings.Builder
	names strings.Builder // of edges, above all of them
}

// place returns the text of a node in a drawing, and its width.
func (n *Node) place() (label string, width float64) {
	label = n.label(labelWidth)
	return label, max(float64(columns(label)), 18)*charWidth + 24
}

// function draws a function below a height, and returns its size.
func (d *drawing) function(f *Func, top float64) (width, height float64) {
	l := arrange(f, func(node int) float64 {
		_, w := f.Nodes[node].place()
		return w
	})
	width = l.Size()
	lanes := l.lanes()
	inner := width
	title := f.Name + "(" + strings.Join(f.params(), ", ") + ")"
	width = max(width+laneWidth*float64(lanesOf(lanes)), float64(columns(shorten(title, 80)))*charWidth) + 2*margin
	height = headHeight + float64(len(l.Layers))*(nodeHeight+layerGap) - layerGap/2 + margin/2
	at := offset{x: 2 * margin, y: top + headHeight}
	fmt.Fprintf(&d.b, `<rect class="wf-frame" x="%.0f" y="%.0f" width="%.1f" height="%.1f" rx="6"/>`+"\n", margin, top, width, height)
	fmt.Fprintf(&d.b, `<text class="wf-head" x="%.0f" y="%.1f">%s</text>`+"\n", 2*margin, top+21, escaped(shorten(title, 80)))
	for i := range l.Paths {
		if l.Paths[i].Back {
			d.backEdge(l, i, f, at, lanes[i], inner)
		} else {
			d.edge(l, i, f, at)
		}
	}
	d.b.WriteString(d.names.String())
	d.names.Reset()
	for i := range f.Nodes {
		d.node(&f.Nodes[i], i, at.x+l.Boxes[i].At, at.top(l.Boxes[i].Layer), l.Boxes[i].Size)
	}
	return width, height
}

func (f *Func) params() (names []string) {
	for i := range f.Params {
		names = append(names, f.Params[i].Name)
	}
	return names
}

// offset is where the layout of a function begins.
type offset struct{ x, y float64 }

func (o offset) top(layer int) float64    { return o.y + float64(layer)*(nodeHeight+layerGap) }
func (o offset) bottom(layer int) float64 { return o.top(layer) + nodeHeight }

// lanes gives each edge back a lane at the right of the function, the shorter ones inside, by the number of its path.
func (l *layout) lanes() map[int]int {
	type span struct{ path, from, to int }
	var list []span
	for i := range l.Paths {
		if p := &l.Paths[i]; p.Back {
			list = append(list, span{i, l.Boxes[p.Boxes[1]].Layer, l.Boxes[p.Boxes[0]].Layer})
		}
	}
	slices.SortStableFunc(list, func(a, b span) int { return (a.to - a.from) - (b.to - b.from) })
	lanes, used := map[int]int{}, [][]span{}
	for _, s := range list {
		lane := 0
		for lane < len(used) && slices.ContainsFunc(used[lane], func(o span) bool { return s.from <= o.to && o.from <= s.to }) {
			lane++
		}
		if lane == len(used) {
			used = append(used, nil)
		}
		used[lane], lanes[s.path] = append(used[lane], s), lane
	}
	return lanes
}

func lanesOf(lanes map[int]int) (n int) {
	for _, lane := range lanes { // any order: the maximum
		n = max(n, lane+2)
	}
	return n
}

// edge draws an edge that leads down.
func (d *drawing) edge(l *layout, number int, f *Func, at offset) {
	p, n, i := &l.Paths[number], &f.Nodes[l.edges[number][0]], l.edges[number][1]
	e, from := n.Edges[i], &l.Boxes[p.Boxes[0]]
	x, y := at.x+from.At+port(len(n.Edges), i), at.bottom(from.Layer)
	fmt.Fprintf(&d.b, `<path class="wf-edge" d="M%.1f %.1f`, x, y)
	nameX, nameY := x, y
	for i, b := range p.Boxes[1:] {
		to := &l.Boxes[b]
		tx, ty := at.x+to.At, at.top(to.Layer)
		if i == len(p.Boxes)-2 {
			ty -= 5 // for the tip
		}
		fmt.Fprintf(&d.b, ` C%.1f %.1f %.1f %.1f %.1f %.1f`, x, y+layerGap/2, tx, ty-layerGap/2, tx, ty)
		if x, y = tx, ty; to.Node < 0 {
			y = at.bottom(to.Layer)
			fmt.Fprintf(&d.b, ` L%.1f %.1f`, x, y)
		}
	}
	d.b.WriteString(`"/>` + "\n")
	fmt.Fprintf(&d.b, `<path class="wf-tip" d="M%.1f %.1f l-4 -7 h8 Z"/>`+"\n", x, y+5)
	d.edgeName(e, nameX, nameY)
}

// port returns where an edge leaves a node with several edges, from its middle.
func port(edges, i int) float64 { return (float64(i) - float64(edges-1)/2) * 70 }

func (d *drawing) edgeName(e Edge, x, y float64) {
	if e.name() != "" {
		fmt.Fprintf(&d.names, `<text class="wf-small wf-name" x="%.1f" y="%.1f">%s</text>`+"\n", x+5, y+11, escaped(e.name()))
	}
}

// backEdge draws an edge that leads up, in a lane at the right of the function. It leaves its node below, and enters the
// head of the loop from above.
func (d *drawing) backEdge(l *layout, number int, f *Func, at offset, lane int, right float64) {
	p := &l.Paths[number]
	from, to := &l.Boxes[p.Boxes[0]], &l.Boxes[p.Boxes[1]]
	shift := float64(lane%4) * 3 // so that lines next to each other remain apart
	x, y := at.x+from.At, at.bottom(from.Layer)
	tx, ty := at.x+to.At+min(to.Size/4, 40), at.top(to.Layer)
	fmt.Fprintf(&d.b, `<path class="wf-edge wf-back" d="M%.1f %.1f V%.1f H%.1f V%.1f H%.1f V%.1f"/>`+"\n", x, y, y+14+shift, at.x+right+laneWidth*float64(lane+1), ty-18-shift, tx, ty-5)
	fmt.Fprintf(&d.b, `<path class="wf-tip" d="M%.1f %.1f l-4 -7 h8 Z"/>`+"\n", tx, ty)
	d.edgeName(f.Nodes[l.edges[number][0]].Edges[l.edges[number][1]], x, y)
}

// about returns the state of a node, its note and its link.
func (d *drawing) about(node int) (m Mark, note, link string) {
	if d.how.Mark != nil {
		m = d.how.Mark(d.fn, node)
	}
	if d.how.Note != nil {
		note = d.how.Note(d.fn, node)
	}
	if d.how.Link != nil {
		link = d.how.Link(d.fn, node)
	}
	return m, note, link
}

// node draws a node, x being its middle.
func (d *drawing) node(n *Node, number int, x, top, width float64) {
	label, _ := n.place()
	m, note, link := d.about(number)
	left := x - width/2
	class := "wf-box"
	switch n.Kind {
	case Action, Fan, Compensate:
		class += " wf-call"
	case Sleep, Wait:
		class += " wf-time"
	}
	state := ""
	if icons[m] != "" {
		state = ` class="wf-` + string(m) + `"`
	}
	if d.how.Bare {
		state += fmt.Sprintf(` id="wf-%d-%d"`, d.fn, number)
	}
	end := "</g>\n"
	if link != "" {
		fmt.Fprintf(&d.b, `<a href="%s">`, escaped(link))
		end = "</g></a>\n"
	}
	fmt.Fprintf(&d.b, `<g%s><title>%s</title>`, state, escaped(n.label(400)))
	switch n.Kind {
	case Branch, Loop:
		fmt.Fprintf(&d.b, `<path class="%s" d="M%.1f %.1f l10 %.1f h%.1f l10 %.1f l-10 %.1f h%.1f Z"/>`, class, left-2, top+nodeHeight/2, -nodeHeight/2, width-16, nodeHeight/2, nodeHeight/2, 16-width)
	case Merge, Join, Sleep, Wait:
		fmt.Fprintf(&d.b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.0f" rx="%.0f"/>`, class, left, top, width, nodeHeight, nodeHeight/2)
	default:
		fmt.Fprintf(&d.b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.0f" rx="4"/>`, class, left, top, width, nodeHeight)
	}
	fmt.Fprintf(&d.b, `<text class="wf-text" x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs">%s</text>`, left+12, top+18, float64(columns(label))*charWidth, escaped(label))
	if note != "" {
		note = " " + note
	}
	fmt.Fprintf(&d.b, `<text class="wf-small" x="%.1f" y="%.1f">line %d%s</text>`, left+12, top+34, n.Line, escaped(note))
	if icons[m] != "" {
		word := left + width - 14 - float64(len(m))*6
		fmt.Fprintf(&d.b, `<path class="wf-icon" transform="translate(%.1f %.1f)" d="%s"/><text class="wf-small" x="%.1f" y="%.1f">%s</text>`, word-iconWidth-2, top+25, icons[m], word, top+34, m)
	}
	d.b.WriteString(end)
}
