package history

import (
	"github.com/settlehq/settle/model"
)

// totals judges a run whose log was purged by the lanes, which are kept longer, the dead letters, and
// the documents. Every handling is counted in DocSeen under the origin of its event, so that losses and
// duplicates show in the numbers.
type totals struct {
	dead map[deadKey]bool
	seen map[string]map[string]int64
}

// LetterAlone records a dead letter.
func (c *Checker) LetterAlone(space, stream, id string) {
	if c.totals.dead == nil {
		c.totals.dead = map[deadKey]bool{}
	}
	c.Counts.Letters++
	k := deadKey{space, stream, id}
	if c.totals.dead[k] {
		c.violate(Dead, "there are two letters about %s %s of %s", stream, id, space)
	}
	c.totals.dead[k] = true
}

// SavedAlone records the state of a space in its STATE bucket.
func (c *Checker) SavedAlone(space string, st model.SpaceState) {
	if c.totals.seen == nil {
		c.totals.seen = map[string]map[string]int64{}
	}
	seen := map[string]int64{}
	var sum Sum
	for _, d := range st.Docs {
		v, err := model.ParseValue(d.Data)
		if err != nil && len(d.Data) > 0 {
			c.violate(State, "%s/%s: %v", space, d.Doc, err)
		}
		switch d.Doc {
		case DocSum:
			sum = SumOf(v)
		case DocSeen:
			for _, k := range v.Keys() {
				seen[k], _ = v.Get(k).AsInt()
			}
		}
	}
	all := int64(0)
	for _, n := range seen { // any order: a sum
		all += n
	}
	if all != sum.N {
		c.violate(Sums, "%s: %d events are counted by where they came from, and %d in all", space, all, sum.N)
	}
	c.totals.seen[space] = seen
	c.Counts.Handled += int(sum.N)
}

// FinishWithoutLog checks the totals.
func (c *Checker) FinishWithoutLog() {
	c.lanes()
	var crossed, cut int64         // events that should come from other spaces; letters about such
	for k := range c.totals.dead { // any order: a sum
		if k.stream == Hop || k.stream == Leaf || k.stream == Own {
			cut++
		}
	}
	for name, s := range c.inOrder() {
		seen := c.totals.seen[name]
		want := map[string]int64{}
		own, strays, alarms, jobs := int64(0), int64(0), int64(0), int64(0)
		for i, h := range s.clients { // any order: sums
			space, _ := c.work.SpaceNumber(name)
			for k, seq := range h.laned {
				id, stream := EventID(i, uint32(k+1)), c.work.Stream(i, space, uint32(k+1))
				dead := c.totals.dead[deadKey{name, stream, id}]
				switch {
				case seq == 0:
					continue
				case dead:
					c.Counts.Failed++
					continue
				case stream == Fail || stream == Nobody:
					c.violate(Dead, "there is no letter about %s %s of %s", stream, id, name)
					continue
				}
				want[Source(stream, id)]++
				crossed += map[string]int64{Chain: 3, Fan: 4, Later: 1}[stream]
				own += map[string]int64{Echo: 2, Later: 1}[stream]
				alarms += map[string]int64{Alarm: 1}[stream]
				strays += map[string]int64{Stray: 1}[stream]
				jobs += map[string]int64{Work: 1}[stream]
			}
		}
		// A timer that is set again before it is due replaces the previous one.
		own = min(own+alarms, max(own, seen[name]))
		want[name], want[model.Undelivered], want[Job] = own, strays, jobs
		for source := range seen { // any order: unexpected events are counted, too
			if _, other := c.work.SpaceNumber(source); !other {
				want[source] += 0
			}
		}
		for source, n := range want { // any order: each on its own
			c.compare(name, source, seen[source], n, cut)
		}
	}
	c.compare("all spaces", "other spaces", c.crossedIn(), crossed, cut)
	c.regressions()
}

// crossedIn returns the number of handled events from other spaces.
func (c *Checker) crossedIn() (n int64) {
	for name, seen := range c.totals.seen { // any order: a sum
		for source, k := range seen { // any order: a sum
			if _, ok := c.work.SpaceNumber(source); ok && source != name {
				n += k
			}
		}
	}
	return n
}

// compare compares a count with the expected one. Letters about intermediate events cut off
// the events that those would have sent: up to three for each.
func (c *Checker) compare(space, source string, is, want, cut int64) {
	if _, _, ofClient := ParseEventID(source + "-1"); ofClient {
		cut = 0
	}
	switch {
	case is > want:
		c.violate(Duplicates, "%s has handled %d events of %s, and should have handled %d", space, is, source, want)
	case is < want-3*cut:
		c.violate(Lost, "%s has handled %d events of %s, and should have handled %d", space, is, source, want)
	}
}

// regressions checks that no watch went back.
func (c *Checker) regressions() {
	for number, o := range c.observers { // any order: each on its own
		last := uint64(0)
		for i := range o.sessions {
			for k, got := range o.sessions[i].seen {
				if got.seq < last || k > 0 && got.seq == last {
					c.violate(Regression, "observer %d of %s/%s: revision %d after %d", number, o.space, o.doc, got.seq, last)
				}
				last = max(last, got.seq)
			}
		}
	}
}
