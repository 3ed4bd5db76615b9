package space

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// ring is a circle of spaces, each of which derives x from x of the one before.
type ring struct {
	*world
	hosts []*host
	// reports has the calls of Trace.Round, with the space.
	reports []string
}

// newRing returns a circle of n spaces. x of the first is base plus that of the last plus one, or stays at most.
func newRing(t *testing.T, n int, most int64) *ring {
	r := &ring{world: newWorld(t)}
	for i := range n {
		of := fmt.Sprintf("s%02d", (i+n-1)%n)
		p := newProgram(t).set().handle("read", func(tx *Tx, _ *model.Event) any { return tx.Get("x") }).compute("x", func(tx *Tx) any {
			x, base := num(tx.GetFrom(of, "x")), num(tx.Get("base"))
			if i == 0 && !tx.Get("stop").IsAbsent() {
				return 0
			}
			return min(x+base+1, most)
		})
		name := fmt.Sprintf("s%02d", i)
		h := r.owner("w1", p.Program, func(c *Config) {
			c.Space = name
			c.Trace.Round = func(i RoundInfo) {
				r.reports = append(r.reports, fmt.Sprint(name, " ", strings.Join(i.Docs, ","), " over ", i.Over))
			}
		})
		r.hosts = append(r.hosts, h)
	}
	for _, h := range r.hosts { // as the mirrors in the next space do
		h.observe("x")
	}
	return r
}

// drive does all work until a time.
func (r *ring) drive(until time.Duration) {
	r.t.Helper()
	for {
		before := r.seq
		for _, h := range r.hosts {
			h.run()
		}
		if r.seq != before {
			continue
		}
		next := until
		for _, h := range r.hosts {
			if w := h.last.Wake; w > 0 {
				next = min(next, w)
			}
		}
		if next == until {
			break
		}
		r.at(next)
	}
	r.at(until)
}

func (r *ring) at(now time.Duration) {
	for _, h := range r.hosts {
		h.now = now
	}
}

// steps returns how often x was derived, in all spaces.
func (r *ring) steps() (n int) {
	for _, h := range r.hosts {
		n += h.runs["x"]
	}
	return n
}

// Circles over spaces turn at full speed for a hundred steps, and then more and more slowly. Each is reported once, by one space, with the way.
func TestRounds_ACircleOverSpacesIsBoundedAndReportedOnce(t *testing.T) {
	for _, n := range []int{2, 3, 5, 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := newRing(t, n, 1<<40)
			r.drive(0)
			fast := r.steps()
			if most := freeSteps + 2*n + model.MaxTrail; fast < freeSteps || fast > most {
				t.Errorf("%d steps at once, want %d to %d", fast, freeSteps, most)
			}
			r.drive(10 * time.Second)
			soon := r.steps() - fast
			if soon < 2 || soon > 10 {
				t.Errorf("%d steps within 10 s, want 2 to 10", soon)
			}
			r.drive(time.Hour)
			if late := r.steps() - fast - soon; late < 100 || late > 130 {
				t.Errorf("%d steps within the rest of the hour, want one in 30 s", late)
			}
			if n <= model.MaxTrail {
				if len(r.reports) != 1 || !strings.HasPrefix(r.reports[0], "s00 s00/x,s01/x") || strings.Count(r.reports[0], "/x") != n {
					t.Errorf("reports %q, want one, by s00, with %d documents", r.reports, n)
				}
			} else if len(r.reports) != 1 {
				t.Errorf("reports %q, want one, with a part of the way", r.reports)
			}
		})
	}
}

// A circle that comes to rest within a hundred steps is not held back, and nothing is reported.
func TestRounds_ACircleThatConvergesIsNotHeldBack(t *testing.T) {
	r := newRing(t, 3, 90)
	r.drive(0)
	if got := r.hosts[0].value("x"); got != "90" || len(r.reports) > 0 {
		t.Errorf("x is %s at once, want 90; reports %q", got, r.reports)
	}
	for i, h := range r.hosts {
		if h.core.rounds.wake() != 0 || len(h.core.rounds.held) > 0 {
			t.Errorf("space %d holds something back", i)
		}
	}
}

// While a circle is held back, a change with another origin passes at once, events read what is derived from the circle, and a reader is notified
// that a newer value is held back.
func TestRounds_OnlyTheCircleIsHeldBack(t *testing.T) {
	r := newRing(t, 2, 1<<40)
	a, b := r.hosts[0], r.hosts[1]
	r.drive(time.Minute)
	if f := a.core.Freshness("x"); f.Pending {
		t.Errorf("x is pending: %+v", f)
	}
	reasons := a.core.Freshness("x").Reason + b.core.Freshness("x").Reason
	if !strings.Contains(reasons, "in a circle") {
		t.Errorf("the reasons are %q", reasons)
	}
	r.send("s00", "read", "e1", nil)
	r.drive(time.Minute)
	if got := r.receipt("s00", "e1").Outcome; got != model.Handled {
		t.Errorf("the event has ended as %q", got)
	}
	before := num(b.core.Value("x"))
	r.put("s00", put("base", 1_000_000))
	a.integrate()
	r.drive(time.Minute)
	if got := num(b.core.Value("x")); got < before+1_000_000 {
		t.Errorf("x of the second space is %d a moment after base has changed, want more than a million", got)
	}
}

// An episode ends some time after the circle has come to rest, and nothing is left of it.
func TestRounds_AnEpisodeEnds(t *testing.T) {
	r := newRing(t, 2, 1<<40)
	r.drive(time.Minute)
	if s := r.hosts[1].core.Inspect().State().Rounds; len(s) != 1 || !slices.Equal(s[0].Docs, []string{"s00/x", "s01/x"}) {
		t.Errorf("the state has the circles %+v", s)
	}
	r.put("s00", put("stop", 1))
	r.hosts[0].integrate()
	r.drive(10 * time.Minute)
	if want := []string{"s00 s00/x,s01/x over false", "s00 s00/x,s01/x over true"}; !slices.Equal(r.reports, want) {
		t.Errorf("reports %q, want %q", r.reports, want)
	}
	for i, h := range r.hosts {
		if s := &h.core.rounds; len(s.held)+len(s.episodes)+len(s.news) > 0 || h.last.Wake != 0 {
			t.Errorf("space %d keeps %+v, and is to be woken at %v", i, s, h.last.Wake)
		}
	}
}

// What is not followed any more is not delivered, and its trail is forgotten with it.
func TestRounds_NothingIsLeftOfACircleThatNobodyObserves(t *testing.T) {
	r := newRing(t, 2, 1<<40)
	r.drive(3 * time.Second)
	for _, h := range r.hosts {
		h.core.Unobserve("x")
	}
	r.drive(10 * time.Minute)
	before := r.steps()
	r.drive(20 * time.Minute)
	if got := r.steps(); got != before {
		t.Errorf("%d steps without an observer", got-before)
	}
}
