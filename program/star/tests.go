package star

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// TestOptions say how tests are run. Engine is required; package program/startest fills it in.
type TestOptions struct {
	// Engine makes the worlds of the tests.
	Engine Engine
	// Limits are those of the program under test.
	Limits Limits
	// Match, if set, tells which tests are run, by name.
	Match func(name string) bool
}

// TestResult is how a test ended.
type TestResult struct {
	Name string
	// Err is why it failed, nil if it did not. It is or wraps an *Error with the place in the
	// test, or where the program failed; its text tells, too, what went wrong before.
	Err error
	// Passed is how much of the world's time has passed in it.
	Passed time.Duration
	// Log is what the test and the program have logged.
	Log []string
}

// testSpace is the space that a test is about unless it says otherwise.
const testSpace = "test"

// testLimits are those of a test itself: it may go on for longer than what it tests.
var testLimits = Limits{Steps: 20_000_000, Memory: 1 << 30, Output: 4 << 20, Depth: 500}

// RunTests runs the functions test_* of one of the source's files, each in a world of its own:
// spaces in memory that run the program, and a time that passes when the test says so. The
// error is that of a program or a file that does not compile, and that of a context that is
// done; what a test does wrong stands in its result.
//
// The functions of a program are run twice, and a test fails if they come to something else,
// if a computation fails, or if an event fails that the program has sent itself. See
// docs/starlark.md for what a test can say.
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
	tests := &Program{name: src.Name, entry: testFile, limits: testLimits.fill(), files: map[string]*file{}, tests: true}
	defer context.AfterFunc(ctx, func() { tests.Stop(context.Cause(ctx).Error()) })()
	if err := tests.read(src, append(src.names(), testFile)...); err != nil {
		return nil, err
	}
	m, err := tests.instantiate()
	if err != nil {
		return nil, err
	}
	var results []TestResult
	m.test.engine = o.Engine
	for _, fn := range m.test.functions {
		if o.Match != nil && !o.Match(fn.Name()) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return results, err
		}
		results = append(results, m.runTest(p, fn))
	}
	return results, ctx.Err()
}

// testRun is what a machine that runs tests has beside others.
type testRun struct {
	functions []*starlark.Function
	program   *Program // that is tested
	start     time.Time
	engine    Engine
	world     World
	log       []string
}

// collect finds the tests among the globals of the entry file.
func (x *testRun) collect(g starlark.StringDict) {
	for _, v := range g {
		if fn, ok := v.(*starlark.Function); ok && strings.HasPrefix(fn.Name(), "test_") {
			x.functions = append(x.functions, fn)
		}
	}
	slices.SortFunc(x.functions, func(a, b *starlark.Function) int { return int(a.Position().Line) - int(b.Position().Line) })
}

// runTest runs one test.
func (m *machine) runTest(p *Program, fn *starlark.Function) (r TestResult) {
	x := m.test
	x.log = nil
	x.program, x.start = p, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	x.world = x.engine.World(p.Space(), x.start, x.logs)
	l := m.enter(nil, &decl{kind: "test", id: fn.Name(), fn: fn, pos: fn.Position()}, nil)
	defer m.leave()
	l.docs = &testDocs{l: l, name: testSpace}
	err := x.call(l, fn)
	if err != nil {
		err = asError(m.p.entry, err)
	}
	problems := x.world.TakeProblems()
	switch {
	case len(problems) == 0:
	case err == nil:
		err = problemError(problems[0], fn)
	default:
		err = fmt.Errorf("%w\nbefore that:\n  %s", err, told(problems))
	}
	return TestResult{Name: fn.Name(), Err: err, Passed: x.world.Now().Sub(x.start), Log: x.log}
}

// logs keeps what the program logs.
func (x *testRun) logs(i space.ConsoleInfo) {
	x.log = append(x.log, strings.TrimSpace(i.Space+": "+i.Message+" "+pairsText(i.Args)))
}

func (x *testRun) call(l *level, fn *starlark.Function) (err error) {
	defer contain(l.m.p.entry, &err)
	if _, err = x.world.Space(testSpace); err == nil { // its cron jobs begin here
		_, err = starlark.Call(&l.thread, fn, nil, nil)
	}
	return err
}

func pairsText(args []any) string {
	var b strings.Builder
	for i := 0; i+1 < len(args); i += 2 {
		fmt.Fprintf(&b, "%v=%v ", args[i], args[i+1])
	}
	return strings.TrimSpace(b.String())
}

// problemError is a problem of the program as the failure of a test: where the program says
// it went wrong, or else the test itself.
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

// maxTold is how many problems are told behind the failure of a test, which they may be the cause of.
const maxTold = 5

// told are problems, the oldest first, in lines.
func told(problems []Problem) string {
	var lines []string
	for _, p := range problems[:min(len(problems), maxTold)] {
		lines = append(lines, strings.ReplaceAll(p.Text, "\n", "\n  "))
	}
	if more := len(problems) - maxTold; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more, see problems()", more))
	}
	return strings.Join(lines, "\n  ")
}

// testDocs are the documents as a test sees them: what it reads is demanded, so that it is
// what follows from all that has happened.
type testDocs struct {
	l    *level
	name string
	err  error
}

func (d *testDocs) Space() string { return d.name }
func (d *testDocs) Err() error    { return d.err }

// Declares is true: a test may write anywhere.
func (d *testDocs) Declares(string, ...string) bool { return true }

func (d *testDocs) read(in string, f func(tx *space.Tx) model.Value) (v model.Value) {
	s, err := d.l.m.test.world.Space(in)
	if err == nil {
		_, err = s.Read(func(tx *space.Tx) error {
			v = f(tx)
			return nil
		})
	}
	d.note(err)
	return v
}

func (d *testDocs) note(err error) {
	if d.err == nil && err != nil {
		d.err = err
	}
}

func (d *testDocs) write(f func(tx *space.Tx)) {
	s, err := d.l.m.test.world.Space(d.name)
	if err == nil {
		err = s.Write(func(tx *space.Tx) error {
			f(tx)
			return tx.Err()
		})
	}
	d.note(err)
}

// Get reads a document of the test's space.
func (d *testDocs) Get(doc string, path ...string) model.Value {
	return d.read(d.name, func(tx *space.Tx) model.Value { return tx.Get(doc, path...) })
}

// GetShallow is Get: a test has no dependencies.
func (d *testDocs) GetShallow(doc string, path ...string) model.Value { return d.Get(doc, path...) }

// Peek is Get.
func (d *testDocs) Peek(doc string, path ...string) model.Value { return d.Get(doc, path...) }

// GetFrom reads a document of another space, in that.
func (d *testDocs) GetFrom(in, doc string, path ...string) model.Value {
	return d.read(in, func(tx *space.Tx) model.Value { return tx.Get(doc, path...) })
}

// Set writes what a test begins with.
func (d *testDocs) Set(doc string, v any, path ...string) {
	d.write(func(tx *space.Tx) { tx.Set(doc, v, path...) })
}

// Delete takes something out.
func (d *testDocs) Delete(doc string, path ...string) {
	d.write(func(tx *space.Tx) { tx.Delete(doc, path...) })
}
