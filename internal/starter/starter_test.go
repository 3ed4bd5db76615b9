package starter

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/program/startest"
)

func TestStar_PassesItsTests(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "door")
	files, err := Star(dir)
	if err != nil || !slices.Equal(files, []string{"README.md", "door.star", "door_test.star"}) {
		t.Fatalf("wrote %v, %v", files, err)
	}
	source, entry, err := program.ReadTests(filepath.Join(dir, "door_test.star"))
	if err != nil {
		t.Fatal(err)
	}
	results, err := startest.Run(context.Background(), source, entry, star.TestOptions{})
	if err != nil || len(results) != 4 {
		t.Fatalf("%d tests, %v", len(results), err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
}

// The program is a module that builds with this checkout at once, and without a network.
func TestGo_BuildsAndPassesItsTestsOffline(t *testing.T) {
	t.Parallel()
	of, err := Built("dev")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, err := Go(dir, "example.com/door", of)
	if err != nil || !slices.Equal(files, []string{"README.md", "door.go", "door_test.go", "main.go", "go.mod", "go.sum"}) {
		t.Fatalf("wrote %v, %v", files, err)
	}
	cmd := exec.Command("go", "test", "-vet=off", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "example.com/door") {
		t.Errorf("go test: %v\n%s", err, out)
	}
}

var update = flag.Bool("update", false, "write modules.txt anew")

// importsOf returns the modules of whose packages a module and its tests import some, on any system.
func importsOf(t *testing.T, dir string) (modules []string) {
	t.Helper()
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-deps", "-test", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./...")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOOS="+system, "CGO_ENABLED=0") // with -mod=mod it adds what is missing
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list for %s: %v", system, err)
		}
		modules = append(modules, strings.Fields(string(out))...)
	}
	slices.Sort(modules)
	return slices.DeleteFunc(slices.Compact(modules), func(path string) bool { return path == settlePath })
}

// go.mod of a program has the modules that it imports packages of, and none that only commands and tests of Settle use.
func TestGo_RequiresWhatItImports(t *testing.T) {
	t.Parallel()
	of, err := Built("dev")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := Go(dir, "example.com/door", of); err != nil {
		t.Fatal(err)
	}
	imported := importsOf(t, dir)
	if *update {
		if err := os.WriteFile("modules.txt", []byte(strings.Join(imported, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	var required []string
	for _, r := range f.Require {
		if r.Mod.Path != settlePath {
			required = append(required, r.Mod.Path)
		}
	}
	slices.Sort(required)
	if !slices.Equal(required, imported) {
		t.Errorf("go.mod requires\n%s\nand packages are imported of\n%s\nrun this test with -update", strings.Join(required, "\n"), strings.Join(imported, "\n"))
	}
}

func TestGo_AReleaseIsAskedForByItsVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files, err := Go(dir, "door", Origin{Version: "v1.2.3"})
	if err != nil || slices.Contains(files, "go.sum") {
		t.Fatalf("wrote %v, %v", files, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	want := "module door\n\ngo " + goVersion + "\n\nrequire github.com/settlehq/settle v1.2.3\n"
	if err != nil || string(text) != want {
		t.Errorf("go.mod is %q, want %q; %v", text, want, err)
	}
	its, err := readMod(filepath.Join("..", ".."))
	if err != nil || its.Go.Version != goVersion {
		t.Errorf("this module needs go %v, %v; the programs that are written say %s", its.Go, err, goVersion)
	}
}

func TestReleased(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.2.3": true, "v0.0.0-20261122074256-7e82c3c00000": true,
		"dev": false, "(devel)": false, "": false, "1.2.3": false, "v0.0.0-20261122074256-7e82c3c00000+dirty": false,
	} {
		if got := released(version); got != want {
			t.Errorf("released(%q) is %v", version, got)
		}
	}
}

func TestWrite_NothingIsWrittenWhereSomethingIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Star(dir); err != nil {
		t.Fatalf("a directory with a hidden file: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "door.star")); err != nil {
		t.Fatal(err)
	}
	if _, err := Star(dir); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("again: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "door.star")); err == nil {
		t.Error("something was written")
	}
}

func TestGo_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "con")
	for _, module := range []string{"", "my doors", "doors/"} { // con is a device on Windows
		if _, err := Go(dir, module, Origin{Version: "v1.2.3"}); !errors.Is(err, ErrModule) {
			t.Errorf("%q, which is no path of a module: %v", module, err)
		}
	}
	if _, err := Go(dir, "door", Origin{Checkout: t.TempDir()}); err == nil {
		t.Error("a directory that is no checkout was taken for one")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("something was written")
	}
}

// A directory may have any name, for either language.
func TestStarAndGo_TakeTheSameDirectories(t *testing.T) {
	t.Parallel()
	for name, module := range map[string]string{
		"door": "door", "my door": "my-door", "1door": "1door", "a/b": "b", "Türe": "T-re", ".hidden": "hidden", "log": "example.com/log", "v1.2": "v1.2",
	} {
		if _, err := Star(filepath.Join(t.TempDir(), name)); err != nil {
			t.Errorf("%q in Starlark: %v", name, err)
		}
		dir := filepath.Join(t.TempDir(), name)
		if _, err := Go(dir, "", Origin{Version: "v1.2.3"}); err != nil {
			t.Errorf("%q in Go: %v", name, err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); !strings.HasPrefix(string(text), "module "+module+"\n") {
			t.Errorf("%q is not module %s: %s, %v", name, module, text, err)
		}
	}
}

func TestStarAndGo_RefuseAFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{name, filepath.Join(name, "below")} {
		if _, err := Star(dir); !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), dir+" is not a directory") {
			t.Errorf("Starlark in %s: %v", dir, err)
		}
		if _, err := Go(dir, "door", Origin{Version: "v1.2.3"}); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("Go in %s: %v", dir, err)
		}
	}
}

// The Starlark code in getting-started.md is the code that is written. (docs/code_test.go checks the Go
// code.)
func TestStar_IsWhatThePageShows(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "getting-started.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := template("star")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "\n```python\n")[1:]
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "\n```")
		for part := range strings.SplitSeq(block, "\n\n...\n\n") {
			if !slices.ContainsFunc(files, func(f file) bool { return strings.Contains(string(f.text), part) }) {
				t.Errorf("this is in no file:\n%s", part)
			}
		}
	}
	if len(blocks) < 2 {
		t.Errorf("%d blocks of Starlark", len(blocks))
	}
}

// A module has no name of a package of the standard library, whatever version of Go runs this.
func TestStandard_HasAllNamesOfTheLibrary(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "std").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), "/"); !slices.Contains(standard, name) {
			t.Errorf("%s is not in the list", name)
		}
	}
}
