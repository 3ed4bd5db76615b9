package docs_test

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/settlehq/settle/internal/telemetry/meters"
)

// What a page names exists: commands and their flags, environment variables, streams, buckets and subjects,
// make targets, packages. Commands are read from cli.md, which tests compare with the commands themselves;
// everything else from the source.

// namingPages returns the pages whose names are checked.
func namingPages(t *testing.T) []string {
	t.Helper()
	all := slices.DeleteFunc(pages(t, "."), func(p string) bool { return p == "cli.md" })
	all = append(all, pages(t, "../examples")...)
	all = append(all, pages(t, "../deploy")...)
	for _, p := range []string{"README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY", "AGENTS"} {
		all = append(all, "../"+p+".md")
	}
	return all
}

// commands maps programs and their commands to their flags: "settle send" has "--id".
type commands map[string][]string

// readCommands reads cli.md. It returns the environment variables of the commands, too.
func readCommands(t *testing.T) (commands, []string) {
	t.Helper()
	found := commands{}
	var envs []string
	var program, command string
	flag := regexp.MustCompile("^\\| (?:`(-\\w)`, )?`(--[\\w-]+)` \\| .* \\| (`[A-Z_ ]+`)? ?\\| ")
	for line := range strings.Lines(read(t, "cli.md")) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "## "); ok {
			program, command = name, name
			found[command] = nil
		}
		if name, ok := strings.CutPrefix(line, "#### "); ok {
			command = name
			found[command] = found[program]
		}
		if m := flag.FindStringSubmatch(line); m != nil {
			found[command] = append(slices.Clip(found[command]), m[1], m[2])
			envs = append(envs, strings.Fields(strings.Trim(m[3], "`"))...)
		}
	}
	if len(found) < 30 || len(envs) < 10 {
		t.Fatalf("cli.md has %d commands and %d environment variables: did its form change?", len(found), len(envs))
	}
	return found, envs
}

// mistake returns what is wrong with the words of a command line, "" if nothing is, or if the
// words are no command line.
func (c commands) mistake(words []string) string {
	name := words[0]
	if c[name] == nil {
		return ""
	}
	rest := words[1:]
	for len(rest) > 0 && c.begins(name+" "+rest[0]) {
		name, rest = name+" "+rest[0], rest[1:]
	}
	if words[0] == "settle" && name == "settle" && len(rest) > 0 && regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(rest[0]) && rest[0] != "help" {
		return "settle has no command " + rest[0]
	}
	flags := c[name]
	for command := range c { // any order: `settle init --module` has the flags of all that it begins
		if strings.HasPrefix(command, name+" ") {
			flags = append(slices.Clip(flags), c[command]...)
		}
	}
	for _, w := range rest {
		if w, _, _ = strings.Cut(w, "="); flagForm.MatchString(w) && !slices.Contains(flags, w) {
			return name + " has no flag " + w
		}
	}
	return ""
}

var flagForm = regexp.MustCompile(`^(--[a-z][a-z-]*|-[a-zA-Z])$`)

// begins reports whether a command has this name, or begins with it.
func (c commands) begins(name string) bool {
	for command := range c { // any order: one is enough
		if command == name || strings.HasPrefix(command, name+" ") {
			return true
		}
	}
	return false
}

var (
	span   = regexp.MustCompile("`([^`\n]+(?:\n[^`\n]+)?)`")
	quoted = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	goRun  = regexp.MustCompile(`go run \./cmd/(\w+)`)
)

// spans returns the code within lines of a text; lines returns those of its blocks that are not
// in a programming language.
func spans(text string) (found []string) {
	text, _ = split(text)
	for _, m := range span.FindAllStringSubmatch(text, -1) {
		found = append(found, strings.Join(strings.Fields(m[1]), " "))
	}
	return found
}

func shellLines(text string) []string {
	_, blocks := split(text)
	return blocks
}

// split returns a text without its blocks, and the lines of the blocks that are not in a language.
func split(text string) (prose string, block []string) {
	var b strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence == "" && strings.HasPrefix(trimmed, "```"):
			fence = trimmed
		case strings.HasPrefix(trimmed, "```"):
			fence = ""
		case fence == "```" || fence == "```sh" || fence == "" && strings.HasPrefix(line, "    "):
			block = append(block, trimmed)
		case fence == "":
			b.WriteString(line)
		}
	}
	return b.String(), block
}

// commandWords takes a line of a shell apart, up to the first thing that is not one command: a
// comment, a pipe, a redirection.
func commandWords(line string) []string {
	line = quoted.ReplaceAllString(strings.TrimPrefix(line, "$ "), "QUOTED")
	line = goRun.ReplaceAllString(line, "$1")
	line = strings.TrimPrefix(line, "docker compose run --rm ")
	if i := strings.IndexAny(line, "#&|;>"); i >= 0 {
		line = line[:i]
	}
	return strings.Fields(line)
}

func TestPages_TheCommandsAndFlagsTheyNameExist(t *testing.T) {
	known, _ := readCommands(t)
	var anyFlag []string
	for _, flags := range maps.All(known) {
		anyFlag = append(anyFlag, flags...)
	}
	checked := 0
	for _, page := range namingPages(t) {
		text := read(t, page)
		for _, line := range append(shellLines(text), spans(text)...) {
			words := commandWords(line)
			if len(words) == 0 {
				continue
			}
			if known.begins("settle "+words[0]) && len(words) > 1 && strings.HasPrefix(words[1], "--") {
				words = append([]string{"settle"}, words...) // `redrive --all`
			}
			if known[words[0]] != nil {
				checked++
			}
			if wrong := known.mistake(words); wrong != "" {
				t.Errorf("%s: %q: %s", page, line, wrong)
			}
			flag, _, _ := strings.Cut(words[0], "=")
			if len(flag) > 2 && flagForm.MatchString(flag) && !slices.Contains(anyFlag, flag) && !ofOthers[page+" "+flag] {
				t.Errorf("%s: no command has a flag %s", page, flag)
			}
		}
	}
	if checked < 100 {
		t.Errorf("the pages name %d commands; are they still found?", checked)
	}
}

// ofOthers are flags that a page names by themselves, and that are no flags of the commands.
var ofOthers = map[string]bool{}

func TestMistake_FindsCommandsAndFlagsThatDoNotExist(t *testing.T) {
	known, _ := readCommands(t)
	for line, want := range map[string]string{
		"settle send alice add --id x --wait=tree":            "",
		"$ go run ./cmd/settle send alice add --ids x":        "settle send has no flag --ids",
		"settle redo alice":                                   "settle has no command redo",
		"spaceworker --server x":                              "spaceworker has no flag --server",
		"settle get alice double -v  # -q":                    "",
		"settle get alice double -q":                          "settle get has no flag -q",
		"settle  3 workers, 1 coordinator":                    "",
		`settle send a b '{"x": 1}' --id 7 | other --any`:     "",
		"docker compose run --rm settle doctor --no-such-one": "settle doctor has no flag --no-such-one",
	} {
		if got := known.mistake(commandWords(line)); got != want {
			t.Errorf("%s: %q, not %q", line, got, want)
		}
	}
}

// literals returns the strings in the source of a directory that match.
func literals(t *testing.T, dir string, form *regexp.Regexp) (found []string) {
	t.Helper()
	s, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					found = append(found, form.FindAllString(text, -1)...)
				}
			}
			return true
		})
	}
	return found
}

var envForm = regexp.MustCompile(`\b(?:SETTLE|NATS|OTEL|KV_SETTLE)_[A-Z]+(?:_[A-Z]+)*\b`)

// environment returns the variables that the commands, the bus, the exporters and the
// configurations of deploy read.
func environment(t *testing.T) []string {
	t.Helper()
	_, envs := readCommands(t)
	for _, dir := range []string{"bus", "cmd/settle", "cmd/spaceworker", "internal/telemetry/export", "internal/telemetry/measure"} {
		envs = append(envs, literals(t, dir, envForm)...)
	}
	for _, pattern := range []string{"../deploy/nats/*.conf", "../deploy/systemd/*", "../deploy/compose/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		for _, f := range files {
			envs = append(envs, envForm.FindAllString(read(t, f), -1)...)
		}
	}
	return append(envs, sdkVariables...)
}

// sdkVariables are read by the SDK of OpenTelemetry, and its exporters.
var sdkVariables = []string{
	"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES",
	"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "OTEL_BLRP_MAX_QUEUE_SIZE",
}

// assetNames returns what the names of streams and buckets begin with, for the prefix "settle".
func assetNames(t *testing.T) (found []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`n\.Upper \+ "(_[A-Z]+)_?"`).FindAllStringSubmatch(read(t, "../bus/internal/wire/subjects.go"), -1) {
		found = append(found, "SETTLE"+m[1], "KV_SETTLE"+m[1])
	}
	if len(found) < 10 {
		t.Fatalf("bus/internal/wire/subjects.go names %v", found)
	}
	return found
}

func TestPages_TheVariablesStreamsAndBucketsTheyNameExist(t *testing.T) {
	known := append(environment(t), assetNames(t)...)
	for _, page := range namingPages(t) {
		for _, name := range envForm.FindAllString(read(t, page), -1) {
			if !slices.Contains(known, name) {
				t.Errorf("%s: %s is no variable that a program reads, and no stream or bucket", page, name)
			}
		}
	}
}

func TestPages_TheSubjectsAndServicesTheyNameExist(t *testing.T) {
	var kinds []string
	for _, m := range regexp.MustCompile(`n\.Prefix \+ "\.([a-z]+)\."`).FindAllStringSubmatch(read(t, "../bus/internal/wire/subjects.go"), -1) {
		kinds = append(kinds, m[1])
	}
	endpoints, services := []string{">"}, []string{}
	for _, dir := range []string{"live", "history", "questions"} {
		s, err := load(dir)
		if err != nil {
			t.Fatal(err)
		}
		for name, x := range s.constants { // any order: they are looked up
			switch lit, ok := x.(*ast.BasicLit); {
			case ok && strings.HasPrefix(name, "Ask"):
				endpoints = append(endpoints, strings.Trim(lit.Value, `"`))
			case ok && name == "ServiceName":
				services = append(services, strings.Trim(lit.Value, `"`))
			}
		}
	}
	subject := regexp.MustCompile(`\bsettle\.([a-z]+)\.([\w>-]*)`)
	// Metrics, see TestPages_TheMetricsTheyNameExist, and attributes of spans, see TestTraces_TheAttributesAreThoseOfTheCode.
	observed := []string{"worker", "coordinator", "client", "gateway", "workflow", "pass", "node", "run", "task", "checkpoint"}
	service := regexp.MustCompile(`nats micro (?:info|stats|ping) ([\w-]+)`)
	checked := 0
	for _, page := range namingPages(t) {
		text := read(t, page)
		for _, m := range subject.FindAllStringSubmatch(text, -1) {
			checked++
			if slices.Contains(observed, m[1]) {
				continue
			}
			if !slices.Contains(kinds, m[1]) || m[1] == "api" && !slices.Contains(endpoints, m[2]) {
				t.Errorf("%s: there is no subject %s", page, m[0])
			}
		}
		for _, m := range service.FindAllStringSubmatch(strings.Join(strings.Fields(text), " "), -1) {
			checked++
			if !slices.Contains(services, m[1]) {
				t.Errorf("%s: there is no service %s", page, m[1])
			}
		}
	}
	if checked < 10 {
		t.Errorf("the pages name %d subjects and services; are they still found?", checked)
	}
}

// A page that names a metric which no program exports would send an operator looking for what is not there.
func TestPages_TheMetricsTheyNameExist(t *testing.T) {
	known := map[string]bool{}
	for _, i := range slices.Concat(meters.Worker, meters.Coordinator, meters.Client, meters.Gateway) {
		name := i.Prometheus()
		known[i.Name], known[name] = true, true
		if i.Kind == meters.Histogram {
			known[name+"_bucket"], known[name+"_sum"], known[name+"_count"] = true, true, true
		}
	}
	metric, checked := regexp.MustCompile(`\bsettle_(?:worker|coordinator|client|gateway|workflow)_[a-z_]+\b|\bsettle\.(?:client|coordinator|gateway|worker|workflow)\.[a-z._]+\b`), 0
	for _, page := range append(namingPages(t), "../deploy/prometheus/alerts.yaml") {
		for _, name := range metric.FindAllString(read(t, page), -1) {
			checked++
			if !known[name] {
				t.Errorf("%s: %s: no program exports that", page, name)
			}
		}
	}
	if checked < 40 {
		t.Errorf("the pages name %d metrics; are they still found?", checked)
	}
}

func TestPages_TheTargetsAndPackagesTheyNameExist(t *testing.T) {
	makefile := read(t, "../Makefile")
	target := regexp.MustCompile("(?m)(?:`|^|^\\$ )make ([a-z]+)\\b")
	dir := regexp.MustCompile(`\bgo (?:run|test|build|install)(?: -\S+)* (\./[\w/.-]*)`)
	for _, page := range namingPages(t) {
		text := read(t, page)
		code := strings.Join(append(shellLines(text), spans(text)...), "\n")
		for _, m := range target.FindAllStringSubmatch(code, -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: the Makefile has no target %s", page, m[1])
			}
		}
		for _, m := range dir.FindAllStringSubmatch(code, -1) {
			path := strings.TrimSuffix(strings.TrimSuffix(m[1], "..."), "/")
			if _, err := os.Stat(filepath.Join("..", path)); err != nil {
				t.Errorf("%s: %q: there is no directory %s", page, m[0], path)
			}
		}
	}
}

// packageDirs are the directories of the packages whose names pages use.
var packageDirs = map[string]string{
	"settle": ".", "settletest": "settletest", "bus": "bus", "embedded": "bus/embedded", "ordered": "ordered", "worker": "worker",
	"port": "port", "model": "model", "star": "program/star", "live": "live", "gateway": "gateway", "space": "space", "cron": "cron",
}

// declarations has what a package declares: names, "Type.Method" and "Type.Field".
type declarations struct {
	names []string
	// open has types of which only the name is known: they embed or rename another type.
	open map[string]bool
}

func declarationsOf(t *testing.T, dir string) declarations {
	t.Helper()
	s, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := declarations{open: map[string]bool{}}
	for _, f := range s.files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = receiver(d) + "." + name
				}
				found.names = append(found.names, name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					found.add(spec)
				}
			}
		}
	}
	return found
}

// add adds constants and variables, or a type with its fields.
func (d *declarations) add(spec ast.Spec) {
	if values, ok := spec.(*ast.ValueSpec); ok {
		for _, n := range values.Names {
			d.names = append(d.names, n.Name)
		}
	}
	typ, ok := spec.(*ast.TypeSpec)
	if !ok {
		return
	}
	d.names = append(d.names, typ.Name.Name)
	fields, ok := typ.Type.(*ast.StructType)
	if !ok {
		d.open[typ.Name.Name] = true
		return
	}
	for _, field := range fields.Fields.List {
		if len(field.Names) == 0 {
			d.open[typ.Name.Name] = true
		}
		for _, n := range field.Names {
			d.names = append(d.names, typ.Name.Name+"."+n.Name)
		}
	}
}

func TestPages_TheGoNamesTheyUseExist(t *testing.T) {
	form := regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	checked := 0
	for _, page := range namingPages(t) {
		for _, code := range spans(read(t, page)) {
			for _, m := range form.FindAllStringSubmatch(code, -1) {
				dir, ok := packageDirs[m[1]]
				if !ok || strings.Contains(m[0], ".Test") || strings.Contains(code, "/"+m[1]+".") {
					continue
				}
				checked++
				declared := declarationsOf(t, dir)
				name := m[2]
				if m[3] != "" && !declared.open[name] {
					name += "." + m[3]
				}
				if !slices.Contains(declared.names, name) && !slices.Contains(figuresOf(t, page), code) {
					t.Errorf("%s: `%s`: package %s has no %s", page, code, m[1], name)
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("the pages use %d names of packages; are they still found?", checked)
	}
}

// figuresOf returns the names in limits.md, which its own test looks up.
func figuresOf(t *testing.T, page string) (places []string) {
	t.Helper()
	if page != "limits.md" {
		return nil
	}
	for _, row := range limitRows(t) {
		places = append(places, strings.Trim(row[colPlace], "`"))
	}
	return places
}
