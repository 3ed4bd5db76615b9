package program

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.starlark.net/syntax"
)

// Extension is that of Starlark files, TestExtension that of those that are tests.
const (
	Extension     = ".star"
	TestExtension = "_test.star"
)

// NameOf is what the program of a file is called if nobody says otherwise.
func NameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), Extension) }

// Read reads the program whose entry is a file: that one and those that it loads, from below the
// same directory. A file that is not there is left out: whoever compiles the program says
// where it was to be loaded.
func Read(name, file string) (Source, error) {
	if strings.HasSuffix(file, TestExtension) {
		return Source{}, fmt.Errorf("%s is a file of tests, and no program; `settle test` runs it", file)
	}
	dir, entry := filepath.Split(file)
	text, err := os.ReadFile(file)
	if err != nil {
		return Source{}, err
	}
	s := Source{Name: name, Entry: entry, Files: map[string]string{entry: string(text)}}
	return s, readLoaded(os.DirFS(filepath.Clean(dir)), s.Files, entry)
}

// readLoaded adds what a file loads, and what that loads.
func readLoaded(dir fs.FS, files map[string]string, of string) error {
	for _, name := range loads(of, files[of]) {
		if _, there := files[name]; there || !fs.ValidPath(name) {
			continue
		}
		text, err := fs.ReadFile(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		files[name] = string(text)
		if err := readLoaded(dir, files, name); err != nil {
			return err
		}
	}
	return nil
}

// loads are the names that a file loads from; none if it cannot be parsed, which is for who
// compiles it to say.
func loads(name, text string) (names []string) {
	f, err := (&syntax.FileOptions{Set: true, TopLevelControl: true}).Parse(name, text, 0)
	if err != nil {
		return nil
	}
	for _, s := range f.Stmts {
		if l, ok := s.(*syntax.LoadStmt); ok {
			names = append(names, l.ModuleName())
		}
	}
	return names
}

// Programs are the files of a directory that are programs, sorted: those that are no tests, and
// that no other one loads.
func Programs(dir string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*"+Extension))
	if err != nil {
		return nil, err
	}
	candidates := map[string]bool{}
	var loaded []string
	for _, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(file, TestExtension) {
			candidates[filepath.Base(file)] = true
			loaded = append(loaded, loads(filepath.Base(file), string(text))...)
		}
	}
	for _, name := range loaded {
		delete(candidates, name)
	}
	programs := slices.Sorted(maps.Keys(candidates))
	for i := range programs {
		programs[i] = filepath.Join(dir, programs[i])
	}
	return programs, nil
}
