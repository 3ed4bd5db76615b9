package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

// watchCmd is `settle watch`.
type watchCmd struct {
	inName
	Space string     `arg:"" help:"A space."`
	Docs  []string   `arg:"" name:"document" help:"Documents of the space. They are kept up to date while they are watched."`
	From  live.Known `help:"Print only values newer than this one: a revision, or what --json prints as \"resume\"." default:"0"`
	JSON  bool       `name:"json" help:"Print a JSON object per line."`
}

// Run prints documents, and their newest values after each change, until it is interrupted. It survives
// starts and stops of workers.
func (c *watchCmd) Run(ctx context.Context, io streams) error {
	c.asOwner()
	n := ofSpaces(c.Space)
	n.none = true
	return c.use(ctx, io, n, func(b *bus.Bus, _ *settle.Client) error {
		if c.reads(ctx, b) {
			c.announce(ctx, io, b)
		}
		p := changePrinter{cmd: c, io: io, stale: map[string]bool{}}
		g, watching := errgroup.WithContext(ctx)
		for _, doc := range c.Docs {
			g.Go(func() error { // ends with the watch
				q := live.Watch{Space: c.Space, Document: doc, From: c.From}
				return (&live.Client{Bus: b, Principal: c.Principal}).Watch(watching, q, func(e live.Event) { p.print(doc, e) })
			})
		}
		err := g.Wait()
		switch {
		case ctx.Err() != nil:
			return nil // interrupted, which is the normal end
		case errors.Is(err, model.ErrNoResponder):
			return errNoWorker
		}
		return err
	})
}

// announce prints a notice that a space does not exist: its name may be misspelt. If it is not known whether it exists,
// announce prints nothing.
func (c *watchCmd) announce(ctx context.Context, io streams, b *bus.Bus) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	if there, err := exists(ctx, b, c.Space); err == nil && !there {
		fmt.Fprintf(io.err, "there is no space %s yet; its first event creates it, or this watch, if its program has made_by_reads for it\n", c.Space)
	}
}

// changePrinter prints the changes of watched documents.
type changePrinter struct {
	cmd  *watchCmd
	io   streams
	mu   sync.Mutex
	down bool // a notice about a missing worker was printed
	// stale are the documents for which a staleness notice was printed.
	stale map[string]bool
}

// changeLine is a change as `settle watch --json` prints it.
type changeLine struct {
	Space    string          `json:"space"`
	Document string          `json:"document"`
	Revision uint64          `json:"revision"`
	Previous uint64          `json:"previous,omitempty"`
	Resume   string          `json:"resume"` // for --from
	Value    json.RawMessage `json:"value,omitempty"`
	Deleted  bool            `json:"deleted,omitempty"`
}

func (p *changePrinter) print(doc string, e live.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case live.Value, live.Deleted:
		p.change(doc, e)
	case live.Broken:
		if p.down = true; e.Err == nil {
			fmt.Fprintf(p.io.err, "the worker leaves; continuing with another one from revision %d\n", e.Revision)
			return
		}
		fmt.Fprintf(p.io.err, "disconnected (%v); trying again from revision %d\n", e.Err, e.Revision)
	case live.Connected:
		if p.down {
			fmt.Fprintln(p.io.err, "connected again")
		}
		p.down = false
	case live.Rewound:
		fmt.Fprintf(p.io.err, "the store has gone back to an earlier state; the present value of %s follows\n", doc)
	case live.Stale:
		p.stale[doc] = true
		fmt.Fprintf(p.io.err, "%s is not up to date: %s\n", doc, unbroken(withoutCalls(e.Stale)))
	case live.Current:
		if p.stale[doc] {
			fmt.Fprintf(p.io.err, "%s is up to date again\n", doc)
		}
		p.stale[doc] = false
	}
}

func (p *changePrinter) change(doc string, e live.Event) {
	if p.cmd.JSON {
		line, err := json.Marshal(changeLine{p.cmd.Space, doc, e.Revision, e.Previous, e.Known().String(), e.Data, e.Kind == live.Deleted})
		if err != nil {
			fmt.Fprintln(p.io.err, err)
			return
		}
		fmt.Fprintf(p.io.out, "%s\n", line)
		return
	}
	if e.Kind == live.Deleted && e.Revision == 0 {
		fmt.Fprintf(p.io.err, "space %s has no document %s yet; waiting\n", p.cmd.Space, doc)
		return
	}
	value := string(e.Data)
	if e.Kind == live.Deleted {
		value = "-"
	}
	if len(p.cmd.Docs) > 1 {
		value = doc + "\t" + value
	}
	fmt.Fprintf(p.io.out, "%d\t%s\n", e.Revision, value)
}
