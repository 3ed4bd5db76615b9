package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// between returns the part of a page between a mark and its end.
func between(t *testing.T, page, mark string) string {
	t.Helper()
	_, part, found := strings.Cut(read(t, page), "<!-- "+mark+" -->")
	if !found {
		t.Fatalf("%s has no <!-- %s -->", page, mark)
	}
	part, _, _ = strings.Cut(part, "<!-- end -->")
	return part
}

func TestTraces_TheAttributesAreThoseOfTheCode(t *testing.T) {
	var documented, used []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(between(t, "traces.md", "attributes"), -1) {
		documented = append(documented, m[1])
	}
	file, err := parser.ParseFile(token.NewFileSet(), "../internal/telemetry/telemetry.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		if f, is := call.Fun.(*ast.SelectorExpr); is && f.Sel.Name == "Key" && len(call.Args) == 1 {
			name, err := strconv.Unquote(call.Args[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			used = append(used, name)
		}
		return true
	})
	if !slices.Equal(documented, used) {
		t.Errorf("documented: %q\nused:       %q", documented, used)
	}
}

// spanFiles begin the spans.
var spanFiles = []string{
	"client_observed.go", "space.go", "live/observed.go", "gateway/gateway.go", "worker/spans.go", "worker/hostspans.go", "coordinator/span.go",
}

func TestTraces_TheNamesAreThoseOfTheCode(t *testing.T) {
	var code strings.Builder
	for _, name := range spanFiles {
		text, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	rows := regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(between(t, "traces.md", "names"), -1)
	if len(rows) < 12 {
		t.Fatalf("%d names are found", len(rows))
	}
	for _, row := range rows {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			if text := code.String(); !strings.Contains(text, `"`+m[1]+`"`) && !strings.Contains(text, `"`+m[1]+` `) {
				t.Errorf("no span has the name %s", m[1])
			}
		}
	}
}
