package flights

import "fmt"

// Flight is one flight of the input.
type Flight struct {
	// ID names the flight's departure event: its place in the input.
	ID string
	// Date is the scheduled departure date, in the format of the input.
	Date string
	// Delay in minutes; negative if it was early.
	Delay int64
	// Distance in miles.
	Distance int64
	// Origin and Destination are airport codes, and the names of spaces.
	Origin, Destination string
}

// OnTimeLimit is the delay in minutes from which a flight counts as late.
const OnTimeLimit = 15

// OnTime reports whether the flight counts as on time.
func (f *Flight) OnTime() bool { return f.Delay < OnTimeLimit }

// Departure returns the flight's departure event.
func (f *Flight) Departure() Departure {
	return Departure{Flight: f.ID, Delay: f.Delay, Distance: f.Distance, Destination: f.Destination}
}

// flightID names the flight at an index of the input.
func flightID(index int) string { return fmt.Sprintf("f%05d", index+1) }
