package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// cloneCmd is `settle clone`.
type cloneCmd struct {
	connection
	Name       string        `arg:"" help:"The name (prefix) of the new deployment."`
	To         string        `help:"URL of the target server. Default: the server of the deployment." placeholder:"URL"`
	ToCreds    string        `help:"Credentials file for the target server." type:"existingfile" placeholder:"FILE"`
	Partitions int           `help:"Number of partitions of the new deployment. Default: as in the deployment." default:"0"`
	Horizon    time.Duration `help:"How long the new deployment remembers handled events. Default: as in the deployment." default:"0"`
	Replicas   int           `help:"Replicas of each stream; 0 chooses 3 in a cluster and 1 on a single server." default:"0"`
	Skip       []string      `help:"Omit documents with this name." placeholder:"DOCUMENT"`
	Tasks      bool          `help:"Also copy unfinished tasks, which are then performed in the new deployment."`

	copied func(space string) // is called when a space was; for tests
}

// Help returns the long help.
func (cloneCmd) Help() string {
	return "Copies documents, programs and their rules, and omits what settle import omits. The deployment keeps running, and each space is copied as of one moment. An interrupted clone can be run again: it continues, and copies later changes. Needs the role operator at the target, and reader at the source."
}

// cloneKey is the key of the record that names the origin of a clone.
const cloneKey = "clone.origin"

// cloneOrigin is the record that names the origin of a clone.
type cloneOrigin struct {
	Deployment string    `json:"deployment"`
	Began      time.Time `json:"began"`
	// Ended is zero until the clone is complete.
	Ended time.Time `json:"ended,omitzero"`
}

// cloning is a clone in progress.
type cloning struct {
	*cloneCmd
	from, to *bus.Bus
	mu       sync.Mutex
	cloneCounts
}

// cloneCounts counts the changes of a clone.
type cloneCounts struct{ written, same, removed int }

// Run makes a copy of a deployment under another name.
func (c *cloneCmd) Run(ctx context.Context, io streams) error {
	if err := model.CheckName("prefix", c.Name); err != nil {
		return usage(err)
	}
	return c.use(ctx, io, need{whole: true}, func(b *bus.Bus, _ *settle.Client) error {
		if c.To == "" && c.Name == c.Prefix {
			return usage(fmt.Errorf("deployment %s cannot be cloned to itself: name another one, or a server with --to", c.Prefix))
		}
		to, err := c.open(ctx, io, b)
		if err != nil {
			return err
		}
		defer to.Close()
		x := &cloning{cloneCmd: c, from: b, to: to}
		origin, rev, err := x.begin(ctx)
		if err != nil {
			return err
		}
		n, err := x.copy(ctx, io)
		if err != nil {
			return fmt.Errorf("the clone is not complete: %w; run it again to continue", err)
		}
		origin.Ended = time.Now().UTC()
		if _, err := x.save(ctx, origin, rev); err != nil {
			return err
		}
		fmt.Fprintf(io.out, "deployment %s: %s, %s; %s written, %d there already, %d removed\n",
			c.Name, display.Count(to.Partitions(), "partition"), display.Count(n, "space"), display.Count(x.written, "document"), x.same, x.removed)
		return nil
	})
}

// open connects to the new deployment, and creates it if it does not exist.
func (c *cloneCmd) open(ctx context.Context, io streams, from *bus.Bus) (*bus.Bus, error) {
	cfg := c.config("client/clone")
	cfg.Prefix, cfg.Partitions, cfg.Horizon, cfg.Replicas = c.Name, c.Partitions, c.Horizon, c.Replicas
	cfg.Logger = slog.New(slog.NewTextHandler(io.err, &slog.HandlerOptions{Level: slog.LevelError}))
	if c.To != "" {
		cfg.URL, cfg.Context, cfg.Creds = c.To, "", c.ToCreds
	} else {
		own := c.connection
		own.useLocalServer()
		cfg.URL = own.NATS
	}
	to, err := bus.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if errors.Is(to.Check(ctx), provision.ErrNoDeployment) && (c.Partitions == 0 || c.Horizon == 0) {
		to.Close()
		if c.Partitions == 0 {
			cfg.Partitions = from.Partitions()
		}
		if c.Horizon == 0 {
			cfg.Horizon = from.Horizon()
		}
		if to, err = bus.Connect(ctx, cfg); err != nil {
			return nil, err
		}
	}
	if err := to.MayProvision(ctx); err != nil {
		to.Close()
		return nil, err
	}
	if err := to.Provision(ctx); err != nil {
		to.Close()
		return nil, err
	}
	return to, nil
}

// begin records that the deployment is a clone, unless it is an incomplete one already. A deployment that
// has other contents is refused.
func (x *cloning) begin(ctx context.Context) (*cloneOrigin, uint64, error) {
	r, err := x.to.LoadRecord(ctx, cloneKey)
	if err != nil {
		return nil, 0, err
	}
	if r.Data != nil {
		var o cloneOrigin
		switch err := json.Unmarshal(r.Data, &o); {
		case err != nil:
			return nil, 0, fmt.Errorf("deployment %s: record %s: %w", x.Name, cloneKey, err)
		case !o.Ended.IsZero():
			return nil, 0, fmt.Errorf("deployment %s is a clone of %s that was completed at %s, and may have been changed since; name another one", x.Name, o.Deployment, o.Ended.Format(time.RFC3339))
		case o.Deployment != x.Prefix:
			return nil, 0, fmt.Errorf("deployment %s is a clone of %s that is not complete, not of %s; name another one", x.Name, o.Deployment, x.Prefix)
		}
		return &o, r.Rev, nil
	}
	spaces, err := x.to.Spaces(ctx)
	switch {
	case err != nil:
		return nil, 0, err
	case len(spaces) > 0:
		return nil, 0, fmt.Errorf("deployment %s has %s already (%s); a clone is made where there are none: name another one, or use `settle export` and `settle import`", x.Name, display.Count(len(spaces), "space"), spaces[0])
	}
	o := &cloneOrigin{Deployment: x.Prefix, Began: time.Now().UTC()}
	rev, err := x.save(ctx, o, r.Rev)
	return o, rev, err
}

func (x *cloning) save(ctx context.Context, o *cloneOrigin, over uint64) (uint64, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return 0, err
	}
	rev, err := x.to.SaveRecord(ctx, model.Record{Key: cloneKey, Data: text, Rev: over})
	if errors.Is(err, model.ErrOutdated) {
		err = fmt.Errorf("another `settle clone` to %s is in progress: %w", x.Name, err)
	}
	return rev, err
}

// cloneSpaces is how many spaces are copied at a time: each waits for its server most of the time.
const cloneSpaces = 8

// copy copies the programs, then every space, and removes those documents of the clone that are gone.
func (x *cloning) copy(ctx context.Context, io streams) (n int, err error) {
	for _, under := range []string{"version", "rule"} {
		if err := x.records(ctx, under); err != nil {
			return 0, err
		}
	}
	spaces, err := x.from.Spaces(ctx)
	if err != nil {
		return 0, err
	}
	bars := newBars(io)
	defer bars.end()
	progress := bars.progress()
	progress.Begin("spaces", int64(len(spaces)))
	g, copying := errgroup.WithContext(ctx)
	g.SetLimit(cloneSpaces)
	for _, name := range spaces {
		g.Go(func() error { // ends with the copy of the space
			counts, err := x.space(copying, name)
			if err != nil {
				return fmt.Errorf("space %s: %w", name, err)
			}
			x.mu.Lock()
			defer x.mu.Unlock()
			x.written, x.same, x.removed = x.written+counts.written, x.same+counts.same, x.removed+counts.removed
			progress.Add(1)
			if x.copied != nil {
				x.copied(name)
			}
			return nil
		})
	}
	return len(spaces), g.Wait()
}

// records copies versions of programs, or rules.
func (x *cloning) records(ctx context.Context, under string) error {
	all, err := x.from.ListRecords(ctx, under)
	if err != nil {
		return err
	}
	for _, r := range all {
		there, err := x.to.LoadRecord(ctx, r.Key)
		if err == nil && string(there.Data) != string(r.Data) {
			_, err = x.to.SaveRecord(ctx, model.Record{Key: r.Key, Data: r.Data, Rev: there.Rev})
		}
		if err != nil {
			return fmt.Errorf("record %s: %w", r.Key, err)
		}
	}
	return nil
}

// space copies the documents of a space, as of one moment.
func (x *cloning) space(ctx context.Context, name string) (counts cloneCounts, err error) {
	from, err := history.ReadContents(ctx, x.from, name)
	if err != nil || from.Seq == 0 {
		return counts, err // it has no log any more
	}
	to, err := history.ReadContents(ctx, x.to, name)
	if err != nil {
		return counts, err
	}
	s := imported{space: name}
	lines := (&getCmd{Space: name}).documents(from, append(from.Derived, derivedBy(ctx, x.from, name)...))
	own := map[string]bool{space.CancelDoc: true} // documents that are not copied
	for i := range lines {
		d := &lines[i]
		if d.Derived || d.Document == space.CancelDoc || slices.Contains(x.Skip, d.Document) {
			own[d.Document] = true
			continue
		}
		if err := tasksLeft(d, x.Skip, x.Tasks); err != nil {
			return counts, err
		}
		if to.Seq > 0 && model.Equal(to.Doc(d.Document).Value, d.Value) {
			counts.same++
			continue
		}
		s.docs = append(s.docs, *d)
	}
	var gone []string
	if to.Seq > 0 {
		for _, doc := range to.DocIDs() {
			if !own[doc] && from.Doc(doc).Value.IsAbsent() && !slices.Contains(to.Derived, doc) {
				gone = append(gone, doc)
			}
		}
	}
	if len(s.docs) == 0 && len(gone) == 0 {
		return counts, nil
	}
	over := importCmd{Replace: true}
	err = over.writeAndRemove(ctx, x.to, &s, gone, &counts.written, &counts.same)
	counts.removed = len(gone)
	return counts, err
}
