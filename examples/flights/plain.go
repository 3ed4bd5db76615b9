package flights

import (
	"cmp"
	"maps"
	"slices"
)

// Tally has the statistics of every airport, from one plain pass over the input: the result that a run
// through spaces, lanes and logs must reach, whatever crashes on the way. It shares no code with the
// program.
type Tally map[string]Stats

// Plain makes the pass.
func Plain(flights []Flight) Tally {
	t := Tally{}
	for i := range flights {
		f := &flights[i]
		from := t[f.Origin]
		from.Departures++
		from.DelaySum += f.Delay
		from.DistanceSum += f.Distance
		if f.OnTime() {
			from.OnTime++
		}
		t[f.Origin] = from

		to := t[f.Destination]
		to.Arrivals++
		t[f.Destination] = to
	}
	return t
}

// Codes lists the airports in alphabetical order.
func (t Tally) Codes() []string { return slices.Sorted(maps.Keys(t)) }

// Busiest lists the n airports with the most departures and arrivals together, the
// busiest first, or all if there are fewer.
func (t Tally) Busiest(n int) []string {
	codes := t.Codes()
	slices.SortStableFunc(codes, func(a, b string) int {
		return cmp.Compare(t[b].Departures+t[b].Arrivals, t[a].Departures+t[a].Arrivals)
	})
	return codes[:min(n, len(codes))]
}

// Total sums up all airports.
func (t Tally) Total() Stats {
	var sum Stats
	for _, s := range t { // any order: a sum
		sum.Departures += s.Departures
		sum.Arrivals += s.Arrivals
		sum.DelaySum += s.DelaySum
		sum.DistanceSum += s.DistanceSum
		sum.OnTime += s.OnTime
	}
	return sum
}

// Punctuality returns the punctuality of an airport, and false for one without departures.
func (t Tally) Punctuality(code string) (Punctuality, bool) {
	s := t[code]
	if s.Departures == 0 {
		return Punctuality{}, false
	}
	n := float64(s.Departures)
	return Punctuality{Departures: s.Departures, MeanDelay: float64(s.DelaySum) / n, OnTimeShare: float64(s.OnTime) / n}, true
}

// Ranking orders airports by their share of punctual departures, the best first;
// equals by code. Those without departures are left out.
func (t Tally) Ranking(codes []string) []Rank {
	ranks := []Rank{}
	for _, code := range codes {
		if p, ok := t.Punctuality(code); ok {
			ranks = append(ranks, Rank{code, p.OnTimeShare})
		}
	}
	slices.SortFunc(ranks, func(a, b Rank) int {
		if a.OnTimeShare == b.OnTimeShare {
			return cmp.Compare(a.Airport, b.Airport)
		}
		return cmp.Compare(b.OnTimeShare, a.OnTimeShare)
	})
	return ranks
}
