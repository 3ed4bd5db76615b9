package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

// errNoWorker is the error text for a missing worker.
var errNoWorker = errors.New("no worker answers; start one (spaceworker), or read from the log with `settle get --confirmed`")

// getCmd is `settle get`.
type getCmd struct {
	inName
	Space     string        `arg:"" help:"A space."`
	Doc       string        `arg:"" optional:"" name:"document" help:"A document of the space. Default: list all documents, read from the log."`
	Path      []string      `arg:"" optional:"" help:"Keys and indices within the document."`
	Timeout   time.Duration `help:"How long to wait for a computation, or for a takeover of the space." default:"15s"`
	Confirmed bool          `help:"Read from the log, without a worker. A derived document has the value from when it was last observed."`
	At        *uint64       `help:"Print the document as it was at this revision (a log sequence), as far back as the log reaches." placeholder:"REVISION"`
	Verbose   bool          `short:"v" help:"Print the revision before the value."`
	JSON      bool          `name:"json" help:"Print a JSON object for each document, with its revision and its full value."`
	Begin     string        `help:"List the documents whose names begin with this." placeholder:"TEXT"`
	After     string        `help:"List those behind this name." placeholder:"NAME"`
	Limit     int           `help:"List so many at most. Default: all."`
	Desc      bool          `help:"List the last ones first."`
	All       bool          `help:"List the documents, too, in which runs of workflows keep their steps and their graphs. With --json they are listed in any case."`
}

// documentLine is a document as `settle get --json` prints it.
type documentLine struct {
	Space    string      `json:"space"`
	Document string      `json:"document"`
	Path     []string    `json:"path,omitempty"`
	Revision uint64      `json:"revision"`
	Value    model.Value `json:"value,omitzero"`
	// Derived is set only when documents are listed, and then not known for all.
	Derived bool `json:"derived,omitempty"`
}

// Run prints a document as of the head of the log.
func (c *getCmd) Run(ctx context.Context, io streams) error {
	if err := c.check(); err != nil {
		return usage(err)
	}
	c.asOwner()
	n := ofSpaces(c.Space).patient(c.Timeout)
	n.none = c.Doc != "" && !c.Confirmed && c.At == nil
	return c.use(ctx, io, n, func(b *bus.Bus, client *settle.Client) error {
		if c.Doc == "" {
			return c.list(ctx, io, b)
		}
		asked, cancel := context.WithTimeout(ctx, c.Timeout)
		defer cancel()
		if c.reads(asked, b) {
			if err := mustExist(asked, b, c.Space); err != nil {
				return err
			}
		}
		v, revision, stale, err := c.read(ctx, b, client)
		if err != nil {
			return err
		}
		if stale != "" && v.IsAbsent() && revision == 0 {
			return fmt.Errorf("document %s of space %s is not computed yet: %s", c.Doc, c.Space, stale)
		}
		if stale != "" {
			fmt.Fprintln(io.err, "not up to date:", stale)
		}
		if v.IsAbsent() && c.At != nil {
			return fmt.Errorf("space %s had no document %s%s at revision %d", c.Space, c.Doc, model.Path(c.Path), *c.At)
		}
		if v.IsAbsent() && c.Confirmed {
			return fmt.Errorf("space %s has no document %s (a derived one exists once it is observed; without --confirmed it is computed)", c.Space, c.Doc)
		}
		if v.IsAbsent() {
			return fmt.Errorf("space %s has no document %s%s; `settle get %s` lists those that it has", c.Space, c.Doc, model.Path(c.Path), c.Space)
		}
		if c.JSON {
			return printLine(io.out, documentLine{Space: c.Space, Document: c.Doc, Path: c.Path, Revision: revision, Value: v})
		}
		if c.Verbose {
			fmt.Fprintf(io.out, "%d\t", revision)
		}
		fmt.Fprintf(io.out, "%v\n", v)
		return nil
	})
}

func (c *getCmd) check() error {
	err := model.CheckName("space", c.Space)
	if err == nil && c.At != nil && c.Doc == "" {
		err = errors.New("--at needs the name of a document")
	}
	if err == nil && c.Doc != "" && (c.Begin != "" || c.selected() != model.Page{}) {
		err = errors.New("--begin, --after, --limit and --desc list documents; leave the name of the document out")
	}
	if err == nil {
		err = c.selected().Check()
	}
	if err == nil && c.Doc != "" {
		err = model.CheckName("document", c.Doc)
	}
	return err
}

// read reads the document; stale is the reason why it is not up to date, if it is not.
func (c *getCmd) read(ctx context.Context, b *bus.Bus, client *settle.Client) (v model.Value, revision uint64, stale string, err error) {
	if c.At != nil {
		d, err := history.ReadAt(ctx, b, c.Space, c.Doc, *c.At)
		if err != nil {
			return v, 0, "", err
		}
		return d.Value.At(c.Path), d.Seq, "", nil
	}
	if c.Confirmed {
		v, revision, err = client.Space(c.Space).Get(ctx, c.Doc)
		return v.At(c.Path), revision, "", err
	}
	q := live.Get{Space: c.Space, Document: c.Doc, Path: c.Path, Timeout: live.Duration(c.Timeout)}
	begun := time.Now()
	a, err := (&live.Client{Bus: b, Principal: c.Principal}).Get(ctx, q)
	switch {
	case errors.Is(err, model.ErrNoResponder):
		return v, 0, "", errNoWorker
	case err != nil && ctx.Err() == nil && time.Since(begun) >= c.Timeout:
		return v, 0, "", fmt.Errorf("no answer within %v: %s; try again, or read from the log with --confirmed (%w)", c.Timeout, describeOwner(ctx, b, c.Space), err)
	case err != nil:
		return v, 0, "", err
	}
	if a.Found {
		v, err = model.ParseValue(a.Value)
	}
	return v, a.Revision, a.Stale, err
}

// selected returns the page that is listed.
func (c *getCmd) selected() model.Page {
	return model.Page{After: c.After, Limit: c.Limit, Descending: c.Desc}
}
