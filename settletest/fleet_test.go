package settletest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

// Despite takeovers and lost messages, each departure is counted once, and arrives once.
func TestFleet_EachEventTakesEffectOnceAlthoughWorkersDie(t *testing.T) {
	settletest.RunFleet(t, flying(time.Minute), settletest.FleetOptions{Seeds: 5}, func(f *settletest.Fleet) {
		ham, muc := f.Space("HAM"), f.Space("MUC")
		for i := range 40 {
			settletest.Post(ham, departure, settle.ID(fmt.Sprint("d", i)), Departure{Flight: fmt.Sprint("LH", i), Destination: "MUC", Late: i%4 == 0})
			if i%10 == 5 {
				f.Kill()
				f.Start()
			}
			f.Advance(time.Duration(f.Rand.IntN(200)) * time.Millisecond)
		}
		f.Rest()
		settletest.Expect(ham, stats, Stats{Departures: 40, Late: 10})
		settletest.Expect(ham, punctuality, Punctuality{75})
		f.Advance(time.Minute)
		f.Rest()
		settletest.Expect(muc, stats, Stats{Arrivals: 40})
		if got := settletest.Call(ham, departure, Departure{Flight: "LH99"}); got.Flight != "LH99" {
			t.Errorf("result %v", got)
		}
		if f.Takeovers("HAM") < 2 {
			t.Error("this run had no takeover, which the test needs")
		}
	})
}
