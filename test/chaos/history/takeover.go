package history

import (
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// Kill is a worker that was killed.
type Kill struct {
	Worker string
	At     time.Time
}

// Takeover is the time between the death of a worker that owned spaces of a partition and the first
// commit there by another worker.
type Takeover struct {
	Kill
	Partition int
	After     time.Duration
	// Spaces is the number of spaces that it owned, and Slowest the time until the last of them was
	// taken over.
	Spaces  int
	Slowest time.Duration
}

// partHistory is the history of a partition while its log is read.
type partHistory struct {
	next int // of the kills
	open []*Takeover
	// waits are the spaces that are without an owner after a kill.
	waits []map[string]bool
}

// Killed sets the workers that were killed, before the first Log.
func (c *Checker) Killed(kills []Kill) {
	c.kills = slices.SortedFunc(slices.Values(kills), func(a, b Kill) int { return a.At.Compare(b.At) })
}

// takeover tracks the owners of spaces.
func (c *Checker) takeover(partition int, s *spaceHistory, e model.LogEntry, commit *model.Commit) {
	p := &c.byPart[partition]
	for p.next < len(c.kills) && c.kills[p.next].At.Before(e.Stored) {
		p.kill(c, partition, c.kills[p.next])
		p.next++
	}
	if !commit.Takeover {
		return
	}
	for i := 0; i < len(p.open); i++ {
		t := p.open[i]
		if !p.waits[i][s.name] {
			continue
		}
		after := e.Stored.Sub(t.At)
		if t.After == 0 {
			t.After = after
		}
		t.Slowest = after
		if delete(p.waits[i], s.name); len(p.waits[i]) == 0 {
			p.end(c, i)
			i--
		}
	}
}

// kill records the spaces of a partition that a killed worker owned.
func (p *partHistory) kill(c *Checker, partition int, k Kill) {
	owned := map[string]bool{}
	for name, s := range c.spaces { // any order: a set is made
		if s.rep.Owner == k.Worker && model.PartitionOf(name, c.partitions) == partition {
			owned[name] = true
		}
	}
	if len(owned) == 0 {
		return
	}
	for _, w := range p.waits { // of an earlier death of the same name, or its successor
		for name := range owned { // any order: each is taken away
			delete(w, name)
		}
	}
	p.open = append(p.open, &Takeover{Kill: k, Partition: partition, Spaces: len(owned)})
	p.waits = append(p.waits, owned)
}

func (p *partHistory) end(c *Checker, i int) {
	if p.open[i].After > 0 {
		c.Counts.TakeOver = append(c.Counts.TakeOver, *p.open[i])
	}
	p.open, p.waits = slices.Delete(p.open, i, i+1), slices.Delete(p.waits, i, i+1)
}

// endTakeovers closes incomplete takeovers: a space without events is not
// taken over.
func (c *Checker) endTakeovers() {
	for i := range c.byPart {
		for len(c.byPart[i].open) > 0 {
			c.byPart[i].end(c, 0)
		}
	}
}
