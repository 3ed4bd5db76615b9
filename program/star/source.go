package star

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Source is the text of a program: one or more files that know of nothing else.
type Source struct {
	// Name names the program; it is that of the space.Program.
	Name string
	// Entry is the file that is executed.
	Entry string
	// Files are the texts by name. load("lib.star", "f") finds a file here and nowhere
	// else. Those whose names end in _test.star are tests, and no part of the program.
	Files map[string]string
}

// Bounds of the text of a program: bytes of all of its files, how many there are, and how long
// their names may be.
const (
	maxSource   = 256 << 10
	maxFiles    = 500
	maxFileName = 200
)

// Version is a short hash of a program's text: 12 hexadecimal digits. Any change of
// the files changes it, comments included. It names what was deployed; what runs again
// because of it is decided by the fingerprints of nodes.
func Version(src Source) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", src.Name, src.Entry)
	for _, name := range src.names() {
		fmt.Fprintf(h, "%q %q\n", name, src.Files[name])
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// names are those of the files that are not tests, sorted.
func (s Source) names() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Files)), isTest)
}

func isTest(name string) bool { return strings.HasSuffix(name, "_test.star") }

func (s Source) check() error {
	if s.Name == "" {
		return fmt.Errorf("a program needs a name")
	}
	if _, ok := s.Files[s.Entry]; !ok {
		return fmt.Errorf("program %s: there is no file %q among its %d files", s.Name, s.Entry, len(s.Files))
	}
	size := 0
	for name, text := range s.Files { // any order: they are added up
		if path.Clean(name) != name || path.IsAbs(name) || strings.HasPrefix(name, "..") {
			return fmt.Errorf("program %s: file %q: a name is a clean relative path", s.Name, name)
		}
		if len(name) > maxFileName {
			return fmt.Errorf("program %s: file %s...: a name has %d bytes at most", s.Name, name[:40], maxFileName)
		}
		size += len(text)
	}
	if len(s.Files) > maxFiles {
		return fmt.Errorf("program %s: it has %d files; %d is the limit", s.Name, len(s.Files), maxFiles)
	}
	if size > maxSource {
		return fmt.Errorf("program %s: its files have %d bytes; %d is the limit", s.Name, size, maxSource)
	}
	return nil
}

// Options say how a program is compiled and run. The zero value has the defaults.
type Options struct {
	Limits Limits
	// Context ends every run that is under way when it is done, and refuses those that
	// begin later: for a worker that stops. nil for none. See Program.Stop.
	Context context.Context
}

// Limits bound one run: of a handler, of a computation, of an effect, and of the files
// when the program is loaded. All of them count what the program does, and none looks at
// a clock or at the memory of the process, so a run that is stopped on one worker is
// stopped on every other in the same place. 0 stands for the default.
type Limits struct {
	// Steps is how many instructions a run may execute; default 1,000,000, some tens of
	// milliseconds. A builtin that goes through a long value counts as many as it
	// would take written out.
	Steps uint64 `help:"Instructions of a run of a Starlark program."`
	// Memory is how many bytes a run may allocate in all, whether it still needs them or
	// not; default 64 MiB. Each step counts as 32.
	Memory int64 `help:"Bytes that a run of a Starlark program may allocate."`
	// Output bounds what leaves a run, in bytes: the result, each value that is
	// written or sent, and all that it logs; default 256 KiB. A log has no more
	// than 100 lines in any case.
	Output int `help:"Bytes that leave a run of a Starlark program."`
	// Depth is how deep values may be nested when they leave a run or are compared;
	// default 64, at most 500.
	Depth int `help:"Values inside each other that leave a run of a Starlark program; 500 at most."`
}

// maxDepth bounds Limits.Depth.
const maxDepth = 500

// Fill replaces zero fields by their defaults. It returns an error for the first invalid field.
func (l *Limits) Fill() error {
	switch {
	case l.Memory < 0:
		return fmt.Errorf("Memory is %d; use a positive number, or 0 for the default", l.Memory)
	case l.Output < 0:
		return fmt.Errorf("Output is %d; use a positive number, or 0 for the default", l.Output)
	case l.Depth < 0 || l.Depth > maxDepth:
		return fmt.Errorf("Depth is %d; use 1 to %d, or 0 for the default", l.Depth, maxDepth)
	}
	*l = l.fill()
	return nil
}

func (l Limits) fill() Limits {
	if l.Steps == 0 {
		l.Steps = 1_000_000
	}
	if l.Memory <= 0 {
		l.Memory = 64 << 20
	}
	if l.Output <= 0 {
		l.Output = 256 << 10
	}
	if l.Depth <= 0 {
		l.Depth = 64
	}
	l.Depth = min(l.Depth, maxDepth)
	return l
}

const (
	stepBytes   = 32  // that a step counts as; no instruction allocates more in the mean
	maxLogLines = 100 // of a run
)
