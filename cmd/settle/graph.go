package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/questions"
	"github.com/settlehq/settle/status"
)

// graphCmd is `settle graph`.
type graphCmd struct {
	question
	Space  string `arg:"" help:"A space."`
	Node   string `help:"Only the neighbourhood of this node." placeholder:"NODE"`
	Depth  int    `help:"How many edges the neighbourhood extends; at most 16." default:"1"`
	Format string `help:"text, svg (a drawing), dot (Graphviz), mermaid or json." enum:"text,svg,dot,mermaid,json" default:"text"`
}

// Run prints the graph of a space.
func (c *graphCmd) Run(ctx context.Context, io streams) error {
	return c.ask(ctx, io, func(ctx context.Context, client *settle.Client) error {
		g, err := c.read(ctx, client.Space(c.Space))
		if err != nil {
			return err
		}
		format := c.Format
		if c.JSON {
			format = "json"
		}
		if g.State != questions.Awake && format != "json" {
			return fmt.Errorf("space %s is %s: %s; --load loads it", g.Space, g.State, g.Note)
		}
		switch format {
		case "json":
			return printLine(io.out, g)
		case "svg":
			drawing, err := g.SVG()
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(io.out, drawing)
			return err
		case "dot":
			writeDOT(io.out, g)
		case "mermaid":
			writeMermaid(io.out, g)
		default:
			p := &whyPrinter{logPrinter: newLogPrinter(io, false), space: c.Space}
			p.graph(g)
			p.about(&g.About)
		}
		return nil
	})
}

// maxPages bounds the pages that a graph is put together from.
const maxPages = 40

// read reads all pages of the graph.
func (c *graphCmd) read(ctx context.Context, s settle.Space) (*questions.Graph, error) {
	q := questions.Query{Of: c.Node, Load: c.Load, Limit: questions.MaxNodes}
	if c.Node != "" {
		q.Depth = c.Depth
	}
	whole, err := s.Graph(ctx, q)
	if err != nil {
		return nil, err
	}
	for n := 1; whole.Next > 0 && n < maxPages; n++ {
		q.After = whole.Next
		page, err := s.Graph(ctx, q)
		if err != nil {
			return nil, err
		}
		whole.Nodes, whole.Edges = append(whole.Nodes, page.Nodes...), append(whole.Edges, page.Edges...)
		whole.Next, whole.Cut = page.Next, whole.Cut || page.Cut
	}
	return whole, nil
}

// graph prints nodes by height, each with what it reads.
func (p *whyPrinter) graph(g *questions.Graph) {
	p.summary(g)
	from := map[string][]string{}
	for _, e := range g.Edges {
		if text := e.From; !slices.Contains(from[e.To], text) {
			from[e.To] = append(from[e.To], text)
		}
	}
	rows := make([][]cell, len(g.Nodes))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		name := n.ID
		if n.Kind == "effect" {
			name += " (effect)"
		}
		if n.Circle > 0 {
			name += fmt.Sprintf(" (circle %d)", n.Circle)
		}
		if n.Round > 0 {
			name += fmt.Sprintf(" (round %d)", n.Round)
		}
		state := cell{text: nodeState(n), code: stateCodes[n.State]}
		if !n.Live {
			state.code = faint
		}
		if n.Error != "" {
			state.code = red
		}
		needed := ""
		switch {
		case n.Observed:
			needed = "observed"
		case n.Live && n.Root != "":
			needed = n.Root
		case n.Live:
			needed = "by readers"
		}
		reads := strings.Join(slices.Concat(n.Sources, from[n.ID]), ", ")
		rows[i] = []cell{{text: fmt.Sprint(n.Height), right: true}, {text: clip(name, 40)}, state, {text: needed}, number(n.Runs), {text: clip(reads, max(p.width-8, 40))}}
	}
	p.sheet.table([]string{"HEIGHT", "NODE", "STATE", "NEEDED", "RUNS", "READS"}, rows)
	p.field("observed", strings.Join(g.Observed, ", "))
	for i, c := range g.Circles {
		p.line(2, fmt.Sprintf("circle %d", i+1), strings.Join(c, ", "), yellow)
	}
	for _, way := range g.Turning {
		p.line(2, "seen to turn", (&status.Unsettled{Way: way}).Round(), yellow)
	}
	for i, docs := range g.Rounds {
		p.line(2, fmt.Sprintf("round %d, over several spaces, does not converge", i+1), (&status.Unsettled{Through: docs}).Round(), red)
	}
	if len(g.Unsettled) > 0 {
		p.line(2, "does not converge", strings.Join(g.Unsettled, ", "), red)
	}
	if g.Next > 0 || g.Cut {
		p.section("this is a part of the graph: %s of %s are listed; --node shows the neighbourhood of one", display.Grouped(len(g.Nodes)), display.Count(g.Total, "node"))
	}
}

// summary counts nodes by state.
func (p *whyPrinter) summary(g *questions.Graph) {
	by := map[string]int{}
	for i := range g.Nodes {
		by[nodeState(&questions.GraphNode{State: g.Nodes[i].State})]++
	}
	var parts []string
	for state, n := range by { // any order: sorted below
		parts = append(parts, fmt.Sprintf("%s %s", display.Grouped(n), state))
	}
	slices.Sort(parts)
	p.title(display.Count(g.Total, "node"), strings.Join(parts, ", "), "", "")
}

// nodeState describes the state of a node.
func nodeState(n *questions.GraphNode) string {
	switch {
	case n.Gate != "":
		return fmt.Sprintf("held by its %s until %s", n.Gate, n.Until.Local().Format(time.TimeOnly))
	case n.Waits != "":
		return "waits for " + n.Waits
	case n.Error != "":
		return "failed: " + clip(unbroken(n.Error), 30)
	}
	return cmp.Or(n.State, "unknown")
}

// sources lists the documents that nodes read and no node writes.
func sources(g *questions.Graph) (docs []string) {
	for i := range g.Nodes {
		docs = append(docs, g.Nodes[i].Sources...)
	}
	slices.Sort(docs)
	return slices.Compact(docs)
}

// writeDOT writes the graph for Graphviz.
func writeDOT(w io.Writer, g *questions.Graph) {
	fmt.Fprintf(w, "digraph %q {\n  rankdir=LR;\n  node [fontname=\"sans-serif\", fontsize=11];\n", g.Space)
	for _, d := range sources(g) {
		fmt.Fprintf(w, "  %s [label=%s, shape=box, style=rounded, color=gray50];\n", dotText("doc "+d), dotText(d))
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		style := "solid"
		if !n.Live {
			style = "dashed"
		}
		color := "black"
		switch {
		case n.Error != "":
			color = "red"
		case n.Circle > 0 || n.Round > 0:
			color = "orange"
		}
		fmt.Fprintf(w, "  %s [label=%s, shape=%s, style=%s, color=%s%s];\n", dotText(n.ID), dotText(n.ID+"\n"+nodeState(n)), map[bool]string{true: "hexagon", false: "ellipse"}[n.Kind == "effect"], style, color, map[bool]string{true: ", peripheries=2"}[n.Observed])
		for _, d := range n.Sources {
			fmt.Fprintf(w, "  %s -> %s [color=gray50];\n", dotText("doc "+d), dotText(n.ID))
		}
	}
	for _, e := range g.Edges {
		style := "solid"
		if e.Order {
			style = "dotted"
		}
		fmt.Fprintf(w, "  %s -> %s [label=%s, style=%s];\n", dotText(e.From), dotText(e.To), dotText(e.Address), style)
	}
	fmt.Fprintln(w, "}")
}

// dotText quotes a text for Graphviz.
func dotText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

// writeMermaid writes the graph as a Mermaid flowchart.
func writeMermaid(w io.Writer, g *questions.Graph) {
	fmt.Fprintln(w, "flowchart LR")
	number := map[string]string{}
	of := func(kind, name string) string {
		id := number[kind+name]
		if id == "" {
			id = fmt.Sprintf("%s%d", kind, len(number))
			number[kind+name] = id
		}
		return id
	}
	for _, d := range sources(g) {
		fmt.Fprintf(w, "  %s([%s])\n", of("d", d), mermaidText(d))
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		fmt.Fprintf(w, "  %s[%s]\n", of("n", n.ID), mermaidText(n.ID+"<br>"+nodeState(n)))
	}
	for i := range g.Nodes {
		for _, d := range g.Nodes[i].Sources {
			fmt.Fprintf(w, "  %s --> %s\n", of("d", d), of("n", g.Nodes[i].ID))
		}
	}
	for _, e := range g.Edges {
		arrow := "-->"
		if e.Order {
			arrow = "-.->"
		}
		fmt.Fprintf(w, "  %s %s|%s| %s\n", of("n", e.From), arrow, mermaidText(e.Address), of("n", e.To))
	}
	var dormant []string
	for i := range g.Nodes {
		if !g.Nodes[i].Live {
			dormant = append(dormant, of("n", g.Nodes[i].ID))
		}
	}
	if len(dormant) > 0 {
		fmt.Fprintf(w, "  classDef dormant stroke-dasharray: 4 4\n  class %s dormant\n", strings.Join(dormant, ","))
	}
}

// mermaidText quotes a text for Mermaid.
func mermaidText(text string) string {
	text = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "#", "&num;").Replace(text)
	return `"` + strings.ReplaceAll(text, "&lt;br&gt;", "<br>") + `"`
}
