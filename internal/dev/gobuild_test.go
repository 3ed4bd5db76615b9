package dev

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// module writes files of a module, and returns its directory, whose name has characters that mean something in patterns.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	t.Setenv("GOPROXY", "off")
	dir := filepath.Join(t.TempDir(), "the [door]")
	write(t, dir, "go.mod", "module door\n\ngo 1.26\n")
	for name, text := range files { // any order: each on its own
		write(t, dir, name, text)
	}
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func sourceIn(t *testing.T, dir, store string) *goSource {
	t.Helper()
	if goDirectory([]string{dir}) != dir {
		t.Errorf("%s has no program in Go", dir)
	}
	s, err := newSource(dir, store)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var withParts = map[string]string{
	"main.go":       "package main\n\nimport \"door/parts\"\n\nfunc main() { println(parts.Name) }\n",
	"parts/name.go": "package parts\n\nimport _ \"embed\"\n\n//go:embed texts/name.txt\nvar Name string\n", "parts/texts/name.txt": "oak",
}

// All directories are watched, also of a program that was built before, and whose executable is the same.
func TestSource_KnowsItsDirectoriesWithoutAChange(t *testing.T) {
	dir, store := module(t, withParts), t.TempDir()
	for _, want := range []bool{true, false} {
		s := sourceIn(t, dir, store)
		changed, err := s.build(t.Context())
		if err != nil || changed != want {
			t.Fatalf("changed: %v, %v", changed, err)
		}
		for _, part := range []string{"", "parts", "parts/texts"} {
			if !slices.Contains(s.dirs, filepath.Join(dir, part)) {
				t.Errorf("changed: %v; %s is not watched, of %q", changed, part, s.dirs)
			}
		}
		for file, used := range map[string]bool{"parts/name.go": true, "parts/texts/name.txt": true, "parts/name_test.go": false, "README.md": false, "go.work": true} {
			if s.uses(filepath.Join(dir, file)) != used {
				t.Errorf("%s is used: %v", file, !used)
			}
		}
	}
}

// A mistake in a package of the program can be corrected there, also if nothing was built before.
func TestSource_KnowsItsDirectoriesWithAMistake(t *testing.T) {
	dir := module(t, withParts)
	write(t, dir, "parts/name.go", "package parts\n\nvar Name = oak\n")
	s := sourceIn(t, dir, t.TempDir())
	if _, err := s.build(t.Context()); err == nil {
		t.Fatal("it builds")
	}
	if !slices.Contains(s.dirs, filepath.Join(dir, "parts")) {
		t.Errorf("parts is not watched, of %q", s.dirs)
	}
	write(t, dir, "parts/name.go", "package parts\n\nfunc Name {\n") // not even the syntax
	if _, err := s.build(t.Context()); err == nil || !slices.Contains(s.dirs, filepath.Join(dir, "parts")) {
		t.Errorf("%v; parts is not watched, of %q", err, s.dirs)
	}
}

// A build that was given up leaves what was built before as it is, so that the next one finds the change.
func TestSource_ABuildThatIsGivenUpChangesNothing(t *testing.T) {
	dir := module(t, withParts)
	s := sourceIn(t, dir, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if changed, err := s.build(ctx); changed || !errors.Is(err, context.Canceled) {
		t.Errorf("changed: %v, %v", changed, err)
	}
	if s.isBuilt() {
		t.Error("it was built")
	}
}
