package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestListIsTrue: every mutant can still be applied. No mutant is run.
func TestListIsTrue(t *testing.T) {
	list, err := readList("list")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 150 {
		t.Errorf("there are %d mutants, and 150 are wanted", len(list))
	}
	texts := map[string][]byte{}
	for _, m := range list {
		text := texts[m.file]
		if text == nil {
			if text, err = os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file))); err != nil {
				t.Errorf("mutant %s: %v", m.id, err)
				continue
			}
			texts[m.file] = text
		}
		if _, err := m.mutate(text); err != nil {
			t.Error(err)
		}
	}
	results, err := readResults("results.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		delete(results, m.id)
	}
	for id := range results { // any order: each is an error of its own
		t.Errorf("results.txt: there is no mutant %s", id)
	}
}

// TestREADMEIsWhatCameOfThem: the summary matches the results in the repository, and enough of the
// mutants that are not equivalent are caught.
func TestREADMEIsWhatCameOfThem(t *testing.T) {
	list, err := readList("list")
	if err != nil {
		t.Fatal(err)
	}
	results, err := readResults("results.txt")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != report(list, results) {
		t.Error("README.md is not of these results; run: go run ./test/mutants -report")
	}
	all := &count{}
	for _, m := range list {
		r, tried := cameOf(m, results)
		all.add(m, r, tried)
	}
	if n := all.mutants - all.equivalent; 100*all.caught < 95*n {
		t.Errorf("%d of %d mutants are caught: less than 95 %%; those that are open or not tried count, too", all.caught, n)
	}
}

// TestReport_OfAMutantThatWasChangedNothingIsKnown: a result of the former version does not apply to it.
func TestReport_OfAMutantThatWasChangedNothingIsKnown(t *testing.T) {
	m := &mutant{id: "E01", file: "a/b.go", promise: "it works", old: "one", new: "two"}
	results := map[string]result{"E01": {"E01", m.sum(), caught, "a TestIt"}}
	if text := report([]*mutant{m}, results); !strings.Contains(text, "| it works | a TestIt |") {
		t.Error(text)
	}
	m.new = "three"
	if text := report([]*mutant{m}, results); !strings.Contains(text, "| it works | not tried yet |") || strings.Contains(text, "a TestIt") {
		t.Error(text)
	}
}

// TestReadResults_WhatIsCaughtSaysByWhat: the test, the seed or the panic; a package alone is no proof.
func TestReadResults_WhatIsCaughtSaysByWhat(t *testing.T) {
	for how, good := range map[string]bool{
		"": false, "a": false, "a TestIt": true, "a seed 7 (log)": true, "a TestIt (does not end)": true, "a (panic: no)": true, "a (goroutines are left)": true,
	} { // any order: each by itself
		file := filepath.Join(t.TempDir(), "results.txt")
		if err := os.WriteFile(file, []byte(result{"E01", "12345678", caught, how}.String()+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readResults(file); (err == nil) != good {
			t.Errorf("caught by %q is read: %v", how, err)
		}
	}
}

// TestMatching_NarrowsAStepDown: except for a step that names its tests.
func TestMatching_NarrowsAStepDown(t *testing.T) {
	got := matching([]step{{pkg: "./a"}, fewSeeds}, "TestIt")
	if want := []string{"-run=TestIt"}; !slices.Equal(got[0].args, want) || !slices.Equal(got[1].args, fewSeeds.args) {
		t.Errorf("the steps are %+v", got)
	}
}

func TestParse(t *testing.T) {
	list, err := parse("# of an example\n@ E01 a/b.go\n: it works\n: well\n- one\n- \ttwo\n+ three\n= because\n? ./a\n")
	if err != nil {
		t.Fatal(err)
	}
	if m := list[0]; len(list) != 1 || m.id != "E01" || m.file != "a/b.go" || m.promise != "it works well" || m.old != "one\n\ttwo" ||
		m.new != "three" || m.equivalent != "because" || m.packages[0] != "./a" || m.pkg() != "a" {
		t.Errorf("read %+v", m)
	}
	for _, bad := range []string{"- it belongs to none\n", "@ E01\n", "@ E01 a.go\n- x\n+ y\n", "@ E01 a.go\n: it\n- x\n+ x\n", "@ E01 a.go\n: it\n! x\n"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// A module with three functions of all kinds, and tests that notice some mutants.
var example = map[string]string{
	"go.mod": "module example.com/example\n\ngo 1.26\n",
	"sum/sum.go": `package sum

import "strings"

const limit = 10

type adder struct{ n int }

func (*adder) none(_ int, words ...string) string { return strings.Join(words, "+") }

func (a *adder) add(n int) { a.n += n }

func first[T any](list ...T) (v T) {
	if len(list) > 0 {
		v = list[0]
	}
	return v
}
`,
	"sum/sum_test.go": `package sum

import "testing"

func TestAdd(t *testing.T) {
	var a adder
	if a.add(2); a.n != 2 || first(1, 2) != 1 || a.none(0, "a", "b") != "a+b" || limit > 100 {
		t.Error("wrong")
	}
}
`,
}

const exampleList = `@ A1 sum/sum.go
: sums are sums
- a.n += n
+ a.n -= n
@ A2 sum/sum.go
: words stand in order
- strings.Join(words, "+")
+ strings.Join(words[:1], "+")
@ A3 sum/sum.go
: nothing is read beyond the end
- if len(list) > 0 {
+ if len(list) >= 0 {
@ A4 sum/sum.go
: it compiles
- v = list[0]
+ v = lost[0]
@ A5 sum/sum.go
: the limit is low
- limit = 10
+ limit = 1000
@ A6 sum/sum.go
: what is not there is not changed
- v = list[1]
+ v = list[2]
`

// TestACampaignTellsWhatIsCaught runs a campaign over an example: mutants in a tree of all, one that is
// in no function, one that does not compile, one that does not apply, and one that survives. A second
// run has nothing left to do except the last two.
func TestACampaignTellsWhatIsCaught(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range example { // any order: files
		write(name, text)
	}
	write("test/mutants/list/sum.txt", exampleList)
	if out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := campaign{root: dir, dir: filepath.Join(t.TempDir(), "copy"), limit: mostTime, steps: func(*mutant) []step { return []step{{pkg: "./sum"}} }}
	if err := c.run(context.Background(), true); err != nil {
		t.Fatal(err)
	}
	results, err := readResults(c.path("results.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"A1": "caught sum TestAdd", "A2": "caught sum TestAdd", "A3": "survived", "A4": "does-not-compile", "A5": "caught sum TestAdd", "A6": "does-not-apply",
	} { // any order: each by itself
		if r := results[id]; !strings.HasPrefix(strings.TrimSpace(r.verdict+" "+r.how), want) {
			t.Errorf("%s: %s %s, want %s", id, r.verdict, r.how, want)
		}
	}
	readme, err := os.ReadFile(c.path("README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if row := "| all | 6 | 3 | 1 | 0 | 0 | 2 | 75.0 % |"; !strings.Contains(string(readme), row) {
		t.Errorf("the summary has no row %s:\n%s", row, readme)
	}
}
