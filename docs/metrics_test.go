package docs_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/settlehq/settle/internal/telemetry/meters"
)

var update = flag.Bool("update", false, "write the tables of metrics.md anew")

// The tables of metrics.md are those of the code; test/metrics_test.go compares the code with what is exported.
func TestMetrics_ThePageHasTheTablesOfTheCode(t *testing.T) {
	text := read(t, "metrics.md")
	want := text
	for mark, table := range map[string][]meters.Instrument{
		"worker": meters.Worker, "coordinator": meters.Coordinator, "client": meters.Client, "gateway": meters.Gateway,
	} { // any order: each has its own place
		want = replaced(t, want, mark, table)
	}
	if text == want {
		return
	}
	if !*update {
		t.Fatal("the tables of metrics.md are not those of internal/telemetry/meters; run: go test ./docs -run TestMetrics -update")
	}
	if err := os.WriteFile("metrics.md", []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replaced returns the page with a table between its marks.
func replaced(t *testing.T, page, mark string, of []meters.Instrument) string {
	t.Helper()
	before, rest, begins := strings.Cut(page, "<!-- "+mark+" -->\n")
	_, after, ends := strings.Cut(rest, "<!-- end -->")
	if !begins || !ends {
		t.Fatalf("metrics.md has no place for the table %s", mark)
	}
	var b strings.Builder
	b.WriteString(before + "<!-- " + mark + " -->\n| name | Prometheus | kind | unit | meaning |\n|---|---|---|---|---|\n")
	for _, i := range of {
		help := i.Help
		if i.Attribute != "" {
			help += " `" + i.Attribute + "`: " + strings.Join(i.Values, ", ") + "."
		}
		for _, a := range i.Also {
			help += " `" + a.Name + "`: " + a.Values + "."
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", i.Name, i.Prometheus(), i.Kind, i.Unit, help)
	}
	return b.String() + "<!-- end -->" + after
}
