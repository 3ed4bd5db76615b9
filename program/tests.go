package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.starlark.net/syntax"
)

// ReadTests reads a test file together with the program under test and the files that either loads,
// from below the same directory. door_test.star tests door.star; door_night_test.star tests
// door_night.star or else door.star.
func ReadTests(file string) (s Source, test string, err error) {
	dir, test := filepath.Split(file)
	stem, ok := strings.CutSuffix(test, TestExtension)
	if !ok {
		return s, test, fmt.Errorf("%s is not a test file: the name of one ends in %s", file, TestExtension)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return s, test, err
	}
	entry := programOf(dir, stem)
	if entry == "" {
		return s, test, fmt.Errorf("%s: there is no %s beside it, the program that it would test", file, stem+Extension)
	}
	if s, err = Read(NameOf(entry), entry); err != nil {
		return s, test, err
	}
	s.Files[test] = string(text)
	beside := os.DirFS(filepath.Clean(dir))
	err = readLoaded(beside, s.Files, test)
	for _, name := range programsOf(test, string(text)) {
		err = errors.Join(err, readFile(beside, s.Files, name))
	}
	return s, test, err
}

// programsOf returns the files of the programs that a file of tests names: program("house*", "house.star").
func programsOf(name, text string) (files []string) {
	f, err := fileOptions.Parse(name, text, 0)
	if err != nil {
		return nil
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		call, is := n.(*syntax.CallExpr)
		if !is {
			return true
		}
		if fn, is := call.Fn.(*syntax.Ident); !is || fn.Name != "program" {
			return true
		}
		for _, arg := range call.Args {
			if named, is := arg.(*syntax.BinaryExpr); is && named.Op == syntax.EQ {
				arg = named.Y
			}
			if lit, is := arg.(*syntax.Literal); is && lit.Token == syntax.STRING && strings.HasSuffix(lit.Value.(string), Extension) {
				files = append(files, lit.Value.(string))
			}
		}
		return true
	})
	return files
}

// programOf returns the program file whose name is the longest prefix of the stem that ends at an
// underscore, or the stem itself; "" if there is none.
func programOf(dir, stem string) string {
	for {
		path := filepath.Join(dir, stem+Extension)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
		i := strings.LastIndexByte(stem, '_')
		if i <= 0 {
			return ""
		}
		stem = stem[:i]
	}
}

// TestFiles returns the test files that paths lead to, each once, sorted: files themselves, and
// those in and below directories. Directories whose names begin with a dot are left out.
func TestFiles(paths ...string) (files []string, err error) {
	for _, root := range paths {
		walk := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
				return fs.SkipDir
			case !d.IsDir() && (path == root || strings.HasSuffix(path, TestExtension)):
				files = append(files, filepath.Clean(path))
			}
			return nil
		})
		err = errors.Join(err, walk)
	}
	slices.Sort(files)
	return slices.Compact(files), err
}
