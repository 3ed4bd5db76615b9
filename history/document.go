package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// Follow delivers the confirmed value of a document and then each change, without creating demand
// for it, until ctx ends. Where the log is purged faster than it is read, changes are skipped;
// revisions never go back, unless the store does (Change.Rewound).
func Follow(ctx context.Context, bus port.Client, space, doc string, deliver func(v model.Value, revision uint64)) error {
	return Changes(ctx, bus, space, doc, func(c Change) { deliver(c.Value, c.Revision) })
}

// Change is a confirmed value of a document.
type Change struct {
	Value model.Value // absent if the document does not exist (any more)
	// Revision is the log sequence of the commit that made the change, Previous the revision of the
	// value before; 0 if there was none or it is not known.
	Revision, Previous uint64
	// Read is the log sequence up to which the log had been read. The deletion of a document is
	// forgotten eventually: then it is absent as of Read, and Revision is 0, as if it had never
	// existed.
	Read uint64
	// Rewound is set if the store has gone back to an earlier state since the previous change; the
	// value is the present one. Its revision may have been used before, for a commit that was lost.
	Rewound bool
}

// Since returns the revision of the change for a reader that has the document as of revision known;
// false if the change is not newer.
func (c *Change) Since(known uint64) (revision uint64, news bool) {
	if c.Revision == 0 && known > 0 && c.Value.IsAbsent() {
		return c.Read, c.Read > known
	}
	return c.Revision, c.Revision > known
}

// Changes is Follow with the revision that each value replaces.
func Changes(ctx context.Context, bus port.Client, space, doc string, deliver func(Change)) error {
	f := follower{bus: bus, space: space, doc: doc, deliver: deliver}
	for {
		err := f.follow(ctx)
		rewound := errors.Is(err, model.ErrRewound)
		if !rewound && !errors.Is(err, model.ErrPurged) || ctx.Err() != nil {
			return err
		}
		if rewound {
			f.rewound, f.begun, f.revision = f.rewound || f.begun, false, 0
			_ = pause.For(ctx, rewoundPause) // reading in a session that is over fails at once, again and again
		}
	}
}

// rewoundPause is how long a follower waits before it reads a store again that has gone back.
const rewoundPause = 20 * time.Millisecond

// follower follows one document.
type follower struct {
	bus        port.Client
	space, doc string
	deliver    func(Change)
	begun      bool
	absent     bool   // the last delivered value was absent
	revision   uint64 // its revision
	rewound    bool   // the store has gone back since
}

// deliverNewer calls deliver with a state newer than all before.
func (f *follower) deliverNewer(d *replica.Document, previous uint64) {
	c := Change{Value: d.Value, Revision: d.Seq, Previous: previous, Read: d.Read, Rewound: f.rewound}
	revision, news := c.Since(f.revision)
	absent := d.Value.IsAbsent()
	if f.begun && (!news || d.Seq == 0 && f.absent) {
		return
	}
	f.begun, f.absent, f.revision, c.Revision, f.rewound = true, absent, revision, revision, false
	f.deliver(c)
}

// follow follows the log until ctx ends or the log has a gap.
func (f *follower) follow(ctx context.Context) error {
	epoch := f.bus.Epoch()
	d, err := Read(ctx, f.bus, f.space, f.doc)
	if err == nil && f.bus.Epoch() != epoch {
		err = model.ErrRewound // what was read may be lost
	}
	if err != nil {
		return err
	}
	f.deliverNewer(d, 0)
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
			f.deliverNewer(d, before)
		}
	})
	if broken != nil {
		return broken
	}
	return err
}

// Read returns a document as the log has it now.
func Read(ctx context.Context, bus port.Client, space, doc string) (d *replica.Document, err error) {
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

// readUpTo reads a document up to the head of the log at the time of the call.
func readUpTo(ctx context.Context, bus port.Client, space, doc string, holds func() error) (d *replica.Document, err error) {
	head, err := bus.Head(ctx, space) // of the leader: a replica that lags is read again
	if err != nil {
		return nil, err
	}
	err = OverGaps(ctx, space, func() error {
		d, err = readOnce(ctx, bus, space, doc, head, holds)
		return err
	})
	return d, err
}

// readOnce reads a document from a checkpoint and the log after it, up to head at least. It stops
// when holds returns an error, since a log that has gone back may not reach head any more.
func readOnce(ctx context.Context, bus port.Client, space, doc string, head uint64, holds func() error) (*replica.Document, error) {
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
