package history

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// Change is a confirmed value of a document.
type Change struct {
	Value model.Value // absent if the document does not exist (any more)
	// Revision is the log sequence of the commit that made the change, Previous the revision of the
	// value before; 0 if there was none or it is not known.
	Revision, Previous uint64
	// Read is the log sequence up to which the log was read. The deletion of a document is forgotten
	// eventually: then the document is absent as of Read, and Revision is 0, as if it had never existed.
	Read uint64
	// Rewound is set if the store has gone back to an earlier state since the previous change; the value is
	// the present one. Its revision may have been used before, for a commit that was lost.
	Rewound bool
	// Via is the trail of the transaction that made the change; nil if it has none, or if the value was not read from that transaction.
	Via *model.Trail
	// Trace is the context of the span of that commit, zero if it is not known: the value was read, and the commit was not.
	Trace model.Trace
}

// since returns the revision of the change for a reader that has the document as of revision known; false if
// the change is not newer.
func (c *Change) since(known uint64) (revision uint64, news bool) {
	if c.Revision == 0 && known > 0 && c.Value.IsAbsent() {
		return c.Read, c.Read > known
	}
	return c.Revision, c.Revision > known
}

// Watch follows one document, from any process: its confirmed value, then each change in the log. It works
// with or without an owner of the space, and whichever server answers. Where the log is purged faster than it
// is read, changes are skipped.
//
// A Watch delivers nothing twice, and nothing older than what it has delivered, unless the store goes back
// (Change.Rewound). That holds across calls of Changes, of which there may be one at a time: a call after one
// that ended with an error continues where that ended.
type Watch struct {
	Bus        port.Client
	Space, Doc string
	// Watcher, if not "", makes the watch demand: it names the Lease that a call of Changes holds.
	Watcher string
	Logger  *slog.Logger
	// Shared returns the commits of the space from a subscription that the watch shares with other readers of the process. head
	// and epoch are those of the log and of the store at the time of the call; without head, only a subscription that there is already is
	// shared. If Shared is nil, or returns nil, the watch has a subscription of its own.
	Shared func(space, doc string, head *uint64, epoch uint64) (Feed, error)
	// Reads reads the document together with other readers of the process; nil if there are none.
	Reads *Together
	// LastSeen lets the watch begin with the document as the shared subscription has it, which may have changed since, instead of asking
	// the log for its head.
	LastSeen bool

	begun    bool   // a value was delivered, or is known to the caller
	absent   bool   // it was absent
	revision uint64 // its revision
	epoch    uint64 // of the store, at that time
	rewound  bool   // the store has gone back since
}

// Feed are the commits of a space for one watch of a document.
type Feed interface {
	// Seen is the sequence after which commits are passed to Follow.
	Seen() uint64
	// Document returns the document as of Seen, nil if the feed does not know it. It is called once, before Follow.
	Document() *replica.Document
	// Follow passes the commits after Seen to take, in order and each once, until ctx ends or take returns an error, which is its own. It ends with
	// model.ErrPurged rather than leave a commit out. It calls take in the goroutine of the caller.
	Follow(ctx context.Context, take func(*model.LogEntry) error) error
	Close()
}

// From makes the watch deliver only what is newer than a revision as of which the caller has the document.
// Call it before Changes.
func (w *Watch) From(revision uint64) {
	w.begun, w.absent, w.revision, w.epoch = true, false, revision, w.Bus.Epoch()
}

// Changes calls deliver with the document's confirmed value, then with each change, until ctx ends or
// the log cannot be followed.
func (w *Watch) Changes(ctx context.Context, deliver func(Change)) error {
	if w.Watcher == "" {
		return w.follow(ctx, deliver)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	lease := Lease{Bus: w.Bus, Space: w.Space, Doc: w.Doc, Watcher: w.Watcher, Logger: w.Logger}
	ended := make(chan struct{})
	go func() { // ends with ctx
		cancel(lease.Hold(ctx))
		close(ended)
	}()
	defer func() { cancel(nil); <-ended }()
	err := w.follow(ctx, deliver)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// rewoundPause is the pause before a watch reads a store again that has gone back.
const rewoundPause = 20 * time.Millisecond

// follow is Changes without demand.
func (w *Watch) follow(ctx context.Context, deliver func(Change)) error {
	if w.Bus.Epoch() != w.epoch {
		w.goBack()
	}
	for {
		err := w.followOn(ctx, deliver)
		rewound := errors.Is(err, model.ErrRewound)
		if !rewound && !errors.Is(err, model.ErrPurged) || ctx.Err() != nil {
			return err
		}
		if rewound {
			w.goBack()
			_ = pause.For(ctx, rewoundPause) // reads in a session that is over fail at once, again and again
		}
	}
}

// goBack forgets what was delivered, because the store has gone back since.
func (w *Watch) goBack() {
	w.rewound, w.begun, w.revision = w.rewound || w.begun, false, 0
}

// deliverNewer calls deliver with a state newer than all before.
func (w *Watch) deliverNewer(d *replica.Document, previous uint64, via *model.Trail, by model.Trace, deliver func(Change)) {
	c := Change{Value: d.Value, Revision: d.Seq, Previous: previous, Read: d.Read, Rewound: w.rewound, Via: via, Trace: by}
	revision, news := c.since(w.revision)
	absent := d.Value.IsAbsent()
	if w.begun && (!news || d.Seq == 0 && w.absent) {
		return
	}
	w.begun, w.absent, w.revision, c.Revision, w.rewound = true, absent, revision, revision, false
	deliver(c)
}

// followOn follows the log until ctx ends or the log has a gap.
func (w *Watch) followOn(ctx context.Context, deliver func(Change)) error {
	epoch := w.Bus.Epoch()
	d, feed, err := w.begin(ctx, epoch)
	if feed != nil {
		defer feed.Close()
	}
	if err == nil && w.Bus.Epoch() != epoch {
		err = model.ErrRewound // what was read may be lost
	}
	if err != nil {
		return err
	}
	w.epoch = epoch
	w.deliverNewer(d, 0, nil, model.Trace{}, deliver)
	return w.commits(ctx, feed, d.Read, func(e *model.LogEntry) error {
		before := d.Seq
		var c *model.Commit
		changed, err := d.Take(e, func() (_ *model.Commit, err error) {
			c, err = ReadCommit(ctx, w.Bus, e)
			return c, err
		})
		if changed {
			w.deliverNewer(d, before, c.TrailOf(w.Doc), e.Trace, deliver)
		}
		return err
	})
}

// begin reads the document, and returns the feed that continues from there, nil if the watch has to follow the log by itself.
func (w *Watch) begin(ctx context.Context, epoch uint64) (*replica.Document, Feed, error) {
	if w.Shared == nil {
		d, err := w.reads().Read(ctx, w.Space, w.Doc)
		return d, nil, err
	}
	if w.LastSeen {
		feed, err := w.Shared(w.Space, w.Doc, nil, epoch)
		if err != nil {
			return nil, nil, readError(w.Doc, w.Space, err)
		}
		if feed != nil {
			if d := feed.Document(); d != nil {
				return d, feed, nil
			}
			feed.Close()
		}
	}
	head, err := w.reads().Head(ctx, w.Space)
	var feed Feed
	if err == nil {
		feed, err = w.Shared(w.Space, w.Doc, &head, epoch)
	}
	if err != nil {
		return nil, nil, readError(w.Doc, w.Space, err)
	}
	if feed == nil {
		d, err := w.reads().Read(ctx, w.Space, w.Doc)
		return d, nil, err
	}
	if d := feed.Document(); d != nil && d.Read >= head {
		return d, feed, nil
	}
	d, err := w.reads().upTo(ctx, w.Space, w.Doc, max(head, feed.Seen()), epoch)
	if err != nil {
		err = readError(w.Doc, w.Space, err)
	}
	return d, feed, err
}

func (w *Watch) reads() *Together {
	if w.Reads == nil {
		w.Reads = NewTogether(w.Bus)
	}
	return w.Reads
}

// commits passes the commits after a sequence to take.
func (w *Watch) commits(ctx context.Context, feed Feed, after uint64, take func(*model.LogEntry) error) error {
	if feed != nil {
		return feed.Follow(ctx, take)
	}
	var broken error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := w.Bus.FollowSpace(ctx, w.Space, after, func(e model.LogEntry) {
		if broken != nil {
			return // later values would be ones that the document never had
		}
		if broken = take(&e); broken != nil {
			cancel()
		}
	})
	if broken != nil {
		return broken
	}
	return err
}
