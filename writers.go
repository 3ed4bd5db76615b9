package settle

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle/space"
)

// writer is a place that a computation was registered to write.
type writer struct {
	node  string
	place Address
}

// clash says that two computations write one place, or one of them inside what the other writes.
type clash struct{ first, second writer }

func (c clash) Error() string {
	return fmt.Sprintf("computation %q writes %s, and computation %q writes %s: what stands there would depend on which of them has run last; let one of them derive it, or give each a place of its own",
		c.first.node, c.first.place, c.second.node, c.second.place)
}

// add registers a node, and notes where it writes.
func (p *Program) add(n NodeSpec) {
	if err := p.p.Add(n); err != nil {
		p.note(err)
		return
	}
	if n.Kind != Computation {
		return
	}
	places := slices.Concat(n.Writes, n.Envelope)
	if n.Output != "" {
		places = append(places, Address{Doc: n.Output})
	}
	for _, place := range places {
		p.writes(writer{n.ID, place})
	}
}

func (p *Program) writes(w writer) {
	for _, o := range p.writers {
		if o.node != w.node && o.place.Doc == w.place.Doc && o.place.Path.Overlaps(w.place.Path) {
			p.clashes = append(p.clashes, clash{o, w})
		}
	}
	p.writers = append(p.writers, w)
}

// clashing is the first clash. What inputs are wanted any number of nodes may say: each writes
// what the others would.
func (p *Program) clashing(actions []*space.ActionSpec) error {
	for _, c := range p.clashes {
		if !slices.ContainsFunc(actions, func(a *space.ActionSpec) bool { return a.Input && a.Wants().Doc == c.first.place.Doc }) {
			return fmt.Errorf("program %s: %w", p.Name(), c)
		}
	}
	return nil
}
