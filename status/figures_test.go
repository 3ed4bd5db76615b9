package status

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// denyingBus is a bus with a permissions violation.
type denyingBus struct {
	port.Client
	at time.Time
}

func (b denyingBus) LastDenial() (time.Time, string) { return b.at, "may not" }

// A permissions violation is reported for ten minutes: the permissions may have been corrected since.
func TestFigures_ADenialIsReportedForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for ago, want := range map[time.Duration]string{ // any order: the cases are independent
			0: "may not", 9 * time.Minute: "may not", 10 * time.Minute: "", 24 * time.Hour: "",
		} {
			var f Figures
			if f.Describe(model.Member{}, denyingBus{at: time.Now().Add(-ago)}, time.Now()); f.Denied != want {
				t.Errorf("%v after the denial the figures have %q, want %q", ago, f.Denied, want)
			}
		}
	})
}

// rewoundBus is a bus whose streams have gone back.
type rewoundBus struct {
	port.Client
	all []model.Rewind
}

func (b rewoundBus) Rewinds() []model.Rewind { return slices.Clone(b.all) }

// Of the streams that have gone back, the newest are reported, the newest first.
func TestFigures_TheNewestRewindIsReportedFirst(t *testing.T) {
	const most = 20
	var bus rewoundBus
	for n := range most + 2 {
		bus.all = append(bus.all, model.Rewind{Known: uint64(n)})
	}
	var f Figures
	f.Describe(model.Member{}, bus, time.Now())
	if len(f.Rewinds) != most || f.Rewinds[0].Known != most+1 || f.Rewinds[most-1].Known != 2 || f.Rewound.Known != most+1 || f.RewindCount != most+2 {
		t.Errorf("of %d rewinds the figures have %+v; the newest is %+v", f.RewindCount, f.Rewinds, f.Rewound)
	}
}
