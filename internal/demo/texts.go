package demo

import "fmt"

// heading describes the run in two lines.
func (p Plan) heading(s style) []string {
	return []string{
		s.bold("settle demo flights") + "  " + p.what(),
		s.faint(p.where()),
	}
}

// title is heading in one line.
func (p Plan) title() string { return "settle demo flights: " + p.what() + ", " + p.where() }

func (p Plan) what() string {
	return fmt.Sprintf("%s between %s", count(p.Flights, "flight"), count(p.Airports, "airport"))
}

func (p Plan) where() string {
	workers := count(p.Workers, "worker")
	if p.Processes {
		workers = count(p.Workers, "worker process")
	}
	return fmt.Sprintf("%s, %s, %s", workers, count(p.Partitions, "partition"), p.Server)
}

// sentence describes a phase.
func (p Phase) sentence() string {
	switch p {
	case Starting:
		return "starting"
	case Running:
		return "handling departures and arrivals"
	case Saving:
		return "workers save their spaces and leave"
	case Verifying:
		return "reading everything back to verify it"
	}
	return string(p)
}

// text describes an event.
func (n Note) text() string {
	switch n.Kind {
	case Killed:
		return n.Worker + " killed"
	case Joined:
		return n.Worker + " joined"
	}
	return n.Text
}
