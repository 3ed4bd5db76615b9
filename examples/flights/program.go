package flights

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
)

// Nation is the space that ranks airports. No airport can have this code.
const Nation = "nation"

// Streams and documents of the program.
const (
	StreamDeparture = "departure"
	StreamArrival   = "arrival"
	StreamConfigure = "configure"

	DocStats       = "stats"
	DocPunctuality = "punctuality"
	DocAirports    = "airports"
	DocRanking     = "ranking"
)

var (
	airport = newAirport()
	nation  = newNation()
)

// Programs tells which program a space runs: the nation's, or an airport's.
func Programs(space string) *settle.Program {
	if space == Nation {
		return nation
	}
	return airport
}

// newAirport is the program of an airport.
//
//	departure -> stats -> punctuality
//	arrival   -> stats
func newAirport() *settle.Program {
	return settle.NewProgram("airport").
		Handle(StreamDeparture, departure).
		Handle(StreamArrival, arrival).
		Compute(DocPunctuality, punctuality)
}

// departure counts a flight at its origin and tells the destination. A flight's
// delay and distance are counted here and nowhere else.
func departure(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
	flight, destination, err := leg(ev)
	if err != nil {
		return settle.Value{}, err
	}
	delay, ok := ev.Payload.Get("delay").AsInt()
	if !ok {
		return settle.Value{}, fmt.Errorf("flight %s: delay is %v; it must be a whole number of minutes", flight, ev.Payload.Get("delay"))
	}
	distance, ok := ev.Payload.Get("distance").AsInt()
	if !ok || distance < 0 {
		return settle.Value{}, fmt.Errorf("flight %s: distance is %v; it must be a whole number of miles", flight, ev.Payload.Get("distance"))
	}
	s := statsOf(tx.Get(DocStats))
	s.Departures++
	s.DelaySum += delay
	s.DistanceSum += distance
	if delay < OnTimeLimit {
		s.OnTime++
	}
	tx.Set(DocStats, s)
	tx.Send(destination, StreamArrival, Arrival{Flight: flight, Origin: tx.Space()})
	return settle.ValueOf(Handling{Flight: flight})
}

// arrival counts a flight at its destination.
func arrival(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
	flight, ok := ev.Payload.Get("flight").AsString()
	if !ok {
		return settle.Value{}, fmt.Errorf("the payload names no flight: %v", ev.Payload)
	}
	s := statsOf(tx.Get(DocStats))
	s.Arrivals++
	tx.Set(DocStats, s)
	return settle.ValueOf(Handling{Flight: flight})
}

// leg reads who flies where.
func leg(ev *settle.Event) (flight, destination string, err error) {
	flight, ok := ev.Payload.Get("flight").AsString()
	if !ok {
		return "", "", fmt.Errorf("the payload names no flight: %v", ev.Payload)
	}
	destination, _ = ev.Payload.Get("destination").AsString()
	if err := checkCode(destination); err != nil {
		return "", "", fmt.Errorf("flight %s: destination: %w", flight, err)
	}
	return flight, destination, nil
}

// punctuality derives how punctual departures are; there is none before the first
// departure. It reads three numbers of the statistics, so that an arrival, which
// changes none of them, does not make it run again.
func punctuality(tx *settle.Tx) (settle.Value, error) {
	departures, _ := tx.Get(DocStats, "departures").AsInt()
	if departures == 0 {
		return settle.Value{}, nil
	}
	delay, _ := tx.Get(DocStats, "delay_sum").AsInt()
	onTime, _ := tx.Get(DocStats, "on_time").AsInt()
	return settle.ValueOf(Punctuality{
		Departures:  departures,
		MeanDelay:   float64(delay) / float64(departures),
		OnTimeShare: float64(onTime) / float64(departures),
	})
}

// newNation is the program of the space that ranks airports.
//
//	configure -> airports -> ranking <- punctuality of each of them
func newNation() *settle.Program {
	return settle.NewProgram("nation").
		Handle(StreamConfigure, configure).
		Compute(DocRanking, ranking)
}

// configure says which airports are ranked.
func configure(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
	list := ev.Payload.Get("airports")
	if list.Kind() != model.KindArray {
		return settle.Value{}, fmt.Errorf("the payload has no list of airports: %v", ev.Payload)
	}
	for i := range list.Len() {
		code, _ := list.Index(i).AsString()
		if err := checkCode(code); err != nil {
			return settle.Value{}, fmt.Errorf("airport %d: %w", i+1, err)
		}
	}
	tx.Set(DocAirports, list)
	return list, nil
}

// ranking orders the configured airports by their share of punctual departures,
// the best first. It reads a derived document of each, which is demand over there:
// what it reads is computed because it reads it.
func ranking(tx *settle.Tx) (settle.Value, error) {
	list := tx.Get(DocAirports)
	if list.IsAbsent() {
		return settle.Value{}, nil
	}
	ranks := []Rank{}
	for i := range list.Len() {
		code, _ := list.Index(i).AsString()
		if share, ok := tx.GetFrom(code, DocPunctuality, "on_time_share").AsFloat(); ok {
			ranks = append(ranks, Rank{Airport: code, OnTimeShare: share})
		}
	}
	slices.SortFunc(ranks, func(a, b Rank) int {
		return cmp.Or(cmp.Compare(b.OnTimeShare, a.OnTimeShare), cmp.Compare(a.Airport, b.Airport))
	})
	return settle.ValueOf(ranks)
}

// checkCode reports whether an airport can have this code.
func checkCode(code string) error {
	if code == Nation {
		return fmt.Errorf("airport %q: this is the name of the space that ranks airports", code)
	}
	return model.CheckName("airport", code)
}
