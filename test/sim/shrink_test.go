package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// shrinkRuns bounds how often a failing plan is run to make it smaller.
const shrinkRuns = 600

// shrinker makes a failing plan smaller, as long as the same check fails. Removing an item does not
// change the fates of the others, since fates are not drawn from a sequence.
type shrinker struct {
	t     *testing.T
	check string
	runs  int
	limit int
}

func (s *shrinker) fails(p *plan) bool {
	s.runs++
	return slices.ContainsFunc(simulate(s.t, p, false).wrong, func(v violation) bool { return v.check == s.check })
}

// shrink returns the smallest plan found that fails in the same way.
func (s *shrinker) shrink(p *plan) *plan {
	small := *p
	small.items = s.fewer(&small)
	for _, f := range everyFault() {
		next := small
		next.faults = slices.DeleteFunc(slices.Clone(small.faults), func(g string) bool { return f == g })
		if len(next.faults) < len(small.faults) && s.runs < s.limit && s.fails(&next) {
			small = next
		}
	}
	small.items = s.fewer(&small)
	return &small
}

// fewer is delta debugging: halves, quarters and so on of the items are left out.
func (s *shrinker) fewer(p *plan) []item {
	items := p.items
	for n := 2; len(items) > 1 && s.runs < s.limit; {
		size := (len(items) + n - 1) / n
		reduced := false
		for from := 0; from < len(items) && s.runs < s.limit; from += size {
			next := *p
			next.items = slices.Delete(slices.Clone(items), from, min(from+size, len(items)))
			if s.fails(&next) {
				items, reduced = next.items, true
				break
			}
		}
		switch {
		case reduced:
			n = max(n-1, 2)
		case size == 1:
			return items
		default:
			n = min(2*n, len(items))
		}
	}
	return items
}

// report describes the failure of a seed, and how to reproduce it.
func report(t *testing.T, p *plan, r *result, runs int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d breaks a promise:\n", p.seed)
	for _, v := range r.wrong {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	fmt.Fprintf(&b, "with %s\n", &p.options)
	fmt.Fprintf(&b, "replay it, with the minutes:\n  go test ./test/sim -run 'TestSeed$' -seed %d -v\n", p.seed)
	s := &shrinker{t: t, check: r.wrong[0].check, limit: runs}
	small := s.shrink(p)
	fmt.Fprintf(&b, "of %d items these %d are enough (-shrunk shows the minutes of that), with the faults %v:\n", len(p.items), len(small.items), small.faults)
	for _, i := range small.items {
		fmt.Fprintf(&b, "  %s\n", i)
	}
	return b.String()
}
