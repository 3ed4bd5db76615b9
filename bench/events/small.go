package events

import (
	"context"

	"github.com/settlehq/settle/bench/harness"
)

// SmallCase is a case whose counts of messages, bytes, fsyncs and allocations do not depend on the machine: one thing
// happens at a time.
type SmallCase struct {
	Name  string
	shape Shape
	c     Case
	units int64
	// onlySettle excludes ordered, which has no computations, and reads as Settle does.
	onlySettle bool
}

// Small are these cases.
func Small() []SmallCase {
	return []SmallCase{
		{"one event at a time", closedLoop{}, Case{Size: 1, Flights: 1}, 300, false},
		{"chains of five", chains{}, Case{Size: 5, Flights: 1}, 60, false},
		{"an event sent three times", duplicates{}, Case{Size: 1, Flights: 1}, 100, false},
		{"one watcher", watchers{}, Case{Size: 1}, 100, false},
		{"a sum over ten entities", fanIn{}, Case{Size: 10}, 60, true},
		{"read one of 1,000 documents", oneDocument{}, Case{Size: 1000}, 60, true},
	}
}

// On reports whether an engine does the case.
func (s SmallCase) On(engine string) bool { return !s.onlySettle || engine == settleEngine{}.Name() }

// Measure measures the case on an engine.
func (s SmallCase) Measure(ctx context.Context, engine string, at *harness.Site, run string) (*harness.Round, error) {
	return measure(ctx, engineNamed(engine), at, s.shape, s.c, &Budget{Run: run, Units: s.units})
}
