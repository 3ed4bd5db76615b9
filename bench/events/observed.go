package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/settlehq/settle/bench/harness"
)

// Observations are the ways in which a worker is observed that Observe compares. The first is: not at all.
var observations = []struct {
	name   string
	engine string
	by     harness.Observed
}{
	{"off", "Settle", harness.Observed{}},
	{"metrics", "Settle, metrics", harness.Observed{Metrics: true}},
	{"metrics, 1 trace of 100", "Settle, metrics and traces", harness.Observed{Metrics: true, Traced: "0.01"}},
	{"metrics, all traces", "Settle, all traces", harness.Observed{Metrics: true, Traced: "1"}},
}

// Observation are the rounds of one way, in the order in which they were measured.
type Observation struct {
	Name   string
	Rounds []*harness.Round
}

// Observe handles the same events, by W1 with 100 entities, by workers that are observed in different ways: in turns, each with so many events,
// and so many rounds. Each worker is a process of its own, which stays.
func Observe(ctx context.Context, at *harness.Site, rounds int, events int64, log io.Writer) (all []Observation, err error) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })) // it may be cut off
	defer collector.Close()
	var systems []System
	defer func() {
		for _, s := range systems {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, o := range observations {
		o.by.Collector = collector.URL
		s, err := startSettle(ctx, at, o.engine, 1, o.by)
		if err != nil {
			return nil, err
		}
		systems, all = append(systems, graphSystem{s}), append(all, Observation{Name: o.name})
	}
	c := Case{Size: 100, Flights: 16}
	for round := -1; round < rounds; round++ { // the first one warms up
		for i := range all {
			at := (i + round + 1) % len(all)
			r, err := observed(ctx, systems[at], c, &Budget{Run: fmt.Sprintf("o%d", round+1), Units: events}, all[at].Name)
			if err != nil {
				return nil, err
			}
			if round >= 0 {
				all[at].Rounds = append(all[at].Rounds, r)
			}
		}
		fmt.Fprintf(log, "round %d of %d\n", round+1, rounds)
	}
	return all, nil
}

func observed(ctx context.Context, s System, c Case, b *Budget, name string) (*harness.Round, error) {
	b.Meter = &harness.Meter{Site: s.(graphSystem).at, Parts: s.Parts()}
	r, err := closedLoop{}.Run(ctx, s, c, b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}
