package starter

import (
	"bytes"
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// settlePath is the path of the module that is asked for.
const settlePath = "github.com/settlehq/settle"

// goVersion is what a program says that it needs, unless a checkout says more.
const goVersion = "1.26.0"

// Origin is where a program's Settle comes from: a checkout, or else a version.
type Origin struct {
	Checkout string // a directory; "" for none
	Version  string // v1.2.3
}

// ErrNoOrigin: the command was built from a directory that is not there any more.
var ErrNoOrigin = errors.New("this settle was built from a checkout that is not here; say where one is with --checkout DIR")

// ErrNoCheckout: a directory is no checkout of Settle.
var ErrNoCheckout = errors.New("this is no checkout of " + settlePath)

// Built is what this executable was built from: the checkout, if that is there, or else a version.
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

// released tells whether the go tool can fetch a version.
func released(version string) bool {
	return semver.IsValid(version) && !strings.HasSuffix(semver.Build(version), "dirty")
}

// readMod is the go.mod of a checkout.
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

// ErrModule: a module cannot be called so.
var ErrModule = errors.New("name the module: --module PATH")

// moduleOf makes the path of a module of the name of a directory, which may have characters that a
// path may not have, or be that of a package of the standard library.
func moduleOf(dir string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if module.CheckImportPath("x"+string(r)+"x") == nil {
			return r
		}
		return '-'
	}, dir), "-./")
	if std, err := build.Default.Import(name, "", build.FindOnly); err == nil && std.Goroot {
		return "example.com/" + name
	}
	return name
}

// modFiles are go.mod, and for a checkout go.sum.
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

// useCheckout has a module use a checkout, and asks for all that this asks for, in the same
// versions: so nothing is missing in go.sum.
func (o Origin) useCheckout(f *modfile.File) error {
	dir, err := filepath.Abs(o.Checkout)
	if err != nil {
		return err
	}
	its, err := readMod(dir)
	if err != nil {
		return err
	}
	const version = "v0.0.0" // of which the directory takes the place
	errs := []error{f.AddRequire(settlePath, version), f.AddReplace(settlePath, "", dir, "")}
	if its.Go != nil {
		errs = append(errs, f.AddGoStmt(its.Go.Version))
	}
	needs := []*modfile.Require{{Mod: module.Version{Path: settlePath, Version: version}}}
	for _, r := range its.Require {
		needs = append(needs, &modfile.Require{Mod: r.Mod, Indirect: true})
	}
	f.SetRequireSeparateIndirect(needs)
	for _, r := range its.Replace {
		if !modfile.IsDirectoryPath(r.New.Path) {
			errs = append(errs, f.AddReplace(r.Old.Path, r.Old.Version, r.New.Path, r.New.Version))
		}
	}
	return errors.Join(errs...)
}

func formatted(f *modfile.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	f.Cleanup()
	text, err := f.Format()
	return bytes.TrimLeft(text, "\n"), err
}
