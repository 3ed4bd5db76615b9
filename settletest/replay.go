package settletest

import (
	"os"
	"strings"

	"github.com/settlehq/settle/internal/replay"
	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/space"
)

// Replay repeats in a world what file, a recording made by `settle replay`, contains of a space: the same
// events at the same times, and its other writes. The test fails if an event has another outcome or result
// than recorded, or if a document differs at the end; derived documents are not compared. Replay returns the
// world in its final state, for further checks.
//
// Only the recorded space runs its program: events that it sends to other spaces are in World.Undelivered,
// and documents of other spaces are absent. Lines of documents can be removed from the file if their values,
// such as times, differ in every run.
//
// Functions run once, and errors do not fail the test, since they also occurred in production.
func Replay[P Source](t TB, programs P, file string, opts ...Option) *World {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("read the recording: %v", err)
	}
	r, err := replay.ParseRecording(strings.Split(string(text), "\n"))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	of := programsOf(programs)
	only := func(name string) (*space.Program, error) {
		if name != r.Space {
			return nil, nil
		}
		return of(name)
	}
	w := newWorld(t, simkit.Programs(only), append([]Option{StartAt(r.Start), AllowErrors(), AllowUndelivered(), WithoutValidator()}, opts...))
	differences, err := r.Play(w.w)
	w.check(err)
	for _, d := range differences {
		t.Errorf("replay of space %s: %s", r.Space, d)
	}
	return w
}
