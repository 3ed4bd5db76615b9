package audit

import (
	"encoding/json"
	"fmt"

	"github.com/settlehq/settle/examples/flights"
)

// handled counts the receipts of each flight and checks their order.
type handled struct {
	index      map[string]int // of a flight in the input, by id
	departures []int          // receipts, by index
	arrivals   []int
	// latest is the highest index so far that was handled by an airport: of its own
	// departures, and of the arrivals from each origin.
	latest map[leg]int
}

// leg is a pair of airports; from is "" for an airport's own departures.
type leg struct{ from, at string }

// checkHandlings walks through the logs once: every departure and every arrival of
// the input must have one receipt, at the right airport, in the right order.
func (a *auditor) checkHandlings() {
	n := len(a.run.Flights)
	h := &handled{index: make(map[string]int, n), departures: make([]int, n), arrivals: make([]int, n), latest: map[leg]int{}}
	for i := range a.run.Flights {
		h.index[a.run.Flights[i].ID] = i
	}
	owned := map[string]bool{}
	for i := range a.stored.Commits {
		c := &a.stored.Commits[i]
		a.verdict.Commits++
		if c.Takeover {
			if owned[c.Space] {
				a.verdict.Takeovers++
			}
			owned[c.Space] = true
		}
		for j := range c.Txs {
			a.checkReceipt(h, c, &c.Txs[j])
		}
	}
	for i := range a.run.Flights {
		f := &a.run.Flights[i]
		a.checkOnce(f.Origin, "departure of "+f.ID, h.departures[i])
		a.checkOnce(f.Destination, "arrival of "+f.ID, h.arrivals[i])
	}
}

func (a *auditor) checkOnce(space, what string, receipts int) {
	promise := NothingTwice
	if receipts == 0 {
		promise = NothingLost
		a.verdict.Lost++
	} else {
		a.verdict.Duplicates += receipts - 1
	}
	a.check(promise, space, what+": receipts", receipts, 1)
}

// checkReceipt records the receipt of a transaction, if it belongs to a flight.
func (a *auditor) checkReceipt(h *handled, c *Commit, tx *Tx) {
	var per []int
	var airport func(*flights.Flight) leg
	switch tx.By {
	case "handle " + flights.StreamDeparture:
		per = h.departures
		airport = func(f *flights.Flight) leg { return leg{at: f.Origin} }
	case "handle " + flights.StreamArrival:
		per = h.arrivals
		airport = func(f *flights.Flight) leg { return leg{from: f.Origin, at: f.Destination} }
	default:
		return
	}
	what := fmt.Sprintf("%s at log sequence %d", tx.By[len("handle "):], c.Seq)
	i, ok := a.flightOf(h, c, tx, what)
	if !ok {
		return
	}
	f := &a.run.Flights[i]
	place := airport(f)
	if c.Space != place.at {
		a.differ(NothingLost, c.Space, what, "flight "+f.ID, "it at "+place.at)
		return
	}
	per[i]++
	a.verdict.Receipts++
	if tx.By == "handle "+flights.StreamDeparture {
		a.verdict.Departures++
	} else {
		a.verdict.Arrivals++
	}
	switch last, seen := h.latest[place]; {
	case seen && i < last:
		a.verdict.OutOfOrder++
		a.differ(InOrder, c.Space, what, "flight "+f.ID+" after "+a.run.Flights[last].ID, "the order of the input")
	default:
		h.latest[place] = i
	}
}

// flightOf returns the flight of a receipt, and records an invalid one.
func (a *auditor) flightOf(h *handled, c *Commit, tx *Tx, what string) (int, bool) {
	if tx.Receipt == nil {
		a.differ(NothingLost, c.Space, what, "no receipt", "a receipt")
		return 0, false
	}
	if r := tx.Receipt; r.Outcome != "handled" {
		a.differ(NothingLost, c.Space, what, fmt.Sprintf("event %s %s: %s", r.Event, r.Outcome, r.Error), "handled")
		return 0, false
	}
	var result flights.Handling
	if err := json.Unmarshal(tx.Receipt.Result, &result); err != nil {
		a.differ(NothingLost, c.Space, what, fmt.Sprintf("result %s", tx.Receipt.Result), "a flight")
		return 0, false
	}
	i, ok := h.index[result.Flight]
	if !ok {
		a.differ(NothingTwice, c.Space, what, fmt.Sprintf("flight %q", result.Flight), "a flight of the input")
	}
	return i, ok
}
