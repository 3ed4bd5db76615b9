package starter

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// settlePath is the path of the required module.
const settlePath = "github.com/settlehq/settle"

// goVersion is the go directive of the program, unless a checkout needs a newer one.
const goVersion = "1.26.0"

// Origin is the source of a program's Settle module: a checkout, or else a version.
type Origin struct {
	Checkout string // a directory; "" for none
	Version  string // v1.2.3
}

// ErrNoOrigin reports that the command was built from a directory that no longer exists.
var ErrNoOrigin = errors.New("this settle was built from a checkout that is not here; say where one is with --checkout DIR")

// ErrNoCheckout reports that a directory is not a checkout of Settle.
var ErrNoCheckout = errors.New("this is not a checkout of " + settlePath)

// Built returns what this executable was built from: the checkout, if it exists, or else a version.
func Built(version string) (Origin, error) {
	if _, this, _, ok := runtime.Caller(0); ok && filepath.IsAbs(this) && !strings.Contains(this, "@") {
		root := filepath.Dir(filepath.Dir(filepath.Dir(this)))
		if _, err := readMod(root); err == nil {
			return Origin{Checkout: root}, nil
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path == settlePath && released(info.Main.Version) {
		version = info.Main.Version
	}
	if !released(version) {
		return Origin{}, ErrNoOrigin
	}
	return Origin{Version: version}, nil
}

// released reports whether the go tool can fetch a version.
func released(version string) bool {
	return semver.IsValid(version) && !strings.HasSuffix(semver.Build(version), "dirty")
}

// readMod reads the go.mod of a checkout.
func readMod(dir string) (*modfile.File, error) {
	name := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoCheckout)
	}
	if err != nil {
		return nil, err
	}
	f, err := modfile.Parse(name, text, nil)
	if err == nil && (f.Module == nil || f.Module.Mod.Path != settlePath) {
		err = fmt.Errorf("%s: %w", dir, ErrNoCheckout)
	}
	return f, err
}

// ErrModule reports an invalid module path.
var ErrModule = errors.New("name the module: --module PATH")

// moduleOf derives a module path from the name of a directory, which may contain characters that
// are invalid in a path, or be the path of a standard package.
func moduleOf(dir string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if module.CheckImportPath("x"+string(r)+"x") == nil {
			return r
		}
		return '-'
	}, dir), "-./")
	if slices.Contains(standard, name) {
		return "example.com/" + name
	}
	return name
}

// standard are the names that a module cannot have, since packages of the standard library have them. Not go/build, which
// adds a megabyte to the command, and needs an installation of Go.
var standard = strings.Fields(`archive arena bufio builtin bytes cmp compress container context crypto database debug embed encoding errors expvar
flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect regexp runtime simd slices sort strconv strings
structs sync syscall testing text time unicode unique unsafe vendor weak`)

// modFiles returns go.mod, and for a checkout go.sum.
func (o Origin) modFiles(path string) ([]file, error) {
	if err := module.CheckImportPath(path); err != nil {
		return nil, fmt.Errorf("%w; %w", err, ErrModule)
	}
	f := new(modfile.File)
	if err := errors.Join(f.AddModuleStmt(path), f.AddGoStmt(goVersion)); err != nil {
		return nil, err
	}
	if o.Checkout == "" {
		text, err := formatted(f, f.AddRequire(settlePath, o.Version))
		return []file{{"go.mod", text}}, err
	}
	text, err := formatted(f, o.useCheckout(f))
	if err != nil {
		return nil, err
	}
	sums, err := os.ReadFile(filepath.Join(o.Checkout, "go.sum"))
	return []file{{"go.mod", text}, {"go.sum", sums}}, err
}

// useCheckout makes a module use a checkout, with those requirements of the checkout that a program needs, in the same
// versions: go.sum of the checkout has the sums of all.
func (o Origin) useCheckout(f *modfile.File) error {
	dir, err := filepath.Abs(o.Checkout)
	if err != nil {
		return err
	}
	its, err := readMod(dir)
	if err != nil {
		return err
	}
	const version = "v0.0.0" // the directory replaces it
	errs := []error{f.AddRequire(settlePath, version), f.AddReplace(settlePath, "", dir, "")}
	if its.Go != nil {
		errs = append(errs, f.AddGoStmt(its.Go.Version))
	}
	needs := []*modfile.Require{{Mod: module.Version{Path: settlePath, Version: version}}}
	imported, err := importedModules(dir)
	if err != nil {
		return err
	}
	for _, r := range its.Require {
		if slices.Contains(imported, r.Mod.Path) {
			needs = append(needs, &modfile.Require{Mod: r.Mod, Indirect: true})
		}
	}
	f.SetRequireSeparateIndirect(needs)
	for _, r := range its.Replace {
		if !modfile.IsDirectoryPath(r.New.Path) {
			errs = append(errs, f.AddReplace(r.Old.Path, r.Old.Version, r.New.Path, r.New.Version))
		}
	}
	return errors.Join(errs...)
}

// modulesFile has the paths of the modules whose packages a program and its tests import with those of Settle. The others of go.mod are for the commands
// and the tests of Settle. A test keeps it up to date.
const modulesFile = "internal/starter/modules.txt"

// importedModules returns the modules that a program needs from a checkout.
func importedModules(checkout string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(checkout, filepath.FromSlash(modulesFile)))
	return strings.Fields(string(text)), err
}

func formatted(f *modfile.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	f.Cleanup()
	text, err := f.Format()
	return bytes.TrimLeft(text, "\n"), err
}
