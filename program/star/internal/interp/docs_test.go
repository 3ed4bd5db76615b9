package interp

import (
	"os"
	"strings"
	"testing"
)

// TestDocs_NameEveryBuiltinAndMethod: every builtin that computes and every method of places is on the
// page.
func TestDocs_NameEveryBuiltinAndMethod(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/starlark.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for name := range language {
		if !strings.Contains(page, name) {
			t.Errorf("%s is not on the page", name)
		}
	}
	for name := range placeMethods {
		if !strings.Contains(page, "x."+name+"(") {
			t.Errorf("x.%s is not on the page", name)
		}
	}
}
