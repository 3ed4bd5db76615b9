package settletest

import (
	"os"
	"strings"

	"github.com/settlehq/settle/internal/kit"
	"github.com/settlehq/settle/space"
)

// Replay has happen in a world what file, a recording that `settle replay` has made, says happened in
// a space: the same events at the same times, and what else was written there. The test fails if an
// event ends in another way than it did, with another result, or if a document is not what it was in
// the end; derived ones are not compared. The world is returned as it is then, for more to be asked.
//
// Only the space of the recording runs its program: what that sends to others is in World.Undelivered,
// and what it reads in others is absent. A line of a document may be taken out of the file, if it holds
// what is never the same again, such as a time.
//
// Functions are run once, and errors are no failure of the test: production had them, too.
func Replay[P Source](t TB, programs P, file string, opts ...Option) *World {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("read the recording: %v", err)
	}
	r, err := kit.ParseRecording(strings.Split(string(text), "\n"))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	tell := tellers(programs)
	only := func(name string) (*space.Program, error) {
		if name != r.Space {
			return nil, nil
		}
		return tell(name)
	}
	w := newWorld(t, kit.Programs(only), append([]Option{StartAt(r.Start), AllowErrors(), WithoutValidator()}, opts...))
	differences, err := r.Play(w.w)
	w.check(err)
	for _, d := range differences {
		t.Errorf("replay of space %s: %s", r.Space, d)
	}
	return w
}
