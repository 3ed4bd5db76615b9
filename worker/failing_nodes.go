package worker

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/status"
)

// failingNodes are the spaces of a worker with computations that are needed and fail.
type failingNodes struct {
	mu sync.Mutex
	by map[string]*failingSpace
}

// failingSpace is one of them. Its fields are replaced, and not changed.
type failingSpace struct {
	is   status.FailingNodes
	docs []string // observed documents that follow from them
}

// maxFailingSpaces is how many of them a worker reports, maxFailingNodes how many nodes of each, maxDocs how many documents that
// follow from them, and maxReaders how many spaces that read of it.
const (
	maxFailingSpaces = 20
	maxFailingNodes  = 10
	maxDocs          = 10
	maxReaders       = 10
	maxErrorText     = 300 // bytes
)

func (f *failingNodes) set(s *failingSpace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil {
		f.by = map[string]*failingSpace{}
	}
	f.by[s.is.Space] = s
}

// remove removes what was set, unless it was replaced.
func (f *failingNodes) remove(s *failingSpace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by[s.is.Space] == s {
		delete(f.by, s.is.Space)
	}
}

// describe adds those that have failed for longest to the figures of the worker. readers returns the spaces that observe one of the documents of a space.
func (f *failingNodes) describe(to *status.Figures, readers func(space string, docs []string) []string) {
	f.mu.Lock()
	list := make([]*failingSpace, 0, len(f.by))
	for _, s := range f.by { // any order: sorted below
		list = append(list, s)
	}
	f.mu.Unlock()
	slices.SortFunc(list, func(a, b *failingSpace) int {
		return cmp.Or(a.is.Since.Compare(b.is.Since), cmp.Compare(a.is.Space, b.is.Space))
	})
	for i, s := range list {
		to.FailingSpaceCount++
		to.FailingNodeCount += s.is.Count
		if i >= maxFailingSpaces {
			continue
		}
		is := s.is
		all := readers(is.Space, s.docs)
		is.Readers, is.ReaderCount = all[:min(len(all), maxReaders)], len(all)
		is.Docs = s.docs[:min(len(s.docs), maxDocs)]
		to.FailingNodes = append(to.FailingNodes, is)
	}
}

// followFailing reports the computations that are needed and fail. It is called after each pass, most of which change nothing about that.
func (c *core) followFailing() {
	at := c.FailingChanges()
	if at == c.failing.changes {
		return
	}
	c.failing.changes = at
	found, was := c.Failing(maxFailingNodes), c.failing.now
	if was != nil {
		c.failing.forget()
		c.failing.now = nil
	}
	if found.Count == 0 {
		if was != nil {
			c.engine.failingNodes.remove(was)
		}
		return
	}
	s := &failingSpace{docs: found.Docs, is: status.FailingNodes{Space: c.of.Space, Count: found.Count, Since: time.Now().UTC()}}
	if was != nil {
		s.is.Since = was.is.Since
	}
	for _, n := range found.Nodes {
		text := n.Err.Error()
		s.is.Nodes = append(s.is.Nodes, status.FailingNode{Node: n.Node, Error: strings.ToValidUTF8(text[:min(len(text), maxErrorText)], "")})
	}
	c.failing.now = s
	c.failing.forget = context.AfterFunc(c.of.Ctx, func() { c.engine.failingNodes.remove(s) })
	c.engine.failingNodes.set(s)
}

// coreFailing is what a core has reported of its computations that fail.
type coreFailing struct {
	changes uint64 // up to which it was reported
	now     *failingSpace
	forget  func() bool
}
