package runs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/internal/randomstar"
	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/space"
)

// A random program whose actions are called by children in another space has the outcome that it has if it calls them
// itself, in memory, and performs the same; also if every process ends before each end of an action.
func TestChild_RandomProgramsComeToTheSame(t *testing.T) {
	t.Parallel()
	d := inStarlark(t, randomstar.Actions)
	const header = "load('actions', 'add', 'inc', 'odd')\n"
	const calls = `
def inc(x): return child("inc", {"x": x}, space = "other")
def add(x, y): return child("add", {"x": x, "y": y}, space = "other")
def odd(x): return child("odd", {"x": x}, space = "other")
`
	var leaves []string
	for action, params := range map[string]string{"inc": "x", "add": "x, y", "odd": "x"} {
		leaves = append(leaves, fmt.Sprintf("load('actions', %q)\ndef run(%s): return %s(%s)\nworkflow(%q, run)\n", action, params, action, params, action))
	}
	for seed := range uint64(randomPrograms) {
		src, args := randomstar.Program(20_000+seed), fmt.Sprintf(`{"n":%d}`, seed%5)
		if !strings.Contains(src, header) {
			t.Fatal("a program loads other actions:", src)
		}
		result, log := inMemory(t, src, args, d)
		for i := range log {
			log[i] = strings.ReplaceAll(log[i], "y=", "") // children pass their arguments on by position
		}
		p, actions := programOf(t, append(leaves, strings.Replace(src, header, calls, 1))...)
		for _, restart := range []bool{false, true} {
			f := &family{world: &world{T: t, deeds: d, actions: actions, restart: restart}, except: map[string]*space.Program{}}
			f.World = simkit.New(simkit.Always(p), simkit.Options{Blocking: true})
			f.begin("s", "r", args)
			f.performAll()
			got, log := f.of("s", "r"), slices.Clone(log)
			slices.Sort(f.log) // concurrent calls have no order
			slices.Sort(log)
			if failed := strings.HasPrefix(result, "error") && strings.HasPrefix(got, result); !failed && (got != result || !slices.Equal(f.log, log)) {
				t.Fatalf("seed %d, restart %v: %s after %v\nin memory: %s after %v\n%s", seed, restart, got, f.log, result, log, src)
			}
			for _, s := range f.Spaces() {
				for id, entry := range s.Value(Index).All() {
					if state, _ := entry.Get("state").AsString(); State(state) == Running {
						t.Errorf("seed %d: run %s in space %s goes on", seed, id, s.Name())
					}
				}
			}
			f.tidied()
		}
	}
}
