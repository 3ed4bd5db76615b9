package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/examples/fridge"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/runs"
)

// hosted is a program that is deployed from a file.
type hosted struct {
	file    string // "" for the sample
	name    string
	spaces  string
	version program.Version
	program *star.Program
	decided string // a decision of another client about it that supersedes the file
	failed  string // the last error about it, to report it once
}

// byDev is the author of deployments in the history.
const byDev = "settle dev"

// sources finds the programs in files and directories; by default in the working directory and, if
// that has none, the sample.
func sources(named []string) (files []string, err error) {
	if len(named) == 0 {
		named = []string{"."}
	}
	for _, path := range named {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, err
		case !info.IsDir():
			files = append(files, filepath.Clean(path))
			continue
		}
		found, err := program.Programs(path)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// spacesOf returns the spaces that run a program: all if it is the only program, else those whose
// names begin with its name.
func spacesOf(name string, programs int) string {
	if programs == 1 {
		return program.All
	}
	return name + "*"
}

// change is the result of loading a program's file.
type change struct {
	diff  program.Diff
	first bool // nothing of it ran before
	none  bool // it is unchanged
	// again is set if what is deployed is what ran before this start.
	again bool
	// workflows says which workflows have changed, and handles that the program has anything else.
	workflows []string
	handles   bool
}

// load reads, compiles and deploys a program, unless it is unchanged. After an error the deployed
// version keeps running.
func (d *dev) load(ctx context.Context, h *hosted) (change, error) {
	source, err := d.read(h)
	if err != nil {
		return change{}, err
	}
	if h.program != nil && star.Version(source) == h.version.ID {
		return change{none: true}, nil
	}
	p, err := star.Compile(source, star.Options{})
	if err != nil {
		return change{}, err
	}
	if p.Empty() {
		return change{}, fmt.Errorf("%s registers nothing; a program has a handle, compute, each or effect", h.title())
	}
	v, err := program.NewVersion(source, byDev, "", time.Now())
	if err != nil {
		return change{}, err
	}
	before, err := d.before(ctx, h)
	if err != nil {
		return change{}, err
	}
	c := change{first: before == nil, again: h.program == nil && before != nil && before.Version() == v.ID}
	if before != nil {
		c.diff = program.Compare(before.Nodes(), p.Nodes()).WithStreams(before.Streams(), p.Streams())
		c.workflows = changedWorkflows(before.Workflows(), p.Workflows())
		c.handles = len(before.Nodes())+len(p.Nodes())+len(ownStreams(before))+len(ownStreams(p)) > 0
	}
	if err := d.deploy(ctx, h, v); err != nil {
		return change{}, err
	}
	if h.decided != "" && !c.again {
		fmt.Fprintf(d.cfg.Out, "%s  %s: %s; the file replaces it\n", now(), h.title(), h.decided)
	}
	h.decided = ""
	h.version, h.program = v, p
	return c, nil
}

func (d *dev) read(h *hosted) (program.Source, error) {
	if h.file == "" {
		return fridge.Source(), nil
	}
	return program.Read(h.name, h.file)
}

// before returns the version that runs now, nil if it cannot be determined.
func (d *dev) before(ctx context.Context, h *hosted) (*star.Program, error) {
	if h.program != nil && h.decided == "" {
		return h.program, nil
	}
	table, err := program.Rules(ctx, d.bus)
	if err != nil {
		return nil, err
	}
	is := table.Exactly(h.spaces)
	if is.Program != h.name {
		return nil, nil
	}
	if is.By != byDev {
		h.decided = fmt.Sprintf("%s deployed %s", is.By, is.Target)
	}
	v, err := program.Load(ctx, d.bus, is.Target)
	if err != nil {
		return nil, err
	}
	p, err := star.Compile(v.Source(), star.Options{})
	if err != nil {
		return nil, nil // an older language: there is nothing to compare with
	}
	return p, nil
}

func (d *dev) deploy(ctx context.Context, h *hosted, v program.Version) error {
	if _, _, err := program.Publish(ctx, d.bus, v); err != nil {
		return err
	}
	_, err := program.Decide(ctx, d.bus, h.spaces, func(program.Rule) (program.Choice, error) {
		return program.Choice{Target: v.Target(), By: v.By, At: v.At}, nil
	})
	return err
}

// forget removes the rules that earlier starts have left, except pinned ones.
func (d *dev) forget(ctx context.Context) error {
	table, err := program.Rules(ctx, d.bus)
	if err != nil {
		return err
	}
	for _, r := range table.All() {
		ours := slices.ContainsFunc(d.programs, func(h *hosted) bool { return h.spaces == r.Spaces })
		if ours || r.Pinned {
			continue
		}
		_, err := program.Decide(ctx, d.bus, r.Spaces, func(program.Rule) (program.Choice, error) {
			return program.Choice{By: byDev, At: time.Now()}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reload loads all programs again after a file has changed.
func (d *dev) reload(ctx context.Context) {
	for _, h := range d.programs {
		c, err := d.load(ctx, h)
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case err != nil:
			d.logFailure(h, err)
		case c.none && h.failed != "":
			h.failed = ""
			fmt.Fprintf(d.cfg.Out, "%s  %s: the same as what runs; nothing deployed\n", now(), h.title())
		case !c.none:
			h.failed = ""
			fmt.Fprintf(d.cfg.Out, "%s  %s: %s\n", now(), h.title(), c.String())
		}
	}
}

// reportNew reports programs that were added since the start, once each.
func (d *dev) reportNew() {
	files, err := sources(d.cfg.Programs)
	if err != nil || d.isSample() {
		return
	}
	for _, file := range files {
		known := slices.ContainsFunc(d.programs, func(h *hosted) bool { return h.file == file })
		if !known && !slices.Contains(d.reported, file) {
			d.reported = append(d.reported, file)
			fmt.Fprintf(d.cfg.Out, "%s  %s is new: restart settle dev to run it\n", now(), file)
		}
	}
}

// logFailure reports an error of a file, once.
func (d *dev) logFailure(h *hosted, err error) {
	text := err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		text = h.file + " is gone"
	}
	if text == h.failed {
		return
	}
	h.failed = text
	on := "the previous version keeps running"
	if h.program == nil {
		on = "nothing runs until it compiles"
	}
	fmt.Fprintf(d.cfg.Out, "%s  %s: not deployed; %s\n  %s\n", now(), h.title(), on, strings.ReplaceAll(text, "\n", "\n  "))
}

func (h *hosted) title() string {
	if h.file == "" {
		return "the sample " + h.name
	}
	return h.file
}

func (c change) String() string {
	switch {
	case c.first:
		return "deployed"
	case c.again:
		return "unchanged since the last start"
	case !c.handles && len(c.workflows) == 0:
		return "deployed; no workflow has changed"
	case !c.handles:
		return strings.Join(c.workflows, "; ")
	}
	text := c.diff.String()
	if len(c.diff.Changed)+len(c.diff.New)+len(c.diff.Gone)+len(c.diff.StreamsGone) == 0 {
		text += "; the next event uses the new handlers"
	}
	return strings.Join(append(slices.Clone(c.workflows), text), "; ")
}

// changedWorkflows says which workflows of a program differ from those before.
func changedWorkflows(before, after []*runs.Definition) (list []string) {
	was := map[string]string{}
	for _, w := range before {
		was[w.Name] = w.Version
	}
	for _, w := range after {
		version, there := was[w.Name]
		delete(was, w.Name)
		switch {
		case !there:
			list = append(list, "workflow "+w.Name+" is new")
		case version != w.Version:
			list = append(list, "workflow "+w.Name+" has changed; runs that have begun keep their version")
		}
	}
	for _, w := range before {
		if _, gone := was[w.Name]; gone {
			list = append(list, "workflow "+w.Name+" is gone; no run of it can start")
		}
	}
	return list
}

func now() string { return time.Now().Format(time.TimeOnly) }
