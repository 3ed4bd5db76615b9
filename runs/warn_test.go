package runs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/space"
)

// A run that fails, or cannot undo its steps, is a warning for the operator; one that succeeds, or was cancelled, is none.
func TestWarn_ARunThatEndsBadly(t *testing.T) {
	for _, c := range []struct {
		stops, cancel string
		cents         int
		want          []string
	}{
		{`["Riga"]`, "", 50, nil},
		{`["Riga"]`, "", 200, []string{"run failed [run r workflow w error Declined: no money undone 2 not_undone 0]"}},
		{`["Oslo"]`, "", 200, []string{"run failed [run r workflow w error Declined: no money undone 1 not_undone 1]"}},
		{`["Riga"]`, `{"run":"r"}`, 50, nil},
		{`["Oslo"]`, `{"run":"r"}`, 50, []string{"run cancelled [run r workflow w error CancelledError: cancelled undone 0 not_undone 1]"}},
	} {
		var warnings []string
		w := newWorld(t, trip, inStarlark(t, tripActions), simkit.Options{Log: func(i space.ConsoleInfo) {
			if i.Warning {
				warnings = append(warnings, fmt.Sprint(i.Message, " ", i.Args))
			}
		}})
		w.start("r", fmt.Sprintf(`{"stops":%s,"cents":%d}`, c.stops, c.cents))
		if c.cancel != "" {
			w.send(StreamCancel, "c", c.cancel)
		}
		w.perform()
		if !slices.Equal(warnings, c.want) {
			t.Errorf("%s, %d cents: %s, want %s", c.stops, c.cents, warnings, c.want)
		}
	}
}

// A message of any length is cut for the log.
func TestWarn_CutsLongMessages(t *testing.T) {
	var warned string
	w := newWorld(t, "def run():\n    fail('x' * 100000)\n\nworkflow('w', run)\n", deeds{}, simkit.Options{Log: func(i space.ConsoleInfo) { warned = fmt.Sprint(i.Args...) }})
	w.start("r", "{}")
	if !strings.HasSuffix(warned, "xxx...") || len(warned) > 2*maxWarned {
		t.Errorf("%d bytes: %.500s", len(warned), warned)
	}
}
