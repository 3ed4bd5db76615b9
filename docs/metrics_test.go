package docs_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
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

// Every alert has a test in which it fires, and one in which it does not (.ci/run alerts runs them), and a command that shows the cause.
func TestMetrics_EveryAlertIsTested(t *testing.T) {
	rules, tests := read(t, "../deploy/prometheus/alerts.yaml"), read(t, "../deploy/prometheus/alerts_test.yaml")
	alerts := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(rules, -1)
	if len(alerts) < 10 || len(alerts) != strings.Count(rules, "action: settle ") || len(alerts) != strings.Count(rules, "summary: ") {
		t.Errorf("%d alerts were found; not each has a summary and an action", len(alerts))
	}
	commands := read(t, "cli.md")
	for _, a := range regexp.MustCompile(`action: (settle [a-z-]+)`).FindAllStringSubmatch(rules, -1) {
		if !regexp.MustCompile(`(?m)^#### ` + a[1] + `( |$)`).MatchString(commands) {
			t.Errorf("an alert names %s, which is no command", a[1])
		}
	}
	for _, a := range alerts {
		if !strings.Contains(tests, "alertname: "+a[1]+"}") {
			t.Errorf("no test has %s not fire", a[1])
		}
		if !strings.Contains(tests, "alertname: "+a[1]+"\n        exp_alerts:") {
			t.Errorf("no test has %s fire", a[1])
		}
	}
}

// The dashboard can be imported: panels do not overlap, and each has a query of the data source that is chosen.
func TestMetrics_TheDashboard(t *testing.T) {
	var board struct {
		Panels []struct {
			ID         int
			Type       string
			Title      string
			GridPos    struct{ X, Y, W, H int }
			DataSource struct{ UID string }
			Targets    []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../deploy/grafana/settle.json")), &board); err != nil {
		t.Fatal(err)
	}
	if len(board.Panels) < 20 {
		t.Errorf("it has %d panels", len(board.Panels))
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("%s has the id of another panel", p.Title)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := taken[at]; other != "" || at[0] >= 24 {
					t.Fatalf("%s overlaps %s, or the edge", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.DataSource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("%s asks nothing of the chosen data source", p.Title)
		}
		for i, q := range p.Targets {
			if q.RefID != string(rune('A'+i)) || q.Expr == "" {
				t.Errorf("%s: query %d is %+v", p.Title, i, q)
			}
		}
	}
}
