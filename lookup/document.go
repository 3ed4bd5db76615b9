package lookup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// Follow delivers the confirmed value of a document and then each change, without
// creating any demand for it. Where the log was purged faster than it was read, changes
// are left out; what is delivered never goes back, unless the store does (Change.Rewound).
func Follow(ctx context.Context, bus Bus, space, doc string, deliver func(v model.Value, revision uint64)) error {
	return Changes(ctx, bus, space, doc, func(c Change) { deliver(c.Value, c.Revision) })
}

// Change is a confirmed value of a document.
type Change struct {
	Value model.Value // absent if there is no such document, or not any more
	// Revision is the log sequence of the commit that made it, Previous that of the value
	// before; 0 if there was none, or if it is not known.
	Revision, Previous uint64
	// Read is up to where the log had been read. That a document was deleted is forgotten in
	// the end: it is absent then as of Read, and Revision is 0, as if there had never been one.
	Read uint64
	// Rewound says that the store has gone back to an earlier state since the change before
	// this one, of which the value is what the document is now. Revisions may have been given
	// out before, for what is not there any more.
	Rewound bool
}

// Since is the revision of the change for one who knows the document as of another; false if it
// is nothing new to them.
func (c *Change) Since(known uint64) (revision uint64, news bool) {
	if c.Revision == 0 && known > 0 && c.Value.IsAbsent() {
		return c.Read, c.Read > known
	}
	return c.Revision, c.Revision > known
}

// Changes is Follow for those who want to know which value each one has replaced.
func Changes(ctx context.Context, bus Bus, space, doc string, deliver func(Change)) error {
	f := follower{bus: bus, space: space, doc: doc, deliver: deliver}
	for {
		err := f.follow(ctx)
		rewound := errors.Is(err, model.ErrRewound)
		if !rewound && !errors.Is(err, model.ErrPurged) || ctx.Err() != nil {
			return err
		}
		if rewound {
			f.rewound, f.begun, f.revision = f.rewound || f.begun, false, 0
			_ = pause.For(ctx, rewoundPause) // one of a session that is over says so at once, again and again
		}
	}
}

// rewoundPause is how long a follower waits before it reads a store anew that has gone back.
const rewoundPause = 20 * time.Millisecond

// follower follows one document.
type follower struct {
	bus        Bus
	space, doc string
	deliver    func(Change)
	begun      bool
	absent     bool   // what was delivered last, and
	revision   uint64 // its revision
	rewound    bool   // the store has gone back since
}

// tell delivers what is newer than all before.
func (f *follower) tell(d *replica.Document, previous uint64) {
	c := Change{Value: d.Value, Revision: d.Seq, Previous: previous, Read: d.Read, Rewound: f.rewound}
	revision, news := c.Since(f.revision)
	absent := d.Value.IsAbsent()
	if f.begun && (!news || d.Seq == 0 && f.absent) {
		return
	}
	f.begun, f.absent, f.revision, c.Revision, f.rewound = true, absent, revision, revision, false
	f.deliver(c)
}

// follow goes on until ctx ends, or the log has a gap.
func (f *follower) follow(ctx context.Context) error {
	epoch := f.bus.Epoch()
	d, err := Read(ctx, f.bus, f.space, f.doc)
	if err == nil && f.bus.Epoch() != epoch {
		err = model.ErrRewound // what was read may not be there any more
	}
	if err != nil {
		return err
	}
	f.tell(d, 0)
	var broken error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = f.bus.FollowSpace(ctx, f.space, d.Read, func(e model.LogEntry) {
		if broken != nil {
			return // what follows would be a value that the document never had
		}
		before := d.Seq
		changed, err := d.Apply(e)
		if err != nil {
			broken = err
			cancel()
		}
		if changed {
			f.tell(d, before)
		}
	})
	if broken != nil {
		return broken
	}
	return err
}

// Read returns a document as the log has it now, as far as it can be seen.
func Read(ctx context.Context, bus Bus, space, doc string) (d *replica.Document, err error) {
	for {
		epoch := bus.Epoch()
		d, err = readUpTo(ctx, bus, space, doc, func() error {
			if bus.Epoch() != epoch {
				return model.ErrRewound
			}
			return nil
		})
		if !errors.Is(err, model.ErrRewound) || bus.Epoch() == epoch || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of space %s: %w", doc, space, err)
	}
	return d, nil
}

// readUpTo reads a document up to the head of the log, as that is when it begins.
func readUpTo(ctx context.Context, bus Bus, space, doc string, holds func() error) (d *replica.Document, err error) {
	head, err := bus.Head(ctx, space) // of the leader: a replica that is behind is asked again
	if err != nil {
		return nil, err
	}
	err = OverGaps(ctx, space, func() error {
		d, err = readOnce(ctx, bus, space, doc, head, holds)
		return err
	})
	return d, err
}

// readOnce reads a document from a checkpoint and the log behind it, up to head at least, as
// long as that holds: a log that has gone back may not reach there any more.
func readOnce(ctx context.Context, bus Bus, space, doc string, head uint64, holds func() error) (*replica.Document, error) {
	st, err := bus.LoadState(ctx, space)
	if err != nil {
		return nil, err
	}
	d, err := replica.LoadDocument(doc, st)
	if err != nil {
		return nil, err
	}
	for {
		entries, err := bus.ReadLog(ctx, space, d.Read, readPage)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if _, err := d.Apply(e); err != nil {
				return nil, err
			}
		}
		switch {
		case len(entries) == readPage:
		case d.Read >= head:
			return d, nil
		case len(entries) == 0:
			_ = pause.For(ctx, time.Millisecond)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := holds(); err != nil {
			return nil, err
		}
	}
}
