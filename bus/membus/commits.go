package membus

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// commits is a LOG stream. Purged commits of a space are hidden, not removed, so that a test can compare the
// whole history with what is left, and so that a replica can lag behind a purge.
type commits struct {
	stream[model.LogEntry]
	cuts map[string][]cut // per space, with growing bounds
	size int              // in bytes, of the entries that are not purged
	left int              // the number of entries that are not purged
}

// cut is a purge of a space: of all commits below a sequence, when the stream ended at end.
type cut struct{ below, end uint64 }

func newCommits() commits {
	return commits{stream: newStream[model.LogEntry](), cuts: map[string][]cut{}}
}

func (c *commits) add(e model.LogEntry) uint64 {
	c.size, c.left = c.size+entrySize(&e), c.left+1
	return c.stream.add(e.Space, func(seq uint64) model.LogEntry { e.Seq = seq; return e })
}

func entrySize(e *model.LogEntry) int { return len(e.Data) + len(e.ID) + len(e.Space) }

// floor returns the sequence of a space below which a replica that ends at end has nothing.
func (c *commits) floor(space string, end uint64) uint64 {
	for _, cut := range slices.Backward(c.cuts[space]) {
		if cut.end <= end {
			return cut.below
		}
	}
	return 0
}

// readUntil returns up to limit entries of a space after seq, as a replica that ends at end has them.
func (c *commits) readUntil(space string, seq uint64, limit int, end uint64) []model.LogEntry {
	floor := c.floor(space, end)
	return c.ofUntil(space, max(seq, max(floor, 1)-1), limit, end)
}

// read is readUntil for a replica that is up to date.
func (c *commits) read(space string, seq uint64, limit int) []model.LogEntry {
	return c.readUntil(space, seq, limit, c.end())
}

// from returns up to limit entries of all spaces after seq.
func (c *commits) from(seq uint64, limit int) (found []model.LogEntry) {
	end := c.end()
	for ; seq < end && len(found) < limit; seq++ {
		if e := c.at(seq + 1); e.Seq >= c.floor(e.Space, end) {
			found = append(found, e)
		}
	}
	return found
}

// purge hides the commits of a space below a sequence, but not its last one.
func (c *commits) purge(space string, below uint64) {
	below = min(below, c.head(space))
	floor := c.floor(space, c.end())
	if below <= floor {
		return
	}
	for _, e := range c.ofUntil(space, max(floor, 1)-1, len(c.messages), below-1) {
		c.size, c.left = c.size-entrySize(&e), c.left-1
	}
	c.cuts[space] = append(c.cuts[space], cut{below, c.end()})
}
