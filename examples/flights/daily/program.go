package daily

import (
	"context"
	_ "embed" // for the workflow
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/flow"
)

//go:embed daily.star
var source []byte

// Workflow is the name of the workflow, and Approve that of the signal that it waits for.
const (
	Workflow = "daily"
	Approve  = "approve"
)

// Flight is a flight as the actions pass it on.
type Flight struct {
	ID          string `json:"id"`
	Origin      string `json:"origin"`
	Destination string `json:"destination"`
	Delay       int64  `json:"delay"`
	Distance    int64  `json:"distance"`
}

// Chunk is a part of a day's file. Next is where the next one begins, nil at the end.
type Chunk struct {
	Flights []Flight `json:"flights"`
	Next    *int     `json:"next"`
	Receipt string   `json:"receipt"`
}

// Checked is what remains of a flight that was checked. Problem is why it does not count, "" if it does.
type Checked struct {
	Origin  string `json:"origin"`
	Delay   int64  `json:"delay"`
	Miles   int64  `json:"miles"`
	Late    bool   `json:"late"`
	Problem string `json:"problem"`
	Receipt string `json:"receipt"`
}

// Departure is what the sum of an airport needs of a flight.
type Departure struct {
	Delay int64 `json:"delay"`
	Miles int64 `json:"miles"`
	Late  bool  `json:"late"`
}

// Airport is the sum of the departures of an airport: minutes of delay, miles, and those that were late.
type Airport struct {
	Airport    string `json:"airport"`
	Departures int64  `json:"departures"`
	Late       int64  `json:"late"`
	Delay      int64  `json:"delay"`
	Miles      int64  `json:"miles"`
	Receipt    string `json:"receipt,omitzero"`
}

// Report is the result of a run.
type Report struct {
	Day      string    `json:"day"`
	Title    string    `json:"title"`
	Flights  int       `json:"flights"`
	SetAside int       `json:"set_aside"`
	Late     int64     `json:"late"`
	Airports []Airport `json:"airports"`
	// Receipts are the keys of all actions that the report is made of.
	Receipts []string `json:"receipts"`
}

const (
	// chunkSize is the number of flights of a chunk.
	chunkSize = 40
	// maxDelay is the delay in minutes beyond which a flight is set aside: it was another flight, or a slip of the pen.
	maxDelay = 180
)

// Config configures the performers of the actions.
type Config struct {
	// Flights are the flights of all days.
	Flights func() ([]flights.Flight, error)
	// Ledger records each attempt; nil records nothing.
	Ledger *Ledger
	// Pace is how long an action takes, as a call over a network would.
	Pace time.Duration
}

// Program returns the program with the workflow and its actions.
func Program(c Config) (*settle.Program, error) {
	p := settle.NewProgram("daily")
	w := flow.New(p)
	w.Starlark("daily.star", source)
	d := &desk{Config: c, all: sync.OnceValues(c.Flights)}
	perform(w, d, "read_chunk", d.readChunk)
	perform(w, d, "check_flight", d.checkFlight)
	perform(w, d, "sum_up", d.sumUp)
	perform(w, d, "publish", d.publish)
	return p, w.Register()
}

// desk performs the actions.
type desk struct {
	Config
	all func() ([]flights.Flight, error)
}

// perform adds an action whose attempts take a while, and are recorded.
func perform[In, Out any](w *flow.Workflows, d *desk, name string, do func(ctx context.Context, in In) (Out, error)) {
	flow.Perform(w, name, func(ctx context.Context, in In) (out Out, err error) {
		a := flow.AttemptOf(ctx)
		if err := d.Ledger.write(Entry{Key: a.Key, Action: name, Attempt: a.Number, What: Begun}); err != nil {
			return out, err
		}
		select {
		case <-time.After(d.Pace):
		case <-ctx.Done():
			return out, ctx.Err()
		}
		what := Ended
		if out, err = do(ctx, in); err != nil {
			what = Failed
		}
		if err := d.Ledger.write(Entry{Key: a.Key, Action: name, Attempt: a.Number, What: what}); err != nil {
			return out, err
		}
		return out, err
	})
}

type readChunk struct {
	Day   string `json:"day"`
	Start int    `json:"start"`
}

// Of returns the flights of a day.
func Of(all []flights.Flight, day string) []flights.Flight {
	var list []flights.Flight
	for i := range all {
		if strings.HasPrefix(all[i].Date, day+" ") {
			list = append(list, all[i])
		}
	}
	return list
}

func (d *desk) readChunk(ctx context.Context, in readChunk) (Chunk, error) {
	all, err := d.all()
	if err != nil {
		return Chunk{}, err
	}
	file := Of(all, in.Day)
	if in.Start < 0 || in.Start >= len(file) {
		return Chunk{}, &flow.Error{Type: "NoFlights", Message: fmt.Sprintf("the file of %s has %d flights, and none from %d on", in.Day, len(file), in.Start)}
	}
	c := Chunk{Receipt: flow.AttemptOf(ctx).Key}
	end := min(in.Start+chunkSize, len(file))
	for _, f := range file[in.Start:end] {
		c.Flights = append(c.Flights, Flight{ID: f.ID, Origin: f.Origin, Destination: f.Destination, Delay: f.Delay, Distance: f.Distance})
	}
	if end < len(file) {
		c.Next = &end
	}
	return c, nil
}

type checkFlight struct {
	Flight Flight `json:"flight"`
}

func (d *desk) checkFlight(ctx context.Context, in checkFlight) (Checked, error) {
	f := in.Flight
	c := Checked{Origin: f.Origin, Delay: f.Delay, Miles: f.Distance, Late: f.Delay >= flights.OnTimeLimit, Receipt: flow.AttemptOf(ctx).Key}
	switch {
	case f.Origin == f.Destination:
		c.Problem = "it lands where it started"
	case f.Delay > maxDelay:
		c.Problem = fmt.Sprintf("%d minutes late", f.Delay)
	}
	return c, nil
}

type sumUp struct {
	Airport    string      `json:"airport"`
	Departures []Departure `json:"departures"`
}

// OfflineAtFirst reports whether the first attempt to sum up an airport fails.
func OfflineAtFirst(airport string) bool { return strings.HasPrefix(airport, "S") }

func (d *desk) sumUp(ctx context.Context, in sumUp) (Airport, error) {
	attempt := flow.AttemptOf(ctx)
	if OfflineAtFirst(in.Airport) && attempt.Number == 1 {
		return Airport{}, &flow.Error{Type: "Offline", Message: "the statistics service does not answer for " + in.Airport}
	}
	a := Airport{Airport: in.Airport, Receipt: attempt.Key}
	for _, f := range in.Departures {
		a.Departures++
		a.Delay += f.Delay
		a.Miles += f.Miles
		if f.Late {
			a.Late++
		}
	}
	return a, nil
}

type publish struct {
	Day        string `json:"day"`
	Airports   int    `json:"airports"`
	Flights    int    `json:"flights"`
	ApprovedBy string `json:"approved_by"`
}

type published struct {
	Title   string `json:"title"`
	Receipt string `json:"receipt"`
}

func (d *desk) publish(ctx context.Context, in publish) (published, error) {
	return published{Title: title(in.Day, in.Flights, in.Airports, in.ApprovedBy), Receipt: flow.AttemptOf(ctx).Key}, nil
}

func title(day string, flights, airports int, by string) string {
	return fmt.Sprintf("%s: %d flights from %d airports, approved by %s", day, flights, airports, by)
}
