package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// goSource is the directory of a program in Go, with what it is built from.
type goSource struct {
	dir string
	// exe is what was built last, in the directory of the data.
	exe string
	// dirs are the directories of its packages in modules that are worked on, embedded the files in them that are no code.
	dirs     []string
	embedded []string
}

// isMain reports whether a directory has a program in Go.
func isMain(dir string) bool {
	files, err := os.ReadDir(dir) // a pattern would give a meaning to brackets in the path
	if err != nil {
		return false
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file.Name()), nil, parser.PackageClauseOnly)
		if err == nil && f.Name.Name == "main" {
			return true
		}
	}
	return false
}

// newSource returns the program in Go of a directory, which is built into the directory of the data.
func newSource(dir, store string) (*goSource, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	store, err = filepath.Abs(store)
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("go"); err != nil {
		return nil, fmt.Errorf("%s has a program in Go, and the command go, which builds it, was not found: https://go.dev/dl", dir)
	}
	return &goSource{dir: dir, exe: filepath.Join(store, "build", filepath.Base(dir)), dirs: []string{dir}}, nil
}

// isBuilt reports whether the program was built before.
func (s *goSource) isBuilt() bool {
	_, err := os.Stat(s.exe)
	return err == nil
}

// build builds the program, and reports whether it differs from what was built before. The error is what the compiler has printed, if the program has
// mistakes.
func (s *goSource) build(ctx context.Context) (changed bool, err error) {
	if err := os.MkdirAll(filepath.Dir(s.exe), 0o755); err != nil {
		return false, err
	}
	if err := s.list(ctx); err != nil { // also if it does not build: a mistake may be in any of its packages
		return false, errors.Join(ctx.Err(), err)
	}
	next := s.exe + ".next"
	cmd := s.command(ctx, "build", "-o", next, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		if _, said := errors.AsType[*exec.ExitError](err); said {
			return false, errors.Join(ctx.Err(), errors.New(strings.TrimSpace(string(out))))
		}
		return false, err
	}
	same, err := equalFiles(s.exe, next)
	if err != nil || same {
		return false, err
	}
	return true, os.Rename(next, s.exe)
}

// command returns a command of go in the directory of the program.
func (s *goSource) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.WaitDelay = s.dir, time.Second // a linker that go has started may live on
	return cmd
}

// list finds the directories and files that the program is built from, as far as they can be found with the mistakes in it.
func (s *goSource) list(ctx context.Context) error {
	out, err := s.command(ctx, "list", "-e", "-deps", "-json=Dir,Module,EmbedFiles", ".").Output()
	if _, said := errors.AsType[*exec.ExitError](err); said && ctx.Err() == nil {
		return nil // go build reports what is wrong
	}
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	s.dirs, s.embedded = []string{s.dir}, nil
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir        string
			EmbedFiles []string
			Module     *struct {
				Main bool
				Dir  string
			}
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		if p.Dir == "" || p.Module == nil || !p.Module.Main {
			continue
		}
		s.dirs = append(s.dirs, p.Dir, p.Module.Dir)
		for _, file := range p.EmbedFiles {
			file = filepath.Join(p.Dir, file)
			s.embedded, s.dirs = append(s.embedded, file), append(s.dirs, filepath.Dir(file))
		}
	}
	slices.Sort(s.dirs)
	s.dirs = slices.Compact(s.dirs)
	return nil
}

// uses reports whether the program may be another one when a file has changed.
func (s *goSource) uses(file string) bool {
	switch base := filepath.Base(file); {
	case strings.HasSuffix(base, "_test.go"):
		return false
	case strings.HasSuffix(base, ".go"), base == "go.mod", base == "go.sum", base == "go.work":
		return true
	}
	return slices.Contains(s.embedded, file)
}

// equalFiles reports whether two files are equal; they are not if the first does not exist.
func equalFiles(a, b string) (bool, error) {
	one, err := os.ReadFile(a)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	other, err := os.ReadFile(b)
	return bytes.Equal(one, other), err
}
