package settle

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// tap passes the commits that a follower reads to one watch. The follower never waits for it: a watch whose loop is slow loses its
// place, and reads its document again.
type tap struct {
	awaits *awaits
	from   *follower
	seen   uint64 // the sequence up to which the follower had read when the tap began
	doc    string
	parts  []model.LogEntry // those up to seen that make up the document, nil if they are not known

	news chan struct{} // something waits, or the tap is over

	mu      sync.Mutex
	waiting []model.LogEntry
	over    error
}

// maxTapped is how many commits may wait for a watch.
const maxTapped = 256

// tap begins to pass the commits of a space that enter the log after head to a watch of a document. It is nil, without an error, if the
// client is closed, or without head if nothing follows the space: the watch then follows the log by itself.
func (a *awaits) tap(space, doc string, head *uint64, epoch uint64) (history.Feed, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, nil
	}
	f := a.followers[space]
	if f == nil {
		if head == nil {
			return nil, nil
		}
		f = a.follow(space, *head)
	}
	if f.epoch != epoch {
		return nil, model.ErrRewound // it ends by itself, or the epoch of the caller has ended
	}
	f.idle.Stop()
	t := &tap{awaits: a, from: f, seen: f.seen, doc: doc, parts: f.recent.of(doc), news: make(chan struct{}, 1)}
	if f.taps == nil {
		f.taps = map[*tap]struct{}{}
	}
	f.taps[t] = struct{}{}
	return t, nil
}

// Seen returns the sequence after which commits are passed on.
func (t *tap) Seen() uint64 { return t.seen }

// Document returns the document as of Seen, nil if the commits that the follower remembers do not contain all of it.
func (t *tap) Document() *replica.Document {
	d, whole := &replica.Document{ID: t.doc}, false
	for i := range t.parts {
		e := &t.parts[i]
		c, err := e.Commit()
		if err != nil || i == 0 && !replaces(c, t.doc) {
			return nil
		}
		d.Read = e.Prev
		if _, err := d.Take(e, func() (*model.Commit, error) { return c, nil }); err != nil {
			return nil
		}
		whole = true
	}
	if !whole {
		return nil
	}
	d.Read, t.parts = t.seen, nil
	return d
}

// replaces reports whether a commit writes a document as a whole.
func replaces(c *model.Commit, doc string) bool {
	for i := range c.Txs {
		if slices.ContainsFunc(c.Txs[i].Writes, func(w model.Write) bool { return w.Doc == doc && len(w.Path) == 0 }) {
			return true
		}
	}
	return false
}

// push adds a commit. It is called by the follower.
func (t *tap) push(e *model.LogEntry) {
	t.mu.Lock()
	if t.over == nil && len(t.waiting) < maxTapped {
		t.waiting = append(t.waiting, *e)
	} else if t.over == nil {
		t.over = model.ErrPurged // for this watch
	}
	t.mu.Unlock()
	t.wake()
}

// end ends the tap, after what waits.
func (t *tap) end(why error) {
	t.mu.Lock()
	if t.over == nil {
		t.over = why
	}
	t.mu.Unlock()
	t.wake()
}

func (t *tap) wake() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// Follow passes the commits after Seen to take, until ctx ends, take returns an error or the tap is over.
func (t *tap) Follow(ctx context.Context, take func(*model.LogEntry) error) error {
	var list []model.LogEntry
	for {
		select {
		case <-t.news:
		case <-ctx.Done():
			return ctx.Err()
		}
		t.mu.Lock()
		list, t.waiting = t.waiting, list[:0]
		over := t.over
		t.mu.Unlock()
		for i := range list {
			if err := take(&list[i]); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		clear(list)
		if over != nil {
			return over
		}
	}
}

// Close ends the tap.
func (t *tap) Close() {
	a, f := t.awaits, t.from
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(f.taps, t)
	a.rest(f)
}

// recent are the last commits that a follower has read. A watch of a document that was made a moment ago, as that of a run which the
// same client has started, finds it there, and need not read the log for it.
type recent struct {
	list  []model.LogEntry
	bytes int
}

// Bounds of what a follower remembers.
const (
	maxRecent      = 32
	maxRecentBytes = 32 << 10
)

func (r *recent) add(e *model.LogEntry) {
	r.list, r.bytes = append(r.list, *e), r.bytes+len(e.Data)
	n := 0
	for ; n < len(r.list) && (len(r.list)-n > maxRecent || r.bytes > maxRecentBytes); n++ {
		r.bytes -= len(r.list[n].Data)
	}
	if n > 0 {
		r.list = slices.Delete(r.list, 0, n)
	}
}

// of returns the commits that a document consists of: the last one that may have written it as a whole, and those behind it that may have
// changed it. It returns nil if there is none. The name of a document needs no escapes, so its commits contain it as text; of those of a later
// version that is not known.
func (r *recent) of(doc string) (parts []model.LogEntry) {
	changes, whole := []byte(`["`+doc+`",`), []byte(`["`+doc+`",""`)
	for i := len(r.list) - 1; i >= 0 && r.list[i].IsKnownForm(); i-- {
		if !bytes.Contains(r.list[i].Data, whole) {
			continue
		}
		parts = append(parts, r.list[i])
		for j := i + 1; j < len(r.list); j++ {
			if bytes.Contains(r.list[j].Data, changes) {
				parts = append(parts, r.list[j])
			}
		}
		return parts
	}
	return nil
}
