package starter

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

//go:embed star door
var templates embed.FS

// file is a file to be written.
type file struct {
	name string
	text []byte
}

// Star writes a program in Starlark into a directory that is empty or does not exist, and returns
// the names of the files.
func Star(dir string) ([]string, error) {
	files, err := template("star")
	if err != nil {
		return nil, err
	}
	return write(dir, files)
}

// Go writes a program in Go into a directory that is empty or does not exist, and returns the names
// of the files. Without a module path, it derives one from the name of the directory.
func Go(dir, module string, of Origin) ([]string, error) {
	if module == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		module = moduleOf(filepath.Base(abs))
	}
	files, err := template("door")
	if err != nil {
		return nil, err
	}
	own, err := of.modFiles(module)
	if err != nil {
		return nil, err
	}
	return write(dir, append(files, own...))
}

// template returns the files of a directory of templates.
func template(name string) (files []file, err error) {
	entries, err := templates.ReadDir(name)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := templates.ReadFile(path.Join(name, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{e.Name(), text})
	}
	return files, nil
}

// ErrNotEmpty reports that the directory is not empty.
var ErrNotEmpty = errors.New("nothing was written: use a directory that is empty, or a new one")

// write writes files into a directory without files, except those whose names begin with a dot.
func write(dir string, files []file) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("%s is not a directory: %w", dir, ErrNotEmpty)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			return nil, fmt.Errorf("%s exists: %w", filepath.Join(dir, e.Name()), ErrNotEmpty)
		}
	}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f.name)), 0o777); err != nil {
			return names, err
		}
		if err := create(filepath.Join(dir, f.name), f.text); err != nil {
			return names, err
		}
		names = append(names, f.name)
	}
	return names, nil
}

// create writes a file that must not exist yet.
func create(name string, text []byte) error {
	mode := fs.FileMode(0o666)
	if filepath.Base(name) == ".env" { // it has passwords
		mode = 0o600
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
