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
	"sync/atomic"

	"github.com/settlehq/settle/program/star/internal/meter"
)

// Source is the text of a program: one or more files, which can load each other and nothing else.
type Source struct {
	// Name is the name of the program and of its space.Program.
	Name string
	// Entry is the file that is executed.
	Entry string
	// Files are the texts by name. load("lib.star", "f") finds a file here and nowhere else. Files
	// whose names end in _test.star are tests, and not part of the program.
	Files map[string]string
}

// Bounds of the text of a program: the bytes of all of its files, their number, and the length of a name
// in bytes.
const (
	maxSource   = 256 << 10
	maxFiles    = 500
	maxFileName = 200
)

// Version returns a short hash of the text of a program: 12 hexadecimal digits. Any change of the files
// changes it, comments included. It names what was deployed; the fingerprints of nodes decide what runs
// again.
func Version(src Source) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", src.Name, src.Entry)
	for _, name := range src.names() {
		fmt.Fprintf(h, "%q %q\n", name, src.Files[name])
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// names returns the files that are not tests, sorted.
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
	for name, text := range s.Files { // any order: the sizes are added up
		if path.Clean(name) != name || path.IsAbs(name) || strings.HasPrefix(name, "..") {
			return fmt.Errorf("program %s: file %q: the name must be a clean relative path", s.Name, name)
		}
		if len(name) > maxFileName {
			return fmt.Errorf("program %s: file %s...: a name can have at most %d bytes", s.Name, name[:40], maxFileName)
		}
		size += len(text)
	}
	if len(s.Files) > maxFiles {
		return fmt.Errorf("program %s: it has %d files; the limit is %d", s.Name, len(s.Files), maxFiles)
	}
	if size > maxSource {
		return fmt.Errorf("program %s: its files have %d bytes; the limit is %d", s.Name, size, maxSource)
	}
	return nil
}

// Options configure how a program is compiled and run. The zero value has the defaults.
type Options struct {
	Limits Limits
	// Context, when it is done, ends every run under way and refuses later ones, as Program.Stop does:
	// for a worker that stops. nil for none.
	Context context.Context
	// Usage, if not nil, counts what the runs of the program use.
	Usage *Usage
}

// Usage counts what the runs of programs have used, as their limits count it. It may be shared by programs, and is safe for concurrent use.
type Usage struct{ steps, bytes atomic.Uint64 }

// Read returns the executed steps and the allocated bytes of the runs that have ended.
func (u *Usage) Read() (steps, bytes uint64) { return u.steps.Load(), u.bytes.Load() }

// add counts a run that has ended.
func (u *Usage) add(m *meter.Meter) {
	if u == nil {
		return
	}
	steps, bytes := m.Used()
	u.steps.Add(steps)
	u.bytes.Add(bytes)
}

// Limits bound one run: of a handler, of a computation, of an effect, and of the files when the program
// is loaded. They count what the program does, and depend on neither a clock nor the memory of the
// process, so every worker stops a run at the same instruction. 0 stands for the default.
type Limits struct {
	// Steps is how many instructions a run may execute; default 1,000,000, some tens of
	// milliseconds. A builtin that goes through a long value counts about as many as a loop over it.
	Steps uint64 `help:"Instructions of a run of a Starlark program."`
	// Memory is how many bytes a run may allocate in total, freed ones included; default 64 MiB. Each
	// step counts as 32 bytes.
	Memory int64 `help:"Bytes that a run of a Starlark program may allocate."`
	// Output bounds, in bytes, the result of a run, each value that it writes or sends, and its log;
	// default 256 KiB. The log has at most 100 lines in any case.
	Output int `help:"Bytes of output of a run of a Starlark program."`
	// Depth is how deep values may be nested when they leave a run or are compared;
	// default 64, at most 500.
	Depth int `help:"Nesting of values in the output of a run of a Starlark program; at most 500."`
}

// maxDepth bounds Limits.Depth.
const maxDepth = 500

// Fill replaces zero fields by their defaults. It returns an error for the first invalid field.
func (l *Limits) Fill() error {
	switch {
	case l.Memory < 0:
		return fmt.Errorf("limit Memory is %d; use a positive number, or 0 for the default", l.Memory)
	case l.Output < 0:
		return fmt.Errorf("limit Output is %d; use a positive number, or 0 for the default", l.Output)
	case l.Depth < 0 || l.Depth > maxDepth:
		return fmt.Errorf("limit Depth is %d; use 1 to %d, or 0 for the default", l.Depth, maxDepth)
	}
	*l = l.fill()
	return nil
}

// fill returns the limits with the defaults filled in.
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

// bounds returns the filled limits for a meter.
func (l Limits) bounds() meter.Bounds { return meter.Bounds(l.fill()) }

const maxLogLines = 100 // of a run
