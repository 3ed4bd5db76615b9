package console

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/questions"
)

func graphPage() page {
	return page{
		name: "graph", pattern: "/spaces/{space}/graph", under: "spaces", params: []string{"why", "of"}, everyone: true,
		open: func(c *Console, q *query) (view, error) {
			g := &graphView{spaceReader: spaceReader{c: c, space: q.Path("space")}, q: q, runs: map[string]uint64{}}
			return view{load: g.load, watch: g.watch, every: 2 * time.Second}, need("space", g.space)
		},
	}
}

// graphView is the graph of a space.
type graphView struct {
	spaceReader
	q *query

	runs map[string]uint64 // of each node at the last load
	ran  map[string]bool   // the nodes that ran in the last load in which any did
	seen bool              // runs is known
	last *picture
	mark string // of the structure that last is a picture of
}

const (
	// foldAbove is the number of nodes above which the rows of a node are drawn as one, and drawMost the largest number that is drawn.
	foldAbove, drawMost = 60, 300
	// nearby is how far a part of a graph extends around the chosen node.
	nearby = 2
	// boxText is how many characters a box has room for.
	boxText = 19
	// listMost bounds the nodes in the list.
	listMost = 300
)

// graphNode is a node as it is drawn and listed.
type graphNode struct {
	*questions.GraphNode
	Index         int
	X, Y          int
	Name, Text    string // cut to the box
	State, Word   string
	Ran, Selected bool
	// Centre is set for the node that the picture is about.
	Centre  bool
	Source  bool // a document that no node writes
	Rows    int  // folded nodes, 0 for one
	RowsRan int
	URL     string
	Value   model.Value
	Full    string
}

// ElementID is the id of its element in the picture.
func (n *graphNode) ElementID() string { return "gn-" + strconv.Itoa(n.Index) }

// RowID is the id of its element in the list.
func (n *graphNode) RowID() string { return "ln-" + n.ID }

// boxKey is the same as long as the box of the node looks the same, and rowKey as long as its row does.
func (n *graphNode) boxKey() string {
	return fmt.Sprint(n.Name, "\n", n.Text, "\n", n.Full, "\n", n.State, n.Ran, n.Selected, n.Live, n.Source, n.Rows)
}

func (n *graphNode) rowKey() string {
	value := ""
	if n.Output != "" {
		value = cut(n.Value.String(), maxInline+1)
	}
	return fmt.Sprint(n.Kind, "\n", n.State, "\n", n.Word, "\n", value, "\n", n.Error, "\n", n.Root, "\n", n.Until.UnixMilli(), n.Observed, n.Live, n.Output != "", n.Runs, n.Height)
}

// graphEdge is an arrow as it is drawn.
type graphEdge struct {
	Path  string
	Class string
}

// graphDrawing is what the template of the picture gets.
type graphDrawing struct {
	Width, Height int
	Columns       []columnLabel
	Nodes         []*graphNode
	Edges         []graphEdge
	Inner         map[string]template.HTML
}

func (d *graphDrawing) contain(inner map[string]template.HTML) {
	if d != nil { // the graph is known
		d.Inner = inner
	}
}

// graphList is what the template of the list of nodes gets.
type graphList struct {
	Nodes []*graphNode
	More  int
	Space string
	Inner map[string]template.HTML
}

func (l *graphList) contain(inner map[string]template.HTML) { l.Inner = inner }

type columnLabel struct {
	X    int
	Text string
}

// graphSummary is the line above the picture.
type graphSummary struct {
	Total               int
	Ran, Same, Dormant  int
	Lit                 bool // a pass was seen
	States              []stateCount
	Part, Around        string
	Shown               int
	Circles, Turning    []string
	Unsettled           []string
	Note                string
	Whole               string
	Observed            []string
	Recorded, Truncated bool
}

type stateCount struct {
	State, Word string
	Count       int
}

func (g *graphView) load(ctx context.Context) (*shown, error) {
	if err := refuse(g.q.visitor.MayReadAll(g.space)); err != nil {
		return nil, err
	}
	var whole *questions.Graph
	var unasked error
	err := atOnce(
		func() error { return g.read(ctx) },
		func() error {
			asking, cancel := context.WithTimeout(ctx, askPatience)
			defer cancel()
			whole, unasked = g.c.wholeGraph(asking, g.space, "", 0)
			return nil
		},
	)
	if err != nil {
		return nil, err
	}
	err = unasked
	out := &shown{Name: g.space + " graph", CLI: "settle graph " + g.space, Crumbs: []crumb{{"Spaces", "/spaces"}, {g.space, pathOf("spaces", g.space)}}}
	sum := &graphSummary{}
	why := g.q.Param("why")
	if why != "" {
		out.CLI = "settle why " + g.space + " " + why
	}
	tabs := part{ID: "tabs", Template: "space-tabs", Data: tabsOf(g.c, g.space, "graph")}
	if err != nil || whole.State != questions.Awake {
		out.Title, out.State = g.space+": the graph is not known", "dormant"
		if sum.Note = "No worker answers for this space at the moment."; err == nil {
			sum.Note = "The space is " + string(whole.State) + ": " + whole.Note + ". A graph exists in memory only. To wake it, send it an event, or switch Observe on for one of its documents."
			out.Title = g.space + " is " + string(whole.State)
		} else if text := askedInVain(err); !strings.HasPrefix(text, "no worker") {
			sum.Note = text
		}
		out.Parts = []part{tabs, {ID: "origins", Template: "space-origins", Data: []origin(nil)}, {ID: "circles", Template: "space-circles", Data: []circle(nil)}, {ID: "summary", Template: "graph-summary", Data: sum}, {ID: "graph", Template: "graph-drawing", Data: (*graphDrawing)(nil)}, {ID: "nodes", Template: "graph-list", Data: &graphList{}}, {ID: "why", Template: "graph-why", Data: g.why(ctx, why)}}
		return out, nil
	}
	origins := g.c.origins(ctx, g.space, whole, g.q.visitor)
	circles := g.c.circles(ctx, g.space, g.q.visitor)
	g.show(whole, sum, out, tabs, part{ID: "origins", Template: "space-origins", Data: origins}, part{ID: "circles", Template: "space-circles", Data: circles})
	if len(origins) > 0 && out.State != "failed" && out.State != "invalid" {
		out.Title, out.State = originTitle(g.space, origins), "waiting"
	}
	out.Title, out.State = titleOf(g.space, out.Title, out.State, circles)
	out.Parts = append(out.Parts, part{ID: "why", Template: "graph-why", Data: g.why(ctx, why)})
	return out, nil
}

// show adds the title and the parts that follow from the graph: the summary, the picture and the list.
func (g *graphView) show(whole *questions.Graph, sum *graphSummary, out *shown, before ...part) {
	all := g.nodesOf(whole)
	g.light(whole, sum)
	list := slices.Clone(all)
	drawnNodes, arrows := g.choose(whole, all, sum)
	g.draw(drawnNodes, arrows)
	out.Title, out.State = graphTitle(g.space, whole, sum)
	g.describe(whole, sum)
	out.Parts = append(before, part{ID: "summary", Template: "graph-summary", Data: sum})
	out.Parts = append(out.Parts, g.parts(drawnNodes, arrows)...)
	slices.SortStableFunc(list, func(a, b *graphNode) int { return cmp.Compare(worryOf(a), worryOf(b)) })
	out.Parts = append(out.Parts, g.listParts(list)...)
}

// worryOf orders the list: those that need attention first, the rest as they run.
func worryOf(n *graphNode) int {
	if at := slices.Index(worry, n.State); at >= 0 && n.State != "dormant" {
		return at
	}
	return len(worry)
}

// nodesOf returns the nodes, with their marks and values.
func (g *graphView) nodesOf(whole *questions.Graph) []*graphNode {
	out := make([]*graphNode, len(whole.Nodes))
	for i := range whole.Nodes {
		n := &graphNode{GraphNode: &whole.Nodes[i], Selected: whole.Nodes[i].ID == g.q.Param("why")}
		n.State, n.Word = nodeMark(n.GraphNode)
		if n.Circle > 0 && n.State == "clean" {
			n.Word = "clean, on a circle"
		}
		if n.Output != "" {
			n.Value = g.contents.Doc(n.Output).Value
		}
		n.URL = g.q.Address("why", n.ID)
		out[i] = n
	}
	return out
}

// light finds the nodes that have run since the last load. What ran last stays lit until something else runs.
func (g *graphView) light(whole *questions.Graph, sum *graphSummary) {
	ran := map[string]bool{}
	for i := range whole.Nodes {
		n := &whole.Nodes[i]
		if was, known := g.runs[n.ID]; g.seen && (n.Runs > was && known || !known && n.Runs > 0) {
			ran[n.ID] = true
		}
	}
	clear(g.runs)
	for i := range whole.Nodes {
		n := &whole.Nodes[i]
		g.runs[n.ID] = n.Runs
		if n.State == "dormant" {
			sum.Dormant++
		}
	}
	g.seen = true
	if len(ran) > 0 {
		g.ran = ran
	}
	for i := range whole.Nodes {
		if g.ran[whole.Nodes[i].ID] {
			sum.Ran++
			if whole.Nodes[i].State == "dormant" {
				sum.Dormant--
			}
		}
	}
	sum.Lit, sum.Total = len(g.ran) > 0, whole.Total
	sum.Same = max(0, len(whole.Nodes)-sum.Ran-sum.Dormant)
}

// choose decides what is drawn: all nodes with the documents that they read; above foldAbove the rows of a node as one; above drawMost a part.
func (g *graphView) choose(whole *questions.Graph, all []*graphNode, sum *graphSummary) (out []*graphNode, arrows []labelled) {
	of := map[string]*graphNode{} // by the id of a node: what it is drawn as
	for _, n := range all {
		of[n.ID] = n
	}
	if len(all) > foldAbove {
		out = fold(all, of, g.ran)
	} else {
		out = all
	}
	for _, e := range whole.Edges {
		from, to := of[e.From], of[e.To]
		if from != nil && to != nil && from != to {
			arrows = append(arrows, labelled{from, to, e.Order})
		}
	}
	around := g.q.Param("of")
	if around == "" {
		around = g.q.Param("why")
	}
	if len(out) > drawMost || g.q.Param("of") != "" {
		out, sum.Around = near(out, arrows, of[around])
		sum.Part, sum.Whole = "chosen", g.q.Address("of", "")
		if g.q.Param("of") == "" {
			sum.Part, sum.Whole = "many", ""
		}
	}
	sum.Shown = len(out)
	out, arrows = withSources(out, arrows, of, all)
	for i, n := range out {
		n.Index = i
		if n.Rows == 0 {
			n.Ran = g.ran[n.ID]
		}
		n.Centre = n.Selected || n.ID == sum.Around && around == ""
		n.label()
	}
	return out, arrows
}

// labelled is an arrow between nodes.
type labelled struct {
	from, to *graphNode
	order    bool
}

// fold draws the rows of each node as one.
func fold(all []*graphNode, of map[string]*graphNode, ran map[string]bool) (out []*graphNode) {
	groups := map[string]*graphNode{}
	for _, n := range all {
		if n.Parent == "" {
			out = append(out, n)
			continue
		}
		group := groups[n.Parent]
		if group == nil {
			first := *n.GraphNode
			first.ID = n.Parent + "/*"
			group = &graphNode{GraphNode: &first, State: "clean", Word: "clean", URL: n.URL}
			groups[n.Parent] = group
			out = append(out, group)
		}
		group.Rows++
		if ran[n.ID] {
			group.RowsRan++
			group.Ran = true
		}
		if slices.Index(worry, n.State) >= 0 && (slices.Index(worry, group.State) < 0 || slices.Index(worry, n.State) < slices.Index(worry, group.State)) {
			group.State, group.Word, group.URL = n.State, n.Word, n.URL
		}
		group.Selected = group.Selected || n.Selected
		of[n.ID] = group
	}
	return out
}

// near returns what is around a node; if none is chosen, around the one that needs attention most, or has the most neighbours.
func near(all []*graphNode, arrows []labelled, around *graphNode) (out []*graphNode, name string) {
	neighbours := map[*graphNode][]*graphNode{}
	for _, a := range arrows {
		neighbours[a.from] = append(neighbours[a.from], a.to)
		neighbours[a.to] = append(neighbours[a.to], a.from)
	}
	if around == nil {
		around = slices.MinFunc(all, func(a, b *graphNode) int {
			return cmp.Or(cmp.Compare(worryOf(a), worryOf(b)), cmp.Compare(len(neighbours[b]), len(neighbours[a])), cmp.Compare(b.Height, a.Height))
		})
	}
	in := map[*graphNode]bool{around: true}
	for tier, depth := []*graphNode{around}, 0; depth < nearby; depth++ {
		var next []*graphNode
		for _, n := range tier {
			for _, k := range neighbours[n] {
				if !in[k] && len(in) < drawMost {
					in[k] = true
					next = append(next, k)
				}
			}
		}
		tier = next
	}
	for _, n := range all {
		if in[n] {
			out = append(out, n)
		}
	}
	return out, around.ID
}

// withSources adds the documents that the nodes read and no node writes, and leaves out arrows to what is not drawn.
func withSources(nodes []*graphNode, arrows []labelled, of map[string]*graphNode, all []*graphNode) ([]*graphNode, []labelled) {
	in := map[*graphNode]bool{}
	for _, n := range nodes {
		in[n] = true
	}
	kept := arrows[:0:0]
	once := map[[2]*graphNode]int{}
	for _, a := range arrows {
		key := [2]*graphNode{a.from, a.to}
		if !in[a.from] || !in[a.to] {
			continue
		}
		if at, is := once[key]; is {
			kept[at].order = kept[at].order && a.order
			continue
		}
		once[key] = len(kept)
		kept = append(kept, a)
	}
	sources := map[string]*graphNode{}
	out := slices.Clone(nodes)
	for _, n := range all {
		at := of[n.ID]
		if !in[at] {
			continue
		}
		for _, doc := range n.Sources {
			s := sources[doc]
			if s == nil {
				s = &graphNode{GraphNode: &questions.GraphNode{ID: doc, Height: at.Height - 1}, Source: true}
				sources[doc] = s
				out = append(out, s)
			}
			s.Height = min(s.Height, at.Height-1)
			key := [2]*graphNode{s, at}
			if _, is := once[key]; !is {
				once[key] = len(kept)
				kept = append(kept, labelled{s, at, false})
			}
		}
	}
	return out, kept
}

// label cuts name and text to the box.
func (n *graphNode) label() {
	n.Name = middle(n.ID, boxText)
	switch {
	case n.Source:
		n.Text, n.Full = "", "document "+n.ID
		return
	case n.Rows > 0:
		n.Text = display.Count(n.Rows, "row")
		if n.RowsRan > 0 {
			n.Text += fmt.Sprintf(", %d ran", n.RowsRan)
		}
	case n.State == "clean" && !n.Value.IsAbsent():
		n.Text = cut(n.Value.String(), boxText-1)
	case n.Value.IsAbsent():
		n.Text = n.Word
	default:
		n.Text = cut(n.Word+" "+n.Value.String(), boxText-1)
	}
	n.Full = n.ID + ": " + n.Word
	if !n.Value.IsAbsent() {
		n.Full += ", " + cut(n.Value.String(), 300)
	}
	if n.Error != "" {
		n.Full += ", " + n.Error
	}
}

func middle(text string, most int) string {
	r := []rune(text)
	if len(r) <= most {
		return text
	}
	return string(r[:most/2]) + "…" + string(r[len(r)-most/2:])
}

// draw lays the graph out, unless its structure is that of the last picture.
func (g *graphView) draw(nodes []*graphNode, arrows []labelled) {
	in := make([]drawn, len(nodes))
	h := fnv.New64a()
	for i, n := range nodes {
		in[i] = drawn{n.ID, int(n.Height)}
		if n.Source {
			in[i].ID = "document " + n.ID
		}
		fmt.Fprintln(h, in[i].ID, in[i].Tier)
	}
	edges := make([]arrow, len(arrows))
	for i, a := range arrows {
		edges[i] = arrow{a.from.Index, a.to.Index}
		fmt.Fprintln(h, edges[i].From, edges[i].To, a.order)
	}
	mark := strconv.FormatUint(h.Sum64(), 36)
	if g.last == nil || g.mark != mark {
		g.last, g.mark = layOut(in, edges, g.last), mark
	}
	for i, n := range nodes {
		n.X, n.Y = g.last.X[i], g.last.Y[i]
	}
}

// parts are those of the picture: the picture as a whole, sent when the structure or the selection changes, and each node.
func (g *graphView) parts(nodes []*graphNode, arrows []labelled) []part {
	d := &graphDrawing{Width: g.last.Width, Height: g.last.Height + 20, Nodes: nodes}
	for i, tier := range g.last.Columns {
		text := "height " + strconv.Itoa(tier)
		if !slices.ContainsFunc(nodes, func(n *graphNode) bool { return int(n.Height) == tier && !n.Source }) {
			text = "documents"
		}
		d.Columns = append(d.Columns, columnLabel{margin + i*(boxWidth+gapX), text})
	}
	var on []graphEdge
	for i, a := range arrows {
		e := graphEdge{Path: g.last.Paths[i], Class: "edge"}
		if a.order {
			e.Class += " order"
		}
		if g.last.Back[i] {
			e.Class += " back"
		}
		if a.from.Selected || a.to.Selected {
			e.Class += " on"
			on = append(on, e)
			continue
		}
		d.Edges = append(d.Edges, e)
	}
	d.Edges = append(d.Edges, on...)
	out := []part{{ID: "graph", Template: "graph-drawing", Data: d, Stamp: g.mark + " " + g.q.Param("why")}}
	for _, n := range nodes {
		out = append(out, part{ID: n.ElementID(), Template: "graph-node", Data: n, Within: "graph", Key: n.boxKey()})
	}
	return out
}

// listParts are those of the list of nodes.
func (g *graphView) listParts(list []*graphNode) []part {
	more := max(0, len(list)-listMost)
	list = list[:min(len(list), listMost)]
	out := make([]part, 0, len(list)+1)
	out = append(out, part{ID: "nodes", Template: "graph-list", Data: &graphList{Nodes: list, More: more, Space: g.space}})
	h := fnv.New64a()
	for _, n := range list {
		fmt.Fprintln(h, n.ID, n.Selected)
		out = append(out, part{ID: n.RowID(), Template: "graph-row", Data: n, Within: "nodes", Key: n.rowKey()})
	}
	out[0].Stamp = strconv.FormatUint(h.Sum64(), 36) + " " + strconv.Itoa(more)
	return out
}

// graphTitle says what ran last.
func graphTitle(space string, whole *questions.Graph, sum *graphSummary) (string, string) {
	failed, first := 0, ""
	for i := range whole.Nodes {
		if whole.Nodes[i].Error != "" {
			if failed++; failed == 1 {
				first = whole.Nodes[i].ID
			}
		}
	}
	switch {
	case whole.Total == 0:
		return space + " derives nothing", "dormant"
	case failed == 1 && whole.Total > 1:
		return fmt.Sprintf("%s failed, of %s", first, display.Count(whole.Total, "node")), "failed"
	case failed > 0:
		return fmt.Sprintf("%s of %s failed", display.Grouped(failed), display.Count(whole.Total, "node")), "failed"
	case len(whole.Unsettled) > 0:
		return notConverging(whole.Unsettled, len(whole.Unsettled)), "invalid"
	case sum.Lit:
		return fmt.Sprintf("%d of %d ran, %d unchanged, %d dormant", sum.Ran, len(whole.Nodes), sum.Same, sum.Dormant), "clean"
	}
	state := "clean"
	switch sum.Dormant {
	case len(whole.Nodes):
		state = "dormant"
	case 0:
		return display.Count(whole.Total, "node") + ", none dormant", state
	}
	return display.Count(whole.Total, "node") + ", of which " + strconv.Itoa(sum.Dormant) + " dormant", state
}

// describe counts the states, and lists circles.
func (g *graphView) describe(whole *questions.Graph, sum *graphSummary) {
	for i := range whole.Nodes {
		state, word := nodeMark(&whole.Nodes[i])
		at := slices.IndexFunc(sum.States, func(s stateCount) bool { return s.Word == word })
		if at < 0 {
			sum.States = append(sum.States, stateCount{state, word, 0})
			at = len(sum.States) - 1
		}
		sum.States[at].Count++
	}
	slices.SortStableFunc(sum.States, func(a, b stateCount) int { return cmp.Compare(b.Count, a.Count) })
	for _, c := range whole.Circles {
		sum.Circles = append(sum.Circles, strings.Join(c, ", "))
	}
	sum.Unsettled, sum.Observed = whole.Unsettled, whole.Observed
	sum.Truncated = whole.Next > 0 || whole.Cut
}

// whyData is what the panel about a node gets.
type whyData struct {
	Space, Of string
	Why       *questions.Why
	Error     string
	Close     string
	State     string
	Around    string
}

// why asks why a node is as it is; nil if none is chosen. The space then records its runs for two minutes.
func (g *graphView) why(ctx context.Context, of string) *whyData {
	if of == "" {
		return nil
	}
	d := &whyData{Space: g.space, Of: of, Close: g.q.Address("why", ""), Around: g.q.Address("of", of)}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	w, err := g.c.asks.Why(ctx, questions.Query{Space: g.space, Of: of, As: questions.KindNode})
	if err != nil {
		d.Error = askedInVain(err)
		return d
	}
	if d.Why = w; w.Node != nil {
		d.State, _ = nodeMark(&questions.GraphNode{State: w.Node.State, Error: w.Node.LastError, Gate: w.Node.Gate, Waits: w.Node.Waits})
	}
	return d
}
