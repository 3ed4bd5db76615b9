package main

import (
	"fmt"
	"os"
	"strings"
)

// Verdicts.
const (
	caught         = "caught"
	survived       = "survived"
	open           = "open" // no test of the first steps has noticed
	doesNotCompile = "does-not-compile"
	doesNotApply   = "does-not-apply"
)

// result is the result of a mutant, in the form identified by sum.
type result struct{ id, sum, verdict, how string }

func (r result) String() string {
	return strings.TrimSpace(strings.Join([]string{r.id, r.sum, r.verdict, r.how}, " "))
}

// readResults reads the results; the last one of each mutant counts.
func readResults(file string) (map[string]result, error) {
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	results := map[string]result{}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 4)
		if len(f) < 3 {
			return nil, fmt.Errorf("%s: %q is no result", file, line)
		}
		r := result{id: f[0], sum: f[1], verdict: f[2]}
		if len(f) == 4 {
			r.how = f[3]
		}
		if r.verdict == caught && !strings.Contains(r.how, " ") {
			return nil, fmt.Errorf("%s: %q does not say which test, seed or panic has caught it", file, line)
		}
		if was := results[r.id]; r.verdict == open && was.verdict == caught && was.sum == r.sum {
			continue // the test that caught it was not run again
		}
		results[r.id] = r
	}
	return results, nil
}

// writeResults writes one result of each mutant, in the order of the list.
func writeResults(file string, list []*mutant, results map[string]result) error {
	var b strings.Builder
	for _, m := range list {
		if r, is := results[m.id]; is {
			fmt.Fprintln(&b, r)
		}
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}
