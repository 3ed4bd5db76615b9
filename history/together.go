package history

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// Together reads documents for many callers at a time, as when a process begins to wait for a thousand runs. While documents of a space
// are read, further callers gather, and are served together: the log of the space is read once for all of them, and not once for each.
// It is safe for concurrent use.
type Together struct {
	bus port.Client

	mu       sync.Mutex
	readings map[ofSpace]*gathering // those that are under way
}

// ofSpace is a space in an epoch of the store.
type ofSpace struct {
	space string
	epoch uint64
}

// gathering are the callers that wait until a reading of their space has ended.
type gathering struct{ waiting []*wanted }

// wanted is a document that a caller wants at least up to a sequence of the log.
type wanted struct {
	doc  string
	head uint64

	// turn receives once: then the caller reads the documents of a list, of which it is the first, or reads its own alone, or has a result.
	turn  chan struct{}
	list  []*wanted
	alone bool
	d     *replica.Document
	err   error
}

// maxTogether bounds the documents that are read together.
const maxTogether = 256

// NewTogether returns a reader over a bus.
func NewTogether(bus port.Client) *Together {
	return &Together{bus: bus, readings: map[ofSpace]*gathering{}}
}

// Read is the function Read.
func (t *Together) Read(ctx context.Context, space, doc string) (*replica.Document, error) {
	return readWith(ctx, t.bus, space, doc, t.upTo)
}

// upTo reads a document at least up to a position of the log in an epoch of the store.
func (t *Together) upTo(ctx context.Context, space, doc string, head, epoch uint64) (*replica.Document, error) {
	of, w := ofSpace{space, epoch}, &wanted{doc: doc, head: head, turn: make(chan struct{}, 1)}
	if t.gather(of, w) {
		select {
		case <-w.turn:
		case <-ctx.Done():
			t.leave(of, w)
			return nil, readError(doc, space, ctx.Err())
		}
	} else {
		w.list = []*wanted{w}
	}
	switch {
	case w.list != nil:
		t.lead(ctx, of, w.list)
	case w.alone:
		return readUpTo(ctx, t.bus, space, doc, head, epoch)
	}
	return w.d, w.err
}

// gather has a caller wait for its turn. It returns false if nothing of the space is being read, and its turn is now.
func (t *Together) gather(of ofSpace, w *wanted) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.readings[of]
	if g == nil {
		t.readings[of] = &gathering{}
		return false
	}
	g.waiting = append(g.waiting, w)
	return true
}

// leave ends the wait of a caller. If it is to read for others, these read for themselves.
func (t *Together) leave(of ofSpace, w *wanted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.list != nil {
		tell(w.list[1:], true)
		t.next(of)
		return
	}
	g := t.readings[of]
	if g == nil {
		return // it has a result by now
	}
	if i := slices.Index(g.waiting, w); i >= 0 { // otherwise another caller is reading the document
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
}

// next gives the turn to those that wait. t.mu is held.
func (t *Together) next(of ofSpace) {
	g := t.readings[of]
	if len(g.waiting) == 0 {
		delete(t.readings, of)
		return
	}
	n := min(len(g.waiting), maxTogether)
	first := g.waiting[0]
	first.list = slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	first.turn <- struct{}{} // has room
}

// tell gives callers their results, or has each read its document alone.
func tell(list []*wanted, alone bool) {
	for _, w := range list {
		w.alone = alone
		w.turn <- struct{}{} // has room
	}
}

// lead reads the documents of a list of callers for the first one, and gives the turn to those that have come meanwhile. If that
// fails, each reads its document alone: one that cannot be read, or a caller whose context has ended, is no reason for the others to fail.
func (t *Together) lead(ctx context.Context, of ofSpace, list []*wanted) {
	first := list[0]
	err := error(nil)
	if len(list) > 1 {
		err = t.read(ctx, of, list)
	}
	tell(list[1:], err != nil)
	if len(list) == 1 || err != nil {
		first.d, first.err = readUpTo(ctx, t.bus, of.space, first.doc, first.head, of.epoch)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next(of)
}

// read reads documents, each once.
func (t *Together) read(ctx context.Context, of ofSpace, list []*wanted) error {
	head, names := uint64(0), map[string]int{}
	for _, w := range list {
		head = max(head, w.head)
		names[w.doc] = 0
	}
	r, docs := readingOf(t.bus, of.space, "", of.epoch), make([]*replica.Document, len(names))
	for i, doc := range slices.Sorted(maps.Keys(names)) {
		names[doc] = i
	}
	load := t.bus.LoadPart
	err := OverGaps(ctx, of.space, func() error {
		var g errgroup.Group
		g.SetLimit(maxLoading)
		for doc, i := range names {
			g.Go(func() error { // ends with the answer, or with ctx
				st, err := load(ctx, of.space, doc)
				if err == nil {
					docs[i], err = replica.LoadDocument(doc, st)
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		load = r.loadNewest
		return r.follow(ctx, docs, head)
	})
	for _, w := range list {
		if err == nil {
			d := *docs[names[w.doc]]
			w.d = &d
		}
	}
	return err
}
