package space

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// scenarioDir selects scenarios in another directory: go test ./space -run TestScenarios -args
// -scenarios=DIR.
var scenarioDir = flag.String("scenarios", "", "run the scenarios under this directory instead of those of the package; a relative one is looked for here and then in the root of the module")

const ownScenarios = "testdata/scenarios"

// TestScenarios plays the scenario files: each has commands, in the language of testdata/README.md, and what
// the core does, line by line. With -rewrite it writes the actual output; review the difference.
func TestScenarios(t *testing.T) {
	files := scenarioFiles(t)
	if len(files) == 0 {
		t.Fatal("there is no scenario")
	}
	rows := readRows(t)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts := textsOfCases(string(text))
			var s *stage
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				if d.Cmd == "case" {
					texts = texts[1:]
				}
				if s == nil || d.Cmd == "case" {
					s = newStage(t)
					s.mentions = mentionsIn(texts[0])
				}
				s.world.t = t
				return s.play(rows, d)
			})
		})
	}
}

func scenarioFiles(t *testing.T) []string {
	t.Helper()
	dir := ownScenarios
	if *scenarioDir != "" {
		dir = *scenarioDir
		if _, err := os.Stat(dir); err != nil && !filepath.IsAbs(dir) {
			dir = filepath.Join("..", dir)
		}
	}
	var files []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".txt" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// play executes one command. Errors are part of the output, because a scenario may show that something is
// refused.
func (s *stage) play(rows *rowTable, d *datadriven.TestData) string {
	if d.Cmd == "case" {
		if err := s.check(d); err != nil {
			return fmt.Sprintf("error: %v\n", err)
		}
		titles, err := rows.titles(d)
		if err != nil {
			d.Fatalf(s.world.t.(testing.TB), "%v", err)
		}
		return titles
	}
	for _, c := range commands {
		if c.name != d.Cmd {
			continue
		}
		err := s.check(d)
		if err == nil {
			err = c.do(s, d)
		}
		s.flush()
		out := s.take()
		if d.HasArg("quiet") {
			out = ""
		}
		if err != nil && d.Cmd == "expect" {
			d.Fatalf(s.world.t.(testing.TB), "%v", err)
		}
		if err != nil {
			out += fmt.Sprintf("error: %v\n", err)
		}
		if out == "" {
			out = "ok\n"
		}
		return out
	}
	d.Fatalf(s.world.t.(testing.TB), "there is no command %q; see testdata/README.md", d.Cmd)
	return ""
}

func TestREADME_DocumentsEveryCommandOfTheScenarios(t *testing.T) {
	readme, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		if !strings.Contains(string(readme), "\n### "+c.name+"\n") {
			t.Errorf("testdata/README.md has no section about %s", c.name)
		}
	}
	functions := sortedKeys(lazy)
	functions = append(functions, sortedKeys(strict)...)
	for _, f := range functions {
		if !strings.Contains(string(readme), "`"+f+"(") {
			t.Errorf("testdata/README.md does not mention the function %s", f)
		}
	}
}
