package star

import (
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Engine makes the worlds in which tests run. This package has the language of tests and no engine, so
// that a worker that hosts programs links no test kit; package program/startest has one.
type Engine interface {
	// World makes a world, at a time, whose spaces run programs. log receives what these log.
	World(programs func(space string) *space.Program, start time.Time, log func(space.ConsoleInfo)) World
	// Replay makes a world and repeats the recorded lines of a space in it, at the same times. r names
	// the space, and has the start of the recording and the differences.
	Replay(p *space.Program, lines []string, log func(space.ConsoleInfo)) (w World, r Replayed, err error)
}

// Replayed describes a recording that was played.
type Replayed struct {
	Space       string
	Start       time.Time
	Differences []string
}

// World is a set of spaces in memory, in virtual time.
type World interface {
	// Space returns a space, and makes it if there is none.
	Space(name string) (TestSpace, error)
	Now() time.Time
	// Names returns the names of the spaces that there are, sorted: those that the test has named, and those that their
	// programs have sent events to.
	Names() []string
	// Advance moves time forward. Everything due on the way runs at its time.
	Advance(d time.Duration) error
	// Next returns the time of the next scheduled action; false if there is none.
	Next() (time.Time, bool)
	// Restart ends every process of the world and starts it again.
	Restart() error
	// Outage is Restart with a time in between in which no process runs.
	Outage(d time.Duration) error
	// TakeProblems returns the problems since the last call, oldest first.
	TakeProblems() []Problem
}

// TestSpace is a space of a World.
type TestSpace interface {
	// Send sends an event and returns its receipt; ok is false if the event has not ended, and then
	// Pending returns why.
	Send(stream, id string, payload model.Value, notBefore time.Time) (rc model.Receipt, ok bool, err error)
	// SendAs is Send in the name of a principal, "" for none.
	SendAs(principal, stream, id string, payload model.Value, notBefore time.Time) (rc model.Receipt, ok bool, err error)
	// Queue is SendAs of an event that is handled with what runs next. It is a problem if it fails, unless it is sent again before.
	Queue(principal, stream, id string, payload model.Value) error
	// SendTo sends an event to a space, as a handler of this one does.
	SendTo(to, stream string, payload model.Value) (rc model.Receipt, ok bool, err error)
	Pending() string
	// Read runs a function that reads documents, which are up to date; Write runs one that writes.
	Read(f func(tx *space.Tx) error) (stale string, err error)
	Write(f func(tx *space.Tx) error) error
	// Tasks returns the tasks of an action.
	Tasks(action string) []space.Task
	// Watch observes a document from now on.
	Watch(doc string) error
	// Mark resets Runs and Ran.
	Mark()
	Runs(node string) int
	Ran() []string
	Has(node string) bool
	// Why explains why a node ran, or why it does not run.
	Why(node string) string
}

// Problem is a mistake or failure in a World.
type Problem struct {
	// Where names the node or the stream whose code it was.
	Where string
	// DeadLetter is true if an event has failed; Space, Stream and Event name it.
	DeadLetter           bool
	Space, Stream, Event string
	// Err is the error of the code, nil if it is not known.
	Err error
	// Text describes the problem in one or more lines.
	Text string
}
