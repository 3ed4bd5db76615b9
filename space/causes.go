package space

import (
	"cmp"
	"slices"
)

// causes are why a node runs: the reads of which the value has changed, in order of
// arrival, and what else there was. They are marks on the reads, so a dormant node that is
// invalidated for years does not grow with it. Names are made when they are asked for.
type causes struct {
	reads []*dep
	other []string
}

// maxCauses bounds the addresses that are told apart by name.
const maxCauses = 16

// names returns the addresses, or "*" for very many.
func (c *causes) names() []string {
	n := len(c.reads) + len(c.other)
	switch {
	case n == 0:
		return nil
	case n > maxCauses:
		return []string{"*"}
	}
	names := append(make([]string, 0, n), c.other...)
	for _, d := range c.reads {
		if name := d.String(); !slices.Contains(c.other, name) {
			names = append(names, name)
		}
	}
	return names
}

// addCause notes a cause that is not a read.
func (n *node) addCause(cause string) {
	if x := n.ext(); !slices.Contains(x.causes, cause) && len(x.causes) <= maxCauses {
		x.causes = append(x.causes, cause)
	}
}

// causes returns those of a node as they stand.
func (n *node) causes() causes {
	var c causes
	for _, d := range n.deps {
		if d.fired != 0 {
			c.reads = append(c.reads, d)
		}
	}
	byArrival(c.reads)
	if n.more != nil {
		c.other = n.more.causes
	}
	return c
}

// hasCause reports whether there is any.
func (n *node) hasCause() bool {
	return n.more != nil && len(n.more.causes) > 0 ||
		slices.ContainsFunc(n.deps, func(d *dep) bool { return d.fired != 0 })
}

func byArrival(reads []*dep) {
	if len(reads) > 1 {
		slices.SortFunc(reads, func(a, b *dep) int { return cmp.Compare(a.fired, b.fired) })
	}
}
