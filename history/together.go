package history

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// Together reads documents for many callers at a time, as when a process begins to wait for a thousand runs. While a few documents of a space
// are read, further callers gather, and are served together: the log of the space, and its head, which is a whole commit, are read once
// for all of them, and not once for each: docs/adr/0088. It is safe for concurrent use.
type Together struct {
	bus   port.Client
	heads turns[uint64]
	docs  turns[wanted]
}

// wanted is a document that a caller wants at least up to a sequence of the log.
type wanted struct {
	doc  string
	head uint64
	d    *replica.Document
}

// NewTogether returns a reader over a bus.
func NewTogether(bus port.Client) *Together { return &Together{bus: bus} }

// Read is the function Read.
func (t *Together) Read(ctx context.Context, space, doc string) (*replica.Document, error) {
	return readFrom(ctx, t.bus, t, space, doc)
}

// Head returns the sequence of the last commit of a space at the time of the call, or later.
func (t *Together) Head(ctx context.Context, space string) (uint64, error) {
	head := new(uint64)
	err := t.heads.do(ctx, ofSpace{space, t.bus.Epoch()}, head, func(list []*uint64) error {
		got, err := t.bus.Head(ctx, space)
		for _, head := range list {
			*head = got
		}
		return err
	})
	if err != nil { // a caller that has given up does not look at what is done for it meanwhile
		return 0, err
	}
	return *head, nil
}

func (t *Together) upTo(ctx context.Context, space, doc string, head, epoch uint64) (*replica.Document, error) {
	of, w := ofSpace{space, epoch}, &wanted{doc: doc, head: head}
	err := t.docs.do(ctx, of, w, func(list []*wanted) (err error) {
		if len(list) > 1 {
			return t.read(ctx, of, list)
		}
		w.d, err = unshared{t.bus}.upTo(ctx, space, doc, head, epoch)
		return err
	})
	if err != nil { // as in Head
		return nil, err
	}
	return w.d, nil
}

// read reads documents, each once.
func (t *Together) read(ctx context.Context, of ofSpace, list []*wanted) error {
	head, names := uint64(0), []string(nil)
	for _, w := range list {
		head, names = max(head, w.head), append(names, w.doc)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	r, docs := readingOf(t.bus, of.space, "", of.epoch), make([]*replica.Document, len(names))
	load := t.bus.LoadPart
	err := OverGaps(ctx, of.space, func() error {
		var g errgroup.Group
		g.SetLimit(maxLoading)
		for i, doc := range names {
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
			i, _ := slices.BinarySearch(names, w.doc)
			d := *docs[i]
			w.d = &d
		}
	}
	return err
}

// ofSpace is a space in an epoch of the store.
type ofSpace struct {
	space string
	epoch uint64
}

// turns have callers that want something of the same space take turns: a few do what they want, those that come meanwhile wait, and
// then one of them does what all of these want.
type turns[T any] struct {
	mu sync.Mutex
	by map[ofSpace]*gathering[T] // for each space of which something is being done
}

// gathering are those that wait until one of those is done that are at work.
type gathering[T any] struct {
	atWork  int
	waiting []*turn[T]
}

// maxAlone is how many callers at a time do what they want by themselves. It is more than one, because a caller that is alone does not depend
// on others, and a run of the simulator, in which few read at a time, is the same in whichever order they come.
const maxAlone = 4

// turn is what one caller wants.
type turn[T any] struct {
	want *T
	// come receives once: then it is done, or the caller does what a list of callers want, of which it is the first, or what it wants alone.
	come  chan struct{}
	list  []*turn[T]
	alone bool
}

// maxTogether bounds what is done in one turn.
const maxTogether = 256

// do calls all for what several callers want, or has another caller do that. If all fails for several, each is called for what it wants itself:
// one that fails, or whose context ends while it does what others want, is no reason for these to fail.
func (t *turns[T]) do(ctx context.Context, of ofSpace, want *T, all func([]*T) error) error {
	w := &turn[T]{want: want, come: make(chan struct{}, 1)}
	if t.gather(of, w) {
		select {
		case <-w.come:
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // whichever came first, so that a run of the simulator can be repeated
			t.leave(of, w)
			return ctx.Err()
		}
	} else {
		w.list = []*turn[T]{w}
	}
	switch {
	case w.list != nil:
		return t.lead(of, w.list, all)
	case w.alone:
		return all([]*T{want})
	}
	return nil
}

// gather has a caller wait for its turn. It returns false if few others are at work, and its turn is now.
func (t *turns[T]) gather(of ofSpace, w *turn[T]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.by[of]
	if g == nil {
		if t.by == nil {
			t.by = map[ofSpace]*gathering[T]{}
		}
		g = &gathering[T]{}
		t.by[of] = g
	}
	if g.atWork < maxAlone {
		g.atWork++
		return false
	}
	g.waiting = append(g.waiting, w)
	return true
}

// leave ends the wait of a caller. If its turn has come, the others of its list do what they want themselves.
func (t *turns[T]) leave(of ofSpace, w *turn[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.list != nil {
		notify(w.list[1:], true)
		t.next(of)
		return
	}
	g := t.by[of]
	if g == nil {
		return // it is done by now
	}
	if i := slices.Index(g.waiting, w); i >= 0 { // otherwise another caller is doing it
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
}

// next gives the turn to those that wait. t.mu is held.
func (t *turns[T]) next(of ofSpace) {
	g := t.by[of]
	if len(g.waiting) == 0 {
		if g.atWork--; g.atWork == 0 {
			delete(t.by, of)
		}
		return
	}
	n := min(len(g.waiting), maxTogether)
	first := g.waiting[0]
	first.list = slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	first.come <- struct{}{} // has room
}

// notify notifies callers that it is done, or that each does what it wants alone.
func notify[T any](list []*turn[T], alone bool) {
	for _, w := range list {
		w.alone = alone
		w.come <- struct{}{} // has room
	}
}

// lead does what a list of callers want for the first one, and gives the turn to those that have come meanwhile.
func (t *turns[T]) lead(of ofSpace, list []*turn[T], all func([]*T) error) error {
	wants := make([]*T, len(list))
	for i, w := range list {
		wants[i] = w.want
	}
	err := all(wants)
	notify(list[1:], err != nil)
	if err != nil && len(list) > 1 {
		err = all(wants[:1])
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next(of)
	return err
}
