package flights

import (
	"cmp"
	"slices"

	"github.com/settlehq/settle"
)

// The contents of events and documents; documents.go has their checks.
type (
	Stats struct { // of an airport; delay and distance are counted at the origin only
		Departures  int64 `json:"departures"`
		Arrivals    int64 `json:"arrivals"`
		DelaySum    int64 `json:"delay_sum"`
		DistanceSum int64 `json:"distance_sum"`
		OnTime      int64 `json:"on_time"`
	}
	Punctuality struct {
		Departures  int64   `json:"departures"`
		MeanDelay   float64 `json:"mean_delay"`
		OnTimeShare float64 `json:"on_time_share"`
	}
	Rank struct {
		Airport     string  `json:"airport"`
		OnTimeShare float64 `json:"on_time_share"`
	}
	Departure struct {
		Flight      string `json:"flight"`
		Delay       int64  `json:"delay"`
		Distance    int64  `json:"distance"`
		Destination string `json:"destination"`
	}
	Arrival struct {
		Flight string `json:"flight"`
		Origin string `json:"origin"`
	}
	Handling struct { // the result of both: only this identifies the flight of an arrival
		Flight string `json:"flight"`
	}
	Configure struct {
		Airports []string `json:"airports"`
	}
)

var (
	stats       = settle.NewCell[Stats](DocStats)
	departures  = settle.Field[int64](stats, "departures")
	delaySum    = settle.Field[int64](stats, "delay_sum")
	onTime      = settle.Field[int64](stats, "on_time")
	airports    = settle.NewCell[[]string](DocAirports)
	punctuality = settle.NewDerived[Punctuality](DocPunctuality)
	onTimeShare = settle.Part[float64](punctuality, "on_time_share")
	ranking     = settle.NewDerived[[]Rank](DocRanking)
	departure   = settle.NewRequest[Departure, Handling](StreamDeparture)
	arrival     = settle.NewRequest[Arrival, Handling](StreamArrival)
	configure   = settle.NewRequest[Configure, []string](StreamConfigure)
)

// newAirport returns the program of an airport: it counts flights, and derives how punctual they are.
func newAirport() *settle.Program {
	p := settle.NewProgram("airport")
	departure.Handle(p, func(tx *settle.Tx, d Departure) (Handling, error) {
		stats.Update(tx, func(s *Stats) {
			s.Departures++
			s.DelaySum += d.Delay
			s.DistanceSum += d.Distance
			if d.Delay < OnTimeLimit {
				s.OnTime++
			}
		})
		arrival.Send(tx, settle.To(d.Destination), Arrival{Flight: d.Flight, Origin: tx.Space()})
		return Handling{d.Flight}, nil
	})
	arrival.Handle(p, func(tx *settle.Tx, a Arrival) (Handling, error) {
		stats.Update(tx, func(s *Stats) { s.Arrivals++ })
		return Handling{a.Flight}, nil
	})
	// It reads three fields, so an arrival, which changes none of them, does not make it run.
	punctuality.Compute(p, func(v *settle.View) (Punctuality, error) {
		n := departures.Get(v)
		if n == 0 {
			return Punctuality{}, settle.NoValue
		}
		mean, share := float64(delaySum.Get(v))/float64(n), float64(onTime.Get(v))/float64(n)
		return Punctuality{Departures: n, MeanDelay: mean, OnTimeShare: share}, nil
	})
	return p
}

// newNation returns the program of the space that ranks airports.
func newNation() *settle.Program {
	p := settle.NewProgram("nation")
	configure.Handle(p, func(tx *settle.Tx, c Configure) ([]string, error) {
		airports.Set(tx, c.Airports)
		return c.Airports, nil
	})
	// It reads a derived document of each airport, which is computed over there because of it.
	ranking.Compute(p, func(v *settle.View) ([]Rank, error) {
		if !airports.Exists(v) {
			return nil, settle.NoValue
		}
		ranks := []Rank{}
		for _, code := range airports.Get(v) {
			if share, ok := onTimeShare.In(code).Lookup(v); ok {
				ranks = append(ranks, Rank{code, share})
			}
		}
		slices.SortFunc(ranks, func(a, b Rank) int {
			return cmp.Or(cmp.Compare(b.OnTimeShare, a.OnTimeShare), cmp.Compare(a.Airport, b.Airport))
		})
		return ranks, nil
	})
	return p
}
