package fridge_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/examples/fridge"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/program/startest"
	"github.com/settlehq/settle/settletest"
)

func TestTheTestsOfTheStarlarkProgramPass(t *testing.T) {
	t.Parallel()
	results, err := startest.Run(t.Context(), fridge.Source(), "fridge_test.star", star.TestOptions{})
	if err != nil || len(results) == 0 {
		t.Fatalf("%d tests: %v", len(results), err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
}

// TestStarlarkAndGoComeToTheSame whatever happens to the fridge.
func TestStarlarkAndGoComeToTheSame(t *testing.T) {
	t.Parallel()
	hosted, err := fridge.Starlark()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		a := settletest.New(t, fridge.Program()).Space("kitchen")
		b := settletest.New(t, hosted).Space("kitchen")
		for range rapid.IntRange(1, 15).Draw(t, "events") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				m := fridge.Movement{Open: rapid.Bool().Draw(t, "open")}
				a.Send("door", m)
				b.Send("door", m)
			case 1:
				d := time.Duration(rapid.IntRange(1, 5000).Draw(t, "seconds")) * time.Second
				a.Advance(d)
				b.Advance(d)
			default:
				r := fridge.Reading{
					Sensor: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "sensor"),
					C:      float64(rapid.IntRange(16, 40).Draw(t, "quarters")) / 4,
				}
				a.Send("temp", r)
				b.Send("temp", r)
			}
			for _, doc := range []string{"readings", "open", "alarm", "hours", "mean", "extent", "verdict", "tiles", "day", "trend", "status"} {
				if inGo, inStar := a.Get(doc).String(), b.Get(doc).String(); inGo != inStar {
					t.Fatalf("%s is %s in Go and %s in Starlark", doc, inGo, inStar)
				}
			}
		}
	})
}
