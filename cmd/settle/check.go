package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
)

// checkCmd is `settle check`.
type checkCmd struct {
	Paths []string `arg:"" optional:"" name:"path" help:"Files, and directories whose programs and tests are checked. Default: this directory."`
	JSON  bool     `name:"json" help:"Print a JSON object for each mistake."`
}

// Help says what is found.
func (checkCmd) Help() string {
	return `Printed are every unknown name and the first mistake of syntax of each file. If there is none, a program is loaded,
and the first mistake of that is printed, such as a stream with two handlers. No function is run, and a file that
several programs load is checked once. The form of a line is that of compilers, FILE:LINE:COLUMN: MESSAGE, which editors understand.

The exit code is 0 if there are none, and 1 if there are some. To format files, use buildifier -type=default
(github.com/bazelbuild/buildtools), which knows the syntax.`
}

// mistake is what settle check prints.
type mistake struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitzero"`
	Column  int    `json:"column,omitzero"`
	Message string `json:"message"`
}

func (m mistake) String() string {
	if m.Line == 0 {
		return m.File + ": " + m.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, m.Message)
}

// Run checks programs and tests, and prints their mistakes.
func (c *checkCmd) Run(_ context.Context, io streams) error {
	if len(c.Paths) == 0 {
		c.Paths = []string{"."}
	}
	files, err := filesToCheck(c.Paths)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usage(err)
	case err != nil:
		return err
	case len(files) == 0:
		return fmt.Errorf("there are no programs in %s: their names end in %s", strings.Join(c.Paths, ", "), program.Extension)
	}
	var all []mistake
	for _, file := range files {
		for _, m := range checked(file) {
			if !slices.Contains(all, m) { // of a file that several load
				all = append(all, m)
			}
		}
	}
	for _, m := range all {
		if c.JSON {
			if err := printLine(io.out, m); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintln(io.out, m)
	}
	if len(all) > 0 {
		return exitError{1, fmt.Errorf("%s in %s", display.Count(len(all), "mistake"), display.Count(len(files), "file"))}
	}
	if !c.JSON {
		fmt.Fprintf(io.out, "no mistakes in %s\n", display.Count(len(files), "file"))
	}
	return nil
}

// filesToCheck returns the programs and the files of tests that paths lead to.
func filesToCheck(paths []string) (files []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		programs, err := program.Programs(path)
		if err != nil {
			return nil, err
		}
		tests, err := filepath.Glob(filepath.Join(path, "*"+program.TestExtension))
		if err != nil {
			return nil, err
		}
		files = append(append(files, programs...), tests...)
	}
	return files, nil
}

// checked returns the mistakes of a program or of a file of tests.
func checked(file string) (all []mistake) {
	var src program.Source
	var test string
	var err error
	if strings.HasSuffix(file, program.TestExtension) {
		src, test, err = program.ReadTests(file)
	} else {
		src, err = program.Read(program.NameOf(file), file)
	}
	if err != nil {
		return []mistake{{File: file, Message: err.Error()}}
	}
	for _, e := range star.Check(src, test) {
		m := mistake{file, e.Line, e.Col, e.Message}
		if e.File != "" {
			m.File = filepath.Join(filepath.Dir(file), e.File)
		}
		all = append(all, m)
	}
	return all
}
