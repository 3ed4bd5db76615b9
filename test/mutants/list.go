package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one entry of the list.
type mutant struct {
	id, file string
	promise  string
	old, new string
	// equivalent is why no test can notice it, "" if one can.
	equivalent string
	// packages are the packages whose tests are run, if not the usual ones.
	packages []string
}

// pkg returns the directory of the file, which the report counts by.
func (m *mutant) pkg() string { return path.Dir(m.file) }

// sum identifies the form of an entry.
func (m *mutant) sum() string {
	h := sha256.Sum256([]byte(m.file + "\x00" + m.old + "\x00" + m.new))
	return hex.EncodeToString(h[:4])
}

// mutate returns the text of the file with the mutant applied.
func (m *mutant) mutate(text []byte) ([]byte, error) {
	if n := bytes.Count(text, []byte(m.old)); n != 1 {
		return nil, fmt.Errorf("mutant %s: its old text occurs %d times in %s, and not once; the package comment of test/mutants describes how to update the entry\n%s", m.id, n, m.file, m.old)
	}
	return bytes.Replace(text, []byte(m.old), []byte(m.new), 1), nil
}

// readList reads all files of the list.
func readList(dir string) (all []*mutant, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		some, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		all = append(all, some...)
	}
	for i, m := range all {
		if slices.ContainsFunc(all[:i], func(o *mutant) bool { return o.id == m.id }) {
			return nil, fmt.Errorf("there are two mutants %s", m.id)
		}
	}
	return all, nil
}

// parse reads one file of the list. The package comment describes the format.
func parse(text string) (all []*mutant, err error) {
	var m *mutant
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		sign, rest := line[0], strings.TrimPrefix(line[1:], " ")
		if sign == '@' {
			m = &mutant{}
			all = append(all, m)
			var found bool
			if m.id, m.file, found = strings.Cut(rest, " "); !found {
				return nil, fmt.Errorf("line %d: want @ NAME FILE", n)
			}
			continue
		}
		if m == nil {
			return nil, fmt.Errorf("line %d: it belongs to no mutant", n)
		}
		switch sign {
		case ':':
			m.promise = join(m.promise, rest, " ")
		case '-':
			m.old = join(m.old, rest, "\n")
		case '+':
			m.new = join(m.new, rest, "\n")
		case '=':
			m.equivalent = join(m.equivalent, rest, " ")
		case '?':
			m.packages = append(m.packages, strings.Fields(rest)...)
		default:
			return nil, fmt.Errorf("line %d: it begins with none of the signs @ : - + = ? #", n)
		}
	}
	for _, m := range all {
		err = errors.Join(err, m.check())
	}
	return all, err
}

func join(a, b, with string) string {
	if a == "" {
		return b
	}
	return a + with + b
}

func (m *mutant) check() error {
	switch {
	case m.promise == "":
		return fmt.Errorf("mutant %s: say which promise it breaks", m.id)
	case m.old == "" || m.old == m.new:
		return fmt.Errorf("mutant %s changes nothing", m.id)
	}
	return nil
}
