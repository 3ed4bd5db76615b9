package flights_test

import (
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

// TestStarlarkAndGoComeToTheSame: documents, results and what has run, over real flights.
func TestStarlarkAndGoComeToTheSame(t *testing.T) {
	t.Parallel()
	all, err := flights.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	compare(t, all[:2000])
}

func compare(t *testing.T, input []flights.Flight, options ...settletest.Option) {
	t.Helper()
	hosted, err := flights.Starlark()
	if err != nil {
		t.Fatal(err)
	}
	tally := flights.Plain(input)
	busiest := tally.Busiest(10)
	inGo, inStar := fly(t, flights.Programs, input, busiest, options), fly(t, hosted, input, busiest, options)
	for i := range inGo.receipts {
		if a, b := inGo.receipts[i], inStar.receipts[i]; a != b {
			t.Fatalf("receipt %d is\n%s in Go and\n%s in Starlark", i, a, b)
		}
	}
	for _, space := range append(tally.Codes(), flights.Nation) {
		for _, doc := range []string{flights.DocStats, flights.DocPunctuality, flights.DocAirports, flights.DocRanking} {
			a, b := inGo.world.Space(space).Peek(doc), inStar.world.Space(space).Peek(doc)
			if a.String() != b.String() {
				t.Errorf("%s of %s is\n%s in Go and\n%s in Starlark", doc, space, a, b)
			}
		}
	}
	for _, code := range busiest {
		if a, b := inGo.world.Space(code).Runs(flights.DocPunctuality), inStar.world.Space(code).Runs(flights.DocPunctuality); a == 0 || a != b {
			t.Errorf("%s: punctuality ran %d times in Go and %d times in Starlark", code, a, b)
		}
	}
}

// flown is the result of a run.
type flown struct {
	world    *settletest.World
	receipts []string
}

func fly(t *testing.T, programs settle.Programs, input []flights.Flight, watched []string, options []settletest.Option) flown {
	t.Helper()
	w := settletest.New(t, programs, options...)
	var r flown
	tell := func(rc model.Receipt) {
		r.receipts = append(r.receipts, rc.Event+" "+string(rc.Outcome)+" "+rc.Result.String()+rc.Error)
	}
	nation := w.Space(flights.Nation)
	tell(nation.Send(flights.StreamConfigure, flights.Configure{Airports: watched}))
	nation.Watch(flights.DocRanking)
	for i := range input {
		f := &input[i]
		tell(w.Space(f.Origin).SendID(flights.StreamDeparture, settle.ID(f.ID), f.Departure()))
	}
	r.world = w
	return r
}
