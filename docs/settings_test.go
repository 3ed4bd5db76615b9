package docs_test

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/flags"
	"github.com/settlehq/settle/options"
	"github.com/settlehq/settle/ordered"
)

// Each row of limits.md whose "set by" names an option is tested by setting it in Go, by flag and by
// environment variable, and comparing the worker's configuration.
func TestLimits_WhatCanBeSetIsSetInGoByFlagAndByVariable(t *testing.T) {
	want := values(t)
	ways := map[string]map[string]string{"in Go": workerSetInGo(t, want), "by flag": workerSetByFlag(t, want), "by a flag of its own": workerSetByOwnFlag(t, want), "by variable": workerSetByVariable(t, want)}
	page := read(t, "cli.md")
	worker := 0
	for _, row := range limitRows(t) {
		for _, name := range settingsOf(row[colSetting]) {
			switch {
			case want[name] != "":
				worker++
				for way, got := range ways { // any order: the ways are independent
					if got[name] != want[name] {
						t.Errorf("%q: %s was set to %s %s, and is %s", row[colLimit], name, want[name], way, got[name])
					}
				}
				o := optionOf(name)
				wantInPage(t, page, "spaceworker", "spaceworker", o.Flag, o.Env)
				wantInPage(t, page, "settle", "settle dev", o.Flag, o.Env)
			case strings.HasPrefix(name, "Bus."):
				wantOfDeployment(t, page, strings.TrimPrefix(name, "Bus."))
			case strings.HasPrefix(name, "--"):
				wantInPage(t, page, "spaceworker", "spaceworker", name[2:], "SETTLE_"+strings.ToUpper(strings.ReplaceAll(name[2:], "-", "_")))
			case strings.HasPrefix(name, "ordered.Config."):
				wantOfOrdered(t, strings.TrimPrefix(name, "ordered.Config."))
			case strings.Contains(row[colSetting], "the program: `"+name+"`") || name == "Within":
				wantOfProgram(t, name)
			case name != "Stop":
				t.Errorf("%q is set by %s, which is no option", row[colLimit], name)
			}
		}
	}
	if worker < 30 {
		t.Errorf("only %d rows name an option of a worker", worker)
	}
}

// The doc comment of an option that has a default names it.
func TestOptions_DocCommentsNameTheDefaults(t *testing.T) {
	says := regexp.MustCompile(`[Dd]efault ([\d,.]+(?: [A-Za-z]+)?)`)
	defaults := map[string]float64{}
	for _, o := range options.Of(&settle.WorkerConfig{}) {
		if o.Value.Kind() == reflect.String {
			continue
		}
		_ = o.Set(o.Default) // "" leaves it 0
		name := o.Path[strings.LastIndexByte(o.Path, '.')+1:]
		defaults[name] = o.Value.Convert(reflect.TypeFor[float64]()).Float()
	}
	compared := 0
	for _, dir := range []string{"worker/host", "ledger", "space/budget", "live", "program/star", "gateway"} {
		s, err := load(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.files {
			ast.Inspect(f, func(n ast.Node) bool {
				field, ok := n.(*ast.Field)
				if !ok || field.Tag == nil || !strings.Contains(field.Tag.Value, "help:") {
					return true
				}
				text := strings.Join(strings.Fields(field.Doc.Text()), " ")
				m, name := says.FindStringSubmatch(text), field.Names[0].Name
				if m == nil || defaults[name] == 0 {
					return true
				}
				compared++
				if figure, err := parseFigure(m[1]); err != nil || figure != defaults[name] {
					t.Errorf("the doc comment of %s in %s says %q, and the default is %v", name, dir, m[0], defaults[name])
				}
				return true
			})
		}
	}
	if compared < 25 {
		t.Errorf("only %d doc comments name a default", compared)
	}
}

var inCode = regexp.MustCompile("`([^`]+)`")

// settingsOf returns the names in a cell of the column "set by".
func settingsOf(cell string) (names []string) {
	for _, m := range inCode.FindAllStringSubmatch(cell, -1) {
		names = append(names, m[1])
	}
	return names
}

// values returns a text for each option of a worker that is not its default.
func values(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"History": "1000h0m0s", "MaxCommitBytes": "40960", "CheckRuns": "7"}
	for _, o := range options.Of(&settle.WorkerConfig{}) {
		if all[o.Path] != "" {
			continue
		}
		if err := o.Set(o.Default); err != nil {
			t.Fatalf("the default of %s: %v", o.Path, err)
		}
		double(o.Value)
		all[o.Path] = fmt.Sprint(o.Value.Interface())
	}
	return all
}

// double sets another value than the default.
func double(v reflect.Value) {
	switch {
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "/other")
	case v.CanInt():
		v.SetInt(2 * v.Int())
	case v.CanUint():
		v.SetUint(2 * v.Uint())
	default:
		v.SetFloat(2 * v.Float())
	}
}

func optionOf(path string) options.Option {
	all := options.Of(&settle.WorkerConfig{})
	return all[slices.IndexFunc(all, func(o options.Option) bool { return o.Path == path })]
}

// effective starts a worker and returns what it runs with, by the path of the option.
func effective(t *testing.T, cfg settle.WorkerConfig) map[string]string {
	t.Helper()
	cfg.ID, cfg.Programs = "w1", settle.Always(settle.NewProgram("none"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := settle.StartWorker(ctx, membus.NewServer(membus.Config{Partitions: 1}).Connect("w1"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Kill()
	cfg.Options = w.Options()
	got := map[string]string{}
	for _, o := range options.Of(&cfg) {
		got[o.Path] = fmt.Sprint(o.Value.Interface())
	}
	return got
}

func workerSetInGo(t *testing.T, want map[string]string) map[string]string {
	var cfg settle.WorkerConfig
	for _, o := range options.Of(&cfg) {
		if err := o.Set(want[o.Path]); err != nil {
			t.Fatal(err)
		}
	}
	return effective(t, cfg)
}

// parsed returns the configuration that spaceworker and settle dev derive from arguments and the
// environment.
func parsed(t *testing.T, args []string) settle.WorkerConfig {
	t.Helper()
	var w flags.Worker
	parser, err := kong.New(&w, flags.Names(&w))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args); err != nil {
		t.Fatal(err)
	}
	return w.Config()
}

func arguments(want map[string]string) (args []string) {
	for _, o := range options.Of(&settle.WorkerConfig{}) {
		args = append(args, "--"+o.Flag+"="+want[o.Path])
	}
	return args
}

// workerSetByFlag has the defaults in the environment: flags take precedence.
func workerSetByFlag(t *testing.T, want map[string]string) (got map[string]string) {
	t.Run("by flag", func(t *testing.T) {
		for _, o := range options.Of(&settle.WorkerConfig{}) {
			if o.Default != "" {
				t.Setenv(o.Env, o.Default)
			}
		}
		got = effective(t, parsed(t, arguments(want)))
	})
	return got
}

func workerSetByVariable(t *testing.T, want map[string]string) (got map[string]string) {
	t.Run("by variable", func(t *testing.T) {
		for _, o := range options.Of(&settle.WorkerConfig{}) {
			t.Setenv(o.Env, want[o.Path])
		}
		got = effective(t, parsed(t, nil))
	})
	return got
}

// workerSetByOwnFlag is for a program of a user, with package flag.
func workerSetByOwnFlag(t *testing.T, want map[string]string) map[string]string {
	var cfg settle.WorkerConfig
	own := flag.NewFlagSet("own", flag.ContinueOnError)
	own.SetOutput(io.Discard)
	if err := options.Bind(own, &cfg); err != nil {
		t.Fatal(err)
	}
	if err := own.Parse(arguments(want)); err != nil {
		t.Fatal(err)
	}
	return effective(t, cfg)
}

// wantInPage wants a flag and its variable in cli.md, which is written from the commands.
func wantInPage(t *testing.T, page, program, command, flag, env string) {
	t.Helper()
	_, section, _ := strings.Cut(page, "<!-- "+program+" -->")
	section, _, _ = strings.Cut(section, "<!-- /"+program+" -->")
	if command != program {
		_, section, _ = strings.Cut(section, "#### "+command+"\n")
		section, _, _ = strings.Cut(section, "\n####")
	}
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `--"+flag+"` |") && strings.Contains(line, "| `"+env+"` |") {
			return
		}
	}
	t.Errorf("%s has no flag --%s with variable %s", command, flag, env)
}

// wantOfDeployment wants an option of bus.Config, and a flag for it: TestProvision_SetsEveryLimit of
// cmd/settle uses those.
func wantOfDeployment(t *testing.T, page, field string) {
	t.Helper()
	all := options.Of(&bus.Config{})
	i := slices.IndexFunc(all, func(o options.Option) bool { return o.Path == field })
	if i < 0 {
		t.Errorf("bus.Config has no option %s", field)
		return
	}
	if field == "AckTimeout" {
		wantInPage(t, page, "spaceworker", "spaceworker", all[i].Flag, all[i].Env)
		wantInPage(t, page, "coordinator", "coordinator", all[i].Flag, all[i].Env)
		return
	}
	wantInPage(t, page, "settle", "settle provision", all[i].Flag, all[i].Env)
}

// wantOfOrdered sets an option of package ordered by flag and by variable.
func wantOfOrdered(t *testing.T, path string) {
	t.Helper()
	t.Run(path, func(t *testing.T) {
		var cfg ordered.Config
		own := flag.NewFlagSet("own", flag.ContinueOnError)
		all := options.Of(&cfg)
		i := slices.IndexFunc(all, func(o options.Option) bool { return o.Path == path })
		if i < 0 {
			t.Fatalf("ordered.Config has no option %s", path)
		}
		o := all[i]
		t.Setenv(o.Env, "7s")
		if err := options.Bind(own, &cfg); err != nil || o.Value.Interface() != 7*time.Second {
			t.Fatalf("by variable it is %v, %v", o.Value.Interface(), err)
		}
		if err := own.Parse([]string{"--" + o.Flag, "8s"}); err != nil || o.Value.Interface() != 8*time.Second {
			t.Errorf("by flag it is %v, %v", o.Value.Interface(), err)
		}
	})
}

// wantOfProgram wants a function, type or field that a program in Go uses.
func wantOfProgram(t *testing.T, name string) {
	t.Helper()
	dir := "."
	if at, in, other := strings.Cut(name, "."); other {
		dir, name = at, in
	}
	s, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == name {
					return
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.Name == name {
						return
					}
				}
			}
		}
	}
	t.Errorf("package %s has no %s", dir, name)
}
