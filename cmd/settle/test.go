package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/program/startest"
)

// testCmd is `settle test`.
type testCmd struct {
	Paths   []string       `arg:"" optional:"" name:"path" help:"Files of tests, and directories that are searched for them. Default: this directory."`
	Verbose bool           `short:"v" help:"Print every test, and the logs of the test and the program."`
	Match   *regexp.Regexp `name:"run" help:"Run the tests whose names match." placeholder:"REGEXP"`
	JSON    bool           `name:"json" help:"Print JSON."`
}

// Help describes where tests are found, and their contents.
func (testCmd) Help() string {
	return `The tests of door.star are in door_test.star beside it; door_night_test.star also tests door.star
if there is no door_night.star. They are its functions that begin with test_:

    def test_it_locks_itself():
        send("unlock")
        expect("status", "closed")
        advance("30s")
        expect("status", "locked")

Each has spaces of its own, in memory, and a clock that moves only with advance(...): send, expect, equal,
check, watch, runs, why, mark, restart and others are in docs/starlark.md. Every function of the program
runs twice, and a test fails if the second run has another result.

The exit code is 0 if all tests pass, 1 if one fails, if a program does not compile, or if nothing ran, and 2
for an invalid command line.`
}

// testedFile is the result of the tests of a file.
type testedFile struct {
	File    string       `json:"file"`
	Program string       `json:"program,omitzero"`
	Error   string       `json:"error,omitzero"` // why none ran
	Tests   []testedFunc `json:"tests"`
	Seconds float64      `json:"seconds"`
	Virtual float64      `json:"virtual_seconds"`
}

// testedFunc is the result of a test.
type testedFunc struct {
	Name    string   `json:"name"`
	Passed  bool     `json:"passed"`
	Error   string   `json:"error,omitzero"`
	File    string   `json:"file,omitzero"` // where it failed
	Line    int      `json:"line,omitzero"`
	Column  int      `json:"column,omitzero"`
	Virtual float64  `json:"virtual_seconds"` // virtual time that has passed
	Log     []string `json:"log,omitzero"`
}

// Run runs tests, and prints their results.
func (c *testCmd) Run(ctx context.Context, io streams) error {
	if len(c.Paths) == 0 {
		c.Paths = []string{"."}
	}
	files, err := program.TestFiles(c.Paths...)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usage(err)
	case err != nil:
		return err
	case len(files) == 0:
		return fmt.Errorf("there are no tests in %s: those of door.star are in door_test.star", strings.Join(c.Paths, ", "))
	}
	tested := []*testedFile{}
	for _, file := range files {
		if !strings.HasSuffix(file, program.TestExtension) {
			return usage(fmt.Errorf("%s is not a test file: the name of one ends in %s", file, program.TestExtension))
		}
	}
	for _, file := range files {
		t := c.test(ctx, file)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		tested = append(tested, t)
		if !c.JSON {
			t.print(io.out, c.Verbose)
		}
	}
	if c.JSON {
		if err := fleetJSON(io.out, tested); err != nil {
			return err
		}
	}
	return c.verdict(tested)
}

// test runs the tests of a file.
func (c *testCmd) test(ctx context.Context, file string) *testedFile {
	t := &testedFile{File: file, Tests: []testedFunc{}}
	source, entry, err := program.ReadTests(file)
	t.Program = source.Name
	var results []star.TestResult
	if err == nil {
		began := time.Now()
		results, err = startest.Run(ctx, source, entry, c.options())
		t.Seconds = time.Since(began).Seconds()
	}
	if err != nil {
		t.Error = err.Error()
	}
	for _, r := range results {
		t.Tests = append(t.Tests, testedAs(r))
		t.Virtual += r.Passed.Seconds()
	}
	return t
}

func (c *testCmd) options() (o star.TestOptions) {
	if c.Match != nil {
		o.Match = c.Match.MatchString
	}
	return o
}

func testedAs(r star.TestResult) testedFunc {
	f := testedFunc{Name: r.Name, Passed: r.Err == nil, Virtual: r.Passed.Seconds(), Log: r.Log}
	if r.Err != nil {
		f.Error = r.Err.Error()
	}
	if at, ok := errors.AsType[*star.Error](r.Err); ok {
		f.File, f.Line, f.Column = at.File, at.Line, at.Col
	}
	return f
}

// failed counts the tests that did not pass.
func (t *testedFile) failed() (n int) {
	for _, f := range t.Tests {
		if !f.Passed {
			n++
		}
	}
	return n
}

// verdict returns an error unless at least one test ran and all passed.
func (c *testCmd) verdict(tested []*testedFile) error {
	ran, failed, broken := 0, 0, 0
	for _, t := range tested {
		ran, failed = ran+len(t.Tests), failed+t.failed()
		if t.Error != "" {
			broken++
		}
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d of %s failed", failed, display.Count(ran, "test"))
	case broken > 0:
		return fmt.Errorf("%d of %s could not be run", broken, display.Count(len(tested), "file"))
	case ran == 0 && c.Match != nil:
		return fmt.Errorf("no test matches --run %s", c.Match)
	case ran == 0:
		return fmt.Errorf("there are files of tests, and no function test_... in them")
	}
	return nil
}

// print prints the results of a file's tests, as go test does.
func (t *testedFile) print(out io.Writer, verbose bool) {
	s, _ := sheetFor(out)
	for _, f := range t.Tests {
		if verbose || !f.Passed {
			f.print(out, s)
		}
	}
	switch failed := t.failed(); {
	case t.Error != "":
		fmt.Fprintf(out, "%s  %s: not run\n%s\n", s.paint(red, "FAIL"), t.File, indented(t.Error))
	case failed > 0:
		fmt.Fprintf(out, "%s  %s  %d of %s failed%s\n", s.paint(red, "FAIL"), t.File, failed, display.Count(len(t.Tests), "test"), t.took())
	default:
		fmt.Fprintf(out, "%s    %s  %s%s\n", s.paint(green, "ok"), t.File, display.Count(len(t.Tests), "test"), t.took())
	}
}

// took returns the elapsed time, and the virtual time of the spaces.
func (t *testedFile) took() string {
	text := fmt.Sprintf("  %.2fs", t.Seconds)
	if t.Virtual > 0 {
		text += ", in which " + passed(t.Virtual) + " went by"
	}
	return text
}

// passed returns a virtual duration for people.
func passed(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d >= 48*time.Hour {
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	}
	return display.Duration(d)
}

func (f testedFunc) print(out io.Writer, s sheet) {
	word, ink := "PASS", green
	if !f.Passed {
		word, ink = "FAIL", red
	}
	fmt.Fprint(out, "--- ", s.paint(ink, word), ": ", f.Name)
	if f.Virtual > 0 {
		fmt.Fprintf(out, " (%s)", passed(f.Virtual))
	}
	fmt.Fprintln(out)
	for _, line := range f.Log {
		fmt.Fprintln(out, indented("log: "+line))
	}
	if f.Error != "" {
		fmt.Fprintln(out, indented(f.Error))
	}
}

// indented returns a text, indented by four spaces.
func indented(text string) string {
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}
