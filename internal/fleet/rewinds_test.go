package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/status"
)

// Every stream that has gone back is named, up to a limit, beginning with those that may have lost data.
func TestWentBack_NamesEveryStream(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	back := func(stream string, ago time.Duration) model.Rewind {
		return model.Rewind{At: noon.Add(-ago), Stream: stream, Known: 90, Found: "it ends at 80"}
	}
	var many []model.Rewind
	for i := range 20 {
		many = append(many, back(fmt.Sprint("L", i), 0))
	}
	for name, c := range map[string]struct {
		figures *status.Figures
		want    string
	}{
		"no figures": {nil, ""},
		"none":       {&status.Figures{}, ""},
		"a worker of an earlier version": {
			&status.Figures{Rewound: back("LOG_0", 0)},
			"at 2026-11-21T12:00:00Z: stream LOG_0 was known up to 90, and it ends at 80",
		},
		"three at once": {
			&status.Figures{Rewound: back("KV_SETTLE_WORKERS", 0), RewindCount: 3, Rewinds: []model.Rewind{back("KV_SETTLE_WORKERS", 0), back("LOG_0", time.Second), back("LANE_0", time.Second)}},
			"at 2026-11-21T12:00:00Z: stream LOG_0 was known up to 90, and it ends at 80; stream LANE_0 was known up to 90, and it ends at 80; stream KV_SETTLE_WORKERS was known up to 90, and it ends at 80",
		},
		"one an hour before": {
			&status.Figures{Rewound: back("LOG_0", 0), RewindCount: 2, Rewinds: []model.Rewind{back("LOG_0", 0), back("LANE_0", time.Hour)}},
			"at 2026-11-21T12:00:00Z: stream LOG_0 was known up to 90, and it ends at 80; stream LANE_0 was known up to 90, and it ends at 80 (at 2026-11-21T11:00:00Z)",
		},
	} {
		if got := (&Member{Figures: c.figures}).WentBack(nil); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	got := (&Member{Figures: &status.Figures{Rewound: many[0], Rewinds: many, RewindCount: 193}}).WentBack(nil)
	if want := "; stream L5 was known up to 90, and it ends at 80; and 187 more"; len(got) < len(want) || got[len(got)-len(want):] != want {
		t.Errorf("of very many: %q", got)
	}
}
