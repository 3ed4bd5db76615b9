// Package erase deletes spaces (docs/adr/0050).
package erase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/loss"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// Bus is what this package needs.
type Bus interface {
	port.Bus
	port.Records
	EraseLane(ctx context.Context, space string, upTo uint64) (int, error)
	EraseQuarantined(ctx context.Context, space string) error
	EraseDead(ctx context.Context, space string) error
}

// Found is what a space has.
type Found struct {
	Documents int
	// Waiting are events that have not been handled: in the lane, or until their time. Timers and jobs of the space are not among them.
	Waiting []history.EventRef
}

// ErrNoSpace is returned for a space that does not exist.
var ErrNoSpace = errors.New("there is no such space")

// Look returns what a space has.
func Look(ctx context.Context, b Bus, space string) (Found, error) {
	r, head, err := loss.Stored(ctx, b, space)
	if err != nil {
		return Found{}, err
	}
	f := Found{Documents: len(r.DocIDs())}
	if f.Waiting, err = waiting(ctx, b, r); err != nil {
		return Found{}, err
	}
	if head == 0 && r.Seq == 0 && len(f.Waiting) == 0 {
		return Found{}, fmt.Errorf("space %s: %w", space, ErrNoSpace)
	}
	return f, nil
}

// page is how many events of a lane are read at once.
const page = 512

// isOwn reports whether an event is one that the space has scheduled for itself: a timer, a job, or a send to itself. Those are part of its state, and
// deleted with it.
func isOwn(w *model.Waiting) bool { return w.Lane == 0 && w.Position == 0 }

// waiting returns the events of a space that have not been handled, except its own that are due later, and those that no rule allows.
func waiting(ctx context.Context, b Bus, r *replica.Replica) (list []history.EventRef, err error) {
	add := func(stream, id string) {
		list = append(list, history.EventRef{Space: r.Space, Stream: stream, Event: id})
	}
	r.Later.Each(func(w *model.Waiting) { // any order: sorted below
		if !isOwn(w) {
			add(w.Stream, w.ID)
		}
	})
	for i := range r.Own {
		add(r.Own[i].Stream, r.Own[i].ID)
	}
	rules, err := access.List(ctx, b)
	if err != nil {
		return nil, err // a rule that this version cannot read may allow an event
	}
	after := r.Cursor.Floor
	if len(r.Cursor.Held) > 0 { // those up to the floor are done, but for these
		after = r.Cursor.Held[0] - 1
	}
	for {
		events, err := b.ReadLane(ctx, r.Space, after, page)
		if err != nil {
			return nil, err
		}
		for i := range events {
			after = events[i].Seq
			_, held := slices.BinarySearch(r.Cursor.Held, after)
			if (held || after > r.Cursor.Floor) && !isRefused(rules, &events[i]) {
				add(events[i].Stream, events[i].ID)
			}
		}
		if len(events) < page {
			break
		}
	}
	slices.SortFunc(list, func(a, b history.EventRef) int {
		return slices.Compare([]string{a.Stream, a.Event}, []string{b.Stream, b.Event})
	})
	return list, nil
}

// isRefused reports whether no rule allows an event of a client. Such an event does not hold up a deletion: a client without any right could
// prevent it otherwise.
func isRefused(rules *access.Rules, m *model.Message) bool {
	return model.IsChosen(m.ID) && rules.MaySend(m.By(), m.Space, m.Stream) != nil
}

// ErrWaiting is returned for a space with events that have not been handled.
var ErrWaiting = errors.New("events wait in it that have not been handled")

// Space deletes every document of a space by a commit that follows all others, and then removes what its streams have from before. It can be
// repeated. The space must be served: its owner saves the state without documents.
func Space(ctx context.Context, b Bus, space string) error {
	last, err := empty(ctx, b, space)
	if err != nil {
		return err
	}
	done, err := saved(ctx, b, space, last)
	if err != nil {
		return err
	}
	if err := b.PurgeLog(ctx, space, last); err != nil {
		return err
	}
	if _, err := b.EraseLane(ctx, space, done); err != nil {
		return err
	}
	if err := b.EraseQuarantined(ctx, space); err != nil {
		return err
	}
	return b.EraseDead(ctx, space)
}

// empty deletes the documents, and returns the sequence of the last commit that does.
func empty(ctx context.Context, b Bus, space string) (uint64, error) {
	for {
		r, head, err := loss.Stored(ctx, b, space)
		if err != nil {
			return 0, err
		}
		events, err := waiting(ctx, b, r)
		if err != nil {
			return 0, err
		}
		if len(events) > 0 {
			return 0, fmt.Errorf("space %s: %w: %d", space, ErrWaiting, len(events))
		}
		last, err := commit(ctx, b, r, head)
		if !errors.Is(err, model.ErrRefused) {
			return last, err
		}
		if err := pause.For(ctx, retry); err != nil { // the space has gone on
			return 0, err
		}
	}
}

// retry is the pause between two attempts.
const retry = 50 * time.Millisecond

// commit appends the commits that delete all documents of r, and cancel all of its timers. The first one is a takeover.
func commit(ctx context.Context, b Bus, r *replica.Replica, head uint64) (at uint64, err error) {
	c := &model.Commit{Version: model.CommitVersion, Space: r.Space, Runtime: "delete", Takeover: true, Cursor: r.Cursor}
	at = head
	for _, tx := range transactions(r, b.MaxPayload()/2) {
		c.Attempt++
		if c.Txs = nil; len(tx.Writes)+len(tx.Cancels) > 0 {
			tx.N = c.Attempt
			c.Txs = []model.Tx{tx}
		}
		if at, err = loss.AppendTo(ctx, b, at, c); err != nil {
			return 0, err
		}
		if c.Takeover {
			c.Takeover, c.Epoch = false, at
		}
	}
	return at, nil
}

// transactions are those that delete all documents and timers, each of at most so many bytes in a commit; the last one may be empty.
func transactions(r *replica.Replica, most int) (all []model.Tx) {
	tx, size := model.Tx{By: "delete"}, 0
	room := func(bytes int) {
		if size += bytes; size > most {
			all = append(all, tx)
			tx, size = model.Tx{By: "delete"}, bytes
		}
	}
	for _, doc := range r.DocIDs() {
		room(len(doc) + frame)
		tx.Writes = append(tx.Writes, model.Write{Doc: doc, Delete: true})
	}
	var timers []model.Cancel
	r.Later.Each(func(w *model.Waiting) { timers = append(timers, model.Cancel{ID: w.ID, Slot: w.Slot}) }) // any order: sorted below
	slices.SortFunc(timers, func(a, b model.Cancel) int { return cmp.Compare(a.Slot, b.Slot) })
	for _, c := range timers {
		room(len(c.ID) + frame)
		tx.Cancels = append(tx.Cancels, c)
	}
	return append(all, tx)
}

// frame is the most that a deletion or a cancellation takes in a commit besides its name, in bytes.
const frame = 64

// saved waits until the owner has saved the state behind a commit, and what the log sends is released. It returns the sequence up to
// which the lane is done.
func saved(ctx context.Context, b Bus, space string, last uint64) (done uint64, err error) {
	partition := model.PartitionOf(space, b.Partitions())
	for {
		// The lease of an attached runtime loads the space, and makes its owner follow the commits of others. It is no read: rules
		// about access do not concern it.
		if err := b.Observe(model.Lease{Space: space, Watcher: "delete", TTL: model.LeaseTTL}); err != nil {
			return 0, err
		}
		st, err := b.LoadState(ctx, space)
		if err != nil {
			return 0, err
		}
		released, err := b.LoadPosition(ctx, partition, port.PositionReleased)
		if err != nil {
			return 0, err
		}
		if st.Mark.Seq >= last && released >= last {
			r, err := replica.Load(space, st)
			if err != nil {
				return 0, err
			}
			return r.LaneDone(), nil
		}
		if err := pause.For(ctx, retry); err != nil {
			return 0, fmt.Errorf("the documents of space %s are deleted, and what its streams have from before is still there: it is saved up to %d and released up to %d, and not yet up to %d; run the command again when workers and coordinators run: %w", space, st.Mark.Seq, released, last, err)
		}
	}
}
