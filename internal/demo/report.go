package demo

import (
	"encoding/json"
	"math"

	"github.com/settlehq/settle/examples/flights"
)

// Report contains the figures of a run. The JSON names are an interface for scripts;
// examples/flights/README.md documents them.
type Report struct {
	EventsSent        int                      `json:"events_sent"`
	DeparturesHandled int                      `json:"departures_handled"`
	ArrivalsHandled   int                      `json:"arrivals_handled"`
	Receipts          int                      `json:"receipts"`
	Lost              int                      `json:"lost"`
	Duplicates        int                      `json:"duplicates"`
	OutOfOrder        int                      `json:"out_of_order"`
	UnobservedRuns    int                      `json:"unobserved_runs"`
	Takeovers         int                      `json:"takeovers"`
	Commits           int                      `json:"commits"`
	Seconds           float64                  `json:"seconds"`
	EventsPerSecond   float64                  `json:"events_per_second"`
	Verified          bool                     `json:"verified"`
	Airports          map[string]AirportReport `json:"airports"`
}

// AirportReport is the state of an airport in the STATE bucket.
type AirportReport struct {
	Departures  int64 `json:"departures"`
	Arrivals    int64 `json:"arrivals"`
	DelaySum    int64 `json:"delay_sum"`
	DistanceSum int64 `json:"distance_sum"`
}

// JSON returns the report as text.
func (r *Report) JSON() ([]byte, error) { return figuresJSON(r) }

// figuresJSON returns figures as --json writes them.
func figuresJSON(r any) ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	return append(data, '\n'), err
}

// report converts a verdict to figures.
func (r *Result) report(sent int) {
	v := r.Verdict
	r.Report = Report{
		EventsSent:        sent,
		DeparturesHandled: v.Departures,
		ArrivalsHandled:   v.Arrivals,
		Receipts:          v.Receipts,
		Lost:              v.Lost,
		Duplicates:        v.Duplicates,
		OutOfOrder:        v.OutOfOrder,
		UnobservedRuns:    v.UnobservedRuns,
		Takeovers:         v.Takeovers,
		Commits:           v.Commits,
		Seconds:           math.Round(r.Elapsed.Seconds()*1000) / 1000,
		Verified:          v.Verified(),
		Airports:          airports(v.Airports),
	}
	if r.Elapsed > 0 {
		r.Report.EventsPerSecond = math.Round(float64(v.Receipts) / r.Elapsed.Seconds())
	}
}

func airports(stats map[string]flights.Stats) map[string]AirportReport {
	out := make(map[string]AirportReport, len(stats))
	for code, s := range stats {
		out[code] = AirportReport{s.Departures, s.Arrivals, s.DelaySum, s.DistanceSum}
	}
	return out
}
