package console

import (
	"context"
	"slices"
	"strings"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/questions"
	"github.com/settlehq/settle/status"
)

// origin is another space with a computation that fails, from which follows what a space reads.
type origin struct {
	// Space and URL are "" if the visitor does not see the space.
	Space, URL string
	// Node and Error are those of the first computation that fails, "" if they are not known or the visitor may not read them, and Others counts the rest.
	Node, Error string
	Others      int
	// By are nodes of the reader that read it, as far as they are known, and Via is the space between them, "" if they read the space itself.
	By  []string
	Via string
}

// sight is what a visitor may see of spaces.
type sight interface {
	SeesSpace(space string) bool
	MayReadAll(space string) error
}

// maxOrigins is how many of them a page names.
const maxOrigins = 5

// origins returns the computations of other spaces that fail and from which follows what a space reads: of those spaces themselves, or of their readers.
// graph may be nil.
func (c *Console) origins(ctx context.Context, space string, graph *questions.Graph, v sight) []origin {
	f, err := c.shared.Fleet(ctx, stuckAge)
	if err != nil {
		return nil // the page is complete without it
	}
	return originsOf(f, space, graph, v)
}

func originsOf(f *fleet.Fleet, space string, graph *questions.Graph, v sight) (list []origin) {
	all, _, _ := f.FailingNodes()
	for i := range all {
		s := &all[i]
		if s.Space == space || len(list) == maxOrigins {
			continue
		}
		by := readersIn(graph, func(of, doc string) bool { return of == s.Space && slices.Contains(s.Docs, doc) })
		via := ""
		if len(by) == 0 && !slices.Contains(s.Readers, space) {
			for _, between := range s.Readers {
				if by = readersIn(graph, func(of, _ string) bool { return of == between }); len(by) > 0 && v.SeesSpace(between) {
					via = between
					break
				}
			}
			if via == "" {
				continue
			}
		}
		list = append(list, originIn(s, v, by, via))
	}
	return list
}

func originIn(s *status.FailingNodes, v sight, by []string, via string) origin {
	o := origin{By: by, Via: via}
	if !v.SeesSpace(s.Space) {
		return o
	}
	o.Space, o.URL = s.Space, pathOf("spaces", s.Space)
	if v.MayReadAll(s.Space) == nil && len(s.Nodes) > 0 {
		o.Node, o.Error, o.URL = s.Nodes[0].Node, s.Nodes[0].Error, graphURL(s.Space, s.Nodes[0].Node)
		o.Others = s.Count - 1
	}
	return o
}

// readersIn returns the nodes of a graph that are needed and read such a document of another space.
func readersIn(g *questions.Graph, is func(space, doc string) bool) (ids []string) {
	if g == nil {
		return nil
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Live && slices.ContainsFunc(n.Sources, func(source string) bool {
			at, other := strings.CutPrefix(source, "@")
			space, doc, _ := strings.Cut(at, "/")
			return other && is(space, doc)
		}) {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// Reads is the beginning of a sentence that What ends: what reads, and what lies between.
func (o *origin) Reads() string {
	what := "it"
	if len(o.By) > 0 {
		what = allOf(o.By)
	}
	verb := " reads "
	if len(o.By) > 1 {
		verb = " read "
	}
	if o.Via != "" {
		return what + verb + "of space " + o.Via + ", which reads what follows from "
	}
	return what + verb + "what follows from "
}

// What names the computation that fails, or its space.
func (o *origin) What() string {
	switch {
	case o.Space == "":
		return "a computation of another space"
	case o.Node == "":
		return "a computation of space " + o.Space
	}
	return o.Node + " of space " + o.Space
}

// originTitle is the first of them as a title of a page of a space.
func originTitle(space string, list []origin) string {
	o := &list[0]
	text := space + " reads what follows from "
	if o.Via != "" {
		text = space + " reads of " + o.Via + ", which reads what follows from "
	}
	text += o.What() + ", which fails"
	if o.Error != "" {
		text += ": " + cut(display.FirstLine(o.Error), 120)
	}
	return text
}
