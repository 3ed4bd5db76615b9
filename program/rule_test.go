package program_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/program"
)

func TestTheMostParticularRuleDecides(t *testing.T) {
	w := newWorld(t)
	for _, spaces := range []string{"*", "airport-*", "airport-us-*", "airport-us-sfo"} {
		w.pinTo(spaces, w.publish("p", "rule "+spaces))
	}
	r, changes := w.open()
	for space, want := range map[string]string{
		"anything": "*", "airport": "*", "airport-": "airport-*", "airport-de-fra": "airport-*",
		"airport-us-jfk": "airport-us-*", "airport-us-sfo": "airport-us-sfo", "airport-us-sfo2": "airport-us-*",
	} {
		w.wantRuns(r, space, "rule "+want)
	}
	w.pin("airport-us-*", program.Choice{})
	w.until(r, changes, "airport-us-jfk", "rule airport-*")
	w.pin("*", program.Choice{})
	w.until(r, changes, "anything", "nothing")
}

// The oracle examines all rules, and chooses the exact one, or the one with the longest prefix.
func TestTheMostParticularRuleDecides_AsSaidByLookingAtAll(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		name := rapid.StringMatching(`[ab]{1,3}`)
		pattern := rapid.OneOf(name, rapid.Map(name, func(s string) string { return s + "*" }), rapid.Just("*"))
		patterns := rapid.SliceOfNDistinct(pattern, 0, 8, rapid.ID[string]).Draw(rt, "rules")
		for _, p := range patterns {
			w.pinTo(p, program.Target{Program: "p", Version: "v" + strings.ReplaceAll(p, "*", "_")})
		}
		table, err := program.Rules(w.ctx, w.Client)
		w.must(err)
		space := name.Draw(rt, "space")
		best := ""
		for _, p := range patterns {
			prefix, starred := strings.CutSuffix(p, "*")
			switch {
			case p == space:
				best = "exact " + p
			case starred && strings.HasPrefix(space, prefix) && !strings.HasPrefix(best, "exact ") && len(p) > len(best):
				best = p
			}
		}
		got := ""
		if r := table.Rule(space); r != nil {
			got = r.Spaces
		}
		if want := strings.TrimPrefix(best, "exact "); got != want {
			rt.Errorf("rules %q: space %s follows %q, want %q", patterns, space, got, want)
		}
	})
}

func TestACanaryTakesItsShareTheSameSpacesEverywhereAndMoreOfThemLater(t *testing.T) {
	w := newWorld(t)
	stable, canary := w.publish("p", "stable"), w.publish("p", "canary")
	const spaces = 2000
	var before []string
	for _, percent := range []int{1, 10, 50, 99} {
		w.pin("*", program.Choice{Target: stable, Canary: &program.Canary{Version: canary.Version, Percent: percent}})
		a, _ := w.open()
		b, _ := w.open()
		var tried []string
		for i := range spaces {
			space := fmt.Sprintf("s-%d", i)
			is := w.runs(a, space) == "canary"
			if is {
				tried = append(tried, space)
			}
			if is != (program.Share("p", space) < percent) {
				t.Errorf("%d percent: space %s, with share %d: canary %v", percent, space, program.Share("p", space), is)
			}
			w.wantRuns(b, space, w.runs(a, space))
		}
		if share := 100 * len(tried) / spaces; share < percent-3 || share > percent+3 {
			t.Errorf("%d percent: %d of %d spaces", percent, len(tried), spaces)
		}
		for _, space := range before {
			if !slices.Contains(tried, space) {
				t.Errorf("%d percent: space %s is not among them any more", percent, space)
			}
		}
		before = tried
	}
	if program.Share("p", "s-1") == program.Share("q", "s-1") && program.Share("p", "s-2") == program.Share("q", "s-2") {
		t.Error("the canaries of two programs are tried in the same spaces")
	}
}

// The share of a rule follows from a hash that is stored nowhere, so the hash must never change.
func TestSharesAreTheSameForEver(t *testing.T) {
	var got []int
	for _, space := range []string{"a", "b", "airport-1", "fridge"} {
		got = append(got, program.Share("p", space))
	}
	if want := []int{61, 71, 33, 8}; !slices.Equal(got, want) {
		t.Errorf("shares %v, want %v", got, want)
	}
}

func TestARuleRemembersWhatItHasSaidBefore(t *testing.T) {
	w := newWorld(t)
	one, two := w.publish("p", "one"), w.publish("p", "two")
	r := w.pinTo("*", one)
	if _, ok := r.Before(); ok || len(r.History) != 0 {
		t.Errorf("a rule that is new has a history: %+v", r)
	}
	r = w.pinTo("*", two)
	r = w.pinTo("*", two) // says the same
	if before, ok := r.Before(); !ok || before != one || len(r.History) != 1 {
		t.Errorf("before: %v, history %v", before, r.History)
	}
	r = w.pin("*", program.Choice{Target: two, Canary: &program.Canary{Version: one.Version, Percent: 5}})
	if before, _ := r.Before(); before != two {
		t.Errorf("a canary goes back to %v", before)
	}
	for i := range 2 * program.MaxHistory {
		r = w.pinTo("*", program.Target{Program: "p", Version: fmt.Sprintf("v%d", i)})
	}
	if len(r.History) != program.MaxHistory || r.History[0].Version != "v38" {
		t.Errorf("%d entries, the latest %v", len(r.History), r.History[0])
	}
}

func TestTwoWhoDecideAtOnceDoNotUndoEachOtherUnseen(t *testing.T) {
	w := newWorld(t)
	const deciders = 8
	w.pinTo("*", program.Target{Program: "p", Version: "v0"})
	var all sync.WaitGroup
	for i := range deciders {
		all.Go(func() {
			_, err := program.Decide(w.ctx, w.Client, "*", func(r program.Rule) (program.Choice, error) {
				return program.Choice{Target: program.Target{Program: "p", Version: fmt.Sprintf("v%d", i+1)}, At: time.Unix(1, 0)}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	table, err := program.Rules(w.ctx, w.Client)
	w.must(err)
	r := table.Rule("a")
	said := []string{r.Version}
	for _, c := range r.History {
		said = append(said, c.Version)
	}
	slices.Sort(said)
	if want := []string{"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8"}; !slices.Equal(said, want) {
		t.Errorf("the rule has said %v, want %v", said, want)
	}
}

func TestADecisionIsMadeAgainOverWhatSomebodyElseHasDecidedMeanwhile(t *testing.T) {
	w := newWorld(t)
	seen := []string{}
	r, err := program.Decide(w.ctx, w.Client, "*", func(r program.Rule) (program.Choice, error) {
		seen = append(seen, r.Version)
		if len(seen) == 1 {
			w.pinTo("*", program.Target{Program: "p", Version: "theirs"})
		}
		return program.Choice{Target: program.Target{Program: "p", Version: "mine"}, At: time.Unix(1, 0)}, nil
	})
	w.must(err)
	if !slices.Equal(seen, []string{"", "theirs"}) || r.Version != "mine" || r.History[0].Version != "theirs" {
		t.Errorf("decided over %q, and the rule is %+v", seen, r)
	}
}

func TestPatternsAndPercentagesThatAreNoneAreRefused(t *testing.T) {
	w := newWorld(t)
	keep := func(c program.Choice) func(program.Rule) (program.Choice, error) {
		return func(program.Rule) (program.Choice, error) { return c, nil }
	}
	good := program.Choice{Target: program.Target{Program: "p", Version: "v"}}
	for _, spaces := range []string{"", "**", "a*b", "a.b", "a b", ">", "*a"} {
		if _, err := program.Decide(w.ctx, w.Client, spaces, keep(good)); err == nil {
			t.Errorf("spaces %q: no error", spaces)
		}
	}
	for _, percent := range []int{-1, 0, 100} {
		c := good
		c.Canary = &program.Canary{Version: "w", Percent: percent}
		if _, err := program.Decide(w.ctx, w.Client, "*", keep(c)); err == nil {
			t.Errorf("%d percent: no error", percent)
		}
	}
	none := errors.New("no")
	if _, err := program.Decide(w.ctx, w.Client, "*", func(program.Rule) (program.Choice, error) { return good, none }); !errors.Is(err, none) {
		t.Errorf("the decision was refused, and yet: %v", err)
	}
	if table, err := program.Rules(w.ctx, w.Client); err != nil || len(table.All()) != 0 {
		t.Errorf("rules %v, %v", table.All(), err)
	}
}
