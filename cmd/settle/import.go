package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// importCmd is `settle import`.
type importCmd struct {
	connection
	File    string   `arg:"" optional:"" help:"The output of settle export. Default: standard input." type:"existingfile"`
	Space   string   `help:"Import one space under this name." placeholder:"SPACE"`
	Replace bool     `help:"Overwrite existing documents that have other values."`
	Skip    []string `help:"Omit documents with this name." placeholder:"DOCUMENT"`
	Tasks   bool     `help:"Also import unfinished tasks, which are then performed in this deployment."`
}

// Help returns the long help.
func (importCmd) Help() string {
	return "Each space is written in transactions of its own, concurrently with other changes. Nothing is written unless all of the input is valid. An interrupted import can be run again: it skips documents that have the same value. Derived documents are skipped, because the programs compute them."
}

// Run writes documents.
func (c *importCmd) Run(ctx context.Context, io streams) error {
	spaces, err := c.read()
	if err != nil {
		return usage(err)
	}
	return c.use(ctx, io, need{whole: true}, func(b *bus.Bus, _ *settle.Client) error {
		bars := newBars(io)
		defer bars.end()
		progress := bars.progress()
		progress.Begin("spaces", int64(len(spaces)))
		var written, same int
		for i := range spaces {
			err := c.write(ctx, b, &spaces[i], &written, &same)
			if err != nil {
				return fmt.Errorf("%d of %d spaces are imported, then: %w; nothing more was written; run the import again", i, len(spaces), err)
			}
			progress.Add(1)
		}
		bars.end()
		fmt.Fprintf(io.out, "%s of %s written, %d there already\n", display.Count(written, "document"), display.Count(len(spaces), "space"), same)
		return nil
	})
}

// imported is a space with its documents.
type imported struct {
	space string
	docs  []documentLine
}

// read reads and validates all of the input.
func (c *importCmd) read() ([]imported, error) {
	in := os.Stdin
	if c.File != "" {
		f, err := os.Open(c.File)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	return c.readFrom(in)
}

func (c *importCmd) readFrom(in io.Reader) ([]imported, error) {
	g := gathering{at: map[string]int{}, seen: map[[2]string]bool{}}
	lines := bufio.NewReaderSize(in, 1<<16)
	for n := 1; ; n++ {
		line, end := lines.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			d, err := c.parse(line)
			if err == nil {
				err = g.add(d, d.Derived || slices.Contains(c.Skip, d.Document))
			}
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
		}
		switch {
		case errors.Is(end, io.EOF):
			return c.named(g.spaces)
		case end != nil:
			return nil, end
		}
	}
}

// gathering is the input that was read so far.
type gathering struct {
	spaces []imported
	at     map[string]int
	seen   map[[2]string]bool
}

// add adds a document, or a space without documents.
func (g *gathering) add(d *documentLine, leaveOut bool) error {
	i, there := g.at[d.Space]
	if !there {
		i, g.at[d.Space] = len(g.spaces), len(g.spaces)
		g.spaces = append(g.spaces, imported{space: d.Space})
	}
	key := [2]string{d.Space, d.Document}
	switch {
	case g.seen[key]:
		return fmt.Errorf("document %s of space %s occurs twice", d.Document, d.Space)
	case !leaveOut:
		g.spaces[i].docs = append(g.spaces[i].docs, *d)
	}
	g.seen[key] = true
	return nil
}

// parse reads and validates one document.
func (c *importCmd) parse(line string) (*documentLine, error) {
	var raw struct {
		Space    string         `json:"space"`
		Document string         `json:"document"`
		Path     []string       `json:"path"`
		Derived  bool           `json:"derived"`
		Value    jsontext.Value `json:"value"`
	}
	if err := json.Unmarshal([]byte(line), &raw); err != nil {
		return nil, fmt.Errorf("it is not the JSON object of a document: %w", err)
	}
	d := &documentLine{Space: raw.Space, Document: raw.Document, Derived: raw.Derived}
	if err := errors.Join(model.CheckName("space", d.Space), model.CheckName("document", d.Document)); err != nil {
		return nil, err
	}
	if len(raw.Path) > 0 {
		return nil, fmt.Errorf("it is a part of document %s (%s), and only whole documents are imported", d.Document, model.Path(raw.Path))
	}
	if len(raw.Value) == 0 {
		return nil, fmt.Errorf("document %s has no value", d.Document)
	}
	var err error
	if d.Value, err = model.ParseValue(raw.Value); err != nil {
		return nil, fmt.Errorf("the value of document %s: %w", d.Document, err)
	}
	return d, tasksLeft(d, c.Skip, c.Tasks)
}

// tasksLeft refuses a document with open tasks, unless it is omitted or --tasks is given.
func tasksLeft(d *documentLine, skip []string, meant bool) error {
	n := pending(d.Value)
	if _, t, is := space.TaskIn(d.Document, d.Value); is && t.State == space.TaskPending {
		n = 1
	}
	if n > 0 && !meant && !slices.Contains(skip, d.Document) {
		return fmt.Errorf("document %s of space %s holds %s that %s not done: imported, they would be performed again; omit them with --skip %s, or import them with --tasks",
			d.Document, d.Space, display.Count(n, "task"), map[bool]string{true: "is", false: "are"}[n == 1], d.Document)
	}
	return nil
}

// pending returns the number of open tasks in a document.
func pending(v model.Value) (n int) {
	for _, entry := range v.At(model.Path{"tasks"}).All() {
		if state, _ := entry.Get("state").AsString(); space.TaskState(state) == space.TaskPending {
			n++
		}
	}
	return n
}

// named renames the space, if a new name is given.
func (c *importCmd) named(spaces []imported) ([]imported, error) {
	switch {
	case len(spaces) == 0:
		return nil, errors.New("there is nothing to import: no line with a document")
	case c.Space == "":
		return spaces, nil
	case len(spaces) > 1:
		return nil, fmt.Errorf("--space renames one space, and there are %d", len(spaces))
	}
	spaces[0].space = c.Space
	return spaces, model.CheckName("space", c.Space)
}

// Limits of an import.
const (
	// importBytes is the approximate size of the documents in one transaction.
	importBytes = 128 << 10
	// importPatience is the time limit for one space.
	importPatience = 5 * time.Minute
)

// write writes the missing documents of a space.
func (c *importCmd) write(ctx context.Context, b *bus.Bus, s *imported, written, same *int) error {
	return c.writeAndRemove(ctx, b, s, nil, written, same)
}

// writeAndRemove writes the documents of a space, and removes those that no longer exist.
func (c *importCmd) writeAndRemove(ctx context.Context, b *bus.Bus, s *imported, gone []string, written, same *int) error {
	ctx, cancel := context.WithTimeout(ctx, importPatience)
	defer cancel()
	a, err := attach(ctx, b, s.space, "import-"+rand.Text()[:8])
	if err != nil {
		return err
	}
	for docs := s.docs; len(docs) > 0 && err == nil; {
		n := batchSize(docs)
		err = c.writeTogether(ctx, a, docs[:n], written, same)
		docs = docs[n:]
	}
	if err == nil && len(gone) > 0 {
		err = a.Transact(ctx, "import", func(tx *settle.Tx) error {
			for _, doc := range gone {
				tx.Delete(doc)
			}
			return nil
		})
	}
	closing, end := context.WithTimeout(context.WithoutCancel(ctx), lookPatience)
	defer end()
	return errors.Join(err, a.Close(closing))
}

// attach takes part in a space, in order to write documents into it.
func attach(ctx context.Context, b *bus.Bus, space, id string) (*worker.Attachment, error) {
	client, err := settle.NewClient(b, settle.ClientConfig{ID: "settle"})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.Space(space).Attach(ctx, settle.AttachConfig{ID: id})
}

// batchSize returns the number of documents to write together.
func batchSize(docs []documentLine) int {
	size := 0
	for i := range docs {
		if size += len(docs[i].Value.AppendJSON(nil)); i > 0 && size > importBytes {
			return i
		}
	}
	return len(docs)
}

// writeTogether writes documents in one transaction, after everything in the log of the space.
func (c *importCmd) writeTogether(ctx context.Context, a *worker.Attachment, docs []documentLine, written, same *int) error {
	var now, there int
	err := a.Transact(ctx, "import", func(tx *settle.Tx) error {
		now, there = 0, 0 // it may be called again
		for i := range docs {
			d := &docs[i]
			was := tx.Get(d.Document)
			switch {
			case model.Equal(was, d.Value):
				there++
				continue
			case !was.IsAbsent() && !c.Replace:
				return fmt.Errorf("document %s exists with another value; --replace overwrites it", d.Document)
			}
			tx.Set(d.Document, d.Value)
			now++
		}
		return nil
	})
	if err == nil {
		*written += now
		*same += there
	}
	return err
}
