package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ReadTests reads a file of tests with the program that it is about: with what either loads,
// from below the same directory. door_test.star is about door.star, and door_night_test.star
// about door_night.star, or else door.star.
func ReadTests(file string) (s Source, test string, err error) {
	dir, test := filepath.Split(file)
	stem, ok := strings.CutSuffix(test, TestExtension)
	if !ok {
		return s, test, fmt.Errorf("%s is no file of tests: the name of one ends in %s", file, TestExtension)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return s, test, err
	}
	entry := programOf(dir, stem)
	if entry == "" {
		return s, test, fmt.Errorf("%s: there is no %s beside it, the program that it would be about", file, stem+Extension)
	}
	if s, err = Read(NameOf(entry), entry); err != nil {
		return s, test, err
	}
	s.Files[test] = string(text)
	return s, test, readLoaded(os.DirFS(filepath.Clean(dir)), s.Files, test)
}

// programOf is the file with the longest name that is the stem's, or that up to one of its
// underscores; "" if there is none.
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

// TestFiles are the files of tests that paths lead to, each once, sorted: a file itself, and those
// in a directory and below it. Directories whose names begin with a dot are left out.
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
