package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const maxLines = 700

var (
	// Split so that this file does not find itself.
	unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)
	// Characters that a reader does not see, or that have text appear in another order than a compiler reads it: those that
	// control the direction of writing, those without a width, and NUL.
	hidden = regexp.MustCompile(`[\x00\x{061C}\x{200B}-\x{200F}\x{202A}-\x{202E}\x{2060}-\x{2069}\x{FEFF}]`)
	// A home directory, or the path of a checkout. The text before it must not be part of a URL or of a
	// longer path.
	machinePath = regexp.MustCompile(`(?:^|[^\w./~}-]|file://)(/(?:home|Users|root|work)/[\w.-]+|[A-Z]:\\Users\\)`)
)

// checkText finds text that must not be in any file of the repository.
func checkText(f *file) []finding {
	if path.Base(f.path) == "go.sum" {
		return nil // checksums can spell anything
	}
	var found []finding
	for i, line := range bytes.Split(f.text, []byte("\n")) {
		if m := unfinished.Find(line); m != nil {
			found = append(found, finding{f.path, i + 1, string(m) + ": finish it, or open an issue and say in the code what does not work yet"})
		}
		if m := hidden.Find(line); m != nil {
			found = append(found, finding{f.path, i + 1, fmt.Sprintf("%+q cannot be seen, and may have the line read as something else: write it as an escape", m)})
		}
		if m := machinePath.FindSubmatch(line); m != nil {
			found = append(found, finding{f.path, i + 1, string(m[1]) + " is a path of one machine: use a relative path, t.TempDir or a setting"})
		}
	}
	return found
}

func checkLength(f *file) []finding {
	n := bytes.Count(f.text, []byte("\n"))
	if n <= maxLines {
		return nil
	}
	return []finding{{f.path, n, "more than 700 lines: a file is one idea; find the second one in it and give it a file"}}
}

// What cannot be seen is found, and letters that merely are not ASCII are not.
func TestHiddenCharactersAreFound(t *testing.T) {
	for _, c := range []rune{0, 0x061c, 0x200b, 0x200f, 0x202e, 0x2066, 0x2069, 0xfeff} {
		if found := checkText(&file{path: "a.go", text: []byte("a\nb" + string(c) + "c\n")}); len(found) != 1 || found[0].line != 2 {
			t.Errorf("%U: %v", c, found)
		}
	}
	if found := checkText(&file{path: "a.md", text: []byte("Tür — „ja“ ✓ → 東京 🙂\n")}); len(found) != 0 {
		t.Errorf("found too much: %v", found)
	}
}

func TestLongFilesAreFound(t *testing.T) {
	atLimit := &file{path: "a.go", text: bytes.Repeat([]byte("\n"), maxLines)}
	if found := checkLength(atLimit); len(found) != 0 {
		t.Errorf("%d lines: %v", maxLines, found)
	}
	over := &file{path: "a.go", text: bytes.Repeat([]byte("\n"), maxLines+1)}
	if found := checkLength(over); len(found) != 1 {
		t.Errorf("%d lines: found %v, want one finding", maxLines+1, found)
	}
}

// checkTestHabits refuses tests that skip or sleep. It checks every file that imports testing, since
// suites and harnesses are in ordinary files.
func checkTestHabits(f *file) []finding {
	if !f.importsPackage("testing") {
		return nil
	}
	var found []finding
	// In a synctest bubble time.Sleep lets virtual time pass and waits for nothing.
	var bubbles []ast.Node
	inBubble := func(n ast.Node) bool {
		return slices.ContainsFunc(bubbles, func(b ast.Node) bool { return b.Pos() <= n.Pos() && n.End() <= b.End() })
	}
	var alternative ast.Stmt // the communication of the select case at hand
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			switch pkg, name := called(n); {
			case pkg == "synctest" && name == "Test":
				bubbles = append(bubbles, n)
			case name == "Skip" || name == "Skipf" || name == "SkipNow":
				found = append(found, f.found(n, "%s.%s: a green run must mean that the tests ran; set up what the test needs, or fail", pkg, name))
			case pkg == "time" && name == "Sleep" && !inBubble(n):
				found = append(found, f.found(n, "time.Sleep in a test: wait for the condition itself, or use virtual time (testing/synctest, the simulator)"))
			}
		case *ast.CommClause:
			alternative = n.Comm
		case *ast.ExprStmt:
			if isSleepByTimer(n) && ast.Stmt(n) != alternative && !inBubble(n) {
				found = append(found, f.found(n, "<-time.After alone is a sleep: wait for the condition itself, or use virtual time"))
			}
		}
		return true
	})
	return found
}

// called returns the function name of a call of the form x.Name(...).
func called(call *ast.CallExpr) (x, name string) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if id, ok := sel.X.(*ast.Ident); ok {
		x = id.Name
	}
	return x, sel.Sel.Name
}

func isSleepByTimer(s *ast.ExprStmt) bool {
	recv, ok := s.X.(*ast.UnaryExpr)
	if !ok {
		return false
	}
	call, ok := recv.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	pkg, name := called(call)
	return pkg == "time" && name == "After"
}

// checkPackageComments requires one package comment per package. A directory with only tests is a
// package, too.
func checkPackageComments(files []*file) []finding {
	type pkg struct {
		first     *file
		commented bool
	}
	pkgs := map[string]*pkg{}
	for _, f := range files {
		p := pkgs[f.dir()]
		if p == nil {
			p = &pkg{first: f}
			pkgs[f.dir()] = p
		}
		p.commented = p.commented || f.syntax.Doc != nil && strings.TrimSpace(f.syntax.Doc.Text()) != ""
	}
	var found []finding
	for _, p := range pkgs {
		if !p.commented {
			found = append(found, p.first.found(p.first.syntax.Name, "package %s has no package comment: say in two sentences what it is for, what it guarantees and what it does not", p.first.syntax.Name.Name))
		}
	}
	return found
}
