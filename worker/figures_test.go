package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/model"
)

// denyingBus is a bus whose user was denied something.
type denyingBus struct {
	Bus
	at time.Time
}

func (b denyingBus) LastDenial() (time.Time, string) { return b.at, "may not" }

// A permissions violation is told of for some minutes: it may have been set right since.
func TestFigures_ADenialIsToldOfForSomeMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for ago, want := range map[time.Duration]string{ // any order: each by itself
			0: "may not", 9 * time.Minute: "may not", 10 * time.Minute: "", 24 * time.Hour: "",
		} {
			var f Figures
			if f.Describe(model.Member{}, denyingBus{at: time.Now().Add(-ago)}, time.Now()); f.Denied != want {
				t.Errorf("%v after it, it is told %q, want %q", ago, f.Denied, want)
			}
		}
	})
}
