package star

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples_ComeToTheSameTwice compiles every example in Starlark and runs its tests twice, with the
// same results; each function also runs twice.
func TestExamples_ComeToTheSameTwice(t *testing.T) {
	dirs, err := filepath.Glob("../../examples/*")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, dir := range dirs {
		files, err := filepath.Glob(dir + "/*.star")
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(f)] = string(text)
		}
		for name := range all {
			test := strings.TrimSuffix(name, ".star") + "_test.star"
			if isTest(name) || all[test] == "" {
				continue
			}
			found++
			src := Source{Name: filepath.Base(dir), Entry: name, Files: all}
			var first []TestResult
			for range 2 {
				results, err := RunTests(t.Context(), src, test, TestOptions{Engine: testEngine})
				if err != nil || len(results) == 0 {
					t.Fatalf("%s: %d tests, %v", test, len(results), err)
				}
				for i, r := range results {
					if r.Err != nil {
						t.Errorf("%s: %s: %v", test, r.Name, r.Err)
					}
					if first != nil && strings.Join(first[i].Log, "\n") != strings.Join(r.Log, "\n") {
						t.Errorf("%s: %s logged\n%v\nand then\n%v", test, r.Name, first[i].Log, r.Log)
					}
				}
				first = results
			}
		}
	}
	if found == 0 {
		t.Error("no example has tests")
	}
}
