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

// Extension is the extension of Starlark files, TestExtension that of test files.
const (
	Extension     = ".star"
	TestExtension = "_test.star"
)

// NameOf returns the default name of the program in a file.
func NameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), Extension) }

// Read reads the program with the given entry file and the files that it loads, from below the same
// directory. A missing file is left out; compiling the program reports where it is loaded.
func Read(name, file string) (Source, error) {
	if strings.HasSuffix(file, TestExtension) {
		return Source{}, fmt.Errorf("%s is a test file, not a program; `settle test` runs it", file)
	}
	dir, entry := filepath.Split(file)
	text, err := os.ReadFile(file)
	if err != nil {
		return Source{}, err
	}
	s := Source{Name: name, Entry: entry, Files: map[string]string{entry: string(text)}}
	return s, readLoaded(os.DirFS(filepath.Clean(dir)), s.Files, entry)
}

// readLoaded adds the files that a file loads, recursively.
func readLoaded(dir fs.FS, files map[string]string, of string) error {
	for _, name := range loads(of, files[of]) {
		if err := readFile(dir, files, name); err != nil {
			return err
		}
	}
	return nil
}

// readFile adds a file, if there is one and it was not added before, and those that it loads.
func readFile(dir fs.FS, files map[string]string, name string) error {
	if _, there := files[name]; there || !fs.ValidPath(name) {
		return nil
	}
	text, err := fs.ReadFile(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	files[name] = string(text)
	return readLoaded(dir, files, name)
}

// fileOptions is the dialect, as far as parsing needs it.
var fileOptions = &syntax.FileOptions{Set: true, TopLevelControl: true, While: true}

// loads returns the names that a file loads from; none if it cannot be parsed, which compiling
// reports.
func loads(name, text string) (names []string) {
	f, err := fileOptions.Parse(name, text, 0)
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

// Programs returns the program files of a directory, sorted: files that are not tests and that no
// other file loads.
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
