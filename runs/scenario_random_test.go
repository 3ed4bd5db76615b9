package runs

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/internal/randomstar"
)

var (
	mixedPrograms = flag.Int("mixed-programs", 25, "how many random programs are played in all ways")
	firstProgram  = flag.Uint64("first-program", 1, "the seed of the first one")
)

// Some attempts fail, as a function of the arguments and the number of the attempt.
const mixedActions = `
def answer(x, result):
    if (3 * x + nth()) % 13 == 5: return failure("A", "at %d" % x)
    if (5 * x + nth()) % 17 == 5: return failure("B", "at %d" % x, ["Base"], {"x": x})
    return result
def inc(x): return answer(x, (x + 1) % 50)
def add(x, y): return answer(x + y, (x + y) % 50)
def small(x): return x < 4
def part(x): return {"n": x % 5, "a": [x, "é"]}
def echo(x): return x
`

// Random programs, whose actions end in any order, agree after each step in memory and in a space, with a restart or
// without one: in what is pending, in the state, in the records, and in the outcome.
func TestRandomPrograms_AgreeAfterEachStepInEveryWay(t *testing.T) {
	t.Parallel()
	results, steps := 0, 0
	for i := range uint64(*mixedPrograms) {
		seed := *firstProgram + i
		s := &stage{t: t}
		if err := s.cmdActions(&datadriven.TestData{Input: mixedActions}); err != nil {
			t.Fatal(err)
		}
		s.src = randomstar.Mixed(seed).Workflow()
		if err := s.cmdStart(&datadriven.TestData{Input: fmt.Sprintf(`{"n":%d}`, seed%4)}); err != nil {
			t.Fatal(err)
		}
		steps += s.playAtRandom(rand.New(rand.NewPCG(seed, 3)))
		if s.close(t); t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, s.src)
		}
		for _, line := range s.lines {
			if line[0] == 'r' {
				results++
			}
		}
	}
	t.Logf("%d programs with %d steps, of which %d have a result", *mixedPrograms, steps, results)
	if results < *mixedPrograms/3 {
		t.Errorf("of %d programs only %d have a result", *mixedPrograms, results)
	}
}

// playAtRandom makes steps until the run has ended, and returns their number.
func (s *stage) playAtRandom(r *rand.Rand) int {
	s.t.Helper()
	for n, signals := 0, 0; ; n++ {
		switch {
		case s.ended:
			return n
		case n > 2000:
			s.t.Fatalf("it does not end:\n%s", s.src)
		case len(s.past) > 0 && r.IntN(10) == 0:
			a := s.past[r.IntN(len(s.past))]
			s.each(func(p player) { p.end(a, answer{result: jsontext.Value("77")}) })
		case len(s.open) > 0 && r.IntN(5) > 0:
			a := s.open[r.IntN(len(s.open))]
			s.end(a, s.answer(a))
		case r.IntN(3) == 0:
			signals++
			s.each(func(p player) { p.signal("s", jsontext.Value(fmt.Sprint(signals))) })
		default:
			by := []time.Duration{time.Millisecond, time.Second, time.Minute, 2 * time.Hour}[r.IntN(4)]
			s.each(func(p player) { p.pass(by) })
		}
	}
}
