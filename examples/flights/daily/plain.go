package daily

import (
	"maps"
	"slices"

	"github.com/settlehq/settle/examples/flights"
)

// Plain returns the report of a day by a plain loop, without receipts: the result that a run must have, whatever crashes on the
// way. It shares no code with the actions, except for the title.
func Plain(all []flights.Flight, day, approvedBy string) Report {
	r := Report{Day: day}
	sums := map[string]*Airport{}
	for i := range all {
		f := &all[i]
		if f.Date[:len("2001/01/01")] != day {
			continue
		}
		r.Flights++
		if f.Origin == f.Destination || f.Delay > 3*60 {
			r.SetAside++
			continue
		}
		a := sums[f.Origin]
		if a == nil {
			a = &Airport{Airport: f.Origin}
			sums[f.Origin] = a
		}
		a.Departures++
		a.Delay += f.Delay
		a.Miles += f.Distance
		if !f.OnTime() {
			a.Late++
			r.Late++
		}
	}
	for _, code := range slices.Sorted(maps.Keys(sums)) {
		r.Airports = append(r.Airports, *sums[code])
	}
	r.Title = title(day, r.Flights-r.SetAside, len(sums), approvedBy)
	return r
}

// Actions returns how many actions the run of a report performs: one for each chunk, flight and airport, and one to publish it.
func (r *Report) Actions() int {
	return (r.Flights+chunkSize-1)/chunkSize + r.Flights + len(r.Airports) + 1
}

// Failures returns how many of them fail at their first attempt, and are tried again.
func (r *Report) Failures() (n int) {
	for i := range r.Airports {
		if OfflineAtFirst(r.Airports[i].Airport) {
			n++
		}
	}
	return n
}

// Days returns the first days of the flights, in order.
func Days(all []flights.Flight, n int) []string {
	seen := map[string]bool{}
	for i := range all {
		seen[all[i].Date[:len("2001/01/01")]] = true
	}
	days := slices.Sorted(maps.Keys(seen))
	return days[:min(n, len(days))]
}
