package star

import (
	"os"
	"strings"
	"testing"
)

// TestDocs_ExamplesRun runs the examples of docs/starlark.md, docs/workflows.md and docs/schedules.md: programs, the
// tests after them, and programs that must be refused.
func TestDocs_ExamplesRun(t *testing.T) {
	runExamples(t, "../../docs/starlark.md", 10)
	runExamples(t, "../../docs/workflows.md", 3)
	runExamples(t, "../../docs/schedules.md", 3)
}

// runExamples runs the examples of a page, among which are so many tests at least.
func runExamples(t *testing.T, page string, least int) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var program string
	tests := 0
	for n, block := range strings.Split("\n"+string(text), "\n```python")[1:] {
		kind, code, _ := strings.Cut(block, "\n")
		code, _, _ = strings.Cut(code, "\n```")
		kind = strings.TrimSpace(kind)
		src := Source{Name: "docs", Entry: "program.star", Files: map[string]string{"program.star": code + "\n"}}
		switch words, refused := strings.CutPrefix(kind, "refused: "); {
		case refused:
			if _, err := Compile(src, Options{}); err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("example %d: %v; want %q", n+1, err, words)
			}
		case kind == "":
			program = code + "\n"
			if _, err := Compile(src, Options{}); err != nil {
				t.Errorf("example %d: %v", n+1, err)
			}
		case kind == "test":
			src.Files = map[string]string{"program.star": program, "program_test.star": code + "\n"}
			results, err := RunTests(t.Context(), src, "program_test.star", TestOptions{Engine: testEngine})
			if err != nil || len(results) == 0 {
				t.Errorf("example %d: %d tests, %v", n+1, len(results), err)
			}
			for _, r := range results {
				tests++
				if r.Err != nil {
					t.Errorf("example %d: %s: %v", n+1, r.Name, r.Err)
				}
			}
		default:
			t.Errorf("example %d is of kind %q", n+1, kind)
		}
	}
	if tests < least {
		t.Errorf("there are %d tests in %s", tests, page)
	}
}

// TestDocs_NameEverything: every builtin and method of places is on the page.
func TestDocs_NameEverything(t *testing.T) {
	text, err := os.ReadFile("../../docs/starlark.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for name := range spaceBuiltins {
		if !strings.Contains(page, name+"(") {
			t.Errorf("%s is not on the page", name)
		}
	}
	for name := range testBuiltins {
		if !strings.Contains(page, name+"(") {
			t.Errorf("%s of tests is not on the page", name)
		}
	}
}
