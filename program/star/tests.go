package star

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/fingerprint"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/space"
)

// TestOptions configure a run of tests. Engine is required; package program/startest sets it.
type TestOptions struct {
	// Engine makes the worlds of the tests.
	Engine Engine
	// Limits are those of the program under test.
	Limits Limits
	// Match, if set, selects the tests to run by name.
	Match func(name string) bool
}

// TestResult is the result of a test.
type TestResult struct {
	Name string
	// Err is why the test failed, nil if it did not. It is or wraps an *Error with the position in the
	// test, or in the program that failed; its text also has the problems before.
	Err error
	// Passed is how much time of the world has passed.
	Passed time.Duration
	// Log is what the test and the program have logged.
	Log []string
}

// testLimits are the limits of a test itself, which may run longer than the program.
var testLimits = Limits{Steps: 20_000_000, Memory: 1 << 30, Output: 4 << 20, Depth: 500}

// RunTests runs the functions test_* of one of the source's files, each in a world of its own: spaces
// in memory that run the program, in a time that passes when the test advances it. It returns an error
// if the program or the file does not compile, or if ctx is done; the failure of a test is in its
// result.
//
// The functions of a program are run twice. A test fails if the two results differ, if a computation
// fails, or if an event fails that the program itself has sent. docs/starlark.md has the builtins of
// tests.
func RunTests(ctx context.Context, src Source, testFile string, o TestOptions) ([]TestResult, error) {
	if o.Engine == nil {
		return nil, errors.New("tests need an engine: call startest.Run")
	}
	if _, ok := src.Files[testFile]; !ok {
		return nil, fmt.Errorf("program %s: there is no file %q", src.Name, testFile)
	}
	p, err := Compile(src, Options{Limits: o.Limits, Context: ctx})
	if err != nil {
		return nil, err
	}
	tests := &code{name: src.Name, entry: testFile, bounds: testLimits.bounds(), files: map[string]*file{}, bodies: fingerprint.Bodies{}, predeclared: testBuiltins.has}
	defer context.AfterFunc(ctx, func() { tests.stop.stop(context.Cause(ctx).Error()) })()
	if err := tests.read(src, append(src.names(), testFile)...); err != nil {
		return nil, err
	}
	x := &testRun{engine: o.Engine, others: map[string]*Program{}, compile: func(file string) (*Program, error) {
		of := src
		of.Name, of.Entry = strings.TrimSuffix(file, ".star"), file
		return Compile(of, Options{Limits: o.Limits, Context: ctx})
	}}
	inst, globals, err := instantiate(tests, testBuiltins, x)
	if err != nil {
		return nil, err
	}
	var results []TestResult
	for _, fn := range testsAmong(globals) {
		if o.Match != nil && !o.Match(fn.Name()) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return results, err
		}
		results = append(results, inst.runTest(p, fn))
	}
	return results, ctx.Err()
}

// runTest runs one test.
func (inst *instance) runTest(p *Program, fn *starlark.Function) (r TestResult) {
	x := inst.test
	x.log, x.mocks, x.queued = nil, mocks{}, false
	x.program, x.start = p, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	x.world = x.engine.World(x.programOf, x.start, x.addLog)
	c := inst.enter(nil, &decl{kind: "test", id: fn.Name(), fn: fn, pos: fn.Position()}, nil)
	defer inst.leave()
	c.Docs = &testDocs{test: x, name: testSpace}
	err := x.call(c, fn)
	if err == nil && x.queued { // what nothing has waited for may fail
		err = inst.advanceMocked(0)
	}
	if err != nil {
		err = asError(inst.code.entry, err)
	}
	problems := x.world.TakeProblems()
	switch {
	case len(problems) == 0:
	case err == nil:
		err = problemError(problems[0], fn)
	default:
		err = fmt.Errorf("%w\nbefore that:\n  %s", err, problemsText(problems))
	}
	if failed := x.failedRuns(); err != nil && len(failed) > 0 {
		err = fmt.Errorf("%w\n%s", err, strings.Join(failed, "\n"))
	}
	return TestResult{Name: fn.Name(), Err: err, Passed: x.world.Now().Sub(x.start), Log: x.log}
}

// failedRuns describes the runs that have failed, which may be why a test has.
func (x *testRun) failedRuns() (lines []string) {
	for _, name := range x.world.Names() {
		s, err := x.world.Space(name)
		if err != nil || len(lines) > maxReported {
			break // the test has failed for another reason already
		}
		_, _ = s.Read(func(tx *space.Tx) error { // the same
			lines = append(lines, runs.FailedIn(name, func(doc string) model.Value { return tx.Peek(doc) }, maxReported)...)
			return nil
		})
	}
	return lines[:min(len(lines), maxReported)]
}

func (x *testRun) call(c *call, fn *starlark.Function) (err error) {
	defer contain(c.inst.code.entry, &err)
	if _, err = x.world.Space(testSpace); err == nil { // its cron jobs start here
		_, err = starlark.Call(&c.Thread, fn, nil, nil)
	}
	return err
}

// problemError converts a problem of the program to the failure of a test. Its position is that of the
// program's error, or else that of the test.
func problemError(p Problem, fn *starlark.Function) error {
	var e *Error
	if errors.As(p.Err, &e) {
		own := *e
		own.Message = p.Where + ": " + e.Message
		if p.DeadLetter {
			own.Message = fmt.Sprintf("event %s on %s of space %s failed: %s", p.Event, p.Stream, p.Space, e.Message)
		}
		return &own
	}
	return errorAt(fn.Position(), "%s", p.Text)
}

// maxReported bounds the problems in the text of a failed test, which may be its cause.
const maxReported = 5

// problemsText returns problems, the oldest first, in lines.
func problemsText(problems []Problem) string {
	var lines []string
	for _, p := range problems[:min(len(problems), maxReported)] {
		lines = append(lines, strings.ReplaceAll(p.Text, "\n", "\n  "))
	}
	if more := len(problems) - maxReported; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more, see problems()", more))
	}
	return strings.Join(lines, "\n  ")
}
