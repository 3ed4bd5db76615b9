package space

import (
	"fmt"
	"slices"
)

// WriteConflict describes two computations that write the same place, or one inside the other. The value there
// depends on which ran last, so it may differ from a full recomputation (I1).
type WriteConflict struct{ First, Second Writer }

// Writer is a node and a place that it is registered to write.
type Writer struct {
	Node  string
	Place Address
}

func (c *WriteConflict) Error() string {
	return fmt.Sprintf("computation %q writes %s, and computation %q writes %s: the value there would depend on which of them ran last; let one of them derive it, or give each a place of its own",
		c.First.Node, c.First.Place, c.Second.Node, c.Second.Place)
}

// WriteConflict returns the first clash among the program's computations, nil if there is none. Add does not refuse
// clashes: the core runs such programs, and layers that accept programs from users call Clash. Requests for
// an input never clash: any number of nodes may request the same value.
func (p *Program) WriteConflict() *WriteConflict {
	of := map[string][]Writer{}
	for _, n := range p.nodes {
		if n.Kind != Computation {
			continue
		}
		for _, w := range n.writers() {
			doc := w.Place.Doc
			if p.isWanted(doc) {
				continue
			}
			if at := slices.IndexFunc(of[doc], w.meets); at >= 0 {
				return &WriteConflict{of[doc][at], w}
			}
			of[doc] = append(of[doc], w)
		}
	}
	return nil
}

func (w Writer) meets(o Writer) bool { return w.Node != o.Node && w.Place.Path.Overlaps(o.Place.Path) }

// isWanted reports whether a document lists the requested values of an input.
func (p *Program) isWanted(doc string) bool {
	a := p.actions[p.tasks.owner[doc]]
	return a != nil && a.Input && a.Pending() == doc
}

func (n *declaration) writers() (all []Writer) {
	for _, place := range slices.Concat(n.Writes, n.Envelope) {
		all = append(all, Writer{n.ID, place})
	}
	if n.Output != "" {
		all = append(all, Writer{n.ID, Address{Doc: n.Output}})
	}
	return all
}
