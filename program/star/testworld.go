package star

import (
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Engine makes the worlds in which tests run. This package has the language of tests and no
// engine, so that a worker which hosts programs links none; package program/startest has one.
type Engine interface {
	// World makes a world whose spaces run a program from a time on. log gets what the program
	// logs.
	World(p *space.Program, start time.Time, log func(space.ConsoleInfo)) World
	// Replay makes a world in which the recorded lines of a space have happened again, at the same
	// times. It returns the recording's start, the space, and where the space has come to
	// something else.
	Replay(p *space.Program, lines []string, log func(space.ConsoleInfo)) (w World, r Replayed, err error)
}

// Replayed describes a recording that was played.
type Replayed struct {
	Space       string
	Start       time.Time
	Differences []string
}

// World is spaces in memory, in virtual time.
type World interface {
	// Space returns a space, which is made if there is none.
	Space(name string) (TestSpace, error)
	Now() time.Time
	// Advance lets time pass: what is due on the way is handled at its time.
	Advance(d time.Duration) error
	// Restart ends every process of the world and starts it again.
	Restart() error
	// TakeProblems returns what has gone wrong since the last call, oldest first.
	TakeProblems() []Problem
}

// TestSpace is a space of a World.
type TestSpace interface {
	// Send sends an event and returns its receipt; ok is false if it is not handled, and then
	// Pending says why.
	Send(stream, id string, payload model.Value, notBefore time.Time) (rc model.Receipt, ok bool, err error)
	Pending() string
	// Read reads documents as they follow from all that has happened, Write writes some.
	Read(f func(tx *space.Tx) error) (stale string, err error)
	Write(f func(tx *space.Tx) error) error
	// Watch observes a document from here on.
	Watch(doc string) error
	// Mark begins the counting of Runs and Ran anew.
	Mark()
	Runs(node string) int
	Ran() []string
	Has(node string) bool
	// Why explains why a node ran, or why it does not.
	Why(node string) string
}

// Problem is something that has gone wrong in a World.
type Problem struct {
	// Where names the node or the stream whose code it was.
	Where string
	// DeadLetter is true if an event has failed; Space, Stream and Event name it.
	DeadLetter           bool
	Space, Stream, Event string
	// Err is what the code ended in, nil if that is not known.
	Err error
	// Text describes the problem in one or more lines.
	Text string
}
