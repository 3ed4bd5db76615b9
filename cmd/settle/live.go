package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

// errNoWorker is what a missing worker is called.
var errNoWorker = errors.New("no worker answers; start one (spaceworker), or read what is in the log with `settle get --confirmed`")

// getCmd is `settle get`.
type getCmd struct {
	connection
	Space     string        `arg:"" help:"A space."`
	Doc       string        `arg:"" help:"A document of it."`
	Path      []string      `arg:"" optional:"" help:"Keys and indices within the document."`
	Timeout   time.Duration `help:"How long to wait for what has yet to be computed, or for a space that is being taken over." default:"15s"`
	Confirmed bool          `help:"Read what is in the log, without a worker. A derived document is as it was when somebody last watched it."`
	Verbose   bool          `short:"v" help:"Print the revision before the value."`
}

// Run prints a document as it is at the head of the log.
func (c *getCmd) Run(ctx context.Context, io streams) error {
	return c.use(ctx, io, func(b *bus.Bus, client *settle.Client) error {
		v, revision, err := c.read(ctx, io, b, client)
		if err != nil {
			return err
		}
		if v.IsAbsent() && c.Confirmed {
			return fmt.Errorf("space %s has no document %s (a derived one comes into being when it is needed; without --confirmed it is computed)", c.Space, c.Doc)
		}
		if v.IsAbsent() {
			return fmt.Errorf("space %s has no document %s%s", c.Space, c.Doc, model.Path(c.Path))
		}
		if c.Verbose {
			fmt.Fprintf(io.out, "%d\t", revision)
		}
		fmt.Fprintf(io.out, "%v\n", v)
		return nil
	})
}

func (c *getCmd) read(ctx context.Context, io streams, b *bus.Bus, client *settle.Client) (v model.Value, revision uint64, err error) {
	if c.Confirmed {
		v, revision, err = client.Get(ctx, c.Space, c.Doc)
		return v.At(c.Path), revision, err
	}
	q := live.Get{Space: c.Space, Document: c.Doc, Path: c.Path, Timeout: live.Duration(c.Timeout)}
	begun := time.Now()
	a, err := (&live.Client{Bus: b}).Get(ctx, q)
	switch {
	case errors.Is(err, model.ErrNobody):
		return v, 0, errNoWorker
	case err != nil && ctx.Err() == nil && time.Since(begun) >= c.Timeout:
		return v, 0, fmt.Errorf("no answer within %v: %s; ask again, or read what is in the log with --confirmed (%w)", c.Timeout, whoServes(ctx, b, c.Space), err)
	case err != nil:
		return v, 0, err
	case a.Stale != "":
		fmt.Fprintln(io.err, "not up to date:", a.Stale)
	}
	if a.Found {
		v, err = model.ParseValue(a.Value)
	}
	return v, a.Revision, err
}

// watchCmd is `settle watch`.
type watchCmd struct {
	connection
	Space string   `arg:"" help:"A space."`
	Docs  []string `arg:"" name:"document" help:"Documents of it. While they are watched, what they are computed from is kept up to date."`
	From  uint64   `help:"Print only what is newer than this revision." default:"0"`
	JSON  bool     `name:"json" help:"Print a JSON object per line."`
}

// Run prints documents and then every change, until it is interrupted. Workers may come and
// go meanwhile.
func (c *watchCmd) Run(ctx context.Context, io streams) error {
	return c.use(ctx, io, func(b *bus.Bus, _ *settle.Client) error {
		p := changePrinter{cmd: c, io: io}
		g, watching := errgroup.WithContext(ctx)
		for _, doc := range c.Docs {
			g.Go(func() error { // ends with the watch
				q := live.Watch{Space: c.Space, Document: doc, From: c.From}
				return (&live.Client{Bus: b}).Watch(watching, q, func(e live.Event) { p.print(doc, e) })
			})
			g.Go(func() error { // ends with its answer, or with the watch
				q := live.Get{Space: c.Space, Document: doc, Timeout: live.Duration(staleAfter)}
				a, err := (&live.Client{Bus: b}).Get(watching, q)
				if err == nil && a.Stale != "" {
					p.stale(doc, a.Stale)
				}
				return nil // an error is the watch's to tell
			})
		}
		err := g.Wait()
		switch {
		case ctx.Err() != nil:
			return nil // interrupted: that is how a watch ends
		case errors.Is(err, model.ErrNobody):
			return errNoWorker
		}
		return err
	})
}

// staleAfter is how long a document may take to be up to date until who watches is told why it is not.
const staleAfter = 5 * time.Second

// changePrinter prints what happens to documents that are watched.
type changePrinter struct {
	cmd  *watchCmd
	io   streams
	mu   sync.Mutex
	down bool // somebody was told that nobody answers
}

// changeLine is a change as `settle watch --json` prints it.
type changeLine struct {
	Space    string          `json:"space"`
	Document string          `json:"document"`
	Revision uint64          `json:"revision"`
	Previous uint64          `json:"previous,omitempty"`
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
			fmt.Fprintf(p.io.err, "the worker leaves; asking another one from revision %d on\n", e.Revision)
			return
		}
		fmt.Fprintf(p.io.err, "disconnected (%v); asking again from revision %d on\n", e.Err, e.Revision)
	case live.Connected:
		if p.down {
			fmt.Fprintln(p.io.err, "connected again")
		}
		p.down = false
	}
}

// stale says at the begin of a watch that a value is not what it should be.
func (p *changePrinter) stale(doc, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.io.err, "%s is not up to date: %s\n", doc, why)
}

func (p *changePrinter) change(doc string, e live.Event) {
	if p.cmd.JSON {
		line, err := json.Marshal(changeLine{p.cmd.Space, doc, e.Revision, e.Previous, e.Data, e.Kind == live.Deleted})
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
