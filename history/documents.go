package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// Documents reads several documents of a space that belong together, as of the head of its log, and after each Refresh as of
// a later one. The log is read once for all of them, and each commit once, however often Refresh is called; a document costs one
// request when it is asked for the first time. It is not safe for concurrent use.
//
// Documents are not of one commit: one whose saved value is newer than the head at the last Refresh has that value, as while a checkpoint is
// saved. Those that are asked for later are not older than that.
type Documents struct {
	bus   port.Client
	space string
	among func(doc string) bool

	epoch, head uint64
	known       map[string]*replica.Document
	asked       map[string]bool // since the last Refresh
	// tail are the commits after from, up to at, with the writes to documents that may be asked for.
	tail     []tailed
	from, at uint64
	begun    bool // the tail has
}

// tailed is a commit of the tail.
type tailed struct {
	entry  model.LogEntry // without its data
	commit *model.Commit
	size   int
}

// maxTail is the size of the commits with writes of the documents, in bytes, that are kept after a Refresh for documents that are asked for the
// first time. For one that was saved before them, the log is read again.
const maxTail = 4 << 20

// NewDocuments returns a reader of those documents of a space for which among is true. Call Refresh before Get.
func NewDocuments(bus port.Client, space string, among func(doc string) bool) *Documents {
	d := &Documents{bus: bus, space: space, among: among}
	d.forget()
	return d
}

// forget drops everything that was read.
func (d *Documents) forget() {
	d.known, d.asked = map[string]*replica.Document{}, map[string]bool{}
	d.tail, d.from, d.at, d.begun = nil, 0, 0, false
	d.epoch = d.bus.Epoch()
}

// holds returns an error once what has been read no longer holds, because the store has gone back.
func (d *Documents) holds() error {
	if d.bus.Epoch() != d.epoch {
		return model.ErrRewound
	}
	return nil
}

// Refresh moves on to the present head of the log. Documents that were not asked for since the last Refresh are dropped.
func (d *Documents) Refresh(ctx context.Context) error {
	for {
		if d.holds() != nil {
			d.forget()
		}
		err := d.refresh(ctx)
		if gone := errors.Is(err, model.ErrPurged) || errors.Is(err, model.ErrRewound); !gone || ctx.Err() != nil {
			return d.named(err)
		}
		d.forget() // they are loaded again when they are asked for
	}
}

func (d *Documents) named(err error) error {
	if err != nil {
		return fmt.Errorf("read documents of space %s: %w", d.space, err)
	}
	return nil
}

func (d *Documents) refresh(ctx context.Context) (err error) {
	d.head, err = d.bus.Head(ctx, d.space) // the leader's
	if err = errors.Join(err, d.holds()); err != nil {
		return err
	}
	for doc := range d.known { // any order: each on its own
		if !d.asked[doc] {
			delete(d.known, doc)
		}
	}
	clear(d.asked)
	if len(d.known) == 0 { // the log is read from where the first document leads to
		d.tail, d.begun = nil, false
		return nil
	}
	if !d.begun { // all that are known were as new as the head
		for _, doc := range d.known { // any order: the smallest
			if !d.begun || doc.Read < d.at {
				d.from, d.at, d.begun = doc.Read, doc.Read, true
			}
		}
	}
	if err := d.readOn(ctx); err != nil {
		return err
	}
	for _, doc := range d.known { // any order: each on its own
		if err := d.apply(doc); err != nil {
			return err
		}
	}
	d.prune()
	return nil
}

// Get returns a document, and the log sequence of the commit that last changed it, 0 if none did. After the error model.ErrRewound everything
// that was returned since the last Refresh may be void.
func (d *Documents) Get(ctx context.Context, doc string) (model.Value, uint64, error) {
	if !d.among(doc) {
		return model.Value{}, 0, fmt.Errorf("document %s of space %s is not one of those that were to be read", doc, d.space)
	}
	if err := d.holds(); err != nil {
		return model.Value{}, 0, d.named(err)
	}
	d.asked[doc] = true
	if known := d.known[doc]; known != nil {
		err := d.bringUp(ctx, known)
		if !errors.Is(err, model.ErrPurged) {
			d.know(doc, known)
			return known.Value, known.Seq, d.named(err)
		}
		delete(d.known, doc)
	}
	r := reading{bus: d.bus, space: d.space, doc: doc, holds: d.holds, caughtUp: d.catchUp}
	got, err := r.upTo(ctx, d.head)
	if err != nil {
		return model.Value{}, 0, d.named(err)
	}
	d.know(doc, got)
	return got.Value, got.Seq, nil
}

// know notes a document that is handed out. It may be newer than the head, and then whatever is asked for from now on has to be as new.
func (d *Documents) know(doc string, got *replica.Document) {
	d.known[doc], d.asked[doc], d.head = got, true, max(d.head, got.Read)
}

// bringUp brings a known document up to the head, which has moved if another one is newer.
func (d *Documents) bringUp(ctx context.Context, known *replica.Document) error {
	if known.Read >= d.head {
		return nil
	}
	return d.catchUp(ctx, known)
}

// maxLoading is how many documents Load asks for at the same time.
const maxLoading = 8

// Load is Get for several documents, which are asked for at the same time. What cannot be loaded now is left to Get.
func (d *Documents) Load(ctx context.Context, docs []string) error {
	var missing []string
	for _, doc := range docs {
		if d.among(doc) && d.known[doc] == nil {
			missing = append(missing, doc)
		}
	}
	parts := make([]model.SpaceState, len(missing))
	var g errgroup.Group
	g.SetLimit(maxLoading)
	for i, doc := range missing {
		g.Go(func() (err error) { // ends with the answer, or with ctx
			parts[i], err = d.bus.LoadPart(ctx, d.space, doc)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return d.named(err)
	}
	for i, doc := range missing {
		r := reading{bus: d.bus, space: d.space, doc: doc, holds: d.holds, caughtUp: d.catchUp}
		got, err := r.from(ctx, parts[i], d.head)
		if errors.Is(err, model.ErrPurged) {
			continue
		}
		if err = errors.Join(err, d.holds()); err != nil {
			return d.named(err)
		}
		d.known[doc], d.asked[doc] = got, true
	}
	return nil
}

// catchUp applies the tail to a document that was loaded. The tail begins with the first one of them, or again with one that was saved before.
func (d *Documents) catchUp(ctx context.Context, doc *replica.Document) error {
	if !d.begun || doc.Read < d.from {
		d.tail, d.from, d.at, d.begun = nil, doc.Read, doc.Read, true
	}
	if err := d.readOn(ctx); err != nil {
		d.tail, d.begun = nil, false
		return err
	}
	return d.apply(doc)
}

// readOn reads the log up to the head.
func (d *Documents) readOn(ctx context.Context) error {
	for d.at < d.head {
		entries, err := d.bus.ReadLog(ctx, d.space, d.at, readPage)
		if err != nil {
			return err
		}
		for i := range entries {
			if err := d.add(ctx, &entries[i]); err != nil {
				return err
			}
		}
		if len(entries) == 0 { // a replica that lags
			_ = pause.For(ctx, time.Millisecond)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := d.holds(); err != nil {
			return err
		}
	}
	return d.holds()
}

// add adds a commit to the tail.
func (d *Documents) add(ctx context.Context, e *model.LogEntry) error {
	if e.Seq <= d.at {
		return nil
	}
	if err := e.Follows(d.at); err != nil {
		return err
	}
	c, err := ReadCommit(ctx, d.bus, e)
	if err != nil {
		return err
	}
	d.at = e.Seq
	kept := tailed{entry: *e, commit: &model.Commit{Space: c.Space}}
	kept.entry.Data = nil
	for i := range c.Txs {
		for _, w := range c.Txs[i].Writes {
			if d.among(w.Doc) {
				kept.size = len(e.Data)
				kept.commit.Txs = append(kept.commit.Txs, model.Tx{Writes: []model.Write{w}})
			}
		}
	}
	d.tail = append(d.tail, kept)
	return nil
}

// apply applies the tail to a document.
func (d *Documents) apply(doc *replica.Document) error {
	for i := range d.tail {
		t := &d.tail[i]
		if _, err := doc.Take(&t.entry, func() (*model.Commit, error) { return t.commit, nil }); err != nil {
			return err
		}
	}
	return nil
}

// prune drops the oldest commits of the tail.
func (d *Documents) prune() {
	const most = 1000 // commits; most have nothing that is kept
	size, first := 0, len(d.tail)
	for first > 0 && len(d.tail)-first < most && size+d.tail[first-1].size <= maxTail {
		first--
		size += d.tail[first].size
	}
	if first > 0 {
		d.from = d.tail[first-1].entry.Seq
		d.tail = append([]tailed(nil), d.tail[first:]...)
	}
}
