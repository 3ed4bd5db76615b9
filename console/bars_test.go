package console

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/settlehq/settle/runs"
)

// However many attempts there are, their picture has some thousand bars at most, in which each state and each end is to be seen.
func TestBars_AreNoMoreThanCanBeSeen(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var list []*runs.Attempt
	const span = 600_000
	for range 50_000 {
		a := &runs.Attempt{Started: rng.Int64N(span), State: runs.Done}
		a.Ended = a.Started + rng.Int64N(5000)
		switch rng.IntN(10) {
		case 0:
			a.State = runs.Failed
		case 1:
			a.State, a.Ended = runs.Running, 0
		}
		list = append(list, a)
	}
	text := string(bars(list, 0, span))
	if n := strings.Count(text, "<rect"); n > 7000 || len(text) > 700<<10 {
		t.Errorf("%d bars in %d bytes", n, len(text))
	}
	all := string(bars([]*runs.Attempt{{Started: 0, Ended: 10, State: runs.Done}, {Started: 5, Ended: 20, State: runs.Failed}, {Started: 5, State: runs.Running}}, 0, 40))
	for _, part := range []string{`class="s-clean" x="0.00%" y="1" width="25.00%"`, `class="s-failed" x="12.50%" y="11" width="37.50%"`, `class="s-running open" x="12.50%" y="21" width="87.50%"`} {
		if !strings.Contains(all, part) {
			t.Errorf("%s is not in %s", part, all)
		}
	}
}
