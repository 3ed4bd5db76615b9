package tidy

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// word is an expression that pages do not use, and what to write in its place.
type word struct {
	form    *regexp.Regexp
	instead string
}

// pageWords is the list. A sentence has a subject with a name: the worker, the client, the operator.
var pageWords = []word{
	{regexp.MustCompile(`(?i)\b(whoever|whomever|whosoever)\b`), "name the component or the role: the worker, the client, the operator"},
	{regexp.MustCompile(`(?i)\b(somebody|someone|nobody|no one|anybody|anyone|everybody|everyone)('s)?\b`), "name the component or the role: a client watches, no worker serves"},
	{regexp.MustCompile(`(?i)\b(?:who(?:$|[^-\w])|whom\b)`), "name the component or the role, or write \"a client that\""},
	{regexp.MustCompile(`(?i)\b(?:is|are|was|were|be|been) told\b`), "say what happens: receives an event, is notified, is configured with"},
	{regexp.MustCompile(`(?i)\band the like\b`), "list them, or leave it out"},
	{regexp.MustCompile(`(?i)\btells? of\b`), "say which message is sent, or which status is reported"},
	{regexp.MustCompile(`(?i)\bat the most\b`), "\"at most\""},
	{regexp.MustCompile(`(?i)\bfor ever\b`), "\"without a limit\", \"for good\", \"always\""},
	{regexp.MustCompile(`(?i)\bof (?:yours|its) own accord\b`), "\"by itself\""},
	{regexp.MustCompile(`(?i)\b(?:in vain|mend(?:s|ed|ing)?)\b`), "\"without effect\", \"repair\""},
	{regexp.MustCompile(`(?i)\bhas come of\b|\bcomes of\b|\bcome of\b`), "\"the result of\""},
}

// people are nouns after which "who" is permitted: nouns for persons, not for processes.
var people = regexp.MustCompile(`(?i)\b(?:person|people|users?|developers?|operators?|readers?|customers?|contributors?|employees?) $`)

// plainPage reports whether the list applies to a page.
func plainPage(path string) bool {
	return slices.Contains([]string{"README.md", "AGENTS.md", "CONTRIBUTING.md", "deploy/README.md", "SECURITY.md", "ARCHITECTURE.md", "bench/README.md", "bench/peers/README.md", "space/testdata/README.md", "ledger/testdata/README.md"}, path) || strings.HasPrefix(path, "examples/") && strings.HasSuffix(path, ".md") || strings.HasPrefix(path, "internal/starter/") && strings.HasSuffix(path, ".md") ||
		strings.HasPrefix(path, "docs/") && strings.HasSuffix(path, ".md") && !strings.HasPrefix(path, "docs/adr/")
}

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
)

// checkPage finds expressions of the list in the prose of a page, and ignores code.
func checkPage(f *file) (found []finding) {
	fenced := false
	for i, raw := range bytes.Split(f.text, []byte("\n")) {
		line := string(raw)
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if fenced || strings.HasPrefix(line, "    ") {
			continue
		}
		line = linkTarget.ReplaceAllString(inlineCode.ReplaceAllString(line, "``"), "]")
		for _, w := range pageWords {
			for _, at := range w.form.FindAllStringIndex(line, -1) {
				text := strings.TrimRight(line[at[0]:at[1]], " ,.;:?!)\"'")
				if !strings.EqualFold(text, "who") || !people.MatchString(line[:at[0]]) {
					found = append(found, finding{f.path, i + 1, "plain words: " + text + ": " + w.instead})
				}
			}
		}
	}
	return found
}

func TestWords_PagesAreInPlainWords(t *testing.T) {
	pages := 0
	for _, f := range readTree(t, "../..") {
		if !plainPage(f.path) {
			continue
		}
		pages++
		for _, found := range checkPage(f) {
			t.Error(found)
		}
	}
	if pages < 25 {
		t.Errorf("only %d pages were found", pages)
	}
}

func TestWords_ProseIsSearchedAndCodeIsNot(t *testing.T) {
	for text, want := range map[string]int{
		"Whoever asks, and somebody who waits.":       3,
		"A user who may not, and operators who may.":  0,
		"It is told, and the like.":                   2,
		"`who` in code\n```\nnobody\n```\n    anyone": 0,
		"The client waits for the receipt.":           0,
		"A tool that nobody":                          1,
		"A [link](to/nobody.md) of a page":            0,
	} {
		if got := checkPage(&file{path: "docs/a.md", text: []byte(text)}); len(got) != want {
			t.Errorf("%q: %d findings, not %d: %v", text, len(got), want, got)
		}
	}
}
