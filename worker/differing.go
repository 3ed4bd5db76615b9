package worker

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/status"
)

// differing are the nodes of the spaces of a worker that were found not to be idempotent.
type differing struct {
	mu sync.Mutex
	by map[string]*differingNode
}

type differingNode struct {
	since  time.Time
	spaces map[string]*string // what has differed in each
}

// maxDiffering is how many nodes a worker reports, and maxDifferenceText the length of the longest text of one. Of a space, maxDifferingOfSpace nodes
// are logged and remembered, since the rows of a document are nodes, too; all are counted.
const (
	maxDiffering        = 20
	maxDifferenceText   = 300
	maxDifferingOfSpace = 100
)

// add remembers a node until ctx ends, as it does when the space leaves the worker.
func (d *differing) add(ctx context.Context, space, node, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil {
		d.by = map[string]*differingNode{}
	}
	of := d.by[node]
	if of == nil {
		of = &differingNode{since: time.Now().UTC(), spaces: map[string]*string{}}
		d.by[node] = of
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxDifferenceText)], "")
	of.spaces[space] = &text
	context.AfterFunc(ctx, func() { d.remove(space, node, &text) })
}

// remove removes what was added, unless the node was found again since the space was loaded again.
func (d *differing) remove(space, node string, text *string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.by[node]
	if of == nil || of.spaces[space] != text {
		return
	}
	if delete(of.spaces, space); len(of.spaces) == 0 {
		delete(d.by, node)
	}
}

// describe adds the nodes of most spaces to the figures of the worker.
func (d *differing) describe(f *status.Figures) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for node, of := range d.by { // any order: sorted below
		space := slices.Min(slices.Collect(maps.Keys(of.spaces)))
		f.Differing = append(f.Differing, status.Differing{Node: node, Space: space, Spaces: len(of.spaces), Text: *of.spaces[space], Since: of.since})
	}
	slices.SortFunc(f.Differing, func(a, b status.Differing) int {
		return cmp.Or(cmp.Compare(b.Spaces, a.Spaces), cmp.Compare(a.Node, b.Node))
	})
	f.DifferingCount = len(f.Differing)
	f.Differing = f.Differing[:min(len(f.Differing), maxDiffering)]
}

// differs counts a node that is not idempotent, and reports whether it was logged before: such a node is one in each run. A check in tests reports all.
func (c *core) differs(i *space.ErrorInfo) (again bool) {
	found, is := errors.AsType[*space.IdempotencyError](i.Err)
	if !is {
		return false
	}
	if t := c.engine.tally; t != nil {
		t.differing.Add(1)
	}
	if c.engine.cfg.CheckIdempotency {
		return false
	}
	if c.differing[i.Node] || len(c.differing) == maxDifferingOfSpace {
		return true
	}
	if c.differing == nil {
		c.differing = map[string]bool{}
	}
	c.differing[i.Node] = true
	c.engine.differing.add(c.of.Ctx, c.of.Space, i.Node, found.Error())
	return false
}
