package star

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the files of testdata anew")

// compareGolden compares lines with a file of testdata.
func compareGolden(t *testing.T, name string, lines []string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	golden := strings.Split(strings.TrimSuffix(string(want), "\n"), "\n")
	if len(lines) != len(golden) {
		t.Errorf("%s has %d lines; the test made %d", file, len(golden), len(lines))
	}
	for i := range min(len(lines), len(golden)) {
		if lines[i] != golden[i] {
			t.Errorf("%s:%d\n is %s\nwas %s", file, i+1, lines[i], golden[i])
		}
	}
}

// examples returns the programs of examples/, by directory.
func examples(t *testing.T) (all []Source) {
	t.Helper()
	files, err := filepath.Glob("../../examples/*/*.star")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if isTest(f) {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(f)
		all = append(all, Source{Name: filepath.Base(filepath.Dir(f)), Entry: name, Files: map[string]string{name: string(text)}})
	}
	return all
}

// everyKind is a program that has every kind of node, and functions that name every kind of value.
var everyKind = Source{Name: "kinds", Entry: "main.star", Files: map[string]string{
	"main.star": `load("lib.star", "scale", "LIMITS")
stats = cell("stats", {"open": 0, "by": {"x": [1, 2.5, None, True]}})
other = doc("stats", space = "RIX")
SMALL, TEXT, PAIR = 3, "t" * 300, (1, ("a", 2.0))
NAMES = set(["b", "a"])
TABLE = {"one": 1, "two": [lambda x: x + SMALL], 3: link("stats", "by")}
def circle(n, depth = SMALL): # a comment
    "A docstring."
    return [circle, n][1:depth] if n else PAIR
def outer(k):
    def inner(v = TEXT):
        return [x * k for x in [v] if x not in NAMES or -1 < 2]
    return inner
def total():
    n = 0
    for k, v in TABLE.items():
        if k == 3:
            continue
        n += scale(len(str(v)))
    return {"n": n, "open": stats.open, "far": other.open, "c": circle(0)}
compute("total", total, debounce = "1s", max_wait = "1m", group = "g")
compute("closed", outer(7), output = "elsewhere", volatile = True)
compute("bound", outer("z"), throttle = "2s", reads = [stats["by"]], envelope = [doc("extra")])
compute("none", lambda: stats.by.get("x") and {k: LIMITS for k in NAMES}, output = None, writes = [doc("more")["x"]])
def notify():
    log("open", n = stats.open, f = "%d" % stats.open)
effect("notify", notify, debounce = "2s", max_wait = "none")
def row(key, value):
    return None if not value else {"key": key, "v": value[0:1]}
each("rows", stats["by"], row, throttle = "1s")
`,
	"lib.star": `LIMITS = {"a": [1, 2], "b": {"c": "d"}}
def scale(n):
    return n << 1 | LIMITS["a"][0]
`,
}}

// A fingerprint that changes without a change of the program runs every node of every deployed program
// again, once.
func TestFingerprint_StaysWhatItWas(t *testing.T) {
	var lines []string
	sources := append(examples(t), everyKind)
	for _, src := range sources {
		p, err := Compile(src, Options{})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s/%s %s", src.Name, src.Entry, p.Version()))
		for _, n := range p.Nodes() {
			lines = append(lines, fmt.Sprintf("  %s %s %s", n.Kind, n.ID, n.Fingerprint))
		}
	}
	compareGolden(t, "fingerprints.txt", lines)
}

// What a run is charged decides where it is stopped: workers of two versions must agree.
func TestCharges_StayWhatTheyWere(t *testing.T) {
	var lines []string
	for _, ev := range evaluations {
		lines = append(lines, charged(t, ev.body))
	}
	for _, r := range refusals {
		lines = append(lines, charged(t, r.body))
	}
	compareGolden(t, "charges.txt", lines)
}

// charged returns the steps and bytes that a handler with this body is charged.
func charged(t *testing.T, body string) string {
	t.Helper()
	p := compiled(t, "LIST = [1]\nTABLE = {}\nd = compute('d', lambda: 1)\n"+evaluator+body+"\nhandle('h', h)\n")
	newStage(t, p.Space()).send("h", evaluated)
	c := p.idle[0].calls[0]
	return fmt.Sprintf("%d steps %d bytes: %s", c.Thread.Steps, c.Mem, strings.ReplaceAll(body, "\n", "\\n"))
}
