package space

import (
	"cmp"
	"slices"
)

// causes are the reasons why a node runs: the changed reads, in order of arrival, and others. They are marks
// on the reads, so a dormant node that is invalidated for years does not accumulate them. Names are made on
// demand.
type causes struct {
	reads []*dep
	other []string
}

// maxCauses bounds the addresses that names lists.
const maxCauses = 16

// names returns the addresses, or "*" for more than maxCauses.
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

// addCause records a cause that is not a read.
func (n *node) addCause(cause string) {
	if x := n.ext(); !slices.Contains(x.causes, cause) && len(x.causes) <= maxCauses {
		x.causes = append(x.causes, cause)
	}
}

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

func (n *node) hasCause() bool {
	return n.more != nil && len(n.more.causes) > 0 ||
		slices.ContainsFunc(n.deps, func(d *dep) bool { return d.fired != 0 })
}

func byArrival(reads []*dep) {
	if len(reads) > 1 {
		slices.SortFunc(reads, func(a, b *dep) int { return cmp.Compare(a.fired, b.fired) })
	}
}
