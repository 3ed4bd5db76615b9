package history

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// Read returns a document as the log has it now. It asks for the document and the mark of the space, and for the commits behind
// the mark if there are any: its cost does not depend on the size of the space.
func Read(ctx context.Context, bus port.Client, space, doc string) (d *replica.Document, err error) {
	return readFrom(ctx, bus, unshared{bus}, space, doc)
}

// reader reads documents.
type reader interface {
	Head(ctx context.Context, space string) (uint64, error)
	// upTo reads a document at least up to a position of the log in an epoch of the store.
	upTo(ctx context.Context, space, doc string, head, epoch uint64) (*replica.Document, error)
}

// unshared is a reader that shares nothing with others.
type unshared struct{ port.Client }

func (u unshared) upTo(ctx context.Context, space, doc string, head, epoch uint64) (*replica.Document, error) {
	return readingOf(u.Client, space, doc, epoch).upTo(ctx, head)
}

// readFrom is Read with a reader over bus.
func readFrom(ctx context.Context, bus port.Client, r reader, space, doc string) (d *replica.Document, err error) {
	for {
		epoch := bus.Epoch()
		head, err := r.Head(ctx, space) // the leader's: a replica that lags is read again
		if err == nil {
			d, err = r.upTo(ctx, space, doc, head, epoch)
		}
		switch {
		case err == nil:
			return d, nil
		case !errors.Is(err, model.ErrRewound) || bus.Epoch() == epoch || ctx.Err() != nil:
			return nil, readError(doc, space, err)
		}
	}
}

func readError(doc, space string, err error) error {
	return fmt.Errorf("read %s of space %s: %w", doc, space, err)
}

// reading is one read of a document.
type reading struct {
	bus        port.Client
	space, doc string
	// holds returns an error once what has been read no longer holds, because the store has gone back.
	holds func() error
	// caughtUp applies commits to the document that were read before; nil if there are none.
	caughtUp func(ctx context.Context, d *replica.Document) error
}

// readingOf returns the read of a document in an epoch of the store.
func readingOf(bus port.Client, space, doc string, epoch uint64) *reading {
	return &reading{bus: bus, space: space, doc: doc, holds: func() error {
		if bus.Epoch() != epoch {
			return model.ErrRewound
		}
		return nil
	}}
}

// upTo reads the document up to a sequence of the log, at least.
func (r *reading) upTo(ctx context.Context, head uint64) (d *replica.Document, err error) {
	load := r.bus.LoadPart
	err = OverGaps(ctx, r.space, func() error {
		st, err := load(ctx, r.space, r.doc)
		if err != nil {
			return err
		}
		load = r.loadNewest
		d, err = r.from(ctx, st, head)
		return err
	})
	return d, err
}

// loadNewest is LoadPart with a mark that is not older than the leader's. The log after an older one may be purged, and
// a replica that lags for long shows it for long.
func (r *reading) loadNewest(ctx context.Context, space, key string) (model.SpaceState, error) {
	for try := 1; ; try++ {
		st, err := r.bus.LoadPart(ctx, space, key)
		if err != nil {
			return st, err
		}
		mark, _, err := r.bus.LoadMark(ctx, space)
		if err != nil || st.Mark.Rev >= mark.Rev {
			return st, err
		}
		_ = pause.For(ctx, pause.Backoff(try))
		if ctx.Err() != nil {
			return st, ctx.Err()
		}
		if err := r.holds(); err != nil {
			return st, err
		}
	}
}

// from reads the document from its part of a checkpoint and the log after that, at least up to head. It stops when
// holds returns an error, since a log that has gone back may never reach head.
//
// The item of the document and the mark are of one moment. An item is saved before the mark that covers it, so it has
// every change up to the mark; it may have later ones, up to its own sequence. The log has the others. Each commit names
// the one before it, so none that is purged, or that a replica lacks, is passed over.
func (r *reading) from(ctx context.Context, st model.SpaceState, head uint64) (*replica.Document, error) {
	d, err := replica.LoadDocument(r.doc, st)
	if err != nil {
		return nil, err
	}
	if d.Read >= head {
		return d, nil // usually: the checkpoint of a quiet space has all of its log
	}
	if r.caughtUp != nil {
		if err := r.caughtUp(ctx, d); err != nil {
			return nil, err
		}
		if d.Read >= head {
			return d, r.holds()
		}
	}
	return d, r.follow(ctx, []*replica.Document{d}, head)
}

// follow applies the log to documents, at least up to head. It reads each commit once.
func (r *reading) follow(ctx context.Context, docs []*replica.Document, head uint64) error {
	at := head
	for _, d := range docs {
		at = min(at, d.Read)
	}
	for at < head {
		entries, err := r.bus.ReadLog(ctx, r.space, at, readPage)
		if err != nil {
			return err
		}
		for i := range entries {
			e := &entries[i]
			read := sync.OnceValues(func() (*model.Commit, error) { return ReadCommit(ctx, r.bus, e) })
			for _, d := range docs {
				if _, err := d.Take(e, read); err != nil {
					return err
				}
			}
			at = e.Seq
		}
		if len(entries) == 0 { // a replica that lags
			_ = pause.For(ctx, time.Millisecond)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := r.holds(); err != nil {
			return err
		}
	}
	return r.holds() // a log of another epoch may continue the checkpoint, and not what is in it
}
