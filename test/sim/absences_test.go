package sim

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/model"
)

// Without faults, no commit follows from the absence of a document that another space derives, once that space exists. The seeds of TestSeeds cannot show
// that: a worker that has no answer for as long as a fault lasts reads the document as absent.

// newCalmPlan makes a plan without faults: spaces begin to exist in its first second, and begin to read each other two seconds later, while workers join and leave in good
// order.
func newCalmPlan(seed uint64) *plan {
	p := &plan{seed: seed, calm: true}
	c := keyed(seed, "calm")
	p.choose(keyed(seed, "options"))
	p.faults, p.maxAwake, p.sink, p.chaos = []string{"queries"}, 0, false, c.between(5*time.Second, 8*time.Second)
	p.population()
	for i := range p.spaces {
		p.add(item{at: c.between(400*time.Millisecond, time.Second), do: "queue", who: "u1", space: spaceName(i), stream: "add", id: "birth", payload: "1"})
	}
	for i := range 10 + c.below(20) {
		c := keyed(seed, "reading", i)
		at := c.between(3*time.Second, p.chaos)
		stream := oneOf(c, "look", "look", "read", "add")
		p.add(item{
			at: at, do: "queue", who: fmt.Sprint("u", 1+c.below(users)), space: p.anySpace(c),
			stream: stream, id: fmt.Sprint("e", i+1), payload: p.payload(c, stream),
		})
		if c.below(2) == 0 {
			p.add(item{at: at + c.between(0, time.Second), do: "watch", who: fmt.Sprint("u", 1+c.below(users)), space: p.anySpace(c), doc: oneOf(c, "abroad", "both"), span: c.between(0, 2*time.Second)})
		}
	}
	for _, who := range []string{"w2", "w3"} {
		if c := keyed(seed, "leaving", who); c.below(2) == 0 {
			leaves := c.between(3*time.Second, p.chaos)
			p.add(item{at: leaves, do: "leave", who: who})
			p.add(item{at: leaves + c.between(0, time.Second), do: "start", who: who})
		}
	}
	slices.SortStableFunc(p.items, func(a, b item) int { return cmp.Compare(a.at, b.at) })
	return p
}

// bornFor is how long a space has existed after which its derived documents are absent for none that begins to read them.
const bornFor = 1500 * time.Millisecond

// readElsewhere: without faults, a space that has existed for some time has all that it derives.
func (f *fold) readElsewhere(what string, of *fold, v model.Value) {
	if !f.w.plan.calm {
		return
	}
	f.w.count("documents of other spaces that were read")
	if v.IsAbsent() && of.seq > 0 && f.w.story.now()-of.born > bornFor {
		f.wrong("absent", "%s: has read double of space %s as absent, which has existed for %v", what, of.space, f.w.story.now()-of.born)
	}
}

func TestCalm_NothingFollowsFromWhatWasNotComputedYet(t *testing.T) {
	reads := 0
	for seed := range uint64(raced.Fewer(150, 10)) {
		collect(seed)
		p := newCalmPlan(seed + 1)
		r := simulate(t, p, false)
		reads += r.counts["documents of other spaces that were read"]
		for _, v := range r.wrong {
			t.Errorf("seed %d: %v", p.seed, v)
		}
	}
	if reads == 0 {
		t.Error("no space has read another one")
	}
	t.Logf("%d documents of other spaces were read", reads)
}
