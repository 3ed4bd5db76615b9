package flights

import (
	"errors"
	"fmt"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
)

// Nation is the space that ranks airports. No airport can have this code.
const Nation = "nation"

// Streams and documents of the program, as any client names them.
const (
	StreamDeparture = "departure"
	StreamArrival   = "arrival"
	StreamConfigure = "configure"

	DocStats       = "stats"
	DocPunctuality = "punctuality"
	DocAirports    = "airports"
	DocRanking     = "ranking"
)

var airport, nation = newAirport(), newNation()

// Programs returns the program of a space: the nation's, or an airport's.
//
//	departure, arrival -> stats -> punctuality
//	configure -> airports -> ranking <- punctuality of each of them
func Programs(space string) *settle.Program {
	if space == Nation {
		return nation
	}
	return airport
}

var errNoFlight = errors.New("it names no flight")

// Check returns what is wrong with a departure beyond the types of its fields.
func (d Departure) Check() error {
	if d.Flight == "" {
		return errNoFlight
	}
	if err := checkCode(d.Destination); err != nil {
		return fmt.Errorf("flight %s: destination: %w", d.Flight, err)
	}
	if d.Distance < 0 {
		return fmt.Errorf("flight %s: distance is %d; it must be a whole number of miles", d.Flight, d.Distance)
	}
	return nil
}

// Check returns what is wrong with an arrival.
func (a Arrival) Check() error {
	if a.Flight == "" {
		return errNoFlight
	}
	return nil
}

// Check returns what is wrong with the list.
func (c Configure) Check() error {
	for i, code := range c.Airports {
		if err := checkCode(code); err != nil {
			return fmt.Errorf("airport %d: %w", i+1, err)
		}
	}
	return nil
}

// checkCode reports whether an airport can have this code.
func checkCode(code string) error {
	if code == Nation {
		return fmt.Errorf("airport %q: this is the name of the space that ranks airports", code)
	}
	return model.CheckName("airport", code)
}
