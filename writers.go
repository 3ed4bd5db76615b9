package settle

import (
	"fmt"
	"maps"
	"slices"

	"github.com/settlehq/settle/space"
)

// writers are the places of a document that computations write, and the first two that are in
// each other's way.
type writers struct {
	all   []writer
	clash *clash
}

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
	d := p.writers[w.place.Doc]
	if d == nil {
		d = &writers{}
		if p.writers == nil {
			p.writers = map[string]*writers{}
		}
		p.writers[w.place.Doc] = d
	}
	if d.clash != nil {
		return
	}
	at := slices.IndexFunc(d.all, func(o writer) bool { return o.node != w.node && o.place.Path.Overlaps(w.place.Path) })
	if at >= 0 {
		d.clash = &clash{d.all[at], w}
	}
	d.all = append(d.all, w)
}

// clashing is a clash. What inputs are wanted any number of nodes may say: each writes what the
// others would.
func (p *Program) clashing(actions []*space.ActionSpec) error {
	for _, doc := range slices.Sorted(maps.Keys(p.writers)) {
		c := p.writers[doc].clash
		if c != nil && !slices.ContainsFunc(actions, func(a *space.ActionSpec) bool { return a.Input && a.Wants().Doc == doc }) {
			return fmt.Errorf("program %s: %w", p.Name(), c)
		}
	}
	return nil
}
