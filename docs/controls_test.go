package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each of the 32 controls of SECURITY.md names tests, and each test that it or docs/security.md names exists.
func TestControls_HaveTestsThatExist(t *testing.T) {
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(code), -1) {
			there[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	row := regexp.MustCompile(`(?m)^\| S(\d+) \| (.+) \| (.+) \|$`)
	text, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := row.FindAllStringSubmatch(string(text), -1)
	if len(rows) != 32 {
		t.Errorf("there are %d controls", len(rows))
	}
	for i, r := range rows {
		if r[1] != fmt.Sprint(i+1) || !named.MatchString(r[3]) {
			t.Errorf("control %d: %s", i+1, r[0])
		}
	}
	page, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range named.FindAllStringSubmatch(string(text)+string(page), -1) {
		if !there[m[1]] {
			t.Errorf("there is no test %s", m[1])
		}
	}
}
