package program_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/space"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// patience turns a hang into a failure.
const patience = 2 * time.Minute

// world is a worldtest.World in real time, whose programs are texts: one that begins with "broken" does not compile.
type world struct {
	*worldtest.World
	ctx context.Context

	mu       sync.Mutex
	compiles map[string]int
}

func newWorld(t *testing.T) *world {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return &world{World: worldtest.New(t, membus.Config{Partitions: 1}), ctx: ctx, compiles: map[string]int{}}
}

func (w *world) compile(v *program.Version) (*space.Program, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := v.Files[v.Entry]
	w.compiles[text]++
	if strings.HasPrefix(text, "broken") {
		return nil, errors.New(v.Entry + ":1:1: it is broken")
	}
	return space.NewProgram(text), nil
}

func (w *world) compiled(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.compiles[text]
}

// open opens a registry; changes gets a signal for each change of its answers.
func (w *world) open() (r *program.Registry, changes chan struct{}) {
	w.Helper()
	changes = make(chan struct{}, 100)
	r, err := program.Open(w.ctx, w.Client, program.Config{
		Compile: w.compile, OnChange: func() { changes <- struct{}{} }, Again: time.Millisecond,
		Logger: w.Logger(),
	})
	w.must(err)
	w.Cleanup(r.Close)
	return r, changes
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// publish stores a version of a program that consists of one text.
func (w *world) publish(name, text string) program.Target {
	w.Helper()
	v := w.version(name, text)
	v, _, err := program.Publish(w.ctx, w.Client, v)
	w.must(err)
	return v.Target()
}

func (w *world) version(name, text string) program.Version {
	w.Helper()
	s := program.Source{Name: name, Entry: name + ".star", Files: map[string]string{name + ".star": text}}
	v, err := program.NewVersion(s, "ann", "", time.Unix(1_000_000, 0))
	w.must(err)
	return v
}

func (w *world) pin(spaces string, c program.Choice) program.Rule {
	w.Helper()
	r, err := program.Decide(w.ctx, w.Client, spaces, func(program.Rule) (program.Choice, error) { return c, nil })
	w.must(err)
	return r
}

func (w *world) pinTo(spaces string, t program.Target) program.Rule {
	w.Helper()
	return w.pin(spaces, program.Choice{Target: t, At: time.Unix(1_000_000, 0)})
}

// until waits until a space runs a program of that name.
func (w *world) until(r *program.Registry, changes chan struct{}, space, want string) {
	w.Helper()
	for {
		got := w.runs(r, space)
		if got == want {
			return
		}
		if !w.next(changes) {
			w.Fatalf("space %s runs %s, want %s", space, got, want)
		}
	}
}

// next waits for a change, and reports whether there was one.
func (w *world) next(changes chan struct{}) bool {
	select {
	case <-changes:
		return true
	case <-w.ctx.Done():
		return false
	}
}

func (w *world) runs(r *program.Registry, space string) string {
	w.Helper()
	p, err := r.Programs(space)
	switch {
	case err != nil:
		return "error: " + err.Error()
	case p == nil:
		return "nothing"
	}
	return p.Name
}

func (w *world) wantRuns(r *program.Registry, space, want string) {
	w.Helper()
	if got := w.runs(r, space); got != want {
		w.Errorf("space %s runs %s, want %s", space, got, want)
	}
}
