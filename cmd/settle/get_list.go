package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/runs"
)

// list prints the documents of a space from the log, without computing any.
func (c *getCmd) list(ctx context.Context, io streams, b *bus.Bus) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	all, err := history.ReadContents(ctx, b, c.Space)
	switch {
	case err != nil:
		return err
	case all.Seq == 0:
		return noSpace(c.Space)
	}
	lines, hidden := c.page(c.documents(all, append(all.Derived, derivedBy(ctx, b, c.Space)...)))
	if !c.JSON {
		c.print(io, lines, hidden)
		return nil
	}
	for i := range lines {
		if lines[i].Value.IsAbsent() {
			continue
		}
		if err := printLine(io.out, &lines[i]); err != nil {
			return err
		}
	}
	return nil
}

// noSpace returns the error about a space without a log.
func noSpace(space string) error {
	return fmt.Errorf("there is no space %s: nothing was ever handled there; `settle ls` lists those that exist, and an event makes one", space)
}

// mustExist returns noSpace for a space that does not exist. A worker would answer from nothing, for a name that
// may be misspelt.
func mustExist(ctx context.Context, b *bus.Bus, space string) error {
	there, err := exists(ctx, b, space)
	if err == nil && !there {
		err = noSpace(space)
	}
	return err
}

// exists reports whether a space has a log, or an event that waits for it.
func exists(ctx context.Context, b *bus.Bus, space string) (bool, error) {
	head, err := b.Head(ctx, space)
	if err != nil || head > 0 {
		return err == nil, err
	}
	waiting, err := b.ReadLane(ctx, space, 0, 1)
	return len(waiting) > 0, err
}

// page returns the lines that are to be listed. hidden is how many of runs of workflows are not.
func (c *getCmd) page(lines []documentLine) (_ []documentLine, hidden int) {
	lines = slices.DeleteFunc(lines, func(l documentLine) bool { return !strings.HasPrefix(l.Document, c.Begin) })
	if own := len(lines); !c.JSON && !c.All {
		lines = slices.DeleteFunc(lines, func(l documentLine) bool { return runs.IsInternal(l.Document) })
		hidden = own - len(lines)
	}
	of := map[string]documentLine{}
	names := make([]string, len(lines))
	for i, l := range lines {
		names[i], of[l.Document] = l.Document, l
	}
	lines = lines[:0]
	for _, name := range c.selected().Of(names) {
		lines = append(lines, of[name])
	}
	return lines, hidden
}

// documents returns the documents that a space has, and those that it would derive.
func (c *getCmd) documents(all *history.Contents, derived []string) []documentLine {
	names := append(all.DocIDs(), derived...)
	slices.Sort(names)
	names = slices.Compact(names)
	lines := make([]documentLine, len(names))
	for i, name := range names {
		d := all.Doc(name)
		lines[i] = documentLine{Space: c.Space, Document: name, Revision: d.Seq, Value: d.Value, Derived: slices.Contains(derived, name)}
	}
	return lines
}

// derivedBy returns the documents that the deployed program of a space derives; none if it runs
// another program, or if that is not known.
func derivedBy(ctx context.Context, b *bus.Bus, space string) (docs []string) {
	table, err := program.Rules(ctx, b)
	if err != nil {
		return nil
	}
	target, is := table.Of(space)
	if !is {
		return nil
	}
	v, err := program.Load(ctx, b, target)
	if err != nil {
		return nil
	}
	p, err := star.Compile(v.Source(), star.Options{})
	if err != nil {
		return nil
	}
	for _, n := range p.Nodes() {
		if n.Output != "" {
			docs = append(docs, n.Output)
		}
	}
	return docs
}

func (c *getCmd) print(io streams, lines []documentLine, hidden int) {
	if len(lines) == 0 && (c.Begin != "" || c.selected() != model.Page{}) {
		fmt.Fprintf(io.out, "space %s has no documents there\n", c.Space)
		return
	}
	if len(lines) == 0 {
		fmt.Fprintf(io.out, "space %s has no documents\n", c.Space)
		return
	}
	s, width := sheetFor(io.out)
	heading := []string{"DOCUMENT", "REVISION", "", "VALUE"}
	rows := make([][]cell, len(lines))
	longest := len(heading[0])
	for i := range lines {
		longest = max(longest, utf8.RuneCountInString(lines[i].Document))
	}
	room := max(20, width-longest-len("  REVISION  derived  "))
	for i := range lines {
		rows[i] = lines[i].row(room)
	}
	s.table(heading, rows)
	fmt.Fprintf(io.out, "\nThese are the values in the log. A derived document may be older than its\ninputs; `settle get %s DOCUMENT` brings one up to date.\n", c.Space)
	if hidden > 0 {
		fmt.Fprintf(io.out, "%s of runs of workflows are not listed: --all lists them.\n", display.Count(hidden, "document"))
	}
}

// row returns the line of a document, with its value cut to the available width.
func (l *documentLine) row(room int) []cell {
	row := []cell{{text: l.Document, code: bold}, {text: strconv.FormatUint(l.Revision, 10), right: true}, {}, {text: clip(l.Value.String(), room)}}
	if l.Derived {
		row[2] = cell{text: "derived", code: faint}
	}
	if l.Value.IsAbsent() {
		row[1].text, row[3] = "-", cell{text: "not computed yet", code: faint}
	}
	return row
}
