package flights

import "github.com/settlehq/settle"

// Stats is the document of an airport. What a flight is by itself (its delay, its
// distance) is counted once, at its origin, so the sums over all airports are those
// of the input.
type Stats struct {
	Departures  int64 `json:"departures"`
	Arrivals    int64 `json:"arrivals"`
	DelaySum    int64 `json:"delay_sum"`
	DistanceSum int64 `json:"distance_sum"`
	OnTime      int64 `json:"on_time"`
}

// statsOf reads the document; all is 0 before the first flight.
func statsOf(v settle.Value) Stats {
	field := func(name string) int64 {
		n, _ := v.Get(name).AsInt()
		return n
	}
	return Stats{
		Departures: field("departures"), Arrivals: field("arrivals"),
		DelaySum: field("delay_sum"), DistanceSum: field("distance_sum"), OnTime: field("on_time"),
	}
}

// Punctuality is derived from the statistics of an airport.
type Punctuality struct {
	Departures  int64   `json:"departures"`
	MeanDelay   float64 `json:"mean_delay"`
	OnTimeShare float64 `json:"on_time_share"`
}

// Rank is one place of the nation's ranking.
type Rank struct {
	Airport     string  `json:"airport"`
	OnTimeShare float64 `json:"on_time_share"`
}

// Departure is the payload of the event that reports a flight to its origin.
type Departure struct {
	Flight      string `json:"flight"`
	Delay       int64  `json:"delay"`
	Distance    int64  `json:"distance"`
	Destination string `json:"destination"`
}

// Arrival is the payload of the event that the origin sends to the destination.
type Arrival struct {
	Flight string `json:"flight"`
	Origin string `json:"origin"`
}

// Handling is the result in the receipt of a departure or an arrival: which flight
// it was about. An arrival has an event id that Settle made, so only this tells.
type Handling struct {
	Flight string `json:"flight"`
}

// Configure is the payload that tells the nation which airports it ranks.
type Configure struct {
	Airports []string `json:"airports"`
}
