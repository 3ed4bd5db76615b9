package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// mirrors are the documents of other spaces that a space reads.
type mirrors struct {
	*loop
	// watcher distinguishes the host's watches from those of any other, and deliver passes values to its loop.
	watcher string
	deliver func(Ref, mirrored)
	all     map[Ref]context.CancelFunc
	// followed is the number of mirrored documents so far.
	followed uint64
}

// follow begins to mirror a document of another space for the core. The watch creates
// demand there: the nodes that compute the document run as long as it is read here.
func (m *mirrors) follow(ref Ref) {
	follow, cancel := context.WithCancel(m.ctx)
	m.all[ref] = cancel
	m.followed++
	if model.IsPattern(ref.Space) {
		m.beside(func() { m.followSpaces(follow, ref) }) // ends with follow
		return
	}
	watch := history.Watch{
		Bus: m.bus, Space: ref.Space, Doc: ref.Doc,
		Watcher: fmt.Sprintf("%s-%d", m.watcher, m.followed), Logger: m.cfg.Logger,
	}
	first := &firstValue{loop: m.loop, ref: ref, ctx: follow, deliver: m.deliver}
	m.beside(func() { // ends with follow
		of, about := m.space+" "+ref.Space+" "+ref.Doc, []any{"space", m.space, "source", ref.Space, "document", ref.Doc}
		retry(follow, m.cfg, "mirror document", of, about, func(ctx context.Context) error {
			return watch.Changes(ctx, first.take)
		})
	})
}

func (m *mirrors) unfollow(ref Ref) {
	m.all[ref]()
	delete(m.all, ref)
}

// followSpaces mirrors the list of the spaces that match a pattern.
func (m *mirrors) followSpaces(ctx context.Context, ref Ref) {
	of, about := m.space+" "+ref.Space, []any{"space", m.space, "spaces", ref.Space}
	retry(ctx, m.cfg, "list spaces", of, about, func(ctx context.Context) error {
		return m.cfg.directory.followSpaces(ctx, m.bus, ref.Space, func(v model.Value) { m.deliver(ref, mirrored{ctx: ctx, value: v}) })
	})
}

// computing is how long the absence of a document is held back while its owner computes it. Spaces that derive from each other wait for each other so long.
const computing = 5 * time.Second

// firstValue passes the values of a mirrored document on, beginning with one that its owner knows. The log does not have a derived document that nothing has
// observed so far, as in a space that has just been born: it is absent there until the demand of the mirror has reached the owner and the node has run.
// The reader must not see that, since it would commit what follows from it.
type firstValue struct {
	*loop
	ref     Ref
	ctx     context.Context // of the mirror
	deliver func(Ref, mirrored)

	mu sync.Mutex
	// taken is the number of values of the log so far, and ask ends the question to the owner; nil if no absence is held back.
	taken uint64
	ask   context.CancelFunc
}

// take passes a value of the log on. An absence that is the first value, or the first one after the store has gone back, is held back: any other one is a deletion.
func (f *firstValue) take(c history.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ask != nil {
		f.ask()
		f.ask = nil
	}
	m := mirrored{f.ctx, c.Value, c.Via, c.Trace}
	first := f.taken == 0 || c.Rewound // what was computed before may be lost
	f.taken++
	if !first || !c.Value.IsAbsent() || f.cfg.Computed == nil {
		f.deliver(f.ref, m)
		return
	}
	ctx, cancel := context.WithTimeout(f.ctx, computing)
	f.ask = cancel
	n := f.taken
	f.beside(func() { // ends with ctx
		defer cancel()
		f.hold(ctx, m, n)
	})
}

// hold passes an absence, the nth value, on when the owner has confirmed it or the time is over, unless the log has something newer by then.
func (f *firstValue) hold(ctx context.Context, m mirrored, n uint64) {
	exists, err := f.cfg.Computed(ctx, f.ref.Space, f.ref.Doc)
	if exists {
		<-ctx.Done() // when the value arrives from the log
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.taken != n || errors.Is(err, model.ErrStopped) {
		return
	}
	f.ask = nil
	f.deliver(f.ref, m) // which drops it if the mirror has ended
}
