package tidy

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// quotedTexts are files whose texts scenarios or digests contain: only their comments are checked.
var quotedTexts = []string{
	"space/inspect/text.go",
	"space/scenario_introspection_test.go",
	"test/sim/rewinds_test.go", // the texts of the simulation are part of the digest of a seed
	"test/sim/tasks_test.go",
	"test/sim/versions_test.go",
	"test/sim/world_test.go",
}

// wordRule is a phrase that comments and texts must not use, and what to write in its place.
type wordRule struct {
	pattern *regexp.Regexp
	instead string
}

func phrase(text, instead string) wordRule {
	return wordRule{regexp.MustCompile(`(?i)\b(?:` + text + `)\b`), instead}
}

var wordRules = []wordRule{
	{regexp.MustCompile(`(?i)\bwho(?:[^-\w]|$)`), "name the thing: the worker, the coordinator, the client, the caller"}, // who-may is a command
	phrase(`whom|whoever|whomever|somebody|someone|nobody|no one|anybody|anyone|everybody|everyone`,
		"name the thing: the worker, the coordinator, the client, the caller"),
	phrase(`and the like`, "finish the list"),
	phrase(`(?:is|are|was|were|be|been|being) told`, "is notified, receives, is reported"),
	phrase(`says that (?:it|they)|saying so|says so|say so`, "say what it does"),
	phrase(`(?:can|could) be said of|is said of|what is said`, "say what it is"),
	phrase(`comes? of (?:it|them)|(?:has|have) come of`, "the result, the outcome"),
	{regexp.MustCompile(`\bDESIGN\b|\bseeds? 0\d\d\b`), "state the rule itself"},
	phrase(`tak(?:e|es|en|ing) back`, "cancel, undo, roll back"),
	phrase(`gone on with|goes on with`, "continue"),
	phrase(`for ever`, "forever"),
	phrase(`tells? (?:whether|which|how|what)`, "returns, decides, reports, distinguishes"),
	phrase(`hears`, "receives, is notified"),
	phrase(`at the most`, "at most"),
	phrase(`now and then`, "sometimes, periodically"),
	phrase(`brings? about|brought about`, "cause, inject"),
	phrase(`mend(?:s|ed|ing)?`, "repair"),
	phrase(`(?:is|are|was|were|be|been) made (?:again|anew)`, "is repeated, is rebuilt"),
	phrase(`tak(?:e|es|ing|en) in (?:that|what|how|which)`, "record, process, apply"),
	phrase(`what (?:came|became|becomes) of`, "the result, the outcome"),
	{
		regexp.MustCompile(`\b(?:deaf|ousted|burial|roof|loosen|acquit|upset|in vain|barren|unheard|usurped|glance)\b`),
		"use the field's term",
	},
}

// Comments and texts are for readers who do not know the code yet: a sentence that does not name the
// acting component has to be translated while reading.
func TestWordList(t *testing.T) {
	files := readTree(t, filepath.Join("..", ".."))
	for _, path := range quotedTexts {
		if !slices.ContainsFunc(files, func(f *file) bool { return f.path == path }) {
			t.Errorf("there is no file %s: correct the list", path)
		}
	}
	for _, f := range files {
		if !heldFile(f) {
			continue
		}
		for _, found := range checkPhrases(f, !slices.Contains(quotedTexts, f.path)) {
			t.Error(found)
		}
	}
}

// heldFile reports whether a file must keep to the word list. This package may not, because it has the list.
func heldFile(f *file) bool {
	return f.syntax != nil && !strings.HasPrefix(f.path, "internal/tidy/")
}

// checkPhrases applies the rules to the comments of a file and, with texts, to its string literals that
// are prose. An exported name of the file, such as a field Who, may stand in its comments, and so may
// the name of a declaration, which its doc comment begins with.
func checkPhrases(f *file, texts bool) []finding {
	names := map[string]bool{}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if n.IsExported() {
				names[n.Name] = true
			}
		case *ast.FuncDecl:
			names[n.Name.Name] = true
		case *ast.TypeSpec:
			names[n.Name.Name] = true
		}
		return true
	})
	var found []finding
	check := func(n ast.Node, text string) {
		for _, r := range wordRules {
			for _, m := range r.pattern.FindAllString(text, -1) {
				if !names[m] {
					found = append(found, f.found(n, "%q: %s", m, r.instead))
				}
			}
		}
	}
	for _, group := range f.syntax.Comments {
		if f.isTest() && strings.HasPrefix(group.Text(), "Output:") {
			continue
		}
		check(group, strings.Join(strings.Fields(group.Text()), " "))
	}
	if !texts {
		return found
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, " ") {
			check(lit, strings.Join(strings.Fields(lit.Value), " "))
		}
		return true
	})
	return found
}

func TestWordRulesFindWhatTheyShould(t *testing.T) {
	for text, want := range map[string]int{
		"Who asks for it gets it.":                    1,
		"the address is told to the server":           1,
		"which says that it is gone, and the like":    2,
		"see DESIGN, section 4, and seed 001":         1,
		"The worker notifies the coordinator.":        0,
		"ErrNobody is returned; whose lane it is":     0,
		"what comes of it is in the receipt":          1,
		"a client that watches the document is asked": 0,
	} {
		n := 0
		for _, r := range wordRules {
			if r.pattern.MatchString(text) {
				n++
			}
		}
		if n != want {
			t.Errorf("%d rules match %q, not %d", n, text, want)
		}
	}
}

// dialect are words that declared names must not contain: they name no action or thing of the field.
var dialect = strings.Fields(`anew bury buried came complain crowded deed doomed hear heard heal kid kids mend owed owes poke rouse
	said say says sprout stirred stirs strays surroundings tell telling tells told wander who whom whose`)

// Names of functions, types, struct fields and package-level values keep to the terms of the field. Tests and examples are
// exempt: an example may name what it is about.
func TestNames(t *testing.T) {
	for _, f := range readTree(t, filepath.Join("..", "..")) {
		dir := f.dir()
		if !heldFile(f) || f.isTest() || strings.HasPrefix(dir, "examples/") || strings.HasPrefix(dir, "test/") || dir == "bus/buscontract" {
			continue
		}
		for _, id := range declaredNames(f.syntax) {
			for _, w := range wordsOf(id.Name) {
				if slices.Contains(dialect, w) {
					t.Error(f.found(id, "%s contains %q: use the field's term", id.Name, w))
				}
			}
		}
	}
}

// declaredNames returns the names of functions, types, struct fields and package-level values of a file.
func declaredNames(f *ast.File) (names []*ast.Ident) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok {
					names = append(names, v.Names...)
				}
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			names = append(names, n.Name)
		case *ast.StructType:
			for _, field := range n.Fields.List {
				names = append(names, field.Names...)
			}
		}
		return true
	})
	return names
}

var capitalized = regexp.MustCompile(`[A-Z]?[a-z0-9]+|[A-Z]+`)

// wordsOf splits a name in camel case.
func wordsOf(name string) []string {
	words := capitalized.FindAllString(name, -1)
	for i := range words {
		words[i] = strings.ToLower(words[i])
	}
	return words
}
