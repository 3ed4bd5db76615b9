package backup

import (
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/provision"
)

// Events since the backup wake the spaces of a restored STATE bucket, and they leave the lanes after the
// horizon.
func TestFits_AStateOlderThanTheHorizonIsRefused(t *testing.T) {
	t.Parallel()
	m := &Manifest{AsOf: time.Unix(1_000_000, 0), Horizon: time.Hour}
	for _, c := range []struct {
		component string
		age       time.Duration
		refused   bool
	}{
		{provision.ComponentState, time.Hour, false},
		{provision.ComponentState, time.Hour + 1, true},
		{provision.ComponentLog, 1000 * time.Hour, false},
	} {
		err := m.fits(t.Context(), nil, "", &File{Asset: provision.Asset{Component: c.component}}, m.AsOf.Add(c.age), Progress{})
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "events are remembered for 1h0m0s") {
			t.Errorf("%s of %v ago: %v", c.component, c.age, err)
		}
	}
}
