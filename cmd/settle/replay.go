package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/replay"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
)

// replayCmd is `settle replay`.
type replayCmd struct {
	connection
	Space   string `arg:"" help:"The space."`
	Dir     string `arg:"" help:"A new directory to write the test to."`
	From    uint64 `help:"Begin after this revision, with the documents as they were then. Default: as early as the log and the lane allow." default:"0"`
	Package string `help:"The package of a test in Go." default:"replay_test" placeholder:"NAME"`
	Call    string `help:"The Go expression that makes the program, such as shop.Program()." default:"program()" placeholder:"EXPRESSION"`
}

// Help returns the long help.
func (replayCmd) Help() string {
	return `Reads the log and the lane, needs no worker, and changes nothing. A space that runs a deployed program gets a test in Starlark
next to a copy of the program; settle test runs it. Any other space gets a recording and a test in Go, in which you
name the program.`
}

// Run writes the history of a space as a test.
func (c *replayCmd) Run(ctx context.Context, io streams) error {
	if err := model.CheckName("space", c.Space); err != nil {
		return usage(err)
	}
	if !token.IsIdentifier(c.Package) {
		return usage(fmt.Errorf("--package %s is not a package name", c.Package))
	}
	return c.use(ctx, io, ofSpaces(c.Space), func(b *bus.Bus, _ *settle.Client) error {
		hosted, runs := hostedBy(ctx, b, c.Space)
		r, err := replay.Record(ctx, b, c.Space, replay.Options{From: c.From, Derived: derivedBy(ctx, b, c.Space)})
		if err != nil {
			return err
		}
		var files map[string][]byte
		if hosted != nil {
			r.Program = runs.String()
			files, err = starTest(r, hosted)
		} else {
			files, err = c.goTest(r)
		}
		if err == nil {
			err = writeNew(c.Dir, files)
		}
		if err != nil {
			return err
		}
		c.printSummary(io, r, hosted != nil)
		return nil
	})
}

// hostedBy returns the program that is deployed for a space, nil if there is none or if it is not known.
func hostedBy(ctx context.Context, b *bus.Bus, space string) (*program.Version, program.Target) {
	table, err := program.Rules(ctx, b)
	if err != nil {
		return nil, program.Target{}
	}
	target, is := table.Of(space)
	if !is {
		return nil, target
	}
	v, err := program.Load(ctx, b, target)
	if err != nil {
		return nil, target
	}
	return &v, target
}

// identifier converts the name of a space to an identifier of Go or Starlark.
func identifier(space string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, space)
}

// starTest returns the files of the program and of a test.
func starTest(r *replay.Recording, v *program.Version) (map[string][]byte, error) {
	lines, err := r.Lines()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# What happened in space %s between revisions %d and %d, under %s.\nrecording = [\n", r.Space, r.From, r.To, r.Program)
	for _, l := range lines {
		fmt.Fprintf(&b, "    %s,\n", starQuote(l))
	}
	fmt.Fprintf(&b, "]\n\ndef test_replay_%s():\n    replay(recording)\n", identifier(r.Space))
	if size := v.Size() + b.Len(); size > program.MaxSource {
		return nil, fmt.Errorf("the test and its program would have %d bytes, and %d is the limit of a file of tests: begin later with --from", size, program.MaxSource)
	}
	files := map[string][]byte{}
	for name, text := range v.Files {
		files[name] = []byte(text)
	}
	files[strings.TrimSuffix(v.Entry, program.Extension)+"_replay"+program.TestExtension] = []byte(b.String())
	return files, nil
}

// starQuote returns a text as a Starlark literal.
func starQuote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`).Replace(text) + `"`
}

const goReplayTest = `package %s

import (
	"testing"

	"github.com/settlehq/settle/settletest"
)

// What happened in space %s between revisions %d and %d.
func TestReplay_%s(t *testing.T) {
	settletest.Replay(t, %s, %s)
}
`

// goTest returns the files of a recording and of a test that replays it.
func (c *replayCmd) goTest(r *replay.Recording) (map[string][]byte, error) {
	lines, err := r.Lines()
	if err != nil {
		return nil, err
	}
	name := filepath.Join("testdata", identifier(r.Space)+".jsonl")
	code := fmt.Appendf(nil, goReplayTest, c.Package, r.Space, r.From, r.To, identifier(r.Space), c.Call, strconv.Quote(filepath.ToSlash(name)))
	// Not go/format, which adds half a megabyte to the command: the text is formatted but for the expression.
	if _, err := parser.ParseFile(token.NewFileSet(), "", code, parser.SkipObjectResolution); err != nil {
		return nil, usage(fmt.Errorf("--call %s is not a Go expression: %w", c.Call, err))
	}
	return map[string][]byte{
		name: []byte(strings.Join(lines, "\n") + "\n"),
		"replay_" + strings.ToLower(identifier(r.Space)) + "_test.go": code,
	}, nil
}

// writeNew writes files into a directory that is empty or does not exist.
func writeNew(dir string, files map[string][]byte) error {
	if found, err := os.ReadDir(dir); err == nil && len(found) > 0 {
		return usage(fmt.Errorf("%s is not empty (%s): name a new directory", dir, found[0].Name()))
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for name, text := range files { // any order: each on its own
		if !filepath.IsLocal(name) {
			return fmt.Errorf("the program has a file %q, which is none of a directory", name)
		}
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700) // it holds what the space holds
		if err == nil {
			err = os.WriteFile(path, bytes.Clone(text), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printSummary prints what was written, and the next steps.
func (c *replayCmd) printSummary(io streams, r *replay.Recording, hosted bool) {
	events, writes := 0, 0
	for i := range r.Steps {
		if r.Steps[i].Stream == "" {
			writes++
		} else {
			events++
		}
	}
	fmt.Fprintf(io.out, "%s: space %s, revisions %d to %d: %s", c.Dir, r.Space, r.From, r.To, display.Count(events, "event"))
	if writes > 0 {
		fmt.Fprintf(io.out, ", %s without one", display.Count(writes, "transaction"))
	}
	fmt.Fprintf(io.out, ", %s\n", display.Count(len(r.After), "document"))
	if r.From > 0 {
		fmt.Fprintf(io.out, "it begins with %s as at revision %d; timers that were waiting then are not in it\n", display.Count(len(r.Before), "document"), r.From)
	}
	if hosted {
		fmt.Fprintf(io.out, "next: settle test %s\n", c.Dir)
		return
	}
	fmt.Fprintf(io.out, "next: copy the test and testdata beside the program, see that %s makes it, and run go test\n", c.Call)
}
