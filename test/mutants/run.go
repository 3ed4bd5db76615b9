package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// copyTree copies the tracked and untracked, but not the ignored, files of the repository at root to
// dir.
func copyTree(ctx context.Context, root, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the files of the repository: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if os.IsNotExist(err) {
		return nil // deleted, and not committed
	}
	if err != nil || info.IsDir() {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

// tree is a copy of the repository with mutants in it.
type tree struct {
	dir   string
	limit time.Duration
	brief bool
	tests string // a pattern, "" for all
	steps func(*mutant) []step
	woven map[string]bool // the mutants in the tree
	suite map[string]*suite
}

// suite is a built test binary of a package, and the duration of its tests without a mutant.
type suite struct {
	binary string
	quick  string // the pattern of the fastest tests, "" if there are none
	took   time.Duration
}

// plant puts as many of the mutants as possible into the tree. It returns the
// results of the others.
func (t *tree) plant(ctx context.Context, list []*mutant) (results []result, err error) {
	of := map[string][]*mutant{}
	var files []string
	for _, m := range list {
		if of[m.file] == nil {
			files = append(files, m.file)
		}
		of[m.file] = append(of[m.file], m)
	}
	byFile := map[string]*mutant{} // of a copy
	for _, file := range files {
		w, _, err := weave(t.dir, file, of[file])
		if err != nil {
			return nil, err
		}
		for _, m := range of[file] {
			if w.present[m.id] {
				t.woven[m.id] = true
				byFile["mutant_"+strings.ToLower(m.id)+".go"] = m
			}
		}
	}
	build := []string{"build"}
	for _, file := range files {
		if pkg := "./" + path.Dir(file); !slices.Contains(build, pkg) {
			build = append(build, pkg)
		}
	}
	for {
		out, err := t.command(ctx, ".", "", "go", build...)
		if err == nil {
			return results, nil
		}
		bad := false
		for _, found := range mutantFile.FindAllString(out, -1) {
			m := byFile[found]
			if m == nil || !t.woven[m.id] {
				continue
			}
			bad, t.woven[m.id] = true, false
			results = append(results, result{m.id, m.sum(), doesNotCompile, firstLineOf(out, found)})
			if err := t.uproot(m); err != nil {
				return nil, err
			}
		}
		if !bad {
			return nil, fmt.Errorf("build the mutants: %w\n%s", err, out)
		}
	}
}

var mutantFile = regexp.MustCompile(`mutant_[a-z]+\d+\.go`)

// uproot removes a mutant that does not compile from the tree.
func (t *tree) uproot(m *mutant) error {
	if err := os.Remove(filepath.Join(t.dir, filepath.FromSlash(m.pkg()), "mutant_"+strings.ToLower(m.id)+".go")); err != nil {
		return err
	}
	file := filepath.Join(t.dir, filepath.FromSlash(m.file))
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	call := regexp.MustCompile(` if settleMutant == "` + m.id + `" \{[^}]*\};`)
	return os.WriteFile(file, call.ReplaceAll(text, nil), 0o644)
}

// suiteOf builds the tests of a package and runs them without a mutant: they must pass.
func (t *tree) suiteOf(ctx context.Context, s step) (*suite, error) {
	key := s.pkg + strings.Join(s.args, " ")
	if is := t.suite[key]; is != nil {
		return is, nil
	}
	is := &suite{binary: filepath.Join(t.dir, ".suites", strings.NewReplacer("/", "-", ".", "-").Replace(s.pkg)+".test")}
	if out, err := t.command(ctx, ".", "", "go", "test", "-c", "-vet=off", "-o", is.binary, s.pkg); err != nil {
		return nil, fmt.Errorf("build the tests of %s: %w\n%s", s.pkg, err, out)
	}
	began := time.Now()
	out, err := t.command(ctx, s.pkg, "", is.binary, slices.Concat([]string{"-test.v", "-test.timeout=" + (3 * t.limit).String()}, testArgs(s))...)
	if err != nil {
		return nil, fmt.Errorf("the tests of %s fail without a mutant: %w\n%s", s.pkg, err, out[max(0, len(out)-8000):])
	}
	is.took = time.Since(began)
	if len(s.args) == 0 {
		is.quick = quickTests(out)
	}
	t.suite[key] = is
	return is, nil
}

// testArgs returns the arguments of a step for a test binary, where flags of the testing package have a
// prefix.
func testArgs(s step) (args []string) {
	for _, a := range s.args {
		args = append(args, strings.Replace(a, "-run=", "-test.run=", 1))
	}
	return args
}

var passed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \(([\d.]+)s\)`)

// quickTests returns the pattern of the fastest tests, which together take a quarter of the time.
func quickTests(out string) string {
	type test struct {
		name string
		took time.Duration
	}
	var tests []test
	var all time.Duration
	for _, m := range passed.FindAllStringSubmatch(out, -1) {
		if d, err := time.ParseDuration(m[2] + "s"); err == nil {
			tests, all = append(tests, test{m[1], d}), all+d
		}
	}
	slices.SortStableFunc(tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	var names []string
	for _, t := range tests {
		if all -= 4 * t.took; all < 0 {
			break
		}
		names = append(names, t.name)
	}
	if len(names) == 0 {
		return ""
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// try runs tests on a mutant; if most is not 0, only the first steps. A mutant that passes those is
// open.
func (t *tree) try(ctx context.Context, m *mutant, most int) (result, error) {
	if !t.woven[m.id] {
		return t.tryAlone(ctx, m, most)
	}
	steps, verdict := t.firstSteps(m, most)
	r := result{id: m.id, sum: m.sum(), verdict: verdict}
	for _, s := range steps {
		is, err := t.suiteOf(ctx, s)
		if err != nil {
			return r, err
		}
		limit := t.limit + 4*is.took // or a busy machine would look like a test that does not end
		runs := []step{s}
		if is.quick != "" && t.brief {
			runs, r.verdict = []step{{s.pkg, []string{"-run=" + is.quick}}}, open
		} else if is.quick != "" {
			runs = []step{{s.pkg, []string{"-run=" + is.quick}}, {s.pkg, []string{"-test.skip=" + is.quick}}}
		}
		for _, run := range runs {
			out, err := t.command(ctx, s.pkg, m.id, is.binary, slices.Concat([]string{"-test.failfast", "-test.timeout=" + limit.String()}, testArgs(run))...)
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
			if err != nil {
				r.verdict, r.how, err = judge(s, out)
				return r, err
			}
		}
	}
	return r, nil
}

// firstSteps returns the first steps for a mutant, and the verdict on one that passes them.
func (t *tree) firstSteps(m *mutant, most int) (steps []step, verdict string) {
	steps = t.steps(m)
	if t.tests != "" {
		return matching(steps[:min(max(most, 1), len(steps))], t.tests), open
	}
	if most > 0 && most < len(steps) {
		return steps[:most], open
	}
	return steps, survived
}

// matching narrows the steps down to the tests whose names match; a step that names its tests stays as it is.
func matching(steps []step, tests string) (list []step) {
	for _, s := range steps {
		if len(s.args) == 0 {
			s.args = []string{"-run=" + tests}
		}
		list = append(list, s)
	}
	return list
}

// tryAlone builds and tests a tree with one mutant that is outside of any function.
func (t *tree) tryAlone(ctx context.Context, m *mutant, most int) (result, error) {
	steps, verdict := t.firstSteps(m, most)
	r := result{id: m.id, sum: m.sum(), verdict: verdict}
	file := filepath.Join(t.dir, filepath.FromSlash(m.file))
	text, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	mutated, err := m.mutate(text)
	if err != nil {
		r.verdict, r.how = doesNotApply, m.file
		return r, nil
	}
	if err := os.WriteFile(file, mutated, 0o644); err != nil {
		return r, err
	}
	defer func() { _ = os.WriteFile(file, text, 0o644) }()
	for _, s := range steps {
		args := slices.Concat([]string{"test", "-count=1", "-failfast", "-vet=off", "-p=1", "-timeout=" + t.limit.String(), s.pkg}, s.args)
		out, err := t.command(ctx, ".", "", "go", args...)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if err != nil {
			r.verdict, r.how, err = judge(s, out)
			return r, err
		}
	}
	return r, nil
}

// command runs a program in a directory of the tree, at the lowest priority, with one mutant chosen or
// none.
func (t *tree) command(ctx context.Context, in, id, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "nice", slices.Concat([]string{"-n", "19", name}, args)...)
	c.Dir = filepath.Join(t.dir, filepath.FromSlash(in))
	c.Env = append(os.Environ(), "GOMAXPROCS=2", "PROPERTY_SEED=1", choose+"="+id)
	var text bytes.Buffer
	c.Stdout, c.Stderr = &text, &text
	c.WaitDelay = time.Minute
	err := c.Run()
	return text.String(), err
}

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	runningAt  = regexp.MustCompile(`(?m)^\s*running tests:\n\s*(\S+)`)
	badSeed    = regexp.MustCompile(`seed (\d+) breaks a promise`)
	firstWrong = regexp.MustCompile(`breaks a promise:\n\s*(\w+):`)
)

// judge interprets a failed run of tests. Output that names no failed test means that the run was ended
// by another cause, which is an error.
func judge(s step, out string) (verdict, how string, err error) {
	pkg := strings.TrimPrefix(s.pkg, "./")
	if strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]") {
		return doesNotCompile, firstLineOf(out, ".go:"), nil
	}
	if seed := badSeed.FindStringSubmatch(out); seed != nil {
		how = pkg + " seed " + seed[1]
		if check := firstWrong.FindStringSubmatch(out); check != nil {
			how += " (" + check[1] + ")"
		}
		return caught, how, nil
	}
	if t := runningAt.FindStringSubmatch(out); t != nil {
		return caught, pkg + " " + t[1] + " (does not end)", nil
	}
	if t := failedTest.FindStringSubmatch(out); t != nil {
		return caught, pkg + " " + t[1], nil
	}
	if line := firstLineOf(out, "panic: "); line != "" {
		return caught, pkg + " (" + line + ")", nil
	}
	if strings.Contains(out, "goleak: ") {
		return caught, pkg + " (goroutines are left)", nil
	}
	return "", "", fmt.Errorf("the tests of %s ended without saying which has failed: %s", pkg, out[max(0, len(out)-1000):])
}

// firstLineOf returns the first line of a text that contains something.
func firstLineOf(text, what string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, what) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
