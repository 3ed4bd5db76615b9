package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/program/star"
)

// MaxSource is the maximum size in bytes of all files of a version together. They are also bounded
// by the server's maximum message size (1 MiB by default).
const MaxSource = 256 << 10

// HostedLabel is what a worker announces as the name of its programs if it runs deployed programs only.
const HostedLabel = "hosted"

// Starlark is the language of package program/star, the only one so far.
const Starlark = "starlark"

// Version is an immutable version of a program.
type Version struct {
	// Program and ID name the version; ID is a hash of the files.
	Program string `json:"program"`
	ID      string `json:"version"`
	// Language is the language of the files. An executable that does not support it cannot run the
	// program.
	Language string `json:"language"`
	// Entry is the file that is executed; Files holds the texts by name.
	Entry string            `json:"entry"`
	Files map[string]string `json:"files"`
	// By and At are the first author and time of deployment, as reported by the deploying client;
	// Note is the comment.
	By   string    `json:"by,omitzero"`
	At   time.Time `json:"at,omitzero"`
	Note string    `json:"note,omitzero"`
}

// Target names a version of a program.
type Target struct {
	Program string `json:"program"`
	Version string `json:"version"`
}

// String returns the form for people: fridge@1f6a0b3c9d2e.
func (t Target) String() string { return t.Program + "@" + t.Version }

// NewVersion returns the version of a source, without its test files.
func NewVersion(source Source, by, note string, at time.Time) (Version, error) {
	v := Version{
		Program: source.Name, Language: Starlark, Entry: source.Entry, Files: maps.Clone(source.Files),
		By: by, At: at.UTC().Truncate(time.Millisecond), Note: note,
	}
	maps.DeleteFunc(v.Files, func(name, _ string) bool { return strings.HasSuffix(name, "_test.star") })
	v.ID = star.Version(v.Source())
	return v, v.Check()
}

// Target returns the version's name.
func (v *Version) Target() Target { return Target{v.Program, v.ID} }

// Source returns the text of the version.
func (v *Version) Source() Source {
	return Source{Name: v.Program, Entry: v.Entry, Files: v.Files}
}

// Size returns the total size of the files in bytes.
func (v *Version) Size() int {
	size := 0
	for _, text := range v.Files { // any order: a sum
		size += len(text)
	}
	return size
}

// Check returns an error if the version cannot be stored, or if its id is not the hash of its
// files.
func (v *Version) Check() error {
	if err := model.CheckName("program", v.Program); err != nil {
		return err
	}
	if v.Language != Starlark {
		return fmt.Errorf("%s is written in %q, which this executable does not know: it may be too old", v.Target(), v.Language)
	}
	if size := v.Size(); size > MaxSource {
		return fmt.Errorf("program %s has %d bytes of source, and %d is the limit: move data into documents, or make two programs of it", v.Program, size, MaxSource)
	}
	if _, there := v.Files[v.Entry]; !there {
		return fmt.Errorf("program %s: the program has no file %q (it has %s)", v.Program, v.Entry, strings.Join(slices.Sorted(maps.Keys(v.Files)), ", "))
	}
	if is := star.Version(v.Source()); is != v.ID {
		return fmt.Errorf("%s: its files are those of version %s: the record was altered", v.Target(), is)
	}
	return nil
}

// same reports whether two versions have the same files.
func (v *Version) same(o *Version) bool {
	return v.Language == o.Language && v.Entry == o.Entry && maps.Equal(v.Files, o.Files)
}

// Records is the store of programs: a bus, or a *bus.Bus.
type Records = port.Records

const versionKey = "version"

func (t Target) key() string { return versionKey + "." + t.Program + "." + t.Version }

// Publish stores a version. If it is stored already, it returns the stored one, with its first
// author, and created is false. Publishing makes no space run it.
func Publish(ctx context.Context, records Records, v Version) (stored Version, created bool, err error) {
	if err := v.Check(); err != nil {
		return v, false, err
	}
	data, err := json.Marshal(&v)
	if err != nil {
		return v, false, err
	}
	_, err = records.SaveRecord(ctx, model.Record{Key: v.Target().key(), Data: data})
	switch {
	case errors.Is(err, model.ErrTooLarge):
		return v, false, fmt.Errorf("program %s takes %d bytes, more than the server accepts in a message (max_payload): %w", v.Program, len(data), err)
	case !errors.Is(err, model.ErrOutdated):
		return v, err == nil, err
	}
	there, err := Load(ctx, records, v.Target())
	if err != nil {
		return v, false, err
	}
	if !there.same(&v) {
		return v, false, fmt.Errorf("%s is stored with other files, which have the same hash: change a comment", v.Target())
	}
	return there, false, nil
}

// MissingError reports that there is no such version, or no such program if Version is "".
type MissingError struct {
	Target
	// Known are the existing ones.
	Known []string
}

func (e *MissingError) Error() string {
	what := "program " + e.Program + " was never deployed here"
	if e.Version != "" {
		what = "program " + e.Program + " has no version " + e.Version
	}
	if len(e.Known) == 0 {
		return what
	}
	return what + "; there are " + strings.Join(e.Known, ", ")
}

// Load returns a version. The error is a *MissingError if there is none.
func Load(ctx context.Context, records Records, t Target) (Version, error) {
	if err := t.check(); err != nil {
		return Version{}, err
	}
	r, err := records.LoadRecord(ctx, t.key())
	if err != nil {
		return Version{}, fmt.Errorf("load %s: %w", t, err)
	}
	if r.Data == nil {
		return Version{}, &MissingError{Target: t}
	}
	return decodeVersion(r)
}

func (t Target) check() error {
	if err := model.CheckName("program", t.Program); err != nil {
		return err
	}
	return model.CheckName("version", t.Version)
}

func decodeVersion(r model.Record) (Version, error) {
	var v Version
	if err := json.Unmarshal(r.Data, &v); err != nil {
		return v, fmt.Errorf("record %s is not a version: %w", r.Key, err)
	}
	if v.Target().key() != r.Key {
		return v, fmt.Errorf("record %s contains %s", r.Key, v.Target())
	}
	return v, nil
}

// Versions returns the versions of a program, or of all programs if name is "", by program and
// oldest first.
func Versions(ctx context.Context, records Records, name string) ([]Version, error) {
	under := versionKey
	if name != "" {
		if err := model.CheckName("program", name); err != nil {
			return nil, err
		}
		under += "." + name
	}
	found, err := records.ListRecords(ctx, under)
	if err != nil {
		return nil, err
	}
	versions := make([]Version, 0, len(found))
	for _, r := range found {
		v, err := decodeVersion(r)
		if err != nil {
			return nil, err
		}
		versions = append(versions, v)
	}
	slices.SortFunc(versions, func(a, b Version) int {
		if c := strings.Compare(a.Program, b.Program); c != 0 {
			return c
		}
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return versions, nil
}

// Find returns the version whose id begins with t.Version, if it is the only one. The error is a
// *MissingError if there is none.
func Find(ctx context.Context, records Records, t Target) (Version, error) {
	versions, err := Versions(ctx, records, t.Program)
	if err != nil {
		return Version{}, err
	}
	if len(versions) == 0 {
		return Version{}, &MissingError{Target: Target{Program: t.Program}}
	}
	var found, known []string
	var one Version
	for _, v := range versions {
		known = append(known, v.ID)
		if t.Version != "" && strings.HasPrefix(v.ID, t.Version) {
			found, one = append(found, v.ID), v
		}
	}
	switch len(found) {
	case 1:
		return one, nil
	case 0:
		return one, &MissingError{Target: t, Known: known}
	}
	return one, fmt.Errorf("program %s has several versions that begin with %s: %s", t.Program, t.Version, strings.Join(found, ", "))
}

// ParseTarget parses NAME or NAME@VERSION.
func ParseTarget(s string) (Target, error) {
	name, version, at := strings.Cut(s, "@")
	t := Target{Program: name, Version: version}
	if err := model.CheckName("program", name); err != nil {
		return t, err
	}
	if at {
		return t, model.CheckName("version", version)
	}
	return t, nil
}
