package workflow

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Text returns the graph in lines, one for each node: its number, what it does, where its edges lead, and its line
// in the source. note returns a remark about a node, "" for none; it may be nil.
func (g *Graph) Text(note func(fn, node int) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "workflow %s\n", g.Name)
	for i := range g.Funcs {
		f := &g.Funcs[i]
		fmt.Fprintf(&b, "\n%s(%s)\n", f.Name, strings.Join(f.params(), ", "))
		for n := range f.Nodes {
			node := &f.Nodes[n]
			line := fmt.Sprintf("%4d  %s%s", n, strings.Repeat("  ", node.Depth), node.label(50))
			var edges []string
			for _, e := range node.Edges {
				edges = append(edges, e.label()+fmt.Sprint(e.To))
			}
			fmt.Fprintf(&b, "%-62s %-24s line %d", line, strings.Join(edges, ", "), node.Line)
			if note != nil {
				if text := note(i, n); text != "" {
					b.WriteString("  " + text)
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// label returns how an edge is shown in front of its target.
func (e Edge) label() string {
	switch {
	case e.When != "":
		return e.When + " -> "
	case e.Kind == Forward:
		return "-> "
	}
	return string(e.Kind) + " -> "
}

// Label describes a node in a number of characters.
func (n *Node) Label(most int) string { return n.label(most) }

// label is Label.
func (n *Node) label(most int) string {
	var text string
	switch n.Kind {
	case Action, Child, Fan, Compensate:
		var calls []string
		for i := range n.Calls {
			calls = append(calls, n.Calls[i].label(n.Kind))
		}
		text = strings.Join(calls, ", ")
		if n.Each != nil {
			text += " for each of " + n.Each.Over.Text
		}
		switch n.Kind {
		case Fan:
			return shorten("parallel "+text, most)
		case Compensate:
			return shorten("compensate "+text, most)
		}
	case Loop:
		text = "for " + n.code()
		if n.While {
			text = "while " + n.code()
		}
		return shorten(text, most)
	case Wait:
		text = n.awaited()
	default:
		text = n.code()
	}
	return shorten(strings.TrimSpace(string(n.Kind)+" "+text), most)
}

// awaited returns the name and the timeout of a wait as a person would write them, if its code is a pair in parentheses.
func (n *Node) awaited() string {
	text := n.code()
	const between = "), ("
	at := strings.LastIndex(text, between)
	if at < 0 || text[0] != '(' || !strings.HasSuffix(text, ")") {
		return text
	}
	name, timeout := text[1:at], text[at+len(between):len(text)-1]
	if n.Until != nil {
		name = "until " + oneLine(n.Until.Text)
	}
	if timeout == "None" {
		return name
	}
	return name + ", timeout = " + timeout
}

func (n *Node) code() string {
	if n.Code == nil {
		return ""
	}
	return oneLine(n.Code.Text)
}

// oneLine returns a text without line breaks and indentation.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-3]) + "..."
}

// DOT returns the graph in the language of Graphviz.
func (g *Graph) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n  node [shape=box, fontname=\"sans-serif\"];\n", g.Name)
	for i := range g.Funcs {
		f := &g.Funcs[i]
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%q;\n", i, f.Name)
		for n := range f.Nodes {
			shape := ""
			switch f.Nodes[n].Kind {
			case Loop:
				shape = ", shape=hexagon"
			case Branch:
				shape = ", shape=diamond"
			case Action, Fan:
				shape = ", style=filled, fillcolor=\"#dceeff\""
			case Child:
				shape = ", peripheries=2, style=filled, fillcolor=\"#e8dcff\""
			}
			fmt.Fprintf(&b, "    n%d_%d [label=%q%s];\n", i, n, f.Nodes[n].label(40), shape)
		}
		for n := range f.Nodes {
			for _, e := range f.Nodes[n].Edges {
				fmt.Fprintf(&b, "    n%d_%d -> n%d_%d%s;\n", i, n, i, e.To, e.dot())
			}
		}
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// name is what an edge is called in a picture, "" for an ordinary one.
func (e Edge) name() string {
	if e.When != "" {
		return e.When
	}
	if e.Kind == Forward {
		return ""
	}
	return strings.ToUpper(string(e.Kind))
}

func (e Edge) dot() string {
	if e.name() == "" {
		return ""
	}
	return fmt.Sprintf(" [label=%q]", e.name())
}

// Mermaid returns the graph as a Mermaid flowchart.
func (g *Graph) Mermaid() string {
	quote := strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;", "[", "#91;", "]", "#93;", "{", "#123;", "}", "#125;")
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for i := range g.Funcs {
		f := &g.Funcs[i]
		fmt.Fprintf(&b, "  subgraph f%d [%q]\n", i, f.Name)
		for n := range f.Nodes {
			left, right := "[", "]"
			switch f.Nodes[n].Kind {
			case Loop:
				left, right = "{{", "}}"
			case Branch:
				left, right = "{", "}"
			case Child:
				left, right = "[[", "]]"
			}
			fmt.Fprintf(&b, "    n%d_%d%s\"%s\"%s\n", i, n, left, quote.Replace(f.Nodes[n].label(40)), right)
		}
		for n := range f.Nodes {
			for _, e := range f.Nodes[n].Edges {
				arrow := "-->"
				if e.name() != "" {
					arrow = "-- " + e.name() + " -->"
				}
				fmt.Fprintf(&b, "    n%d_%d %s n%d_%d\n", i, n, arrow, i, e.To)
			}
		}
		b.WriteString("  end\n")
	}
	return b.String()
}
