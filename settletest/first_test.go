package settletest_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

// The airport of these tests counts departures and sends arrivals on.
type Stats struct {
	Departures int64 `json:"departures"`
	Arrivals   int64 `json:"arrivals"`
	Late       int64 `json:"late"`
}

type Departure struct {
	Flight      string `json:"flight"`
	Destination string `json:"destination"`
	Late        bool   `json:"late"`
}

type Arrival struct {
	Flight string `json:"flight"`
}

type Handling struct {
	Flight string `json:"flight"`
}

type Punctuality struct {
	Percent int64 `json:"percent"`
}

var (
	stats       = settle.NewCell[Stats]("stats")
	departed    = settle.Field[int64](stats, "departures")
	punctuality = settle.NewDerived[Punctuality]("punctuality")
	departure   = settle.NewRequest[Departure, Handling]("departure")
	arrival     = settle.NewStream[Arrival]("arrival")
)

func airport() *settle.Program { return flying(2 * time.Hour) }

// flying is an airport whose flights all take this long.
func flying(duration time.Duration) *settle.Program {
	p := settle.NewProgram("airport")
	departure.Handle(p, func(tx *settle.Tx, d Departure) (Handling, error) {
		if d.Flight == "" {
			return Handling{}, errors.New("a departure has a flight")
		}
		stats.Update(tx, func(s *Stats) {
			s.Departures++
			if d.Late {
				s.Late++
			}
		})
		if d.Destination != "" {
			arrival.SendAfter(tx, settle.To(d.Destination), duration, Arrival{d.Flight})
		}
		return Handling{d.Flight}, nil
	})
	arrival.Handle(p, func(tx *settle.Tx, a Arrival) error {
		stats.Update(tx, func(s *Stats) { s.Arrivals++ })
		return nil
	})
	punctuality.Compute(p, func(v *settle.View) (Punctuality, error) {
		s := stats.Get(v)
		if s.Departures == 0 {
			return Punctuality{}, settle.NoValue
		}
		return Punctuality{100 * (s.Departures - s.Late) / s.Departures}, nil
	})
	return p
}

func TestFirst(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, airport())
	ham := w.Space("HAM")
	seen := settletest.Watch(ham, punctuality)
	if got := settletest.Call(ham, departure, Departure{Flight: "LH1", Destination: "MUC"}); got.Flight != "LH1" {
		t.Errorf("got %v", got)
	}
	settletest.Call(ham, departure, Departure{Flight: "LH2", Late: true})
	settletest.Expect(ham, punctuality, Punctuality{50})
	ham.ExpectRuns("punctuality", 3)
	muc := w.Space("MUC")
	settletest.Expect(muc, stats, Stats{})
	w.Advance(2 * time.Hour)
	settletest.Expect(muc, stats, Stats{Arrivals: 1})
	if rc := settletest.Send(ham, departure, Departure{}); rc.Outcome != model.Failed {
		t.Errorf("receipt %+v", rc)
	}
	ham.Mark()
	w.Restart()
	settletest.Expect(ham, punctuality, Punctuality{50})
	ham.ExpectRuns("punctuality", 0)
	if got, want := seen.Values(), []Punctuality{{}, {100}, {50}}; !slices.Equal(got, want) {
		t.Errorf("seen %v, want %v", got, want)
	}
}
