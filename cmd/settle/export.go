package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
)

// exportCmd is `settle export`.
type exportCmd struct {
	connection
	Spaces []string `arg:"" optional:"" name:"space" help:"The spaces."`
	All    bool     `help:"Every space that has a log."`
	Output string   `short:"o" help:"Write to this file, which appears only when it is complete. Default: standard output." placeholder:"FILE"`
}

// Help returns the long help.
func (exportCmd) Help() string {
	return "Prints one JSON object for each document, in the format of `settle get SPACE --json`, which `settle import` reads. Receipts, events and timers are not documents, and are not exported."
}

// Run prints the documents of spaces as JSON lines.
func (c *exportCmd) Run(ctx context.Context, io streams) error {
	switch {
	case c.All == (len(c.Spaces) > 0):
		return usage(errors.New("which spaces? Give their names, or --all"))
	case len(c.Spaces) > 0:
		for _, space := range c.Spaces {
			if err := model.CheckName("space", space); err != nil {
				return usage(err)
			}
		}
	}
	return c.use(ctx, io, ofSpaces(c.Spaces...), func(b *bus.Bus, _ *settle.Client) error {
		if c.Output == "" {
			return c.export(ctx, io, io.out, b)
		}
		return whole(c.Output, func(f *os.File) error { return c.export(ctx, io, f, b) })
	})
}

// whole writes a file under its name once it is complete.
func whole(name string, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

func (c *exportCmd) export(ctx context.Context, to streams, out io.Writer, b *bus.Bus) error {
	spaces := c.Spaces
	if c.All {
		var err error
		if spaces, err = b.Spaces(ctx); err != nil {
			return err
		}
	}
	bars := newBars(to)
	defer bars.end()
	progress := bars.progress()
	progress.Begin("spaces", int64(len(spaces)))
	buffered := bufio.NewWriterSize(out, 1<<16)
	documents := 0
	for _, space := range spaces {
		n, seq, err := exportSpace(ctx, buffered, b, space)
		if err != nil {
			return err
		}
		documents += n
		progress.Add(1)
		if len(spaces) == 1 {
			fmt.Fprintf(to.err, "%s: as of log sequence %d\n", space, seq)
		}
	}
	bars.end()
	fmt.Fprintf(to.err, "%s of %s\n", display.Count(documents, "document"), display.Count(len(spaces), "space"))
	return buffered.Flush()
}

// exportSpace prints the documents of one space, all as of one log sequence.
func exportSpace(ctx context.Context, out io.Writer, b *bus.Bus, space string) (n int, seq uint64, err error) {
	all, err := history.ReadContents(ctx, b, space)
	switch {
	case err != nil:
		return 0, 0, err
	case all.Seq == 0:
		return 0, 0, noSpace(space)
	}
	lines := (&getCmd{Space: space}).documents(all, append(all.Derived, derivedBy(ctx, b, space)...))
	for i := range lines {
		if lines[i].Value.IsAbsent() {
			continue
		}
		if err := printLine(out, &lines[i]); err != nil {
			return n, 0, err
		}
		n++
	}
	return n, all.Seq, nil
}
