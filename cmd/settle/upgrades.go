package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/docversions"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
)

// upgradesCmd is `settle upgrades`.
type upgradesCmd struct {
	connection
	Documents []string `arg:"" optional:"" name:"document=version" help:"Documents and their present version: profile=2, order-*=3 for all documents of such names, team/*=2 for the rows of a document. Default: all documents that are stored in a version above 1 in one of the spaces; the newest of these is the present one."`
	Spaces    string   `help:"Read only spaces with such names, for example airport-*." default:"*" placeholder:"PATTERN"`
	List      int      `help:"How many spaces with older documents are listed for each kind of documents." default:"10"`
	JSON      bool     `name:"json" help:"Print JSON, one object a line."`
}

// Help returns the long help.
func (upgradesCmd) Help() string {
	return "Reads the log of each space, and changes nothing. Exit status: 0 if no older document is left, 1 if there are some, or if a space could not be read. docs/upgrades.md describes versions of documents."
}

// Run counts the documents that are stored in older versions.
func (c *upgradesCmd) Run(ctx context.Context, io streams) error {
	q, err := c.question()
	if err != nil {
		return usage(err)
	}
	return c.use(ctx, io, need{}, func(b *bus.Bus, client *settle.Client) error {
		names, err := storedSpaces{b, client, c.Spaces}.Spaces(ctx)
		if err != nil {
			return err
		}
		report, err := docversions.Read(ctx, names, func(ctx context.Context, space string) (*history.Contents, error) {
			return history.ReadContents(ctx, b, space)
		}, q)
		if err != nil {
			return err
		}
		if c.JSON {
			err = printCounts(io, report)
		} else {
			c.print(io, report)
		}
		return errors.Join(err, left(report))
	})
}

func (c *upgradesCmd) question() (q docversions.Question, err error) {
	q.Present, q.Listed = map[docversions.Documents]int{}, c.List
	if c.List < 0 || c.List > 1000 {
		return q, errors.New("--list is from 0 to 1000")
	}
	for _, text := range c.Documents {
		name, version, _ := strings.Cut(text, "=")
		d, err := docversions.Parse(name)
		if err != nil {
			return q, err
		}
		if q.Present[d], err = strconv.Atoi(version); err != nil || q.Present[d] < 2 || q.Present[d] > model.MaxVersion {
			return q, fmt.Errorf("%s: name documents and their present version, from 2 to %d, as in profile=2", text, model.MaxVersion)
		}
	}
	if c.Spaces == program.All {
		return q, nil
	}
	return q, program.CheckSpaces(c.Spaces)
}

func (c *upgradesCmd) print(io streams, r *docversions.Report) {
	if len(r.Counts) == 0 {
		fmt.Fprintf(io.out, "none of %s has a document in a version above 1; name the documents that have one in the program: settle upgrades DOCUMENT=VERSION\n", display.Count(r.Spaces, "space"))
		return
	}
	s, _ := sheetFor(io.out)
	var kinds, in [][]cell
	for i := range r.Counts {
		n := &r.Counts[i]
		kinds = append(kinds, []cell{{text: n.Documents.String(), code: bold}, number(n.Present), number(n.Older), number(n.Spaces), {text: storedText(n)}})
		for _, space := range n.In {
			in = append(in, []cell{{text: n.Documents.String()}, {text: space.Name}, number(space.Older), number(space.Oldest)})
		}
	}
	s.table([]string{"DOCUMENTS", "VERSION", "OLDER", "IN SPACES", "STORED"}, kinds)
	if len(in) > 0 {
		fmt.Fprintln(io.out)
		s.table([]string{"DOCUMENTS", "SPACE", "OLDER", "OLDEST VERSION"}, in)
	}
	fmt.Fprintf(io.err, "%s read\n", display.Count(r.Spaces, "space"))
}

// storedText has the number of documents of each version.
func storedText(n *docversions.Count) string {
	var parts []string
	for _, v := range slices.Sorted(maps.Keys(n.Stored)) {
		if len(parts) == maxVersionsShown {
			parts = append(parts, "...")
			break
		}
		parts = append(parts, fmt.Sprintf("%d of version %d", n.Stored[v], v))
	}
	return or(strings.Join(parts, ", "), "none")
}

const maxVersionsShown = 5

// printCounts prints an object for each kind of documents.
func printCounts(io streams, r *docversions.Report) error {
	for i := range r.Counts {
		n := &r.Counts[i]
		in := []map[string]any{}
		for _, space := range n.In {
			in = append(in, map[string]any{"space": space.Name, "older": space.Older, "oldest": space.Oldest})
		}
		line := map[string]any{"documents": n.Documents.String(), "version": n.Present, "older": n.Older, "spaces": n.Spaces, "stored": n.Stored, "in": in}
		if err := printLine(io.out, line); err != nil {
			return err
		}
	}
	return nil
}

// left returns an error if older documents are left, or may be.
func left(r *docversions.Report) error {
	older := 0
	for i := range r.Counts {
		older += r.Counts[i].Older
	}
	var errs []error
	if older > 0 {
		errs = append(errs, fmt.Errorf("%s in an older version; settle send --all sends an event that writes what is left (docs/upgrades.md)", display.Count(older, "document")))
	}
	for _, err := range r.Errors {
		errs = append(errs, fmt.Errorf("not counted: %w", err))
	}
	return errors.Join(errs...)
}
