// Package startest runs the tests of programs in Starlark, functions test_* in files beside them, in
// worlds of internal/simkit: spaces in memory, in virtual time. The language of tests is in package
// program/star.
package startest

import (
	"context"
	"slices"
	"time"

	"github.com/settlehq/settle/internal/replay"
	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/space"
)

// Run runs the tests of one of the source's files. See star.RunTests, whose errors it returns; the
// options need no Engine.
func Run(ctx context.Context, src star.Source, testFile string, o star.TestOptions) ([]star.TestResult, error) {
	o.Engine = Engine
	return star.RunTests(ctx, src, testFile, o)
}

// Engine makes worlds of internal/simkit.
var Engine star.Engine = engine{}

type engine struct{}

func (engine) World(programs func(string) *space.Program, start time.Time, log func(space.ConsoleInfo)) star.World {
	of := func(name string) (*space.Program, error) { return programs(name), nil }
	return world{simkit.New(of, simkit.Options{Start: start, Log: log})}
}

// Replay runs functions once: a second run to check that they are idempotent would count as an
// additional run that is not in the recording.
func (engine) Replay(p *space.Program, lines []string, log func(space.ConsoleInfo)) (star.World, star.Replayed, error) {
	r, err := replay.ParseRecording(lines)
	if err != nil {
		return nil, star.Replayed{}, err
	}
	only := func(name string) (*space.Program, error) {
		if name != r.Space {
			return nil, nil
		}
		return p, nil
	}
	w := simkit.New(only, simkit.Options{Start: r.Start, Log: log, Lenient: true})
	differences, err := r.Play(w)
	return world{w}, star.Replayed{Space: r.Space, Start: r.Start, Differences: differences}, err
}

type world struct{ *simkit.World }

func (w world) Space(name string) (star.TestSpace, error) {
	s, err := w.World.Space(name)
	if err != nil {
		return nil, err
	}
	return testSpace{s}, nil
}

func (w world) Names() (list []string) {
	for _, s := range w.Spaces() {
		list = append(list, s.Name())
	}
	slices.Sort(list)
	return list
}

func (w world) TakeProblems() []star.Problem {
	var all []star.Problem
	for _, p := range w.World.TakeProblems() {
		if p.Kind == simkit.Undelivered { // a replay has one space, and the program of a test runs in all
			continue
		}
		all = append(all, star.Problem{
			Where: p.Source(), DeadLetter: p.Kind == simkit.DeadLetter, Space: p.Space, Stream: p.Stream, Event: p.Event, Err: p.Err, Text: p.String(),
		})
	}
	return all
}

type testSpace struct{ *simkit.Space }

func (s testSpace) Watch(doc string) error {
	_, err := s.Space.Watch(doc)
	return err
}

func (s testSpace) Why(node string) string {
	e, _ := s.Explain(node)
	return e.String()
}
