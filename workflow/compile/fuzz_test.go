package compile

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle/internal/randomstar"
)

var (
	programs     = flag.Int("programs", 500, "how many programs are tried at random")
	firstProgram = flag.Uint64("first-program", 1, "the seed of the first one")
)

// Random programs have the same results and calls of actions as in the ordinary interpreter, also if the run is
// stored and loaded after every step.
func TestRandomPrograms_ComeToWhatTheInterpreterSays(t *testing.T) {
	d := inStarlark(t, randomstar.Actions)
	ends := map[bool]int{}
	for seed := range uint64(*programs) {
		got := same(t, randomstar.Program(*firstProgram+seed), fmt.Sprintf(`{"n":%d}`, seed%5), d)
		ends[strings.HasPrefix(got.result, "error")]++
	}
	if *programs >= 1000 && (ends[true] < *programs/20 || ends[false] < *programs/20) {
		t.Errorf("%d programs failed and %d did not: this proves little", ends[true], ends[false])
	}
}
